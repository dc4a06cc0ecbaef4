// SPDX-License-Identifier: GPL-2.0

//! Checks of a consumer's parameters.

use crate::errno::Errno;

/// Returns the private data that a consumer has given for a message with room for `max` bytes.
/// Without `data` it is empty, as for a null pointer with any length.
///
/// # Errors
///
/// [`Errno::EINVAL`] if the data is longer than `max` bytes.
pub const fn payload(data: Option<&[u8]>, max: usize) -> Result<&[u8], Errno> {
    match data {
        None => Ok(&[]),
        Some(data) if data.len() <= max => Ok(data),
        Some(_) => Err(Errno::EINVAL),
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ibcm_param)
)]
mod tests {
    use super::*;

    #[test]
    fn data() {
        assert_eq!(payload(None, 0), Ok(&[][..]));
        assert_eq!(payload(Some(&[7; 92]), 92), Ok(&[7; 92][..]));
        assert_eq!(payload(Some(&[7; 93]), 92), Err(Errno::EINVAL));
    }
}
