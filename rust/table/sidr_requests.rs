// SPDX-License-Identifier: GPL-2.0

//! Table of the SIDR requests of peers (SIDR_REQ, IBTA 12.11).
//!
//! A SIDR request is identified by the device that received it, its origin, and its request id.
//! Until the user has answered, the entry is an endpoint. Then the answer is kept, as data without
//! an endpoint or a device, so that a repeated SIDR_REQ, whose answer was lost, is answered again
//! and not presented to the user again. If too many answers are kept, the oldest is dropped. All
//! that follows is that a repeated SIDR_REQ is presented to the user.
//!
//! Lock order: the lock is of the class "table shard". While it is held, no other lock is taken and
//! nothing is allocated, except that the delayed work is started, which takes a leaf lock.

use crate::kext::{
    clock,
    workqueue::{new_delayed_runner, DelayedRunner, OwnedQueue, RunDelayed},
};
use cmproto::{node::KnownSidr, origin::Origin, sidr::Resolution, time::Instant};
use core::mem;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// Maximum number of answers that are kept. It suffices for 1,000 requests a second from peers that
/// retry after 4 s.
const MAX_ANSWERS: usize = 4096;

/// The key of a SIDR request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Index of the device that received the SIDR_REQ.
    pub(crate) device: u32,
    /// Origin of the SIDR_REQ.
    pub(crate) origin: Origin,
    /// Request id, which the sender has chosen.
    pub(crate) request_id: u32,
}

/// A counted reference to an endpoint that answers SIDR requests.
pub(crate) trait Responder: Clone + Send + 'static {}

/// The state of a SIDR request.
enum Entry<T> {
    /// The endpoint has not answered yet.
    Pending(T),
    Answered(KBox<Resolution>),
}

/// Memory for an entry, allocated before any lock is taken.
pub(crate) struct SidrReservation<T>(RBTreeNodeReservation<Key, Entry<T>>);

impl<T> SidrReservation<T> {
    /// Allocates the memory. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

/// A SIDR request that an endpoint has not answered. If this is dropped, the request is removed.
///
/// # Invariants
///
/// The table has an endpoint for `key`, unless `table` is `None`. No other code removes or replaces
/// that entry.
pub(crate) struct SidrRequest<T: Responder> {
    table: Option<Arc<SidrRequests<T>>>,
    key: Key,
}

/// The time when an answer is dropped, and its key.
type ExpiryKey = (Instant, Key);

/// The state of the table that its lock protects.
///
/// # Invariants
///
/// `expiries` has one entry for each answer in `entries`, and `answers` is their number.
struct Table<T> {
    entries: RBTree<Key, Entry<T>>,
    expiries: RBTree<ExpiryKey, ()>,
    answers: usize,
}

// Nothing in the table is ever pinned.
impl<T> Unpin for Table<T> {}

/// Nodes that were removed from the table, to be dropped without its lock.
struct Removed<T>(
    #[expect(dead_code, reason = "only to be dropped")] Option<RBTreeNode<ExpiryKey, ()>>,
    #[expect(dead_code, reason = "only to be dropped")] Option<RBTreeNode<Key, Entry<T>>>,
);

impl<T> Table<T> {
    /// Removes the answer with the key `key`, if there is one.
    fn remove_answer(&mut self, key: &Key) -> Removed<T> {
        let until = match self.entries.get(key) {
            Some(Entry::Answered(answer)) => answer.deadline(),
            _ => None,
        };
        let Some(until) = until else {
            return Removed(None, None);
        };
        // INVARIANT: both entries of the answer are removed.
        self.answers = self.answers.saturating_sub(1);
        Removed(
            self.expiries.remove_node(&(until, *key)),
            self.entries.remove_node(key),
        )
    }

    /// Removes the oldest answer, if it has expired at `now` or if there are more than `most`.
    fn remove_oldest(&mut self, now: Instant, most: usize) -> Option<Removed<T>> {
        let (until, key) = *self.expiries.cursor_front()?.current().0;
        (until <= now || self.answers > most).then(|| self.remove_answer(&key))
    }
}

/// The table of SIDR requests.
#[pin_data]
pub(crate) struct SidrRequests<T: Responder> {
    queue: Arc<OwnedQueue>,
    #[pin]
    table: Mutex<Table<T>>,
    #[pin]
    runner: DelayedRunner<SidrRequests<T>>,
}

impl<T: Responder> SidrRequests<T> {
    /// Creates an empty table that drops expired answers on `queue`.
    pub(crate) fn new(queue: &Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let queue = queue.clone();
        let table = Table {
            entries: RBTree::new(),
            expiries: RBTree::new(),
            answers: 0,
        };
        Arc::pin_init(
            pin_init!(SidrRequests {
                queue,
                table <- new_mutex!(table, "rdma_cm_sidr_requests"),
                runner <- new_delayed_runner!("rdma_cm_sidr_requests"),
            }),
            GFP_KERNEL,
        )
    }

    /// Finds a SIDR request.
    pub(crate) fn find(&self, key: &Key) -> KnownSidr<T> {
        match self.table.lock().entries.get(key) {
            None => KnownSidr::Nothing,
            Some(Entry::Pending(endpoint)) => KnownSidr::Pending(endpoint.clone()),
            Some(Entry::Answered(answer)) => KnownSidr::Answered((**answer).clone()),
        }
    }

    /// Enters `endpoint` for a SIDR request. Returns `None` if there is another endpoint already.
    ///
    /// An answer with this key was for an earlier request, and is removed.
    pub(crate) fn enter(
        self: &Arc<Self>,
        memory: SidrReservation<T>,
        key: Key,
        endpoint: &T,
    ) -> Option<SidrRequest<T>> {
        let node = memory.0.into_node(key, Entry::Pending(endpoint.clone()));
        let mut table = self.table.lock();
        let removed = table.remove_answer(&key);
        let is_free = table.entries.get(&key).is_none();
        let unused = if is_free {
            let _ = table.entries.insert(node);
            None
        } else {
            Some(node)
        };
        drop(table);
        drop(unused);
        drop(removed);
        // INVARIANT: the endpoint was just entered. Only answers are removed or replaced by others.
        is_free.then(|| SidrRequest {
            table: Some(self.clone()),
            key,
        })
    }

    /// Replaces the endpoint of `key` by its answer.
    fn answer(self: &Arc<Self>, key: Key, mut entry: Entry<T>, expiry: RBTreeNode<ExpiryKey, ()>) {
        let mut table = self.table.lock();
        if let Some(place) = table.entries.get_mut(&key) {
            mem::swap(place, &mut entry);
        }
        let is_first = table.expiries.is_empty();
        let _ = table.expiries.insert(expiry);
        table.answers = table.answers.saturating_add(1);
        let removed = table.remove_oldest(Instant(0), MAX_ANSWERS);
        if is_first {
            self.wait(&table);
        }
        drop(table);
        drop(removed);
        // The entry holds a reference to the endpoint, which is dropped outside the lock.
        drop(entry);
    }

    /// Starts the delayed work for the first answer in `table`, whose lock is held.
    fn wait(self: &Arc<Self>, table: &Table<T>) {
        let Some(cursor) = table.expiries.cursor_front() else {
            return;
        };
        let (until, _) = *cursor.current().0;
        let delay = until.saturating_duration_since(Instant(clock::now_us()));
        // The work is refused only when the module is unloaded.
        let _ = self.runner.arm(self, &self.queue, delay.as_micros());
    }

    /// Stops the delayed work for good, and waits until it does not run.
    pub(crate) fn shut_down(&self) {
        self.runner.shutdown_sync();
    }
}

impl<T: Responder> SidrRequest<T> {
    /// Keeps the answer in place of the endpoint. If there is no memory for it, the request is
    /// removed.
    pub(crate) fn answer(mut self, answer: &Resolution) {
        let Some(until) = answer.deadline() else {
            return;
        };
        let memory = KBox::new(answer.clone(), GFP_KERNEL_ACCOUNT);
        let expiry = RBTreeNode::new((until, self.key), (), GFP_KERNEL_ACCOUNT);
        let (Ok(memory), Ok(expiry)) = (memory, expiry) else {
            return;
        };
        // INVARIANT: the entry of the endpoint is replaced.
        if let Some(table) = self.table.take() {
            table.answer(self.key, Entry::Answered(memory), expiry);
        }
    }
}

impl<T: Responder> Drop for SidrRequest<T> {
    fn drop(&mut self) {
        let Some(table) = &self.table else {
            return;
        };
        let node = table.table.lock().entries.remove_node(&self.key);
        // The node and its reference are dropped outside the lock.
        drop(node);
    }
}

impl<T: Responder> RunDelayed for SidrRequests<T> {
    fn run_delayed(this: Arc<Self>) {
        let now = Instant(clock::now_us());
        loop {
            let mut table = this.table.lock();
            let removed = table.remove_oldest(now, usize::MAX);
            if removed.is_none() {
                return this.wait(&table);
            }
            drop(table);
            drop(removed);
        }
    }
}
