// SPDX-License-Identifier: GPL-2.0

//! Table of the communication ids and QPNs of peers that are in use, for `cmproto::node`.

use super::sharded::{new_sharded, Sharded};
use crate::kext::delay;
use cmproto::node::{RemoteIds, RemoteKey, RemoteTable};
use core::result::Result;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    error::Error,
    prelude::*,
    rbtree::{Entry, RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// The table of the peers' ids. `T` is a reference to the endpoint whose connection has an id.
#[pin_data]
pub(crate) struct RemoteIdTable<T> {
    #[pin]
    shards: Sharded<RBTree<RemoteKey, T>, 64>,
}

type Reservation<T> = RBTreeNodeReservation<RemoteKey, T>;

/// Memory for the entries that one message brings, allocated before any lock is taken.
///
/// # Invariants
///
/// If an element of `memory` is `None`, an entry was made of it.
pub(crate) struct RemoteIdReservation<T> {
    table: Arc<RemoteIdTable<T>>,
    memory: [Option<Reservation<T>>; 2],
}

/// The ids of a peer that belong to one connection. They are released when this is dropped.
///
/// # Invariants
///
/// The table has an entry for the communication id, and one for the QPN unless that is [`NO_QPN`].
/// No other code removes the entries.
pub(crate) struct RemoteIdClaim<T> {
    table: Arc<RemoteIdTable<T>>,
    ids: RemoteIds,
}

/// A value that no QPN has.
const NO_QPN: u32 = u32::MAX;

impl<T> Drop for RemoteIdClaim<T> {
    fn drop(&mut self) {
        let qpn = (self.ids.qpn != NO_QPN).then(|| self.ids.qpn_key());
        for key in [Some(self.ids.comm_id_key()), qpn].into_iter().flatten() {
            let node = self.table.shards.take(hash(&key), &key);
            // The node and its reference are dropped outside the shard lock.
            drop(node);
        }
    }
}

impl<T> RemoteIdClaim<T> {
    /// Adds the QPN, for which `entered` was used. Returns false, and does nothing, if it was not
    /// entered.
    pub(crate) fn add_qpn(&mut self, entered: RemoteIdReservation<T>, ids: &RemoteIds) -> bool {
        if entered.is_entered() {
            // INVARIANT: the QPN was entered, and can only be removed by this from now on.
            self.ids.qpn = ids.qpn;
        }
        entered.is_entered()
    }
}

impl<T> RemoteIdReservation<T> {
    /// Allocates the memory for `N` entries, 1 or 2. Fails with `ENOMEM`.
    pub(crate) fn new<const N: usize>(table: &Arc<RemoteIdTable<T>>) -> Result<Self, Error> {
        const { assert!(N == 1 || N == 2) };
        let second = match N {
            1 => None,
            _ => Some(Reservation::new(GFP_KERNEL_ACCOUNT)?),
        };
        // INVARIANT: this is the memory for all entries.
        Ok(Self {
            table: table.clone(),
            memory: [Some(Reservation::new(GFP_KERNEL_ACCOUNT)?), second],
        })
    }

    fn is_entered(&self) -> bool {
        self.memory.iter().all(Option::is_none)
    }

    /// Returns the claim on the communication id alone if that was entered.
    pub(crate) fn claim_comm_id(self, ids: &RemoteIds) -> Option<RemoteIdClaim<T>> {
        let qpn = NO_QPN;
        self.claim(&RemoteIds { qpn, ..*ids })
    }

    /// Returns the claim on `ids` if both were entered.
    pub(crate) fn claim(self, ids: &RemoteIds) -> Option<RemoteIdClaim<T>> {
        // INVARIANT: the ids were entered, and can only be removed by this from now on.
        self.is_entered().then(|| RemoteIdClaim {
            table: self.table,
            ids: *ids,
        })
    }
}

impl<T: Clone> RemoteTable<T> for RemoteIdReservation<T> {
    fn owner(&self, key: &RemoteKey) -> Option<T> {
        self.table.get(key)
    }

    fn enter(&mut self, key: RemoteKey, endpoint: &T) -> Option<T> {
        if key.is_qpn() {
            delay::point();
        }
        // There is memory for what is to be entered.
        let Some(memory) = self.memory.iter_mut().find_map(Option::take) else {
            return Some(endpoint.clone());
        };
        let (unused, owner) = self.table.enter(memory, key, endpoint).err()?;
        self.give_back(unused);
        Some(owner)
    }

    fn leave(&mut self, key: &RemoteKey, _endpoint: &T) {
        if let Some(node) = self.table.shards.take(hash(key), key) {
            self.give_back(node.into_reservation());
        }
    }
}

impl<T> RemoteIdReservation<T> {
    /// Takes memory back of which no entry was made.
    fn give_back(&mut self, memory: Reservation<T>) {
        if let Some(place) = self.memory.iter_mut().find(|place| place.is_none()) {
            *place = Some(memory);
        }
    }
}

impl<T> RemoteIdTable<T> {
    /// Creates an empty table. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        Arc::pin_init(
            pin_init!(Self {
                shards <- new_sharded!(RBTree::new(), "rdma_cm_remote_ids"),
            }),
            GFP_KERNEL,
        )
    }

    /// Enters `key` for `endpoint`. If another endpoint has the key, returns the memory and that
    /// endpoint.
    fn enter(
        &self,
        memory: Reservation<T>,
        key: RemoteKey,
        endpoint: &T,
    ) -> Result<(), (Reservation<T>, T)>
    where
        T: Clone,
    {
        let Some(shard) = self.shards.shard(hash(&key)) else {
            return Ok(());
        };
        match shard.lock().entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(endpoint.clone(), memory);
                Ok(())
            }
            Entry::Occupied(entry) => Err((memory, entry.get().clone())),
        }
    }

    /// Finds the endpoint whose connection has an id of a peer.
    pub(crate) fn get(&self, key: &RemoteKey) -> Option<T>
    where
        T: Clone,
    {
        self.shards.get(hash(key), key)
    }
}

/// Returns the hash that chooses the shard of `key`. It need not be secret, because each shard is a
/// balanced tree.
fn hash(key: &RemoteKey) -> u64 {
    (key.peer().guid ^ u64::from(key.value())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58
}
