// SPDX-License-Identifier: GPL-2.0

//! The addresses of both ends, which are in the part of an endpoint that ib_core reads.

use super::{Endpoint, Inner};
use crate::ib::{device_filter::DeviceFilter, restrack::ShownAddr};
use cmproto::{
    addr::{SockAddr, AF_IB},
    stored_addr::StoredAddr,
    ucma::query::shown_peer,
};

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
