// SPDX-License-Identifier: GPL-2.0

//! Requests whose sender is not reached yet, by listener, with which they end.
//!
//! The endpoint of such a request is known only to the resolution of the sender's address, but it
//! is shown to administrators as one of its listener. Without this table it would outlive its
//! listener until the resolution ends.
//!
//! Lock order: the lock is of the class "table shard". While it is held, no other lock is taken and
//! nothing is allocated.

use super::held::Held;
use crate::{
    endpoint::{Endpoint, EndpointRef},
    kext::delay,
};
use cmproto::{cm::DestroyCause, cma::State};
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

/// The key of a request: the numbers of the two endpoints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    listener: u64,
    child: u64,
}

impl From<&Held> for Key {
    fn from(held: &Held) -> Self {
        Key {
            listener: held.listener.number,
            child: held.child.number,
        }
    }
}

/// The table of requests whose sender is not reached yet.
#[pin_data]
pub(crate) struct Unreached {
    #[pin]
    table: Mutex<RBTree<Key, EndpointRef>>,
    /// The number of requests, so that a listener that ends need not take the lock if there are
    /// none.
    count: Atomic<u32>,
}

impl Unreached {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_unreached"),
            count: Atomic::new(0),
        })
    }

    /// Enters a request. Returns false if the listener has ended meanwhile, before it could find
    /// the request; the request is ended then.
    ///
    /// Fails with [`ENOMEM`].
    pub(super) fn enter(&self, held: &Held) -> Result<bool> {
        let key = Key::from(held);
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(key, held.child.clone());
        self.count.fetch_add(1, Relaxed);
        let before = self.table.lock().insert(node);
        drop(before);
        delay::point();
        let listens = held.listener.inner.lock().state() == State::Listen;
        if !listens {
            self.end_of(&held.listener);
        }
        Ok(listens)
    }

    /// Removes a request whose resolution is over. Returns whether it was still there.
    pub(super) fn leave(&self, held: &Held) -> bool {
        self.take(&Key::from(held)).is_some()
    }

    fn take(&self, key: &Key) -> Option<EndpointRef> {
        let node = self.table.lock().remove_node(key)?;
        self.count.fetch_sub(1, Relaxed);
        Some(node.to_key_value().1)
    }

    /// Returns the first request to the listener with this number.
    fn first_of(&self, listener: u64) -> Option<Key> {
        let first = Key { listener, child: 0 };
        let table = self.table.lock();
        let found = *table.cursor_lower_bound(&first)?.current().0;
        (found.listener == listener).then_some(found)
    }

    /// Ends the requests to `listener`, which does not listen any more.
    ///
    /// Their senders cannot be told, because their addresses are not known.
    pub(crate) fn end_of(&self, listener: &Endpoint) {
        // A task that enters a request takes the listener's lock after counting it. If it then
        // found that the listener listens, this was before the listener's state was changed, so
        // that the request is counted here.
        if self.count.load(Relaxed) == 0 {
            return;
        }
        while let Some(key) = self.first_of(listener.number) {
            if let Some(child) = self.take(&key) {
                child.end(DestroyCause::NoMemory);
            }
        }
    }
}
