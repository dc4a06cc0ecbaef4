// SPDX-License-Identifier: GPL-2.0

//! A local address, by which a device is looked up.

use crate::kext::{net::Net, netdev::NetDevice};
use cmproto::addr::{Gid, SockAddr};

/// The kind of link that a local address belongs to.
#[derive(Clone, Copy)]
pub(crate) enum SourceLink {
    /// InfiniBand; the port has this GID.
    InfiniBand(Gid),
    /// Any other link.
    Other,
}

/// A local address, and the namespace, interface and link that it belongs to.
pub(crate) struct Source<'a> {
    pub(crate) addr: &'a SockAddr,
    /// The network namespace.
    pub(crate) net: &'a Net,
    /// The interface that has the address; `None` for a native address.
    pub(crate) interface: Option<&'a NetDevice>,
    /// The kind of link.
    pub(crate) link: SourceLink,
}
