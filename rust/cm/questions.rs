// SPDX-License-Identifier: GPL-2.0

//! The questions of peers for datagram services (SIDR_REQ, IBTA 12.11).
//!
//! A question is known by the device that it came to, by where it came from and by the sender's
//! number for it. Until its user answers, an endpoint stands for it. The answer is then remembered,
//! as data without an endpoint or a device, so that a question that comes again because the answer
//! was lost is answered again, and not put to the user again. To forget an answer early costs no
//! more than that, so the oldest goes when there are too many.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked and nothing is allocated
//! while it is held, but for waking the delayed work, which takes a leaf lock.

use crate::{
    endpoint::EndpointRef,
    kext::{
        clock,
        workqueue::{new_delayed_runner, DelayedRunner, OwnedQueue, RunDelayed},
    },
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

/// The most answers that are remembered: for peers that ask again after 4 s, those to 1,000
/// questions a second.
const MAX_ANSWERS: usize = 4096;

/// What a question is known by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The index of the device that it came to.
    pub(crate) device: u32,
    /// Where it came from.
    pub(crate) origin: Origin,
    /// The sender's number for it.
    pub(crate) request_id: u32,
}

enum Entry {
    Asked(EndpointRef),
    Answered(KBox<Resolution>),
}

/// Memory for an entry, taken before any lock.
pub(crate) struct Space(RBTreeNodeReservation<Key, Entry>);

impl Space {
    /// Takes the memory.
    pub(crate) fn new() -> Result<Self> {
        Ok(Space(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

/// The entry of an endpoint, and the only handle by which it is removed or answered.
pub(crate) struct Question(Key);

/// When an answer is forgotten, and to which question.
type Age = (Instant, Key);

/// What the lock protects.
///
/// # Invariants
///
/// `ages` has one entry for each answer in `entries`, and there are `answers` of them.
struct Table {
    entries: RBTree<Key, Entry>,
    ages: RBTree<Age, ()>,
    answers: usize,
}

/// What was taken out of the table, to be dropped without its lock.
struct Forgotten(
    #[expect(dead_code, reason = "only to be dropped")] Option<RBTreeNode<Age, ()>>,
    #[expect(dead_code, reason = "only to be dropped")] Option<RBTreeNode<Key, Entry>>,
);

impl Table {
    /// Whether `key` is the question that `endpoint` stands for.
    fn is_asked(&self, key: &Key, endpoint: &EndpointRef) -> bool {
        match self.entries.get(key) {
            Some(Entry::Asked(owner)) => EndpointRef::ptr_eq(owner, endpoint),
            _ => false,
        }
    }

    /// Forgets the answer to `key`, if there is one.
    fn forget(&mut self, key: &Key) -> Forgotten {
        let until = match self.entries.get(key) {
            Some(Entry::Answered(answer)) => answer.deadline(),
            _ => None,
        };
        let Some(until) = until else {
            return Forgotten(None, None);
        };
        // INVARIANT: Both go.
        self.answers = self.answers.saturating_sub(1);
        Forgotten(
            self.ages.remove_node(&(until, *key)),
            self.entries.remove_node(key),
        )
    }

    /// Forgets the oldest answer, if it is due at `now` or there are more than `most`.
    fn forget_oldest(&mut self, now: Instant, most: usize) -> Option<Forgotten> {
        let (until, key) = *self.ages.cursor_front()?.current().0;
        (until <= now || self.answers > most).then(|| self.forget(&key))
    }
}

/// All questions.
#[pin_data]
pub(crate) struct Questions {
    queue: Arc<OwnedQueue>,
    #[pin]
    table: Mutex<Table>,
    #[pin]
    runner: DelayedRunner<Questions>,
}

impl Questions {
    /// Creates an empty table that forgets answers on `queue`.
    pub(crate) fn new(queue: &Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let queue = queue.clone();
        let table = Table {
            entries: RBTree::new(),
            ages: RBTree::new(),
            answers: 0,
        };
        Arc::pin_init(
            pin_init!(Questions {
                queue,
                table <- new_mutex!(table, "rdma_cm_questions"),
                runner <- new_delayed_runner!("rdma_cm_questions"),
            }),
            GFP_KERNEL,
        )
    }

    /// Looks a question up.
    pub(crate) fn find(&self, key: &Key) -> KnownSidr<EndpointRef> {
        match self.table.lock().entries.get(key) {
            None => KnownSidr::Nothing,
            Some(Entry::Asked(endpoint)) => KnownSidr::Asked(endpoint.clone()),
            Some(Entry::Answered(answer)) => KnownSidr::Answered((**answer).clone()),
        }
    }

    /// Lets `endpoint` stand for a question, unless another one does. An answer that is remembered
    /// was to another question, and is forgotten.
    pub(crate) fn enter(&self, space: Space, key: Key, endpoint: &EndpointRef) -> Option<Question> {
        let node = space.0.into_node(key, Entry::Asked(endpoint.clone()));
        let mut table = self.table.lock();
        let forgotten = table.forget(&key);
        let is_free = table.entries.get(&key).is_none();
        let unused = if is_free {
            let _ = table.entries.insert(node);
            None
        } else {
            Some(node)
        };
        drop(table);
        drop(unused);
        drop(forgotten);
        is_free.then_some(Question(key))
    }

    /// Remembers the answer that `endpoint` gave; without memory for it, the question is removed.
    pub(crate) fn answer(
        self: &Arc<Self>,
        question: Question,
        endpoint: &EndpointRef,
        answer: &Resolution,
    ) {
        let key = question.0;
        let Some(until) = answer.deadline() else {
            return self.remove(question, endpoint);
        };
        let memory = KBox::new(answer.clone(), GFP_KERNEL_ACCOUNT);
        let age = RBTreeNode::new((until, key), (), GFP_KERNEL_ACCOUNT);
        let (Ok(memory), Ok(age)) = (memory, age) else {
            return self.remove(question, endpoint);
        };
        let mut entry = Entry::Answered(memory);
        let mut table = self.table.lock();
        if !table.is_asked(&key, endpoint) {
            drop(table);
            return;
        }
        if let Some(place) = table.entries.get_mut(&key) {
            mem::swap(place, &mut entry);
        }
        let is_first = table.ages.is_empty();
        let _ = table.ages.insert(age);
        table.answers = table.answers.saturating_add(1);
        let forgotten = table.forget_oldest(Instant(0), MAX_ANSWERS);
        if is_first {
            self.wait(&table);
        }
        drop(table);
        drop(forgotten);
        // The endpoint's entry, whose reference to it goes outside the lock.
        drop(entry);
    }

    /// Removes the question that `endpoint` stands for.
    pub(crate) fn remove(&self, question: Question, endpoint: &EndpointRef) {
        let mut table = self.table.lock();
        let node = if table.is_asked(&question.0, endpoint) {
            table.entries.remove_node(&question.0)
        } else {
            None
        };
        drop(table);
        drop(node);
    }

    /// Waits until the first answer of `table`, whose lock is held, is to be forgotten.
    fn wait(self: &Arc<Self>, table: &Table) {
        let Some(cursor) = table.ages.cursor_front() else {
            return;
        };
        let (until, _) = *cursor.current().0;
        let delay = until.saturating_duration_since(Instant(clock::now_us()));
        // Refused only when the module goes away.
        let _ = self.runner.arm(self, &self.queue, delay.as_micros());
    }

    /// Stops forgetting for good, and waits until nobody does.
    pub(crate) fn shut_down(&self) {
        self.runner.shutdown_sync();
    }
}

impl RunDelayed for Questions {
    fn run_delayed(this: Arc<Self>) {
        let now = Instant(clock::now_us());
        loop {
            let mut table = this.table.lock();
            let forgotten = table.forget_oldest(now, usize::MAX);
            if forgotten.is_none() {
                return this.wait(&table);
            }
            drop(table);
            drop(forgotten);
        }
    }
}
