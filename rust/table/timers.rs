// SPDX-License-Identifier: GPL-2.0

//! Timers, each of which belongs to an object with a lock, its owner.
//!
//! Each owner has one timer. The timers of a shard are sorted by deadline, and one delayed work
//! item per shard waits for the first of them, so that no work runs while no timer is due.
//!
//! A timer has no memory of its own: its link lies in the owner, so that to arm it cannot fail. It
//! is armed exactly as long as the link is in the tree of its shard, which has a reference to the
//! owner until then: an owner is not dropped while its timer is armed.
//!
//! Two locks protect a timer. A link is entered and removed only with the lock of the owner and
//! that of the shard. So either of them shows whether the timer is armed, and that stays true as
//! long as the owner's is held. The work item of the shard has only the
//! shard's when it looks for a timer that is due. It leaves the timer armed, takes the owner's
//! lock, and looks again: the owner may have stopped the timer, or set another deadline.
//!
//! Lock order: the shard locks are of the class "table shard". An expired timer is handled with no
//! lock held except the one that its owner takes. A reference to an owner that a shard had is
//! dropped without the lock of the shard. With the owner's lock it is not the last, as the task
//! that holds the lock has a reference, too.

use crate::kext::{
    clock, delay,
    workqueue::{new_delayed_runner, DelayedRunner, OwnedQueue, RunDelayed},
};
use cmproto::time::{Due, Instant};
use containers::{Counted, HasLink, Link, Tree};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// Number of shards, a power of two.
const SHARDS: usize = 8;

/// A counted reference to the owner of a timer.
pub(crate) trait Timed:
    Counted<Target: HasLink<Deadline>> + Clone + Send + Unpin + 'static
{
    /// Returns a number that chooses the shard of the timer, always the same.
    fn number(&self) -> u64;

    /// Locks the owner, asks [`Timers::expire`] whether the timer has expired, and handles that.
    /// Called with no lock held.
    fn timer_is_due(&self, due: Due);
}

/// The time when a timer expires. Only the trees of the shards have such keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(Instant);

/// The link of a timer, by which it is in its shard while it is armed. It lies in the owner.
pub(crate) type TimerLink = Link<Deadline>;

/// The right to arm and to stop the timer of an owner. It is among what the owner's lock protects,
/// so that only a task with the lock can use it.
pub(crate) struct Timer(());

impl Timer {
    /// Creates the right for a new owner, whose timer is not armed.
    pub(crate) fn new() -> Self {
        Timer(())
    }
}

/// The armed timers of a shard.
struct Armed<T: Timed> {
    tree: Tree<T, Deadline>,
    /// The time when the work item of the shard runs next, if it is scheduled. Possibly no timer is
    /// due then: such a run costs less than to reschedule the work whenever the first timer is
    /// stopped.
    wakes: Option<Instant>,
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
                    tree: Tree::new(),
                    wakes: None,
                }, "rdma_cm_timers"),
                runner <- new_delayed_runner!("rdma_cm_timers"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the owner of the first timer if that is due.
    fn first_due(&self, due: Due) -> Option<T> {
        let timers = self.timers.lock();
        let (deadline, owner) = timers.tree.first()?;
        due.includes(deadline.0).then(|| (*owner).clone())
    }

    /// Schedules the work item for the first deadline of `timers`, which are those of this shard.
    /// Their lock is held, so that the last of several callers sees the earliest deadline.
    fn wait(self: &Arc<Self>, timers: &mut Armed<T>) {
        let Some((Deadline(first), _)) = timers.tree.first() else {
            return;
        };
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
        loop {
            let due = Due::at(Instant(clock::now_us()));
            let Some(owner) = this.first_due(due) else {
                break;
            };
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

    /// Returns the shard of the timer of `owner`. There always is one.
    fn shard(&self, owner: &T) -> Option<&Arc<Shard<T>>> {
        let shard = usize::try_from(owner.number()).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)?.as_ref()
    }

    /// Stops the timer of `owner`, to whose lock `_timer` belongs.
    pub(crate) fn disarm(&self, _timer: &mut Timer, owner: &T) {
        if !HasLink::<Deadline>::link(&**owner).is_linked() {
            return;
        }
        let removed = self
            .shard(owner)
            .and_then(|shard| shard.timers.lock().tree.remove(owner));
        // The reference is dropped outside the shard lock.
        drop(removed);
    }

    /// Arms the timer of `owner`, to whose lock `_timer` belongs, with `deadline`.
    pub(crate) fn arm(&self, _timer: &mut Timer, deadline: Instant, owner: &T) {
        let Some(shard) = self.shard(owner) else {
            return;
        };
        let deadline = Deadline(deadline);
        let mut timers = shard.timers.lock();
        let before = timers.tree.key(owner);
        if before == Some(deadline) {
            return;
        }
        let reference = match before {
            Some(_) => timers.tree.remove(owner),
            None => None,
        };
        let reference = reference.unwrap_or_else(|| owner.clone());
        // No other tree has the link: there is none in another file, and this is its shard.
        let refused = timers.tree.insert(deadline, reference);
        if timers.wakes.is_none_or(|wakes| deadline.0 < wakes) {
            shard.wait(&mut timers);
        }
        drop(timers);
        drop(refused);
    }

    /// Stops the timer of `owner`, to whose lock `_timer` belongs, if it has expired. Returns
    /// whether it has.
    ///
    /// Otherwise the owner has stopped it since it was found to be due, or has set a deadline that
    /// is not over.
    pub(crate) fn expire(&self, _timer: &mut Timer, due: Due, owner: &T) -> bool {
        let Some(shard) = self.shard(owner) else {
            return false;
        };
        let mut timers = shard.timers.lock();
        let is_over = |deadline: Deadline| due.includes(deadline.0);
        if !timers.tree.key(owner).is_some_and(is_over) {
            return false;
        }
        let removed = timers.tree.remove(owner);
        drop(timers);
        removed.is_some()
    }
}
