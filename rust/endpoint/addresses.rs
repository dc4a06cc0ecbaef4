// SPDX-License-Identifier: GPL-2.0

//! The values that belong to the addresses of an endpoint, and the results of their resolution.

use crate::{
    ib::{addr::Query, dev_addr::DevAddr},
    table::port_spaces::PortClaim,
};
use cmproto::reuseport::PortGroup;

/// The values that belong to the addresses of an endpoint, and its claim to a port. The addresses
/// themselves are where ib_core reads them ([`Endpoint::src`](super::Endpoint::src)).
pub(crate) struct Addresses {
    /// Index of the interface that a link-local or resolved address belongs to; 0 for any.
    pub(crate) bound_if: i32,
    /// Set if a wildcard address covers its own address family only. It is the value of
    /// [`Options::afonly`](super::Options::afonly), or its default, when the address was bound.
    pub(crate) afonly: bool,
    /// The group of listeners that the endpoint is in, if it was bound to share its port, or that
    /// of its listener, if it is a request.
    pub(crate) port_group: Option<PortGroup>,
    pub(crate) port: Option<PortClaim>,
    /// The P_Key of the interface or of the native address; 0 if there is none.
    pub(crate) pkey: u16,
    /// Set when the consumer was told that the link-layer address of the peer has changed.
    pub(crate) has_reported_change: bool,
}

impl Addresses {
    /// The addresses of an endpoint that is not bound.
    pub(super) const UNKNOWN: Self = Self {
        bound_if: 0,
        afonly: false,
        port_group: None,
        port: None,
        pkey: 0,
        has_reported_change: false,
    };
}

/// The resolution of the peer's address, and its result.
pub(crate) struct AddrResolution {
    /// The address query that is under way, or the last one.
    pub(crate) query: Option<Query>,
    /// The interface and the link-layer addresses that the addresses were resolved to.
    pub(crate) dev_addr: Option<DevAddr>,
}

impl AddrResolution {
    /// The state before an address is resolved.
    pub(super) const NONE: Self = Self {
        query: None,
        dev_addr: None,
    };
}
