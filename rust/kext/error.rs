// SPDX-License-Identifier: GPL-2.0

//! Conversion of error numbers between the protocol crate and the kernel crate.

use cmproto::errno::Errno;
use kernel::{error::to_result, prelude::*};

/// Converts an error of the protocol crate into one of the kernel crate.
///
/// Both types are foreign to this crate, so that `From` cannot be implemented. Use
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

/// Converts a result of the protocol crate into one of the kernel crate.
pub(crate) trait ResultExt<T> {
    /// Returns the same result with a kernel error.
    fn kernel(self) -> Result<T>;
}

impl<T> ResultExt<T> for core::result::Result<T, Errno> {
    fn kernel(self) -> Result<T> {
        self.map_err(Errno::to_kernel)
    }
}

/// Returns the protocol crate's error with the number of `error`, or `EINVAL` if there is none.
pub(crate) fn to_protocol(error: Error) -> Errno {
    let code = error.to_errno().wrapping_neg();
    let found = Errno::ALL.iter().copied().find(|e| e.code() == code);
    found.unwrap_or(Errno::EINVAL)
}

/// Returns the error for a negative return value of a C function.
///
/// A value that is not an error number gives [`EINVAL`]. Unlike [`Error::from_errno`], this does
/// not log it.
pub(crate) fn from_code(code: i32) -> Error {
    match to_result(code) {
        Err(e) if code > -4096 => e,
        _ => EINVAL,
    }
}
