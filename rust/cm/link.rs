// SPDX-License-Identifier: GPL-2.0

//! The link below a connection, which is its own interface, or on InfiniBand its own port.
//!
//! A change of a link is only noted where it is told of. A work item looks at the link of each
//! connection with the connection's lock held. So of several work items about one link, the last
//! one to look sees what the link has come to.

use crate::{
    endpoint::{Connection, Endpoint, EndpointRef, IdKind, Inner},
    globals::Globals,
    kext::netdev::NetDevice,
};
use cmproto::{cm::Tunable, time::Duration, ucma::query::Protocol};
use kernel::{
    alloc::flags::GFP_KERNEL,
    sync::{atomic::Relaxed, Arc},
};

/// The link below some connections.
#[derive(Clone, Copy)]
pub(crate) enum Link {
    /// An interface.
    Interface {
        /// The network namespace ([`crate::kext::net::Net::hash_key`]).
        net: u64,
        /// The index of the interface.
        index: i32,
    },
    /// A port with an InfiniBand link.
    Port {
        /// The index of the device.
        device: u32,
        /// The number of the port.
        port: u32,
    },
}

impl Globals {
    /// Tells the connections over a link that it has come up, or has gone down, later. May sleep.
    pub(crate) fn link_changed(self: &Arc<Self>, link: Link, is_up: bool) {
        let this = self.clone();
        let tell = move || {
            let is_any = this.minds_links.load(Relaxed);
            let _: Option<()> = this.devices.find_map(|device| {
                let mut ports = device.ports();
                if is_any || ports.any(|port| port.tuned(Tunable::DeadLink) != 0) {
                    device
                        .members
                        .for_each(|member| member.link_changed(&link, is_up));
                }
                None
            });
        };
        // Without memory, the connections are not told.
        let _ = self.neighbours.queue().try_spawn(GFP_KERNEL, tell);
    }
}

impl Endpoint {
    /// Handles a change of `link`, which has come up or gone down.
    fn link_changed(self: &EndpointRef, link: &Link, is_up: bool) {
        let now = self.globals.now();
        let mut inner = self.inner.lock();
        // The InfiniBand CM has no event for that.
        if self.kind == IdKind::IbCm || !self.is_over(&inner, link) {
            return;
        }
        // An outage before this one is over, however short the time between them was.
        if is_up {
            self.watch(&mut inner, Connection::link_up);
        }
        let patience = inner.tuned(Tunable::DeadLink);
        if patience != 0 && !self.has_link(&inner) {
            let patience = Duration::from_millis(patience.into());
            self.watch(&mut inner, |machine| machine.link_down(patience, now));
        }
    }

    /// Looks at the link of a connection that has waited for it long enough. Returns true if it is
    /// up after all, which ends the wait.
    pub(super) fn has_link_again(self: &EndpointRef, inner: &mut Inner) -> bool {
        let conn = inner.exchange.conn();
        let is_back = conn.is_some_and(|conn| conn.machine.is_link_down()) && self.has_link(inner);
        if is_back {
            self.watch(inner, Connection::link_up);
        }
        is_back
    }

    /// Returns whether the endpoint is one over `link`.
    fn is_over(&self, inner: &Inner, link: &Link) -> bool {
        let Some(attachment) = &inner.device else {
            return false;
        };
        match (attachment.protocol, link) {
            (Protocol::Roce, Link::Interface { net, index }) => {
                let own = inner.interface;
                own.is_some_and(|own| own.index.get() == *index) && self.net.hash_key() == *net
            }
            (Protocol::Ib, Link::Port { device, port }) => {
                attachment.device.device.index() == *device && attachment.port_num == *port
            }
            _ => false,
        }
    }

    /// Returns whether the link of the endpoint is up.
    fn has_link(&self, inner: &Inner) -> bool {
        match &inner.device {
            Some(attachment) if attachment.is_ib() => {
                let state = attachment.device.device.port_state(attachment.port_num);
                state.is_ok_and(|state| state.is_active())
            }
            _ => inner.interface.is_some_and(|own| {
                let netdev = NetDevice::by_index(&self.net, own.index.get());
                netdev.is_some_and(|netdev| netdev.has_link())
            }),
        }
    }
}
