// SPDX-License-Identifier: GPL-2.0

//! The addresses of an endpoint, and the results of their resolution.

use super::{Endpoint, Inner};
use crate::{
    ib::{addr::Query, dev_addr::DevAddr, device_filter::DeviceFilter, restrack::ShownAddr},
    table::port_spaces::PortClaim,
};
use cmproto::{
    addr::{SockAddr, AF_IB},
    reuseport::PortGroup,
    stored_addr::StoredAddr,
    ucma::query::shown_peer,
};

/// What belongs to the addresses of an endpoint, and its claim to a port. The addresses themselves
/// are where ib_core reads them ([`Endpoint::src`]).
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

impl Endpoint {
    /// Returns the source address. `inner` is what the lock of this endpoint protects.
    #[inline]
    pub(crate) fn src<'a>(&'a self, _inner: &'a Inner) -> ShownAddr<'a> {
        self.id_priv.src()
    }

    /// Returns the address of the peer, if it is known. `inner` is as for [`Endpoint::src`].
    pub(crate) fn dst(&self, inner: &Inner) -> SockAddr {
        match inner.has_dst {
            true => self.shown_dst(inner).read(),
            false => SockAddr::Unspec,
        }
    }

    /// Returns the address of the peer as ib_core reads it. As in C, one that is not known has the
    /// family of the source address. `inner` is as for [`Endpoint::src`].
    #[inline]
    pub(crate) fn shown_dst<'a>(&'a self, _inner: &'a Inner) -> ShownAddr<'a> {
        self.id_priv.dst()
    }

    /// Sets the addresses. `inner` is as for [`Endpoint::src`].
    pub(crate) fn set_addresses(&self, inner: &mut Inner, src: &SockAddr, dst: &SockAddr) {
        inner.has_dst = !dst.is_unspec();
        self.id_priv.set_src(src);
        self.id_priv.set_dst(&shown_peer(src, dst));
    }

    /// Sets the source address, like [`Endpoint::set_addresses`].
    pub(crate) fn set_src(&self, inner: &mut Inner, src: &SockAddr) {
        self.id_priv.set_src(src);
        if !inner.has_dst {
            self.id_priv.set_dst(&src.wildcard());
        }
    }

    /// Sets the address of the peer, like [`Endpoint::set_addresses`].
    pub(crate) fn set_dst(&self, inner: &mut Inner, dst: &SockAddr) {
        inner.has_dst = !dst.is_unspec();
        let shown = shown_peer(&self.src(inner).read(), dst);
        self.id_priv.set_dst(&shown);
    }

    /// Returns whether the source address is a native one (`AF_IB`).
    pub(crate) fn is_native(&self) -> bool {
        self.src(&self.inner.lock()).family() == AF_IB
    }

    /// Returns the devices for the endpoint. For an attached endpoint that is its device only.
    pub(crate) fn device_filter(&self, inner: &Inner) -> DeviceFilter {
        let at = inner.device.as_ref();
        DeviceFilter {
            only: at.map(|attachment| attachment.device.device.index()),
            node_type: inner.options.node_type,
            is_native: self.src(inner).family() == AF_IB,
        }
    }
}
