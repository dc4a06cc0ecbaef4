// SPDX-License-Identifier: GPL-2.0

//! Communication ids: the table that maps a 32-bit id in a message to its endpoint.
//!
//! Ids are consecutive numbers, permuted with a key ([`cmproto::ids::CommIdKey`]): a peer cannot
//! derive the next id from one that it knows, and an id is not used again before all others were.
//! A lookup holds the lock of one shard for a search in a tree, and returns a reference to the
//! endpoint. The link of an id lies in the endpoint, so that it takes no memory to enter it.

use super::sharded::{new_sharded, Sharded};
use cmproto::ids::CommIdKey;
use containers::{Counted, HasLink, Link, Tree};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The communication id of an endpoint, by which it is found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnCommId(u32);

/// The link of an endpoint by its communication id. It lies in the endpoint.
pub(crate) type CommIdLink = Link<OwnCommId>;

/// A counted reference to an endpoint that has a communication id.
pub(crate) trait HasCommId: Counted<Target: HasLink<OwnCommId>> + Clone {}

impl<T: Counted<Target: HasLink<OwnCommId>> + Clone> HasCommId for T {}

/// The table of communication ids. `T` is a reference to an endpoint.
#[pin_data]
pub(crate) struct CommIds<T: HasCommId> {
    key: CommIdKey,
    /// The number from which the next id is computed.
    next: Atomic<u64>,
    #[pin]
    ids: Sharded<Tree<T, OwnCommId>, 64>,
}

/// A communication id in use, which is released when this is dropped.
///
/// # Invariants
///
/// If `is_published` is set, the table has an entry for `id`, which no other code removes.
pub(crate) struct CommId<T: HasCommId> {
    table: Arc<CommIds<T>>,
    id: u32,
    is_published: bool,
}

impl<T: HasCommId> CommId<T> {
    /// Takes an id, for which no endpoint is found yet.
    pub(crate) fn new(table: &Arc<CommIds<T>>) -> Self {
        CommId {
            table: table.clone(),
            id: table.unused(),
            is_published: false,
        }
    }

    /// Returns the id as in messages, in host order. It is never 0, which means "no id".
    pub(crate) fn value(&self) -> u32 {
        self.id
    }

    /// Publishes `endpoint`, so that messages with the id find it. The endpoint has no other id.
    pub(crate) fn publish(&mut self, endpoint: &T) {
        let endpoint = endpoint.clone();
        let refused = self.table.ids.shard(self.id.into()).map(|shard| {
            let entered = shard.lock().insert(OwnCommId(self.id), endpoint);
            // INVARIANT: The endpoint was entered, unless it had an id already.
            self.is_published = entered.is_ok();
            entered
        });
        // The reference is dropped outside the shard lock.
        drop(refused);
    }
}

impl<T: HasCommId> Drop for CommId<T> {
    fn drop(&mut self) {
        if self.is_published {
            let removed = self.table.remove(self.id);
            // The reference is dropped outside the shard lock.
            drop(removed);
        }
    }
}

impl<T: HasCommId> CommIds<T> {
    /// Creates an empty table whose ids are permuted with `key`. Fails with `ENOMEM`.
    pub(crate) fn new(key: [u64; 2]) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key: CommIdKey::new(key),
                next: Atomic::new(0),
                ids <- new_sharded!(Tree::new(), "rdma_cm_comm_ids"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the table has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        let mut shards = self.ids.all().iter();
        shards.all(|shard| shard.lock().is_empty())
    }

    /// Returns the next id that is not in use.
    fn unused(&self) -> u32 {
        loop {
            let taken = self.next.fetch_add(1, Relaxed);
            // CAST: The lower half, as an id comes again when all others were taken.
            let id = self.key.permute(taken as u32);
            // Before that none is in use; later, one that is in use is skipped. One that is not
            // published yet is not seen, but it is by the time that all others were taken.
            if id != 0 && (u32::try_from(taken).is_ok() || self.get(id).is_none()) {
                return id;
            }
        }
    }

    /// Finds the endpoint with the communication id in a message.
    pub(crate) fn get(&self, id: u32) -> Option<T> {
        let ids = self.ids.shard(id.into())?.lock();
        let owner = ids.get(&OwnCommId(id))?;
        Some((*owner).clone())
    }

    /// Removes an id.
    fn remove(&self, id: u32) -> Option<T> {
        let mut ids = self.ids.shard(id.into())?.lock();
        let owner = (*ids.get(&OwnCommId(id))?).clone();
        ids.remove(&owner)
    }
}
