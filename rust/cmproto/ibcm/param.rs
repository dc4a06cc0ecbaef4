// SPDX-License-Identifier: GPL-2.0

//! Parameters of a consumer.

use crate::{errno::Errno, wire::Transport};

/// `enum ib_qp_type` of reliable connections.
const QPT_RC: u32 = 2;
/// `enum ib_qp_type` of unreliable connections.
const QPT_UC: u32 = 3;
/// `enum ib_qp_type` of the initiating end of extended reliable connections.
const QPT_XRC_INI: u32 = 9;

/// The transport of a connection that a queue pair of `qp_type`, an `enum ib_qp_type`, asks for.
///
/// # Errors
///
/// `EINVAL`: such a queue pair does not connect.
pub const fn transport(qp_type: u32) -> Result<Transport, Errno> {
    match qp_type {
        QPT_RC => Ok(Transport::Rc),
        QPT_UC => Ok(Transport::Uc),
        QPT_XRC_INI => Ok(Transport::Xrc),
        _ => Err(Errno::EINVAL),
    }
}

/// The data that a consumer has given, of which a message holds `max` bytes. What it has not given
/// is empty, whatever length it says.
///
/// # Errors
///
/// `EINVAL`: there is more than fits.
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
