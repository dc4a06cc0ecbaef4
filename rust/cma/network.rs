// SPDX-License-Identifier: GPL-2.0

//! Changes of the network below an endpoint: the link-layer address of its peer or of its own
//! interface changes, or that interface goes down.
//!
//! An endpoint watches its peer from the resolution of the route until the attempt to connect has
//! failed or the connection is over. The network's notifiers only note a change; a work item tells
//! the endpoints, which it looks for among the members of all devices.

use crate::{
    cm::link::Link,
    endpoint::{Endpoint, Event, Inner},
    globals::Globals,
    ib::interface::{Interface, Mac},
    kext::{
        error::ToKernel,
        ip_multicast,
        netdev::NetDevice,
        notifier::{Neighbour, NeighbourAddr, NeighbourListener, NetdevEvent, NetdevListener},
    },
    table::neighbours::{NeighbourKey, NeighbourObserver, Watching},
};
use cmproto::{addr::SockAddr, errno::Errno, ucma_abi::CmEvent};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, sync::Arc};

/// The receiver of the network's notifications.
pub(crate) struct NetworkListener(pub(crate) Arc<Globals>);

impl NeighbourListener for NetworkListener {
    fn neighbour_update(&self, neighbour: &Neighbour<'_>) {
        self.0.neighbours.update(neighbour);
    }
}

impl NetdevListener for NetworkListener {
    fn netdev_event(&self, event: NetdevEvent, dev: &NetDevice) {
        match event {
            NetdevEvent::UNREGISTER => ip_multicast::leave_all(dev),
            NetdevEvent::UP | NetdevEvent::DOWN | NetdevEvent::CHANGE => self.link_changed(dev),
            _ => {}
        }
        if event != NetdevEvent::BONDING_FAILOVER || !dev.is_bond_master() {
            return;
        }
        let (Some(now), Some(net)) = (Interface::of(dev), dev.net()) else {
            return;
        };
        let (globals, net) = (self.0.clone(), net.hash_key());
        let notify = move || {
            globals
                .devices
                .for_each_member(|member| member.source_addr_changed(net, now));
        };
        // Without memory, the endpoints are not told.
        let _ = self.0.neighbours.queue().try_spawn(GFP_KERNEL, notify);
    }
}

impl NetworkListener {
    /// Notes that an interface has come up or gone down.
    fn link_changed(&self, dev: &NetDevice) {
        if let Some(net) = dev.net() {
            let link = Link::Interface {
                net: net.hash_key(),
                index: dev.ifindex(),
            };
            self.0.link_changed(link, dev.has_link());
        }
    }
}

impl NeighbourObserver for Arc<Globals> {
    fn neighbour_changed(&self, neighbour: &NeighbourKey, mac: Mac) {
        self.devices
            .for_each_member(|member| member.peer_addr_changed(neighbour, mac));
    }
}

impl Endpoint {
    /// Watches the peer, whose address is in `inner`.
    ///
    /// Fails with `ENOMEM`. Returns `None` if the peer is not a neighbour by IP.
    pub(super) fn watch_peer(&self, inner: &Inner) -> Result<Option<Watching<Arc<Globals>>>> {
        let addr = match self.dst(inner) {
            SockAddr::V4 { addr, .. } => NeighbourAddr::V4(addr),
            SockAddr::V6 { addr, .. } => NeighbourAddr::V6(addr),
            SockAddr::Unspec | SockAddr::Ib { .. } => return Ok(None),
        };
        let Some(link) = &inner.resolution.dev_addr else {
            return Ok(None);
        };
        let key = NeighbourKey {
            net: self.net.hash_key(),
            interface: link.bound_dev_if,
            addr,
        };
        self.globals.neighbours.watch(key, &self.globals).map(Some)
    }

    /// Tells the consumer that its peer's address has changed, if its peer is the neighbour `key`,
    /// the address `mac` is a new one, and the consumer was not told before.
    fn peer_addr_changed(&self, key: &NeighbourKey, mac: Mac) {
        let mut inner = self.inner.lock();
        if inner.watching.as_ref().is_none_or(|peer| !peer.is_of(key)) {
            return;
        }
        let is_new = inner
            .resolution
            .dev_addr
            .as_ref()
            .is_some_and(|link| link.dst_mac() != mac);
        if !is_new || inner.addr.has_reported_change || inner.is_dead() {
            return;
        }
        inner.addr.has_reported_change = true;
        let status = Errno::ETIMEDOUT.to_kernel().to_errno();
        self.deliver(&inner, &Event::new(CmEvent::Unreachable, status));
    }

    /// Tells the consumer that the address of its interface has changed, if the endpoint sends from
    /// the interface `now` of the network namespace `net`.
    fn source_addr_changed(&self, net: u64, now: Interface) {
        let inner = self.inner.lock();
        let is_new = inner
            .interface
            .is_some_and(|was| was.index == now.index && was.mac != now.mac);
        if is_new && self.net.hash_key() == net && !inner.is_dead() {
            self.deliver(&inner, &Event::new(CmEvent::AddrChange, 0));
        }
    }
}
