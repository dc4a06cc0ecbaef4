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
        let listening = self.core.listeners.add(service_id, listener)?;
        // A listener shares its address with nobody. This comes last: it takes something from the
        // endpoint and from others, and that only when nothing else can fail.
        let exclusive = match &inner.port {
            Some(port) => self.core.ports.make_exclusive(port),
            None => Ok(()),
        };
        if let Err(error) = exclusive {
            self.core.listeners.remove(listening, self);
            return Err(error);
        }
        inner.options.reuseaddr = false;
        inner.listening = Some(listening);
        self.set_state(inner, State::Listen);
        Ok(())
    }
}
