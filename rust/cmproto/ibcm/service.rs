// SPDX-License-Identifier: GPL-2.0

//! The service ids that a consumer can listen on.

use crate::errno::Errno;

/// The first of the service ids that the CM assigns (`IB_CM_ASSIGN_SERVICE_ID`). A listener on it
/// asks for an assigned one. Host byte order.
pub const ASSIGN: u64 = 0x0200_0000_0000_0000;
/// The bits that tell assigned service ids from others (`IB_SERVICE_ID_AGN_MASK`).
const MASK: u64 = 0xff00_0000_0000_0000;

/// The service id that a listener asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedServiceId {
    /// A service id that the CM assigns.
    Assigned,
    /// The given service id, in host byte order.
    Exactly(u64),
}

/// Returns the service id that a listener on `service_id` asks for.
///
/// # Errors
///
/// [`Errno::EINVAL`] if `service_id` is in the range that the CM assigns from.
pub const fn requested_service_id(service_id: u64) -> Result<RequestedServiceId, Errno> {
    match service_id {
        ASSIGN => Ok(RequestedServiceId::Assigned),
        id if id & MASK == ASSIGN => Err(Errno::EINVAL),
        id => Ok(RequestedServiceId::Exactly(id)),
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ibcm_service)
)]
mod tests {
    use super::*;

    #[test]
    fn assigned_ones_cannot_be_named() {
        assert_eq!(
            requested_service_id(ASSIGN),
            Ok(RequestedServiceId::Assigned)
        );
        assert_eq!(requested_service_id(ASSIGN + 1), Err(Errno::EINVAL));
        assert_eq!(requested_service_id(ASSIGN | !MASK), Err(Errno::EINVAL));
        for id in [
            0,
            1,
            0x0106_4ee4,
            ASSIGN - 1,
            0x0300_0000_0000_0000,
            u64::MAX,
        ] {
            assert_eq!(
                requested_service_id(id),
                Ok(RequestedServiceId::Exactly(id))
            );
        }
    }
}
