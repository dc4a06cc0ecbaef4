// SPDX-License-Identifier: GPL-2.0

//! Changes of the network below an endpoint: the link-layer address of its peer or of its own
//! interface changes.
//!
//! An endpoint watches its peer from the resolution of the route until the attempt to connect has
//! failed or the connection is over. The table has the peers that are watched, with the number of
//! endpoints that watch them. The network's notifiers only note a change; a work item tells the
//! endpoints, which it looks for among the members of all devices.
//!
//! Lock order: the lock of the table is a leaf, which a notifier takes in atomic context; it is
//! taken with interrupts disabled. Under it, nothing is locked, allocated or freed.

use crate::{
    core::Core,
    endpoint::{Endpoint, EndpointRef, Event, Inner},
    ib::dev_addr::DevAddr,
    kext::{
        bug,
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

/// An Ethernet address, or the last six bytes of an IPoIB address, which are part of the port's
/// GUID.
pub(crate) type Mac = [u8; 6];

/// The interface that an endpoint sends from, and its link-layer address at the time of resolution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The index of the interface.
    pub(crate) index: i32,
    /// The link-layer address.
    pub(crate) mac: Mac,
}

impl Interface {
    /// Returns the interface with its current address. Returns `None` if its address is shorter
    /// than six bytes.
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

/// The key of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The network namespace ([`crate::kext::net::Net::hash_key`]).
    net: u64,
    /// The index of the interface that leads to the neighbour.
    interface: i32,
    is_v6: bool,
    addr: [u8; 16],
}

impl Key {
    /// Returns the key of the neighbour with the address `addr`.
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

/// The work item of a neighbour that is watched, which tells the endpoints of a new address.
#[pin_data]
struct Watch {
    key: Key,
    core: Arc<Core>,
    /// The neighbour's new address, in the lower 48 bits.
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

/// A neighbour that is watched, and the number of endpoints that watch it.
///
/// # Invariants
///
/// There are exactly `endpoints` [`Watching`]s of the neighbour, and at least one.
struct Watched {
    watch: Arc<Watch>,
    endpoints: usize,
}

/// The handle of an endpoint that watches a neighbour. It is counted until this handle is given
/// back.
pub(crate) struct Watching(Key);

/// The table of neighbours that are watched.
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

    /// Makes `endpoint` watch its peer, whose address is in `inner`.
    ///
    /// Fails with `ENOMEM`. Returns `None` if the peer is not a neighbour by IP.
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
        // If another endpoint has added the neighbour meanwhile, `node` is not used. It is declared
        // before the lock guard, and so is freed when the lock has been released.
        match table.get_mut(&key) {
            Some(watched) => watched.endpoints = watched.endpoints.saturating_add(1),
            None => {
                table.insert(node);
            }
        }
        Ok(Some(Watching(key)))
    }

    /// Stops watching a neighbour.
    pub(crate) fn forget(&self, watching: Watching) {
        let mut table = self.table.lock();
        let Some(watched) = table.get_mut(&watching.0) else {
            drop(table);
            return bug::missing("neighbours");
        };
        watched.endpoints = watched.endpoints.saturating_sub(1);
        // INVARIANT: The entry goes with the last endpoint.
        let last = (watched.endpoints == 0).then(|| table.remove_node(&watching.0));
        drop(table);
        // The node and its references are dropped when the lock has been released.
        drop(last);
    }

    /// Returns whether no neighbour is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().is_empty()
    }

    /// Waits until all endpoints that are being told have been told. No notifier may run any more.
    pub(crate) fn shut_down(&self) {
        self.queue.flush();
    }

    /// Notes that a neighbour may have a new address. Called in atomic context.
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
            // This is under the lock because a work item that is pending already is handed back,
            // and that reference must not be the last one.
            let _ = self.queue.enqueue(watch.clone());
        }
    }
}

/// The receiver of the network's notifications.
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
        // Without memory, the endpoints are not told.
        let _ = self.0.neighbours.queue.try_spawn(GFP_KERNEL, tell);
    }
}

impl Endpoint {
    /// Stops watching the peer, because there is neither a connection to it nor an attempt at one.
    pub(crate) fn unwatch(&self, inner: &mut Inner) {
        if let Some(watching) = inner.watching.take() {
            self.core.neighbours.forget(watching);
        }
    }

    /// Tells the consumer that its peer has moved, if its peer is the neighbour `key`, the address
    /// `mac` is a new one, and the consumer was not told before.
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

    /// Tells the consumer that the address of its interface has changed, if the endpoint sends from
    /// the interface `now` of the network namespace `net`.
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
