// SPDX-License-Identifier: GPL-2.0

//! Error numbers between the protocol crate and the kernel crate.

use cmproto::errno::Errno;
use kernel::{error::to_result, prelude::*};

/// Converts an error of the protocol crate into one of the kernel crate.
///
/// Neither type is of this crate, so that `From` cannot be implemented; use
/// `.map_err(ToKernel::to_kernel)?` or [`ResultExt::kernel`].
pub(crate) trait ToKernel {
    /// Returns the same error as a kernel error.
    fn to_kernel(self) -> Error;
}

impl ToKernel for Errno {
    fn to_kernel(self) -> Error {
        // Every `Errno` is a small positive number.
        Error::from_errno(self.code().wrapping_neg())
    }
}

/// Converts whole results.
pub(crate) trait ResultExt<T> {
    /// Returns the same result with a kernel error.
    fn kernel(self) -> Result<T>;
}

impl<T> ResultExt<T> for core::result::Result<T, Errno> {
    fn kernel(self) -> Result<T> {
        self.map_err(Errno::to_kernel)
    }
}

/// Returns the error of the protocol crate with the number of `error`, if it has one.
pub(crate) fn to_protocol(error: Error) -> Option<Errno> {
    let code = error.to_errno().wrapping_neg();
    Errno::ALL.iter().copied().find(|e| e.code() == code)
}

/// Returns the error of a negative C return value that is known to be one.
///
/// Unlike [`Error::from_errno`], a value out of range is not logged; it gives [`EINVAL`].
pub(crate) fn from_code(code: i32) -> Error {
    match to_result(code) {
        Err(e) if code > -4096 => e,
        _ => EINVAL,
    }
}
