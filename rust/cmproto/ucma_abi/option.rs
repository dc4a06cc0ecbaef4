// SPDX-License-Identifier: GPL-2.0

//! The request to set an option, and the names of options.

use crate::{cm::Tunable, errno::Errno};

abi_structs! {
    /// The request of [`SetOption`](super::Command::SetOption) (`struct rdma_ucm_set_option`).
    pub struct SetOption: 24 {
        /// Address of the value.
        optval: u64 = 0,
        /// The id.
        id: u32 = 8,
        /// Level of the option.
        level: u32 = 12,
        /// Name of the option.
        optname: u32 = 16,
        /// Size of the value, in bytes.
        optlen: u32 = 20,
    }
}

/// An option that can be set, known by its level and name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OptionName {
    /// Type of service: one byte (level 0, name 0).
    Tos,
    /// Non-zero if the port may be shared: an `int` (level 0, name 1).
    ReuseAddr,
    /// Non-zero if a wildcard address covers its own address family only: an `int` (level 0, name
    /// 2).
    AfOnly,
    /// Local ack timeout, an IBTA time code: one byte (level 0, name 3).
    AckTimeout,
    /// The paths: an array of [`PathRecData`](super::PathRecData) (level 1, name 1).
    IbPath,
    /// A tunable: an `unsigned int` ([`LEVEL_TUNING`]; the name is the tunable's number).
    Tuning(Tunable),
}

/// The level of the options that C does not have: the bytes "RCM" and a zero. The levels of C are 0
/// and 1.
pub const LEVEL_TUNING: u32 = 0x5243_4d00;

impl OptionName {
    /// Returns the option with this level (`RDMA_OPTION_ID` 0, `RDMA_OPTION_IB` 1) and name.
    ///
    /// # Errors
    ///
    /// [`Errno::ENOSYS`] if there is no such option.
    pub fn new(level: u32, name: u32) -> Result<Self, Errno> {
        match (level, name) {
            (0, 0) => Ok(Self::Tos),
            (0, 1) => Ok(Self::ReuseAddr),
            (0, 2) => Ok(Self::AfOnly),
            (0, 3) => Ok(Self::AckTimeout),
            (1, 1) => Ok(Self::IbPath),
            (LEVEL_TUNING, number) => Tunable::try_from(number).map(Self::Tuning),
            _ => Err(Errno::ENOSYS),
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_abi_option)
)]
mod tests {
    use super::*;

    #[test]
    fn unknown_options_are_not_implemented() {
        assert_eq!(OptionName::new(0, 3), Ok(OptionName::AckTimeout));
        assert_eq!(OptionName::new(1, 1), Ok(OptionName::IbPath));
        let last = OptionName::Tuning(Tunable::Keepalive);
        assert_eq!(OptionName::new(0x5243_4d00, 8), Ok(last));
        for (level, name) in [
            (0, 4),
            (1, 0),
            (1, 2),
            (2, 0),
            (u32::MAX, 0),
            (0x5243_4d00, 9),
            (0x5243_4d01, 0),
        ] {
            assert_eq!(OptionName::new(level, name), Err(Errno::ENOSYS));
        }
    }
}
