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

/// Memory for the entries of one connection, allocated before any lock is taken.
///
/// # Invariants
///
/// Where there is no memory, an entry was made of it.
pub(crate) struct RemoteIdReservation<T> {
    table: Arc<RemoteIdTable<T>>,
    comm_id: Option<Reservation<T>>,
    qpn: Option<Reservation<T>>,
}

/// The ids of a peer that belong to one connection. They are released when this is dropped.
///
/// # Invariants
///
/// The table has entries for both ids, which nothing else removes.
pub(crate) struct RemoteIdClaim<T> {
    table: Arc<RemoteIdTable<T>>,
    ids: RemoteIds,
}

impl<T> Drop for RemoteIdClaim<T> {
    fn drop(&mut self) {
        for key in [self.ids.comm_id_key(), self.ids.qpn_key()] {
            let node = self.table.shards.take(hash(&key), &key);
            // The node and its reference are dropped outside the shard lock.
            drop(node);
        }
    }
}

impl<T> RemoteIdReservation<T> {
    /// Allocates the memory for a communication id and a QPN. Fails with `ENOMEM`.
    pub(crate) fn new(table: &Arc<RemoteIdTable<T>>) -> Result<Self, Error> {
        Ok(Self {
            table: table.clone(),
            comm_id: Some(Reservation::new(GFP_KERNEL_ACCOUNT)?),
            qpn: Some(Reservation::new(GFP_KERNEL_ACCOUNT)?),
        })
    }

    /// Returns the claim on `ids` if both were entered.
    pub(crate) fn claim(self, ids: &RemoteIds) -> Option<RemoteIdClaim<T>> {
        let (None, None) = (self.comm_id, self.qpn) else {
            return None;
        };
        // INVARIANT: both were entered, and can only be removed by this from now on.
        Some(RemoteIdClaim {
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
        let reservation = if key.is_qpn() {
            delay::point();
            &mut self.qpn
        } else {
            &mut self.comm_id
        };
        // There is memory for one communication id and one QPN, and each is entered once.
        let Some(memory) = reservation.take() else {
            return Some(endpoint.clone());
        };
        let (unused, owner) = self.table.enter(memory, key, endpoint).err()?;
        *reservation = Some(unused);
        Some(owner)
    }

    fn leave(&mut self, key: &RemoteKey, _endpoint: &T) {
        if let Some(node) = self.table.shards.take(hash(key), key) {
            let reservation = if key.is_qpn() {
                &mut self.qpn
            } else {
                &mut self.comm_id
            };
            *reservation = Some(node.into_reservation());
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
