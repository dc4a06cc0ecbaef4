// SPDX-License-Identifier: GPL-2.0

//! The status of a service id resolution (IBTA 12.11.2.3).

use core::ffi::CStr;

/// Status field of a SIDR_REP: any 8-bit number, few of which have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u8);

impl Status {
    /// The SIDR_REP names a queue pair.
    pub const SUCCESS: Self = Self(0);
    /// The service id is not supported: nobody listens.
    pub const UNSUPPORTED: Self = Self(1);
    /// The service rejects the request.
    pub const REJECT: Self = Self(2);
    /// The service has no queue pair for the request.
    pub const NO_QP: Self = Self(3);

    /// Returns the meaning as text.
    pub const fn message(self) -> &'static CStr {
        match self.0 {
            0 => c"success",
            1 => c"service ID not supported",
            2 => c"rejected",
            3 => c"no queue pair",
            4 => c"redirect",
            5 => c"unsupported version",
            _ => c"unrecognized status",
        }
    }

    /// Returns whether the SIDR_REP names a queue pair.
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }
}
