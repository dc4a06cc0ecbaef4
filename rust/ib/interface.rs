// SPDX-License-Identifier: GPL-2.0

//! The network interface that messages are sent from.

use super::dev_addr::DevAddr;
use crate::kext::netdev::NetDevice;
use core::num::NonZeroI32;

/// An Ethernet address, or the last six bytes of an IPoIB address, which are part of the port's
/// GUID.
pub(crate) type Mac = [u8; 6];

/// The interface that an endpoint sends from, and its link-layer address at the time of resolution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The index of the interface, which is never 0.
    pub(crate) index: NonZeroI32,
    /// The link-layer address.
    pub(crate) mac: Mac,
}

impl Interface {
    /// Returns the interface with its current address. Returns `None` if its address is shorter
    /// than six bytes.
    pub(crate) fn of(netdev: &NetDevice) -> Option<Self> {
        let (addr, len) = netdev.hw_addr();
        Some(Interface {
            index: NonZeroI32::new(netdev.ifindex())?,
            mac: *addr.get(..len)?.last_chunk()?,
        })
    }

    /// Returns the interface of a link. Returns `None` for a link that has none.
    pub(crate) fn of_link(link: &DevAddr) -> Option<Self> {
        Some(Interface {
            index: NonZeroI32::new(link.bound_dev_if)?,
            mac: match link.ipoib() {
                Some(ipoib) => ipoib.own_guid_tail(),
                None => link.src_mac(),
            },
        })
    }
}
