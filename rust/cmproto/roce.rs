// SPDX-License-Identifier: GPL-2.0

//! The settings of a RoCE port, as an administrator writes them.

use crate::errno::Errno;

/// The RoCE version of connections, unless their route determines another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceMode {
    /// InfiniBand or RoCE v1, whichever the port has.
    V1,
    /// RoCE v2.
    V2,
}

impl RoceMode {
    /// Returns the kernel's name of the mode.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "IB/RoCE v1",
            Self::V2 => "RoCE v2",
        }
    }

    /// Parses the name of a mode, which a line feed may follow.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if there is no such mode.
    pub fn parse(text: &[u8]) -> Result<Self, Errno> {
        let name = text.strip_suffix(b"\n").unwrap_or(text);
        [Self::V1, Self::V2]
            .into_iter()
            .find(|mode| mode.name().as_bytes() == name)
            .ok_or(Errno::EINVAL)
    }
}

/// Parses a type of service as the kernel does (`kstrtou8()` with base 0).
///
/// # Errors
///
/// - [`Errno::EINVAL`] if `text` is not a number;
/// - [`Errno::ERANGE`] if the number is greater than 255.
pub fn parse_tos(text: &[u8]) -> Result<u8, Errno> {
    u8::try_from(parse_number(text)?).map_err(|_| Errno::ERANGE)
}

/// Parses a number as the kernel does (`kstrtouint()` with base 0): decimal, octal with a leading
/// 0, hexadecimal with a leading 0x. A plus sign may come first, and a line feed last.
///
/// # Errors
///
/// - [`Errno::EINVAL`] if `text` is not a number;
/// - [`Errno::ERANGE`] if the number does not fit into 32 bits.
pub fn parse_number(text: &[u8]) -> Result<u32, Errno> {
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (radix, digits) = match text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, rest)
        }
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    let mut value: Option<u64> = Some(0);
    let mut rest = digits;
    while let [first, after @ ..] = rest {
        let Some(digit) = char::from(*first).to_digit(radix) else {
            break;
        };
        value = value
            .and_then(|value| value.checked_mul(u64::from(radix)))
            .and_then(|value| value.checked_add(u64::from(digit)));
        rest = after;
    }
    if rest.len() == digits.len() {
        return Err(Errno::EINVAL);
    }
    let value = value.ok_or(Errno::ERANGE)?;
    match rest {
        [] | [b'\n'] => u32::try_from(value).map_err(|_| Errno::ERANGE),
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_roce))]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        assert_eq!(RoceMode::parse(b"RoCE v2\n"), Ok(RoceMode::V2));
        assert_eq!(RoceMode::parse(b"RoCE v2"), Ok(RoceMode::V2));
        assert_eq!(RoceMode::parse(b"IB/RoCE v1"), Ok(RoceMode::V1));
        for wrong in [
            "",
            "\n",
            "RoCE",
            "RoCE v2 ",
            "RoCE v2\n\n",
            "roce v2",
            "RoCE v1",
        ] {
            assert_eq!(RoceMode::parse(wrong.as_bytes()), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(parse_number(b"4294967295\n"), Ok(u32::MAX));
        assert_eq!(parse_number(b"4294967296"), Err(Errno::ERANGE));
        assert_eq!(parse_number(b"-1"), Err(Errno::EINVAL));
    }

    #[test]
    fn types_of_service() {
        for (text, value) in [
            ("0", 0),
            ("32\n", 32),
            ("+7", 7),
            ("0x1f", 31),
            ("0XFF\n", 255),
            ("010", 8),
            ("00", 0),
        ] {
            assert_eq!((text, parse_tos(text.as_bytes())), (text, Ok(value)));
        }
        for text in [
            "", "\n", "-1", "abc", "0x", "08", "3 ", "3\n\n", "++3", "300x",
        ] {
            assert_eq!(
                (text, parse_tos(text.as_bytes())),
                (text, Err(Errno::EINVAL))
            );
        }
        for text in [
            "256",
            "0x100",
            "99999999999999999999",
            "99999999999999999999x",
        ] {
            assert_eq!(
                (text, parse_tos(text.as_bytes())),
                (text, Err(Errno::ERANGE))
            );
        }
    }
}
