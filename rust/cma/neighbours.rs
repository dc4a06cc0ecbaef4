// SPDX-License-Identifier: GPL-2.0

//! Changes of the network below an endpoint: its peer gets another link-layer address, or its own
//! interface does.
//!
//! An endpoint watches its peer from the moment that its route is resolved until the attempt has
//! failed or the connection is over. The table has the peers that are watched, and by how many. The
//! notifiers of the network take notes only; the endpoints are told by a work item, which looks for
//! them among those at all devices.
//!
//! Lock order: the lock of the table is a leaf, taken with interrupts disabled by a notifier in
//! atomic context. Under it nothing is locked, allocated or freed.

use crate::{
    core::Core,
    endpoint::{Endpoint, EndpointRef, Event, Inner},
    ib::dev_addr::DevAddr,
    kext::{
        error::ToKernel,
        igmp,
        lock::{new_spinlock_irq, SpinLockIrq},
        netdev::NetDevice,
        notifier::{Neighbour, NeighbourAddr, NeighbourListener, NetdevEvent, NetdevListener},
        reclaim::NoIo,
        workqueue::{Kind, OwnedQueue},
    },
};
use cmproto::{addr::SockAddr, errno::Errno, ucma_abi::CmEvent};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    impl_has_work, new_work,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
    workqueue::{Work, WorkItem},
};

/// An Ethernet address; or the last six bytes of one of InfiniBand, which are of the port's GUID.
pub(crate) type Mac = [u8; 6];

/// The interface that an endpoint speaks from, and its address when that was found out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The index.
    pub(crate) index: i32,
    /// The address.
    pub(crate) mac: Mac,
}

impl Interface {
    /// The interface as it is now; `None` if it has neither an Ethernet address nor one of InfiniBand.
    pub(crate) fn of(netdev: &NetDevice) -> Option<Self> {
        let (addr, len) = netdev.hw_addr();
        Some(Interface {
            index: netdev.ifindex(),
            mac: *addr.get(..len)?.last_chunk()?,
        })
    }
}

impl From<&DevAddr> for Interface {
    fn from(link: &DevAddr) -> Self {
        Interface {
            index: link.bound_dev_if,
            mac: match link.ipoib() {
                Some(ipoib) => ipoib.own_end(),
                None => link.src_mac(),
            },
        }
    }
}

/// A neighbour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The namespace ([`crate::kext::net::Net::hash_key`]).
    net: u64,
    /// The index of the interface that leads to it.
    interface: i32,
    is_v6: bool,
    addr: [u8; 16],
}

impl Key {
    /// The key of the neighbour with the address `addr`.
    fn new(net: u64, interface: i32, addr: NeighbourAddr) -> Self {
        let (is_v6, addr) = match addr {
            NeighbourAddr::V4([a, b, c, d]) => {
                (false, [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            }
            NeighbourAddr::V6(addr) => (true, addr),
        };
        Key {
            net,
            interface,
            is_v6,
            addr,
        }
    }
}

/// A neighbour that is watched.
#[pin_data]
struct Watch {
    key: Key,
    core: Arc<Core>,
    /// The news: its address, in the lower 48 bits.
    mac: Atomic<u64>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Watch { self.work }
}

impl WorkItem for Watch {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _scope = NoIo::begin();
        let [_, _, mac @ ..] = this.mac.load(Relaxed).to_be_bytes();
        let Self { key, core, .. } = &*this;
        core.devices
            .for_each_member(|member| member.peer_moved(key, mac));
    }
}

/// A neighbour that is watched, and by how many endpoints.
///
/// # Invariants
///
/// There is one [`Watching`] for each of the `endpoints`, and at least one.
struct Watched {
    watch: Arc<Watch>,
    endpoints: usize,
}

/// What counts as one of the endpoints in an entry of the table, and the only handle by which it is
/// uncounted.
pub(crate) struct Watching(Key);

/// Who watches which neighbour.
#[pin_data]
pub(crate) struct Neighbours {
    #[pin]
    table: SpinLockIrq<RBTree<Key, Watched>>,
    queue: OwnedQueue,
}

impl Neighbours {
    /// Creates an empty table.
    pub(crate) fn new() -> Result<impl PinInit<Self>> {
        let queue = OwnedQueue::new(c"rust_rdma_net", Kind::Unbound)?;
        Ok(pin_init!(Self {
            table <- new_spinlock_irq!(RBTree::new(), "rdma_cm_neighbours"),
            queue,
        }))
    }

    /// Has `endpoint` told when its peer, of whom `inner` tells, gets another address.
    ///
    /// Fails with `ENOMEM`; a peer that is no neighbour by IP is not watched.
    pub(super) fn watch(&self, endpoint: &EndpointRef, inner: &Inner) -> Result<Option<Watching>> {
        let addr = match inner.dst {
            SockAddr::V4 { addr, .. } => NeighbourAddr::V4(addr),
            SockAddr::V6 { addr, .. } => NeighbourAddr::V6(addr),
            SockAddr::Unspec | SockAddr::Ib { .. } => return Ok(None),
        };
        let Some(link) = &inner.link else {
            return Ok(None);
        };
        let key = Key::new(endpoint.net.hash_key(), link.bound_dev_if, addr);
        if let Some(watched) = self.table.lock().get_mut(&key) {
            watched.endpoints = watched.endpoints.saturating_add(1);
            return Ok(Some(Watching(key)));
        }
        let watch = Arc::pin_init(
            pin_init!(Watch {
                key,
                core: endpoint.core.clone(),
                mac: Atomic::new(0),
                work <- new_work!("rdma_cm_neighbour"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let watched = Watched {
            watch,
            endpoints: 1,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(key, watched);
        let mut table = self.table.lock();
        // Declared behind the node, which so is freed without the lock if somebody was faster.
        match table.get_mut(&key) {
            Some(watched) => watched.endpoints = watched.endpoints.saturating_add(1),
            None => {
                table.insert(node);
            }
        }
        Ok(Some(Watching(key)))
    }

    /// Ends it.
    pub(crate) fn forget(&self, watching: Watching) {
        let mut table = self.table.lock();
        let Some(watched) = table.get_mut(&watching.0) else {
            return;
        };
        watched.endpoints = watched.endpoints.saturating_sub(1);
        // INVARIANT: The last one goes, and the entry with it.
        let last = (watched.endpoints == 0).then(|| table.remove_node(&watching.0));
        drop(table);
        // The node and its references go away outside the lock.
        drop(last);
    }

    /// Waits until all who are being told have been told. No notifier may run any more.
    pub(crate) fn shut_down(&self) {
        self.queue.flush();
    }

    /// A neighbour may have another address. Called in atomic context.
    fn update(&self, neighbour: &Neighbour<'_>) {
        let Ok(mac) = Mac::try_from(neighbour.hw_addr()) else {
            return;
        };
        let Some(net) = neighbour.dev.net() else {
            return;
        };
        let key = Key::new(net.hash_key(), neighbour.dev.ifindex(), neighbour.addr);
        let [a, b, c, d, e, f] = mac;
        let table = self.table.lock();
        if let Some(Watched { watch, .. }) = table.get(&key) {
            watch
                .mac
                .store(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), Relaxed);
            // Under the lock, because what is pending already is given back, and must not be the
            // last reference.
            let _ = self.queue.enqueue(watch.clone());
        }
    }
}

/// Hears of the network.
pub(crate) struct NetworkListener(pub(crate) Arc<Core>);

impl NeighbourListener for NetworkListener {
    fn neighbour_update(&self, neighbour: &Neighbour<'_>) {
        self.0.neighbours.update(neighbour);
    }
}

impl NetdevListener for NetworkListener {
    fn netdev_event(&self, event: NetdevEvent, dev: &NetDevice) {
        if event == NetdevEvent::UNREGISTER {
            igmp::leave_all(dev);
        }
        if event != NetdevEvent::BONDING_FAILOVER || !dev.is_bond_master() {
            return;
        }
        let (Some(now), Some(net)) = (Interface::of(dev), dev.net()) else {
            return;
        };
        let (core, net) = (self.0.clone(), net.hash_key());
        let tell = move || {
            core.devices
                .for_each_member(|member| member.source_moved(net, now));
        };
        // Without memory nobody is told.
        let _ = self.0.neighbours.queue.try_spawn(GFP_KERNEL, tell);
    }
}

impl Endpoint {
    /// Watches the peer no more: there is neither a connection to it nor an attempt at one.
    pub(crate) fn unwatch(&self, inner: &mut Inner) {
        if let Some(watching) = inner.watching.take() {
            self.core.neighbours.forget(watching);
        }
    }

    /// The neighbour of `key` is at `mac` now. The consumer is told once, if that is its peer and news.
    fn peer_moved(&self, key: &Key, mac: Mac) {
        let mut inner = self.inner.lock();
        if inner.watching.as_ref().is_none_or(|peer| peer.0 != *key) {
            return;
        }
        let is_news = inner
            .link
            .as_ref()
            .is_some_and(|link| link.dst_mac() != mac);
        if !is_news || inner.has_peer_moved || inner.is_dead() {
            return;
        }
        inner.has_peer_moved = true;
        let status = Errno::ETIMEDOUT.to_kernel().to_errno();
        self.deliver(&inner, &Event::new(CmEvent::Unreachable, status));
    }

    /// An interface of the namespace `net` has another address, which the consumer is told if the
    /// endpoint speaks from there.
    fn source_moved(&self, net: u64, now: Interface) {
        let inner = self.inner.lock();
        let is_news = inner
            .interface
            .is_some_and(|was| was.index == now.index && was.mac != now.mac);
        if is_news && self.net.hash_key() == net && !inner.is_dead() {
            self.deliver(&inner, &Event::new(CmEvent::AddrChange, 0));
        }
    }
}
