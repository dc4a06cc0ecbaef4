// SPDX-License-Identifier: GPL-2.0

//! Table of the communication ids and QPNs of peers that are in use, for `cmproto::node`.
//!
//! The links of the ids lie in the endpoint, so that it takes no memory to enter them.

use super::sharded::{new_sharded, Sharded};
use crate::kext::delay;
use cmproto::node::{RemoteIds, RemoteKey, RemoteTable};
use containers::{Counted, HasLink, Link, Tree};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, sync::Arc};

/// The communication id of a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RemoteCommId(RemoteKey);

/// The QPN of a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RemoteQpn(RemoteKey);

/// The link of an endpoint by the communication id of its peer. It lies in the endpoint.
pub(crate) type RemoteCommIdLink = Link<RemoteCommId>;

/// The link of an endpoint by the QPN of its peer. It lies in the endpoint.
pub(crate) type RemoteQpnLink = Link<RemoteQpn>;

/// A counted reference to the endpoint whose connection has ids of a peer.
pub(crate) trait HasRemoteIds:
    Counted<Target: HasLink<RemoteCommId> + HasLink<RemoteQpn>> + Clone
{
    /// Returns the table of the peers' ids, always the same one.
    fn table(&self) -> &RemoteIdTable<Self>;
}

/// The ids of a shard.
struct Ids<T: HasRemoteIds> {
    comm_ids: Tree<T, RemoteCommId>,
    qpns: Tree<T, RemoteQpn>,
}

/// The table of the peers' ids.
#[pin_data]
pub(crate) struct RemoteIdTable<T: HasRemoteIds> {
    #[pin]
    shards: Sharded<Ids<T>, 64>,
}

/// The ids of a peer that belong to the connection of an endpoint. They are released when this is
/// dropped.
///
/// # Invariants
///
/// The table of `owner` has an entry of `owner` for the communication id, in the shard `comm_id`,
/// and one for the QPN in the shard `qpn` unless that is `None`. No other code removes the entries.
pub(crate) struct RemoteIdClaim<T: HasRemoteIds> {
    owner: T,
    comm_id: u8,
    qpn: Option<u8>,
}

impl<T: HasRemoteIds> Drop for RemoteIdClaim<T> {
    fn drop(&mut self) {
        let table = self.owner.table();
        // The references are dropped outside the shard locks.
        drop(table.release(self.comm_id, |ids| ids.comm_ids.remove(&self.owner)));
        if let Some(qpn) = self.qpn {
            drop(table.release(qpn, |ids| ids.qpns.remove(&self.owner)));
        }
    }
}

impl<T: HasRemoteIds> RemoteIdClaim<T> {
    /// Creates the claim of `owner` on `ids`, both of which were just entered for it.
    pub(crate) fn new(owner: &T, ids: &RemoteIds) -> Self {
        let mut claim = Self::of_comm_id(owner, ids);
        claim.add_qpn(ids);
        claim
    }

    /// Creates the claim of `owner` on the communication id alone, which was just entered for it.
    pub(crate) fn of_comm_id(owner: &T, ids: &RemoteIds) -> Self {
        // INVARIANT: The id was entered, and can only be removed by this from now on.
        RemoteIdClaim {
            owner: owner.clone(),
            comm_id: shard(&ids.comm_id_key()),
            qpn: None,
        }
    }

    /// Adds the QPN, which was just entered.
    pub(crate) fn add_qpn(&mut self, ids: &RemoteIds) {
        // INVARIANT: The QPN was entered, and can only be removed by this from now on.
        self.qpn = Some(shard(&ids.qpn_key()));
    }
}

impl<T: HasRemoteIds> RemoteTable<T> for &RemoteIdTable<T> {
    fn owner(&self, key: &RemoteKey) -> Option<T> {
        self.get(key)
    }

    fn enter(&mut self, key: RemoteKey, endpoint: &T) -> Option<T> {
        if key.is_qpn() {
            delay::point();
        }
        let mut ids = self.shards.shard(shard(&key).into())?.lock();
        match key.is_qpn() {
            true => enter(&mut ids.qpns, RemoteQpn(key), endpoint),
            false => enter(&mut ids.comm_ids, RemoteCommId(key), endpoint),
        }
    }

    fn leave(&mut self, key: &RemoteKey, _endpoint: &T) {
        self.remove(key);
    }
}

impl<T: HasRemoteIds> RemoteIdTable<T> {
    /// Creates an empty table. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                shards <- new_sharded!(
                    Ids {
                        comm_ids: Tree::new(),
                        qpns: Tree::new(),
                    },
                    "rdma_cm_remote_ids"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Finds the endpoint whose connection has an id of a peer.
    pub(crate) fn get(&self, key: &RemoteKey) -> Option<T> {
        let ids = self.shards.shard(shard(key).into())?.lock();
        match key.is_qpn() {
            true => find(&ids.qpns, &RemoteQpn(*key)),
            false => find(&ids.comm_ids, &RemoteCommId(*key)),
        }
    }

    /// Removes an id.
    fn remove(&self, key: &RemoteKey) {
        // The reference is dropped outside the shard lock.
        drop(self.release(shard(key), |ids| match key.is_qpn() {
            true => remove(&mut ids.qpns, &RemoteQpn(*key)),
            false => remove(&mut ids.comm_ids, &RemoteCommId(*key)),
        }));
    }

    /// Calls `remove` with the ids of a shard.
    fn release(&self, shard: u8, remove: impl FnOnce(&mut Ids<T>) -> Option<T>) -> Option<T> {
        remove(&mut self.shards.shard(shard.into())?.lock())
    }
}

/// Returns the endpoint with the key `key`.
fn find<T, K>(tree: &Tree<T, K>, key: &K) -> Option<T>
where
    T: Counted<Target: HasLink<K>> + Clone,
    K: Copy + Ord,
{
    tree.get(key).map(|owner| (*owner).clone())
}

/// Enters `endpoint`, unless another one has the key, which is returned then.
fn enter<T, K>(tree: &mut Tree<T, K>, key: K, endpoint: &T) -> Option<T>
where
    T: Counted<Target: HasLink<K>> + Clone,
    K: Copy + Ord,
{
    find(tree, &key).or_else(|| {
        // An endpoint gives up the ids of a peer before it enters others.
        tree.insert(key, endpoint.clone()).err()
    })
}

/// Removes the endpoint with the key `key`.
fn remove<T, K>(tree: &mut Tree<T, K>, key: &K) -> Option<T>
where
    T: Counted<Target: HasLink<K>> + Clone,
    K: Copy + Ord,
{
    let owner = find(tree, key)?;
    tree.remove(&owner)
}

/// Returns the shard of `key`, 0 to 63. It need not be secret, because each shard is a balanced
/// tree.
fn shard(key: &RemoteKey) -> u8 {
    let product = (key.peer().guid ^ u64::from(key.value())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [highest, ..] = product.to_be_bytes();
    highest >> 2
}
