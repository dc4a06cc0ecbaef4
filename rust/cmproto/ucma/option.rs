// SPDX-License-Identifier: GPL-2.0

//! The options of an id, with their values.

use crate::{cm::Tunable, errno::Errno, ucma_abi::OptionName};

/// The longest value that is accepted, in bytes (C's `KMALLOC_MAX_SIZE`).
pub const MAX_VALUE_LEN: u32 = 4 << 20;

/// The most bytes of a value that an [`IdOption`] has.
pub const VALUE_LEN: usize = 4;

/// An option of an id, with its value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum IdOption {
    /// Type of service of the path.
    Tos(u8),
    /// Set if the port may be shared.
    ReuseAddr(bool),
    /// Set if a wildcard address covers its own address family only.
    AfOnly(bool),
    /// Local ack timeout, an IBTA time code; any value is accepted.
    AckTimeout(u8),
    /// A tunable, and a valid value of it.
    Tuning(Tunable, u32),
}

impl IdOption {
    /// Parses the option `name` of `level`, with a value of `len` bytes that starts with `value`.
    ///
    /// # Errors
    ///
    /// - [`Errno::ENOSYS`] if there is no such option;
    /// - [`Errno::EINVAL`] if the value is not valid or does not have the length of the option.
    pub fn new(level: u32, name: u32, value: [u8; VALUE_LEN], len: u32) -> Result<Self, Errno> {
        let [byte, ..] = value;
        let flag = u32::from_ne_bytes(value) != 0;
        let (option, expected) = match OptionName::new(level, name)? {
            OptionName::Tos => (IdOption::Tos(byte), 1),
            OptionName::ReuseAddr => (IdOption::ReuseAddr(flag), 4),
            OptionName::AfOnly => (IdOption::AfOnly(flag), 4),
            OptionName::AckTimeout => (IdOption::AckTimeout(byte), 1),
            OptionName::Tuning(tunable) => {
                let number = u32::from_ne_bytes(value);
                // The length is checked first, because a value that is too short was not read
                // whole.
                if len != 4 {
                    return Err(Errno::EINVAL);
                }
                (IdOption::Tuning(tunable, tunable.check(number)?), 4)
            }
            // This option is not one of an id, and its value is larger than `value`.
            OptionName::IbPath => return Err(Errno::ENOSYS),
        };
        if len != expected {
            return Err(Errno::EINVAL);
        }
        Ok(option)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_option))]
mod tests {
    use super::*;

    #[test]
    fn names_and_lengths() {
        let one = 1u32.to_ne_bytes();
        let high = 0x8000_0000u32.to_ne_bytes();
        for (level, name, value, len, got) in [
            (0, 0, [46, 9, 9, 9], 1, Ok(IdOption::Tos(46))),
            (0, 0, [46, 0, 0, 0], 4, Err(Errno::EINVAL)),
            (0, 0, [0; 4], 0, Err(Errno::EINVAL)),
            (0, 1, [0; 4], 4, Ok(IdOption::ReuseAddr(false))),
            (0, 1, one, 4, Ok(IdOption::ReuseAddr(true))),
            (0, 1, high, 4, Ok(IdOption::ReuseAddr(true))),
            (0, 1, one, 1, Err(Errno::EINVAL)),
            (0, 2, one, 4, Ok(IdOption::AfOnly(true))),
            (0, 2, one, 8, Err(Errno::EINVAL)),
            (0, 3, [255, 0, 0, 0], 1, Ok(IdOption::AckTimeout(255))),
            (0, 3, one, 4, Err(Errno::EINVAL)),
            (0, 4, one, 4, Err(Errno::ENOSYS)),
            (0, u32::MAX, one, 0, Err(Errno::ENOSYS)),
            (1, 0, one, 1, Err(Errno::ENOSYS)),
            (1, 1, one, 72, Err(Errno::ENOSYS)),
            (2, 0, one, 1, Err(Errno::ENOSYS)),
            (
                0x5243_4d00,
                4,
                one,
                4,
                Ok(IdOption::Tuning(Tunable::EarlyRetry, 1)),
            ),
            (0x5243_4d00, 4, one, 1, Err(Errno::EINVAL)),
            (0x5243_4d00, 4, high, 4, Err(Errno::EINVAL)),
            (0x5243_4d00, 9, one, 4, Err(Errno::ENOSYS)),
            (
                0x5243_4d00,
                7,
                one,
                4,
                Ok(IdOption::Tuning(Tunable::DeadLink, 1)),
            ),
            (0x5243_4d00, 7, high, 4, Err(Errno::EINVAL)),
            (
                0x5243_4d00,
                8,
                one,
                4,
                Ok(IdOption::Tuning(Tunable::Keepalive, 1)),
            ),
            (0x5243_4d00, 8, high, 4, Err(Errno::EINVAL)),
        ] {
            assert_eq!(
                (level, name, len, IdOption::new(level, name, value, len)),
                (level, name, len, got)
            );
        }
    }
}
