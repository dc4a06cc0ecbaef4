// SPDX-License-Identifier: GPL-2.0

//! What the answer to a service id resolution says (IBTA 12.11.2.3).

/// The status field of a SIDR_REP: any 8-bit number, most of them without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u8);

impl Status {
    /// The answer names a queue pair.
    pub const SUCCESS: Self = Self(0);
    /// Nobody serves this service id.
    pub const UNSUPPORTED: Self = Self(1);
    /// The service refuses.
    pub const REJECT: Self = Self(2);
    /// There is no queue pair for it.
    pub const NO_QP: Self = Self(3);
    /// Another channel adapter serves it.
    pub const REDIRECT: Self = Self(4);
    /// This version of the protocol is not supported.
    pub const UNSUPPORTED_VERSION: Self = Self(5);

    /// Whether the answer names a queue pair.
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }
}
