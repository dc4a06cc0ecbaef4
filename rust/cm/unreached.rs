// SPDX-License-Identifier: GPL-2.0

//! The requests whose sender is not reached yet, by listener: they end with it.
//!
//! Nobody but the search for the sender knows the endpoint of such a request, which is shown to
//! administrators, and as its listener's. When the listener ends it must not stay until the sender
//! has been found, or has not.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked and nothing is allocated
//! while it is held.

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

/// A request, by the numbers of two endpoints.
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

/// The requests whose sender is not reached yet.
#[pin_data]
pub(crate) struct Unreached {
    #[pin]
    table: Mutex<RBTree<Key, EndpointRef>>,
    /// How many there are, for those who end while there are none.
    count: Atomic<u32>,
}

impl Unreached {
    /// There are none yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_unreached"),
            count: Atomic::new(0),
        })
    }

    /// Enters a request. If its listener has ended meanwhile, before it could have found the
    /// request, that ends, too, and the result is `false`.
    ///
    /// Fails with [`ENOMEM`].
    pub(super) fn enter(&self, held: &Held) -> Result<bool> {
        let key = Key::from(held);
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(key, held.child.clone());
        self.count.fetch_add(1, Relaxed);
        let before = self.table.lock().insert(node);
        drop(before);
        delay::point();
        let listens = held.listener.inner.lock().state == State::Listen;
        if !listens {
            self.end_of(&held.listener);
        }
        Ok(listens)
    }

    /// Takes a request out, whose search is over. Returns whether it was still there.
    pub(super) fn leave(&self, held: &Held) -> bool {
        self.take(&Key::from(held)).is_some()
    }

    fn take(&self, key: &Key) -> Option<EndpointRef> {
        let node = self.table.lock().remove_node(key)?;
        self.count.fetch_sub(1, Relaxed);
        Some(node.to_key_value().1)
    }

    /// A request to the listener with this number.
    fn first_of(&self, listener: u64) -> Option<Key> {
        let first = Key { listener, child: 0 };
        let table = self.table.lock();
        let found = *table.cursor_lower_bound(&first)?.current().0;
        (found.listener == listener).then_some(found)
    }

    /// Ends the requests to `listener`, which does not listen any more.
    ///
    /// Their senders cannot be told: it is not known how they are reached.
    pub(crate) fn end_of(&self, listener: &Endpoint) {
        // Who enters one takes the listener's lock afterwards. If it found it listening, that was
        // before the listener's state was changed, and so it is counted here.
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
