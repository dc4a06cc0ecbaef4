// SPDX-License-Identifier: GPL-2.0

//! The neighbours that endpoints watch: their peers, whose link-layer addresses may change.
//!
//! The table has the neighbours that are watched, with the number of their watchers. The network's
//! notifier only notes a change; a work item reports it.
//!
//! Lock order: the lock of the table is a leaf, which a notifier takes in atomic context; it is
//! taken with interrupts disabled. Under it, nothing is locked, allocated or freed.

use crate::{
    ib::interface::Mac,
    kext::{
        bug,
        lock::{new_spinlock_irq, SpinLockIrq},
        notifier::{Neighbour, NeighbourAddr},
        reclaim::NoIo,
        workqueue::OwnedQueue,
    },
};
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

/// The key of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NeighbourKey {
    /// The network namespace ([`crate::kext::net::Net::hash_key`]).
    pub(crate) net: u64,
    /// The index of the interface that leads to the neighbour.
    pub(crate) interface: i32,
    /// The IP address.
    pub(crate) addr: NeighbourAddr,
}

/// A reference to the object that tells the watching endpoints of a change of a neighbour.
pub(crate) trait NeighbourObserver: Clone + Send + Sync + 'static {
    /// Tells the endpoints that the neighbour may have a new address. Called by a work item, with
    /// no lock held.
    fn neighbour_changed(&self, neighbour: &NeighbourKey, mac: Mac);
}

/// The work item of a neighbour that is watched, which reports a new address.
#[pin_data]
struct Watch<T: NeighbourObserver> {
    key: NeighbourKey,
    table: Arc<Neighbours<T>>,
    observer: T,
    /// The neighbour's new address, in the lower 48 bits.
    mac: Atomic<u64>,
    #[pin]
    work: Work<Watch<T>>,
}

impl_has_work! {
    impl{T: NeighbourObserver} HasWork<Self> for Watch<T> { self.work }
}

impl<T: NeighbourObserver> WorkItem for Watch<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _scope = NoIo::begin();
        let [_, _, mac @ ..] = this.mac.load(Relaxed).to_be_bytes();
        this.observer.neighbour_changed(&this.key, mac);
    }
}

/// A neighbour that is watched, and the number of those who watch it.
///
/// # Invariants
///
/// There are exactly `watchers` [`Watching`]s of the neighbour, and at least one.
struct Watched<T: NeighbourObserver> {
    watch: Arc<Watch<T>>,
    watchers: usize,
}

/// The table of neighbours that are watched.
#[pin_data]
pub(crate) struct Neighbours<T: NeighbourObserver> {
    #[pin]
    table: SpinLockIrq<RBTree<NeighbourKey, Watched<T>>>,
    queue: OwnedQueue,
}

impl<T: NeighbourObserver> Neighbours<T> {
    /// Creates an empty table.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let queue = OwnedQueue::new(c"rust_rdma_net")?;
        Arc::pin_init(
            pin_init!(Self {
                table <- new_spinlock_irq!(RBTree::new(), "rdma_cm_neighbours"),
                queue,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the work queue on which changes of the network are told.
    pub(crate) fn queue(&self) -> &OwnedQueue {
        &self.queue
    }

    /// Watches a neighbour, whose changes `observer` reports. Fails with `ENOMEM`.
    pub(crate) fn watch(self: &Arc<Self>, key: NeighbourKey, observer: &T) -> Result<Watching<T>> {
        if let Some(watched) = self.table.lock().get_mut(&key) {
            watched.watchers = watched.watchers.saturating_add(1);
            return Ok(Watching(watched.watch.clone()));
        }
        let watch = Arc::pin_init(
            pin_init!(Watch {
                key,
                table: self.clone(),
                observer: observer.clone(),
                mac: Atomic::new(0),
                work <- new_work!("rdma_cm_neighbour"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let watched = Watched {
            watch: watch.clone(),
            watchers: 1,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(key, watched);
        let mut table = self.table.lock();
        // If somebody has added the neighbour meanwhile, `node` and `watch` are not used. They are
        // declared before the lock guard, and so are freed when the lock has been released.
        let watch = match table.get_mut(&key) {
            Some(watched) => {
                watched.watchers = watched.watchers.saturating_add(1);
                watched.watch.clone()
            }
            None => {
                table.insert(node);
                watch
            }
        };
        Ok(Watching(watch))
    }

    /// Returns whether no neighbour is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().is_empty()
    }

    /// Waits until all changes have been told. No notifier may run any more.
    pub(crate) fn shut_down(&self) {
        self.queue.flush();
    }

    /// Notes that a neighbour may have a new address. Called in atomic context.
    pub(crate) fn update(&self, neighbour: &Neighbour<'_>) {
        let Ok(mac) = Mac::try_from(neighbour.hw_addr()) else {
            return;
        };
        let Some(net) = neighbour.dev.net() else {
            return;
        };
        let key = NeighbourKey {
            net: net.hash_key(),
            interface: neighbour.dev.ifindex(),
            addr: neighbour.addr,
        };
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

/// A watcher of a neighbour, which is counted until this is dropped.
pub(crate) struct Watching<T: NeighbourObserver>(Arc<Watch<T>>);

impl<T: NeighbourObserver> Watching<T> {
    /// Returns whether the neighbour with this key is watched.
    pub(crate) fn is_of(&self, neighbour: &NeighbourKey) -> bool {
        self.0.key == *neighbour
    }
}

impl<T: NeighbourObserver> Drop for Watching<T> {
    fn drop(&mut self) {
        let Watch { key, table, .. } = &*self.0;
        let mut table = table.table.lock();
        let Some(watched) = table.get_mut(key) else {
            drop(table);
            return bug::missing("neighbours");
        };
        watched.watchers = watched.watchers.saturating_sub(1);
        // INVARIANT: The entry goes with the last handle.
        let last = (watched.watchers == 0).then(|| table.remove_node(key));
        drop(table);
        // The node and its references are dropped when the lock has been released.
        drop(last);
    }
}
