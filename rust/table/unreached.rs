// SPDX-License-Identifier: GPL-2.0

//! Requests whose sender is not reached yet, by listener, with which they end.
//!
//! Such a request is known only to the resolution of the sender's address, but it is shown to
//! administrators as one of its listener. Without this table it would outlive its listener until
//! the resolution ends.
//!
//! Lock order: the lock is of the class "table shard". While it is held, no other lock is taken and
//! nothing is allocated.

use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Mutex,
    },
};

/// The key of a request: its listener's number and its own, which no other request has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    listener: u64,
    request: u64,
}

/// The table of requests whose sender is not reached yet.
#[pin_data]
pub(crate) struct Unreached<T> {
    #[pin]
    table: Mutex<RBTree<Key, T>>,
    /// The number of requests, so that a listener that ends need not take the lock if there are
    /// none.
    count: Atomic<u32>,
}

impl<T: Unpin> Unreached<T> {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_unreached"),
            count: Atomic::new(0),
        })
    }

    /// Enters the request with the number `number`. Fails with [`ENOMEM`].
    ///
    /// The caller must then see whether the listener still listens, as one that ends at the same
    /// time may not find the request.
    pub(crate) fn enter(&self, listener: u64, number: u64, request: T) -> Result {
        let key = Key {
            listener,
            request: number,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(key, request);
        self.count.fetch_add(1, Relaxed);
        let before = self.table.lock().insert(node);
        drop(before);
        Ok(())
    }

    /// Removes the request with the number `number` and returns it, if it is still there.
    pub(crate) fn remove(&self, listener: u64, number: u64) -> Option<T> {
        self.take(&Key {
            listener,
            request: number,
        })
    }

    fn take(&self, key: &Key) -> Option<T> {
        let node = self.table.lock().remove_node(key)?;
        self.count.fetch_sub(1, Relaxed);
        Some(node.to_key_value().1)
    }

    /// Returns the first request to the listener with this number.
    fn first_of(&self, listener: u64) -> Option<Key> {
        let first = Key {
            listener,
            request: 0,
        };
        let table = self.table.lock();
        let found = *table.cursor_lower_bound(&first)?.current().0;
        (found.listener == listener).then_some(found)
    }

    /// Calls `end` for each request to a listener, which does not listen any more, after the
    /// request was removed.
    pub(crate) fn end_of(&self, listener: u64, end: impl Fn(T)) {
        // Whoever enters a request takes the listener's lock after that. If it then
        // found that the listener listens, this was before the listener's state was changed, so
        // that the request is counted here.
        if self.count.load(Relaxed) == 0 {
            return;
        }
        while let Some(key) = self.first_of(listener) {
            if let Some(request) = self.take(&key) {
                end(request);
            }
        }
    }
}
