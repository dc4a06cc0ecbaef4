// SPDX-License-Identifier: GPL-2.0

//! Address resolution: finds the device that leads to the peer's address, and the peer's link-layer
//! address.

use super::bind::interface_of;
use crate::{
    endpoint::{CallbackContext, Endpoint, EndpointRef, Event, Inner},
    ib::{
        addr::{self, AddrDone, Query, Started},
        debug::{self, Failure},
        dev_addr::DevAddr,
        gid::GidAttr,
        interface::Interface,
    },
};
use cmproto::{
    addr::{Gid, SockAddr},
    bind::Peer,
    cma::{State, Trigger},
    event::{self, Phase},
    stored_addr::StoredAddr,
    time::Duration,
    ucma_abi::CmEvent,
};
use kernel::{prelude::*, sync::Arc};

/// Returns the wildcard to which an endpoint is bound that resolves `dst`: of the same address
/// family, and with the scope of an IPv6 address or the P_Key of a native one.
fn any_source_for(dst: &SockAddr) -> SockAddr {
    match dst {
        SockAddr::Unspec | SockAddr::V4 { .. } => dst.wildcard(),
        SockAddr::V6 { scope_id, .. } => SockAddr::V6 {
            addr: [0; 16],
            port: 0,
            flowinfo: 0,
            scope_id: *scope_id,
        },
        SockAddr::Ib { pkey, .. } => SockAddr::ib(*pkey, Gid::ZERO, 0),
    }
}

/// Returns `new` with the port of `old`, or `old` if `new` is unspecified.
fn with_port_of(old: &SockAddr, new: &SockAddr) -> SockAddr {
    if new.is_unspec() {
        return *old;
    }
    new.with_port(old.port())
}

/// Returns the native address `addr` with another GID. Other addresses are returned as they are.
fn with_gid(mut addr: SockAddr, new: Gid) -> SockAddr {
    if let SockAddr::Ib { gid, .. } = &mut addr {
        *gid = new;
    }
    addr
}

impl Endpoint {
    /// Starts to resolve `dst`. The outcome is reported as an event.
    ///
    /// An endpoint that is not yet bound is bound to `src`, or to a wildcard if `src` is
    /// unspecified. A bound endpoint ignores `src`. `timeout_ms` limits the query, in milliseconds.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the address families differ, or if the scope of `dst` is another interface
    ///   than that of the source;
    /// - the errors of [`Endpoint::bind`] and of the route lookup.
    pub(crate) fn resolve_addr(
        self: &EndpointRef,
        src: &SockAddr,
        dst: &SockAddr,
        timeout_ms: u32,
    ) -> Result {
        let mut inner = self.inner.lock();
        let is_bound = inner.state() == State::AddrBound;
        if !is_bound {
            let src = if src.is_unspec() {
                any_source_for(dst)
            } else {
                *src
            };
            self.bind_to(&mut inner, &src, Some(dst))?;
        }
        if self.src(&inner).family() != dst.family() {
            return Err(EINVAL);
        }
        self.step(&mut inner, Trigger::ResolveAddr)?;
        // A query that has ended, or is about to end. Its callback finds that it is no longer
        // wanted.
        let before = inner.resolution.query.take();
        // An endpoint that was bound just now has its peer already.
        let previous = is_bound.then(|| self.dst(&inner));
        if is_bound {
            self.set_dst(&mut inner, dst);
        }
        let started = self.start_resolving(&mut inner, dst, timeout_ms);
        if started.is_err() {
            if let Some(previous) = previous {
                self.set_dst(&mut inner, &previous);
            }
            self.step(&mut inner, Trigger::AddrFailed)?;
        } else if let Some(port) = inner.addr.port.as_ref().filter(|_| is_bound) {
            port.update(|_, peer| *peer = Peer::of(dst));
        }
        drop(inner);
        drop(before);
        // A query that was cancelled ends without the lock.
        started.map(drop)
    }

    /// Starts to resolve `dst`. Returns a query that turned out to be needless and was cancelled.
    fn start_resolving(
        self: &EndpointRef,
        inner: &mut Inner,
        dst: &SockAddr,
        timeout_ms: u32,
    ) -> Result<Option<Query>> {
        if dst.is_any_or_loopback() {
            self.resolve_loopback(inner)?;
            return Ok(None);
        }
        if let SockAddr::Ib { gid, pkey, .. } = dst {
            self.resolve_native(inner, *gid, *pkey)?;
            return Ok(None);
        }
        // Without a scope, the routes determine the peer's interface.
        let interface = match (inner.addr.bound_if, interface_of(dst)?) {
            (0, interface) | (interface, 0) => interface,
            (interface, other) if interface == other => interface,
            // On another interface, the same link-local address is another peer.
            _ => return Err(EINVAL),
        };
        let own = self.src(inner).read();
        let started = match addr::lookup_ip(&self.net, &own, dst, interface) {
            Some((src, addr)) => Started::Known {
                src,
                addr,
                cancelled: None,
            },
            None => self.globals.resolver.resolve_ip(
                &self.net,
                &own,
                dst,
                interface,
                timeout_ms,
                CallbackContext::new(self)?,
            )?,
        };
        match started {
            Started::Known {
                src,
                addr,
                cancelled,
            } => {
                self.resolution_done(inner, Ok(Duration::ZERO), &src, &addr);
                Ok(cancelled)
            }
            Started::Pending(query) => {
                inner.resolution.query = Some(query);
                Ok(None)
            }
        }
    }

    /// Resolves a loopback address: attaches the endpoint to any device, preferably to one with a
    /// port that is up.
    fn resolve_loopback(self: &EndpointRef, inner: &mut Inner) -> Result {
        if inner.device.is_none() {
            let mut attachment = self.globals.devices.any_active(self.device_filter(inner))?;
            let pkey = attachment.device.device.pkey(attachment.port_num, 0)?;
            if attachment.is_ib() {
                let gid = GidAttr::get(&attachment.device.device, attachment.port_num, 0)?;
                attachment.gid = Some(gid);
            }
            self.attach(inner, attachment)?;
            inner.addr.pkey = pkey;
            let localhost = core::net::Ipv6Addr::LOCALHOST.octets();
            let src = match self.src(inner).read() {
                SockAddr::V4 { port, .. } => SockAddr::v4([127, 0, 0, 1], port),
                SockAddr::V6 { port, .. } => SockAddr::v6(localhost, port),
                other => with_gid(other, Gid(localhost)),
            };
            self.set_src(inner, &src);
        }
        self.addr_resolved(inner)
    }

    /// Resolves a native address: attaches the endpoint to a port that has the GID, or a GID with
    /// the same subnet prefix.
    fn resolve_native(self: &EndpointRef, inner: &mut Inner, gid: Gid, pkey: u16) -> Result {
        if inner.device.is_none() {
            let devices = self.device_filter(inner);
            let (attachment, own) =
                (self.globals.devices).by_native(devices, &self.net, gid, pkey)?;
            self.attach(inner, attachment)?;
            let src = with_gid(self.src(inner).read(), own);
            if let SockAddr::Ib { pkey, .. } = src {
                inner.addr.pkey = pkey;
            }
            self.set_src(inner, &src);
            if let Some(port) = &inner.addr.port {
                port.update(|binding, _| binding.set_addr(&src));
            }
        }
        self.addr_resolved(inner)
    }

    /// Reports that the address is resolved.
    fn addr_resolved(&self, inner: &mut Inner) -> Result {
        self.step(inner, Trigger::AddrResolved)?;
        self.deliver(inner, &Event::new(CmEvent::AddrResolved, 0));
        Ok(())
    }

    /// Reports the outcome of the address resolution, which has taken `took`, unless it is no
    /// longer wanted.
    fn resolution_done(
        self: &EndpointRef,
        inner: &mut Inner,
        took: Result<Duration>,
        src: &SockAddr,
        link: &DevAddr,
    ) {
        let (found, failure) = match took {
            Ok(took) => {
                let applied = self.apply_resolution(inner, src, link);
                if let (Ok(()), Some(port)) = (&applied, inner.cm_port()) {
                    port.counts.latencies.count(Phase::Address, took);
                }
                (applied, Failure::AddrWithoutDevice)
            }
            Err(error) => (Err(error), Failure::AddrUnresolved),
        };
        let resolved = (Trigger::AddrResolved, CmEvent::AddrResolved);
        let failed = (Trigger::AddrFailed, CmEvent::AddrError);
        self.query_done(inner, found, resolved, failed, failure);
    }

    /// Makes the transition of a query that has ended, and delivers its event: those of `resolved`,
    /// or those of `failed`, which is also logged as `failure`.
    pub(super) fn query_done(
        &self,
        inner: &mut Inner,
        found: Result,
        resolved: (Trigger, CmEvent),
        failed: (Trigger, CmEvent),
        failure: Failure,
    ) {
        let (status, (trigger, event)) = match found {
            Ok(()) => (0, resolved),
            Err(error) => (error.to_errno(), failed),
        };
        if status != 0 {
            debug::log(&self.id_priv, failure, status);
            if let Some(failure) = event::Failure::of_query(event, status) {
                self.tell_failure(inner, failure);
            }
        }
        if self.step(inner, trigger).is_ok() {
            self.deliver(inner, &Event::new(event, status));
        }
    }

    /// Attaches the endpoint to the device that was found, and stores what is known about the link.
    /// On failure nothing has changed.
    fn apply_resolution(
        self: &EndpointRef,
        inner: &mut Inner,
        src: &SockAddr,
        link: &DevAddr,
    ) -> Result {
        let before = self.src(inner).read();
        let src = with_port_of(&before, src);
        let attachment = match &inner.device {
            None => Some(self.attachment_at(self.device_filter(inner), &src, link)?),
            Some(_) => None,
        };
        self.set_src(inner, &src);
        if let Some(attachment) = attachment {
            if let Err(error) = self.attach(inner, attachment) {
                self.set_src(inner, &before);
                return Err(error);
            }
        }
        inner.addr.pkey = link.pkey();
        inner.resolution.dev_addr = Some(link.clone());
        inner.interface = Interface::of_link(link);
        if let Some(port) = &inner.addr.port {
            port.update(|binding, _| binding.set_addr(&src));
        }
        Ok(())
    }
}

impl AddrDone for CallbackContext {
    fn done(self: Arc<Self>, status: Result, src: SockAddr, link: &DevAddr) {
        let endpoint = self.endpoint();
        let mut inner = endpoint.inner.lock();
        if inner.state() != State::AddrQuery {
            return;
        }
        let query = inner.resolution.query.take();
        let took = status.map(|()| self.elapsed());
        endpoint.resolution_done(&mut inner, took, &src, link);
        drop(inner);
        drop(query);
    }
}
