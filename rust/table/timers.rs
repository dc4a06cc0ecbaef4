// SPDX-License-Identifier: GPL-2.0

//! Timers, each of which belongs to an object with a lock, its owner.
//!
//! Each owner has one timer. The timers of a shard are sorted by deadline, and one delayed work
//! item per shard waits for the first of them, so that no work runs while no timer is due. The
//! memory of a timer is allocated with its owner, so that arming it cannot fail.
//!
//! Lock order: the shard locks are of the class "table shard". An expired timer is handled with no
//! lock held but that which its owner takes.

use crate::kext::{
    clock, delay,
    workqueue::{new_delayed_runner, DelayedRunner, OwnedQueue, RunDelayed},
};
use cmproto::time::Instant;
use core::mem;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// Number of shards, a power of two.
const SHARDS: usize = 8;

/// A counted reference to the owner of a timer.
pub(crate) trait Timed: Clone + Send + Unpin + 'static {
    /// Returns a number that no other owner has.
    fn number(&self) -> u64;

    /// Gives the timer back to its slot, with [`Timers::give_back`], and handles its expiry. Called
    /// with no lock held.
    fn timer_is_due(&self, due: Due<Self>);
}

/// A deadline, and the owner of the timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    deadline: Instant,
    /// The number of the owner.
    number: u64,
}

/// The armed timers of a shard.
struct Armed<T> {
    tree: RBTree<Key, T>,
    /// The time when the work item of the shard runs next, if it is scheduled. Possibly no timer is
    /// due then: such a run costs less than to reschedule the work whenever the first timer is
    /// stopped.
    wakes: Option<Instant>,
}

/// A timer that its shard has removed because it is due.
pub(crate) struct Due<T> {
    key: Key,
    node: RBTreeNodeReservation<Key, T>,
}

/// The timer of an owner, protected by the owner's lock.
///
/// # Invariants
///
/// `node` is empty while the timer is armed, and while its shard has taken it out to handle it.
pub(crate) struct TimerSlot<T> {
    node: Option<RBTreeNodeReservation<Key, T>>,
    setting: Setting,
}

/// The setting of a timer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// The timer is not armed.
    Off,
    /// The timer is armed in its shard, with this deadline.
    Armed(Instant),
    /// The timer is to be armed with this deadline when its shard has returned the node.
    Wanted(Instant),
}

impl<T> TimerSlot<T> {
    /// Creates a timer that is not armed. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Ok(TimerSlot {
            node: Some(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?),
            setting: Setting::Off,
        })
    }
}

/// A shard of the timers.
#[pin_data]
struct Shard<T: Timed> {
    queue: Arc<OwnedQueue>,
    #[pin]
    timers: Mutex<Armed<T>>,
    #[pin]
    runner: DelayedRunner<Shard<T>>,
}

impl<T: Timed> Shard<T> {
    fn new(queue: &Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let queue = queue.clone();
        Arc::pin_init(
            pin_init!(Shard {
                queue,
                timers <- new_mutex!(Armed {
                    tree: RBTree::new(),
                    wakes: None,
                }, "rdma_cm_timers"),
                runner <- new_delayed_runner!("rdma_cm_timers"),
            }),
            GFP_KERNEL,
        )
    }

    /// Removes and returns the first timer if it is due.
    fn take_due(&self, now: Instant) -> Option<(T, Due<T>)> {
        let mut timers = self.timers.lock();
        let cursor = timers.tree.cursor_front_mut()?;
        let (key, owner) = cursor.current();
        let (key, owner) = (*key, owner.clone());
        if key.deadline > now {
            return None;
        }
        let (_, node) = cursor.remove_current();
        let node = node.into_reservation();
        Some((owner, Due { key, node }))
    }

    /// Schedules the work item for the first deadline of `timers`, which are those of this shard.
    /// Their lock is held, so that the last of several callers sees the earliest deadline.
    fn wait(self: &Arc<Self>, timers: &mut Armed<T>) {
        let Some(cursor) = timers.tree.cursor_front() else {
            return;
        };
        let first = cursor.current().0.deadline;
        if timers.wakes.is_some_and(|wakes| wakes <= first) {
            return;
        }
        timers.wakes = Some(first);
        let delay = first.saturating_duration_since(Instant(clock::now_us()));
        // The work is refused only when the module is unloaded, and then no owner is left.
        let _ = self.runner.arm(self, &self.queue, delay.as_micros());
    }
}

impl<T: Timed> RunDelayed for Shard<T> {
    fn run_delayed(this: Arc<Self>) {
        this.timers.lock().wakes = None;
        while let Some((owner, due)) = this.take_due(Instant(clock::now_us())) {
            delay::point();
            owner.timer_is_due(due);
        }
        this.wait(&mut this.timers.lock());
    }
}

/// All timers.
pub(crate) struct Timers<T: Timed> {
    queue: Arc<OwnedQueue>,
    /// All elements are `Some`.
    shards: [Option<Arc<Shard<T>>>; SHARDS],
}

impl<T: Timed> Timers<T> {
    /// Creates the timers.
    pub(crate) fn new() -> Result<Self> {
        let queue = OwnedQueue::new(c"rdma_cm_timers")?;
        let queue = Arc::new(queue, GFP_KERNEL)?;
        let mut shards = [const { None }; SHARDS];
        for shard in shards.iter_mut() {
            *shard = Some(Shard::new(&queue)?);
        }
        Ok(Timers { queue, shards })
    }

    /// Returns the work queue that handles the timers.
    pub(crate) fn queue(&self) -> &Arc<OwnedQueue> {
        &self.queue
    }

    /// Stops all timers for good, and waits for those that are being handled.
    pub(crate) fn shut_down(&self) {
        for shard in self.shards.iter().flatten() {
            shard.runner.shutdown_sync();
        }
    }

    fn shard(&self, number: u64) -> Option<&Arc<Shard<T>>> {
        let shard = usize::try_from(number).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)?.as_ref()
    }

    /// Stops the timer of `owner`, whose lock is held.
    pub(crate) fn disarm(&self, slot: &mut TimerSlot<T>, owner: &T) {
        let Setting::Armed(deadline) = mem::replace(&mut slot.setting, Setting::Off) else {
            return;
        };
        let key = Key {
            deadline,
            number: owner.number(),
        };
        let node = self
            .shard(key.number)
            .and_then(|shard| shard.timers.lock().tree.remove_node(&key));
        // INVARIANT: if there is no node, the shard has taken it out, and will return it.
        slot.node = node.map(|node| node.into_reservation());
    }

    /// Arms the timer of `owner`, whose lock is held, with `deadline`.
    pub(crate) fn arm(&self, slot: &mut TimerSlot<T>, deadline: Instant, owner: &T) {
        if slot.setting == Setting::Armed(deadline) {
            return;
        }
        self.disarm(slot, owner);
        let key = Key {
            deadline,
            number: owner.number(),
        };
        let Some(shard) = self.shard(key.number) else {
            return;
        };
        let Some(node) = slot.node.take() else {
            slot.setting = Setting::Wanted(deadline);
            return;
        };
        slot.setting = Setting::Armed(deadline);
        let mut timers = shard.timers.lock();
        // No two keys are equal, because an owner has only one timer.
        let _ = timers.tree.insert(node.into_node(key, owner.clone()));
        if timers.wakes.is_none_or(|wakes| key.deadline < wakes) {
            shard.wait(&mut timers);
        }
    }

    /// Gives a timer that is due back to its slot. The lock of its `owner` is held.
    ///
    /// Returns whether the timer has expired. Otherwise the owner has stopped it since it was
    /// removed from its shard, or has set another deadline, with which it is armed again.
    pub(crate) fn give_back(&self, slot: &mut TimerSlot<T>, due: Due<T>, owner: &T) -> bool {
        // INVARIANT: The shard has returned the node.
        slot.node = Some(due.node);
        match slot.setting {
            Setting::Armed(deadline) if deadline == due.key.deadline => {
                slot.setting = Setting::Off;
                true
            }
            Setting::Wanted(deadline) => {
                self.arm(slot, deadline, owner);
                false
            }
            Setting::Off | Setting::Armed(_) => false,
        }
    }
}
