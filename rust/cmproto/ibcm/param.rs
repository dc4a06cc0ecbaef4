// SPDX-License-Identifier: GPL-2.0

//! Checks of a consumer's parameters.

use crate::{errno::Errno, wire::Transport};

/// The QP type of reliable connections, `IB_QPT_RC`.
const QPT_RC: u32 = 2;
/// The QP type of unreliable connections, `IB_QPT_UC`.
const QPT_UC: u32 = 3;
/// The QP type of the initiator of an extended reliable connection, `IB_QPT_XRC_INI`.
const QPT_XRC_INI: u32 = 9;

/// Returns the transport of a connection with a queue pair of `qp_type`, an `enum ib_qp_type`.
///
/// # Errors
///
/// [`Errno::EINVAL`] if such a queue pair does not connect.
pub const fn transport(qp_type: u32) -> Result<Transport, Errno> {
    match qp_type {
        QPT_RC => Ok(Transport::Rc),
        QPT_UC => Ok(Transport::Uc),
        QPT_XRC_INI => Ok(Transport::Xrc),
        _ => Err(Errno::EINVAL),
    }
}

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
    fn transports() {
        for qp_type in 0..=256 {
            let wanted = match qp_type {
                2 => Ok(Transport::Rc),
                3 => Ok(Transport::Uc),
                9 => Ok(Transport::Xrc),
                _ => Err(Errno::EINVAL),
            };
            assert_eq!(transport(qp_type), wanted);
        }
    }

    #[test]
    fn data() {
        assert_eq!(payload(None, 0), Ok(&[][..]));
        assert_eq!(payload(Some(&[7; 92]), 92), Ok(&[7; 92][..]));
        assert_eq!(payload(Some(&[7; 93]), 92), Err(Errno::EINVAL));
    }
}
