// SPDX-License-Identifier: GPL-2.0

//! Errors that the kernel crate does not name.

use super::number::numbers;
use kernel::prelude::*;

numbers! {
    /// An error, without its sign.
    Errno {
        EADDRINUSE = EADDRINUSE,
        EADDRNOTAVAIL = EADDRNOTAVAIL,
        EAFNOSUPPORT = EAFNOSUPPORT,
        EALREADY = EALREADY,
        ECONNREFUSED = ECONNREFUSED,
        ECONNRESET = ECONNRESET,
        EINVAL = EINVAL,
        EISCONN = EISCONN,
        ENODATA = ENODATA,
        ENETUNREACH = ENETUNREACH,
        EOPNOTSUPP = EOPNOTSUPP,
        ETIMEDOUT = ETIMEDOUT,
    }
}

impl Errno {
    /// Returns the result of a function that fails with this.
    pub(crate) fn failure(self) -> Result {
        Err(Error::from_errno(self.failed()))
    }

    /// The status of an event that tells of it.
    pub(crate) const fn failed(self) -> i32 {
        self.status().wrapping_neg()
    }
}
