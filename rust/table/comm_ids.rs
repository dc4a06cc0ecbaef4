// SPDX-License-Identifier: GPL-2.0

//! Communication ids: the table that maps a 32-bit id in a message to its endpoint.
//!
//! Ids are consecutive numbers, permuted with a key ([`cmproto::ids::CommIdKey`]): a peer cannot
//! derive the next id from one that it knows, and an id is not used again before all others were.
//! A lookup holds the lock of one shard for a search in a tree, and returns a reference to the
//! endpoint.

use super::sharded::{new_sharded, Sharded};
use cmproto::ids::CommIdKey;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    prelude::*,
    rbtree::{Entry, RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The ids of a shard. An id that is reserved but not published has no endpoint.
type Tree<T> = RBTree<u32, Option<T>>;

/// The table of communication ids. `T` is a reference to an endpoint.
#[pin_data]
pub(crate) struct CommIds<T> {
    key: CommIdKey,
    /// The number from which the next id is computed.
    next: Atomic<u32>,
    #[pin]
    ids: Sharded<Tree<T>, 64>,
}

/// A communication id in use, which is released when this is dropped.
pub(crate) struct CommId<T> {
    table: Arc<CommIds<T>>,
    id: u32,
}

impl<T> CommId<T> {
    /// Reserves an id, for which no endpoint is found yet.
    ///
    /// Fails with `ENOMEM` if there is no memory.
    pub(crate) fn new(table: &Arc<CommIds<T>>) -> Result<Self> {
        Ok(CommId {
            table: table.clone(),
            id: table.reserve()?,
        })
    }

    /// Returns the id as in messages, in host order. It is never 0, which means "no id".
    pub(crate) fn value(&self) -> u32 {
        self.id
    }

    /// Publishes `endpoint`, so that messages with the id find it.
    pub(crate) fn publish(&self, endpoint: &T)
    where
        T: Clone,
    {
        if let Some(shard) = self.table.ids.shard(self.id.into()) {
            if let Some(entry) = shard.lock().get_mut(&self.id) {
                *entry = Some(endpoint.clone());
            }
        }
    }
}

impl<T> Drop for CommId<T> {
    fn drop(&mut self) {
        let node = self.table.ids.take(self.id.into(), &self.id);
        // The node and its reference are dropped outside the shard lock.
        drop(node);
    }
}

impl<T> CommIds<T> {
    /// Creates an empty table whose ids are permuted with `key`. Fails with `ENOMEM`.
    pub(crate) fn new(key: [u64; 2]) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key: CommIdKey::new(key),
                next: Atomic::new(0),
                ids <- new_sharded!(RBTree::new(), "rdma_cm_comm_ids"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the table has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Reserves the next free id.
    fn reserve(&self) -> Result<u32> {
        let memory = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        loop {
            let id = self.key.permute(self.next.fetch_add(1, Relaxed));
            let mut tree = self.ids.shard(id.into()).ok_or(EINVAL)?.lock();
            // An id that is still in use is skipped. This happens when the counter has wrapped
            // around.
            if let (Entry::Vacant(entry), true) = (tree.entry(id), id != 0) {
                entry.insert(None, memory);
                return Ok(id);
            }
        }
    }

    /// Finds the endpoint with the communication id in a message.
    pub(crate) fn get(&self, id: u32) -> Option<T>
    where
        T: Clone,
    {
        self.ids.get(id.into(), &id)?
    }
}
