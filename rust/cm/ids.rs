// SPDX-License-Identifier: GPL-2.0

//! Communication ids: the table that maps a 32-bit id in a message to its endpoint.
//!
//! Ids are consecutive numbers, permuted with a key ([`cmproto::ids::CommIdKey`]): a peer cannot
//! derive the next id from one that it knows, and an id is not used again before all others were.
//! The table is divided into shards. A lookup holds the lock of one shard for a search in a tree,
//! and returns a reference to the endpoint.
//!
//! Lock order: a shard lock is of the class "table shard". While it is held, no other lock is taken
//! and nothing is allocated.

use crate::{core::Core, endpoint::EndpointRef};
use cmproto::ids::CommIdKey;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{Entry, RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// Number of shards, a power of two.
const SHARDS: usize = 64;

/// The ids of a shard. An id that is reserved but not published has no endpoint.
type Tree = RBTree<u32, Option<EndpointRef>>;

/// The table of communication ids.
#[pin_data]
pub(crate) struct CommIds {
    key: CommIdKey,
    /// The number from which the next id is computed.
    next: Atomic<u32>,
    #[pin]
    shards: [Mutex<Tree>; SHARDS],
}

/// A communication id in use, which is released when this is dropped.
pub(crate) struct CommId {
    core: Arc<Core>,
    id: u32,
}

impl CommId {
    /// Reserves an id, for which no endpoint is found yet.
    ///
    /// Fails with `ENOMEM` if there is no memory.
    pub(crate) fn new(core: &Arc<Core>) -> Result<Self> {
        Ok(CommId {
            core: core.clone(),
            id: core.ids.reserve()?,
        })
    }

    /// Returns the id as in messages, in host order. It is never 0, which means "no id".
    pub(crate) fn value(&self) -> u32 {
        self.id
    }

    /// Publishes `endpoint`, so that messages with the id find it.
    pub(crate) fn publish(&self, endpoint: &EndpointRef) {
        if let Some(shard) = self.core.ids.shard(self.id) {
            if let Some(entry) = shard.lock().get_mut(&self.id) {
                *entry = Some(endpoint.clone());
            }
        }
    }
}

impl Drop for CommId {
    fn drop(&mut self) {
        let shard = self.core.ids.shard(self.id);
        let node = shard.and_then(|shard| shard.lock().remove_node(&self.id));
        // The node and its reference are dropped outside the shard lock.
        drop(node);
    }
}

impl CommIds {
    /// Creates an empty table whose ids are permuted with `key`.
    pub(crate) fn new(key: [u64; 2]) -> impl PinInit<Self> {
        pin_init!(Self {
            key: CommIdKey::new(key),
            next: Atomic::new(0),
            shards <- pin_init::pin_init_array_from_fn(|_| {
                new_mutex!(RBTree::new(), "rdma_cm_ids")
            }),
        })
    }

    /// Returns whether the table has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }

    fn shard(&self, id: u32) -> Option<&Mutex<Tree>> {
        let shard = usize::try_from(id).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)
    }

    /// Reserves the next free id.
    fn reserve(&self) -> Result<u32> {
        let space = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        loop {
            let id = self.key.permute(self.next.fetch_add(1, Relaxed));
            let mut tree = self.shard(id).ok_or(EINVAL)?.lock();
            // An id that is still in use is skipped. This happens when the counter has wrapped
            // around.
            if let (Entry::Vacant(entry), true) = (tree.entry(id), id != 0) {
                entry.insert(None, space);
                return Ok(id);
            }
        }
    }

    /// Finds the endpoint with the communication id in a message.
    pub(crate) fn get(&self, id: u32) -> Option<EndpointRef> {
        self.shard(id)?.lock().get(&id)?.clone()
    }
}
