// SPDX-License-Identifier: GPL-2.0

//! Listening for connection requests.

use crate::{
    endpoint::{Endpoint, EndpointRef, Inner},
    kext::delay,
    table::{listeners::AddressListener, wildcard_listeners::DeviceListeners},
};
use cmproto::{
    addr::SockAddr,
    cma::{State, Trigger},
    stored_addr::StoredAddr,
};
use kernel::prelude::*;

impl Endpoint {
    /// Starts to listen. `backlog` is the number of requests that an iWARP device queues for the
    /// endpoint.
    ///
    /// An endpoint without an address is bound to the IPv4 wildcard and an ephemeral port.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed, except that the endpoint may have been bound.
    ///
    /// - `EINVAL` in any other state than bound or new, or if a consumer of the InfiniBand CM has
    ///   the service id;
    /// - the errors of [`Endpoint::bind`] if the address is shared with an endpoint of no group or
    ///   of another one;
    /// - `EMFILE` if too many share the address;
    /// - the errors of an iWARP device that cannot listen, such as `EADDRINUSE`.
    pub(crate) fn listen(self: &EndpointRef, backlog: u32) -> Result {
        let mut inner = self.inner.lock();
        if inner.state() != State::AddrBound {
            let any = SockAddr::v4([0; 4], 0);
            self.bind_to(&mut inner, &any, None)?;
        }
        let reuseaddr = inner.options.reuseaddr;
        self.listen_locked(&mut inner, backlog)?;
        let is_wildcard = inner.device.is_none();
        drop(inner);
        delay::point();
        let listens = if is_wildcard {
            self.add_device_listeners(backlog)
        } else {
            self.listen_iwarp(backlog)
        };
        listens.inspect_err(|_| self.unlisten(reuseaddr))
    }

    /// Undoes the steps before an iWARP device failed to listen.
    fn unlisten(self: &EndpointRef, reuseaddr: bool) {
        let listening = {
            let mut inner = self.inner.lock();
            // An endpoint that has ended meanwhile has nothing left that could be undone.
            let _ = self.step(&mut inner, Trigger::ListenFailed);
            inner.options.reuseaddr = reuseaddr;
            if let Some(port) = &inner.addr.port {
                port.update(|binding, _| binding.set_reuseaddr(reuseaddr));
            }
            inner.listening.take()
        };
        delay::point();
        drop(listening);
        self.end_unresolved();
    }

    fn listen_locked(self: &EndpointRef, inner: &mut Inner, backlog: u32) -> Result {
        let attachment = inner.device.as_ref();
        let listener = AddressListener {
            endpoint: self.clone(),
            afonly: inner.addr.afonly,
            bound_if: inner.addr.bound_if,
            backlog,
            devices: self.device_filter(inner),
            port: attachment.map(|attachment| attachment.port_num),
            port_group: inner.addr.port_group,
        };
        let service_id = self.src(inner).service_id(self.ps);
        let (net, number) = (self.net.hash_key(), self.number);
        let globals = &self.globals;
        let at_devices = match attachment {
            Some(_) => None,
            None => Some(DeviceListeners::new(&globals.wildcard_listeners, number)),
        };
        // From the first moment on requests find it.
        self.vacancy.open();
        let listeners = &globals.listeners;
        let listening = listeners.add(service_id, net, number, listener, at_devices)?;
        // A listener shares its address with its group only. This comes last because it changes the
        // owner of the port, and must not if something else fails.
        if let Some(port) = &inner.addr.port {
            port.make_exclusive()?;
        }
        inner.options.reuseaddr = false;
        inner.listening = Some(listening);
        self.step(inner, Trigger::Listen)
    }
}
