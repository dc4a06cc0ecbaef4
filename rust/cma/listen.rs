// SPDX-License-Identifier: GPL-2.0

//! Listening for connection requests.

use super::listeners::Listener;
use crate::{
    endpoint::{Endpoint, EndpointRef, Inner},
    kext::delay,
};
use cmproto::{addr::SockAddr, cma::State, service_id::ServiceId};
use kernel::prelude::*;

impl Endpoint {
    /// Starts to listen. An iWARP device keeps `backlog` requests for the endpoint.
    ///
    /// An endpoint without an address is bound to the IPv4 wildcard and an ephemeral port. Fails
    /// with `EINVAL` in any other state than bound or new, with the errors of [`Endpoint::bind`],
    /// if the address is shared with others, and if an iWARP device cannot listen, for instance with
    /// `EADDRINUSE`; nothing has changed then, except that the endpoint may have been bound.
    pub(crate) fn listen(self: &EndpointRef, backlog: u32) -> Result {
        let mut inner = self.inner.lock();
        if inner.state != State::AddrBound {
            let any = SockAddr::V4 {
                addr: [0; 4],
                port: 0,
            };
            self.bind_to(&mut inner, &any, None)?;
        }
        let reuseaddr = inner.options.reuseaddr;
        self.listen_locked(&mut inner, backlog)?;
        let is_wildcard = inner.device.is_none();
        drop(inner);
        delay::point();
        let listens = if is_wildcard {
            self.core.show_listener(self, backlog)
        } else {
            self.listen_iwarp(backlog)
        };
        listens.inspect_err(|_| self.unlisten(reuseaddr))
    }

    /// Undoes what was done before a device could not listen, unless the endpoint has ended meanwhile.
    fn unlisten(self: &EndpointRef, reuseaddr: bool) {
        let listening = {
            let mut inner = self.inner.lock();
            if inner.state != State::Listen {
                return;
            }
            inner.options.reuseaddr = reuseaddr;
            if let Some(port) = &inner.port {
                self.core
                    .ports
                    .update(port, |owner| owner.reuseaddr = reuseaddr);
            }
            self.set_state(&mut inner, State::AddrBound);
            inner.listening.take()
        };
        delay::point();
        if let Some(listening) = listening {
            self.core.listeners.remove(listening, self);
        }
        self.core.unreached.end_of(self);
        self.core.stubs.hide(self.number);
    }

    fn listen_locked(self: &EndpointRef, inner: &mut Inner, backlog: u32) -> Result {
        if let Some(port) = &inner.port {
            // A listener shares its address with nobody.
            self.core.ports.make_exclusive(port)?;
        }
        inner.options.reuseaddr = false;
        let attachment = inner.device.as_ref();
        let listener = Listener {
            endpoint: self.clone(),
            addr: inner.src,
            afonly: inner.afonly,
            bound_if: inner.bound_if,
            backlog,
            devices: inner.device_filter(),
            port: attachment.map(|attachment| attachment.port_num),
        };
        let service_id = ServiceId::of_address(self.ps, &inner.src);
        inner.listening = Some(self.core.listeners.add(service_id, listener)?);
        self.set_state(inner, State::Listen);
        Ok(())
    }
}
