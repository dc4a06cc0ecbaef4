// SPDX-License-Identifier: GPL-2.0

//! Communication ids: the table from a 32-bit id on the wire to its endpoint.
//!
//! Ids are the numbers from 0 on under a keyed permutation ([`cmproto::ids::CommIdKey`]): a peer that
//! knows one id cannot tell the next one, and an id is not used again before all others were. The
//! table is spread over shards; a lookup takes one shard lock for a few steps down a tree and returns
//! a reference of its own.
//!
//! Lock order: a shard lock is of the class "table shard"; nothing is locked and nothing is
//! allocated while it is held.

use crate::{core::Core, endpoint::EndpointRef};
use cmproto::ids::CommIdKey;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// Number of shards; a power of two.
const SHARDS: usize = 64;

/// The ids of a shard; those that find nothing yet are reserved.
type Tree = RBTree<u32, Option<EndpointRef>>;

/// The table of communication ids.
#[pin_data]
pub(crate) struct CommIds {
    key: CommIdKey,
    /// The number that the next id is made of.
    next: Atomic<u32>,
    #[pin]
    shards: [Mutex<Tree>; SHARDS],
}

/// A communication id that is taken; dropping it gives it back.
pub(crate) struct CommId {
    core: Arc<Core>,
    id: u32,
}

impl CommId {
    /// Takes an id that finds nothing yet.
    ///
    /// Fails with `ENOMEM` when memory runs out.
    pub(crate) fn new(core: &Arc<Core>) -> Result<Self> {
        Ok(CommId {
            core: core.clone(),
            id: core.ids.reserve()?,
        })
    }

    /// The id as it goes on the wire, in host order; never 0, which stands for none.
    pub(crate) fn value(&self) -> u32 {
        self.id
    }

    /// Makes the id find `endpoint`.
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
        // The node and its reference go away outside the shard lock.
        drop(node);
    }
}

impl CommIds {
    /// Creates an empty table whose ids are scrambled with `key`.
    pub(crate) fn new(key: [u64; 2]) -> impl PinInit<Self> {
        pin_init!(Self {
            key: CommIdKey::new(key),
            next: Atomic::new(0),
            shards <- pin_init::pin_init_array_from_fn(|_| {
                new_mutex!(RBTree::new(), "rdma_cm_ids")
            }),
        })
    }

    fn shard(&self, id: u32) -> Option<&Mutex<Tree>> {
        let shard = usize::try_from(id).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)
    }

    /// Reserves the next id that is free.
    fn reserve(&self) -> Result<u32> {
        let space = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        loop {
            let id = self.key.permute(self.next.fetch_add(1, Relaxed));
            let mut tree = self.shard(id).ok_or(EINVAL)?.lock();
            // An id is taken if all 2^32 numbers were used since, and it still is.
            if id != 0 && tree.get(&id).is_none() {
                let _ = tree.insert(space.into_node(id, None));
                return Ok(id);
            }
        }
    }

    /// Finds the endpoint of an id that a peer sent.
    pub(crate) fn get(&self, id: u32) -> Option<EndpointRef> {
        self.shard(id)?.lock().get(&id)?.clone()
    }
}
