// SPDX-License-Identifier: GPL-2.0

//! The timers of the connections.
//!
//! A connection has one timer. The timers of a shard stand in the order of their deadlines, and one
//! delayed work item per shard waits for the first of them, so that nothing ticks while nothing is
//! due. A timer's memory comes with its endpoint: to arm one cannot fail.
//!
//! Lock order: the shard locks are of the class "table shard"; a timer that is due is handled with
//! the lock of its endpoint and no other.

use crate::{
    endpoint::Endpoint,
    kext::{
        clock,
        workqueue::{new_delayed_runner, DelayedRunner, Kind, OwnedQueue, RunDelayed},
    },
};
use cmproto::time::Instant;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// Number of shards; a power of two.
const SHARDS: usize = 8;

/// A deadline, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    deadline: Instant,
    /// The endpoint's number.
    number: u64,
}

type Tree = RBTree<Key, Arc<Endpoint>>;
type Node = RBTreeNodeReservation<Key, Arc<Endpoint>>;

/// The timer of an endpoint, protected by the endpoint's lock.
///
/// # Invariants
///
/// `key` is set while the timer is armed. `node` is empty while the timer is armed, and while
/// its shard has taken it out to handle it; `wanted` is the deadline to arm it with when that shard
/// brings it back.
pub(crate) struct TimerSlot {
    node: Option<Node>,
    key: Option<Key>,
    wanted: Option<Instant>,
}

impl TimerSlot {
    /// A timer that is not armed.
    pub(crate) fn new() -> Result<Self> {
        Ok(TimerSlot {
            node: Some(Node::new(GFP_KERNEL_ACCOUNT)?),
            key: None,
            wanted: None,
        })
    }
}

/// A part of the timers.
#[pin_data]
struct Shard {
    queue: Arc<OwnedQueue>,
    #[pin]
    tree: Mutex<Tree>,
    #[pin]
    runner: DelayedRunner<Shard>,
}

impl Shard {
    fn new(queue: &Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let queue = queue.clone();
        Arc::pin_init(
            pin_init!(Shard {
                queue,
                tree <- new_mutex!(RBTree::new(), "rdma_cm_timers"),
                runner <- new_delayed_runner!("rdma_cm_timers"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes out the first timer if it is due.
    fn take_due(&self, now: Instant) -> Option<(Key, Arc<Endpoint>, Node)> {
        let mut tree = self.tree.lock();
        let cursor = tree.cursor_front_mut()?;
        let (key, endpoint) = cursor.current();
        let (key, endpoint) = (*key, endpoint.clone());
        if key.deadline > now {
            return None;
        }
        let (_, node) = cursor.remove_current();
        Some((key, endpoint, node.into_reservation()))
    }

    /// Waits for the first deadline of `tree`, the shard's own; its lock is held, so that the last
    /// to wait knows the earliest.
    fn wait(self: &Arc<Self>, tree: &Tree) {
        let Some(cursor) = tree.cursor_front() else {
            return;
        };
        let first = cursor.current().0.deadline;
        let delay = first.saturating_duration_since(Instant(clock::now_us()));
        // Refused only when the module goes away, when no endpoint is left.
        let _ = self.runner.arm(self, &self.queue, delay.as_micros());
    }
}

impl RunDelayed for Shard {
    fn run_delayed(this: Arc<Self>) {
        while let Some((key, endpoint, node)) = this.take_due(Instant(clock::now_us())) {
            endpoint.timer_is_due(key, node);
        }
        this.wait(&this.tree.lock());
    }
}

/// All timers.
pub(crate) struct Timers {
    queue: Arc<OwnedQueue>,
    /// Always filled.
    shards: [Option<Arc<Shard>>; SHARDS],
}

impl Timers {
    /// Creates the timers.
    pub(crate) fn new() -> Result<Self> {
        let queue = OwnedQueue::new(c"rdma_cm_timers", Kind::Unbound)?;
        let queue = Arc::new(queue, GFP_KERNEL)?;
        let mut shards = [const { None }; SHARDS];
        for shard in shards.iter_mut() {
            *shard = Some(Shard::new(&queue)?);
        }
        Ok(Timers { queue, shards })
    }

    /// The work queue that timers are handled on.
    pub(crate) fn queue(&self) -> &Arc<OwnedQueue> {
        &self.queue
    }

    /// Stops all timers for good, and waits for those that are being handled.
    pub(crate) fn shut_down(&self) {
        for shard in self.shards.iter().flatten() {
            shard.runner.shutdown_sync();
        }
    }

    fn shard(&self, number: u64) -> Option<&Arc<Shard>> {
        let shard = usize::try_from(number).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)?.as_ref()
    }

    /// Stops a timer; the lock of its endpoint is held.
    pub(crate) fn disarm(&self, slot: &mut TimerSlot) {
        slot.wanted = None;
        let Some(key) = slot.key.take() else {
            return;
        };
        let node = self
            .shard(key.number)
            .and_then(|shard| shard.tree.lock().remove_node(&key));
        // INVARIANT: Without a node the shard has it, and brings it back.
        slot.node = node.map(|node| node.into_reservation());
    }

    /// Sets a timer to `deadline`; the lock of `endpoint`, whose timer it is, is held.
    pub(crate) fn arm(&self, slot: &mut TimerSlot, deadline: Instant, endpoint: &Arc<Endpoint>) {
        let key = Key {
            deadline,
            number: endpoint.number,
        };
        if slot.key == Some(key) {
            return;
        }
        self.disarm(slot);
        let Some(shard) = self.shard(key.number) else {
            return;
        };
        let Some(node) = slot.node.take() else {
            slot.wanted = Some(deadline);
            return;
        };
        slot.key = Some(key);
        let mut tree = shard.tree.lock();
        // No two keys are equal: an endpoint has one timer.
        let _ = tree.insert(node.into_node(key, endpoint.clone()));
        let is_first = tree
            .cursor_front()
            .is_some_and(|cursor| *cursor.current().0 == key);
        if is_first {
            shard.wait(&tree);
        }
    }
}

impl Endpoint {
    /// Handles a timer that its shard has taken out.
    fn timer_is_due(self: &Arc<Self>, key: Key, node: Node) {
        let mut inner = self.inner.lock();
        // INVARIANT: The shard brings the node back.
        inner.timer.node = Some(node);
        if inner.timer.key == Some(key) {
            inner.timer.key = None;
            self.timeout(&mut inner);
        } else if let Some(deadline) = inner.timer.wanted.take() {
            self.core.timers.arm(&mut inner.timer, deadline, self);
        }
    }
}
