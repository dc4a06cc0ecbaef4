// SPDX-License-Identifier: GPL-2.0

//! Wildcard listeners at each device: what is listed of them there, and listeners over iWARP.

use crate::{
    endpoint::{CmDevice, Endpoint, EndpointRef},
    globals::Globals,
    ib::{iw::IwListener, restrack::RdmaIdPrivate},
    kext::{delay, net::Net},
    table::wildcard_listeners::DeviceListener,
};
use cmproto::{cma::State, stored_addr::StoredAddr};
use kernel::{prelude::*, sync::Arc};

/// The way in which a wildcard listener takes requests at a device.
enum ListenMode {
    /// The listener takes none.
    None,
    /// The listener is found for each request by a lookup.
    Matched,
    /// The listener has an object of its own at the iWARP CM.
    Iwarp(IwListener),
}

impl Endpoint {
    /// Returns the mode in which a wildcard listener listens at `device`.
    ///
    /// It gets an iWARP listener only where that can receive requests: the socket is made in the
    /// network namespace of the current task, which must be that of the listener and that of the
    /// device.
    fn listen_mode_at(self: &EndpointRef, device: &CmDevice, backlog: u32) -> Result<ListenMode> {
        if !self
            .device_filter(&self.inner.lock())
            .admits(&device.traits)
        {
            return Ok(ListenMode::None);
        }
        let Some(port) = device.iwarp_port() else {
            return Ok(ListenMode::Matched);
        };
        let is_here = device.device.access_netns(&self.net)
            && device.is_iwarp_in(port, &self.net)
            && *Net::current() == *self.net;
        if !is_here {
            return Ok(ListenMode::Matched);
        }
        Ok(ListenMode::Iwarp(self.listener_at(device, backlog)?))
    }

    /// Adds the entry of a wildcard listener at `device`, and makes it listen there if the device
    /// is an iWARP one.
    fn add_device_listener(self: &EndpointRef, device: &CmDevice, backlog: u32) -> Result {
        // The listener or the device, which was found without a lock that is still held, may end at
        // any of these points.
        delay::point();
        let iwarp = match self.listen_mode_at(device, backlog)? {
            ListenMode::None => return Ok(()),
            ListenMode::Matched => None,
            ListenMode::Iwarp(listener) => Some(listener),
        };
        let (src, dst) = {
            let inner = self.inner.lock();
            (self.src(&inner).read(), self.dst(&inner))
        };
        delay::point();
        let id_priv = RdmaIdPrivate::new(self.ps.number(), self.qp_type);
        let entry = DeviceListener::new(id_priv, iwarp)?;
        let id_priv = entry.id_priv();
        id_priv.own_as(&self.id_priv);
        id_priv.set_src(&src);
        id_priv.set_dst(&dst);
        id_priv.set_state(State::Listen as u32);
        delay::point();
        id_priv.add(&device.device, 0)?;
        delay::point();
        let entries = &self.globals.wildcard_listeners;
        entries.insert(self.number, device.device.index(), entry.clone());
        delay::point();
        // The listener or the device may have ended meanwhile, and may not have found the entry,
        // which keeps the device.
        if self.inner.lock().state() != State::Listen || device.members.is_closed() {
            entries.remove(&entry);
        }
        Ok(())
    }

    /// Adds the entries of a wildcard listener at all devices. Fails if it cannot listen at an
    /// iWARP device.
    pub(super) fn add_device_listeners(self: &EndpointRef, backlog: u32) -> Result {
        let failed = self.globals.devices.find_map(|device| {
            let added = self.add_device_listener(device, backlog);
            // At other devices the listener takes requests without an entry.
            device.iwarp_port().and(added.err())
        });
        failed.map_or(Ok(()), Err)
    }
}

impl Globals {
    /// Adds the entries of all wildcard listeners at a new device.
    pub(super) fn add_wildcard_listeners_at(&self, device: &Arc<CmDevice>) {
        self.listeners.for_each(|listener| {
            if listener.devices.is_wildcard() {
                let _ = listener
                    .endpoint
                    .add_device_listener(device, listener.backlog);
            }
        });
    }
}
