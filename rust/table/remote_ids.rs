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
}

impl<T> HasRemoteIds for T where
    T: Counted<Target: HasLink<RemoteCommId> + HasLink<RemoteQpn>> + Clone
{
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

/// The ids of a peer that belong to one connection. They are released when this is dropped.
///
/// # Invariants
///
/// The table has an entry for the communication id, and one for the QPN unless that is [`NO_QPN`].
/// No other code removes the entries.
pub(crate) struct RemoteIdClaim<T: HasRemoteIds> {
    table: Arc<RemoteIdTable<T>>,
    ids: RemoteIds,
}

/// A value that no QPN has.
const NO_QPN: u32 = u32::MAX;

impl<T: HasRemoteIds> Drop for RemoteIdClaim<T> {
    fn drop(&mut self) {
        self.table.remove(&self.ids.comm_id_key());
        if self.ids.qpn != NO_QPN {
            self.table.remove(&self.ids.qpn_key());
        }
    }
}

impl<T: HasRemoteIds> RemoteIdClaim<T> {
    /// Creates the claim on `ids`, both of which were just entered.
    pub(crate) fn new(table: &Arc<RemoteIdTable<T>>, ids: &RemoteIds) -> Self {
        // INVARIANT: The ids were entered, and can only be removed by this from now on.
        RemoteIdClaim {
            table: table.clone(),
            ids: *ids,
        }
    }

    /// Creates the claim on the communication id alone, which was just entered.
    pub(crate) fn of_comm_id(table: &Arc<RemoteIdTable<T>>, ids: &RemoteIds) -> Self {
        let qpn = NO_QPN;
        Self::new(table, &RemoteIds { qpn, ..*ids })
    }

    /// Adds the QPN, which was just entered.
    pub(crate) fn add_qpn(&mut self, ids: &RemoteIds) {
        // INVARIANT: The QPN was entered, and can only be removed by this from now on.
        self.ids.qpn = ids.qpn;
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
        let mut ids = self.shards.shard(hash(&key))?.lock();
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
        let ids = self.shards.shard(hash(key))?.lock();
        match key.is_qpn() {
            true => find(&ids.qpns, &RemoteQpn(*key)),
            false => find(&ids.comm_ids, &RemoteCommId(*key)),
        }
    }

    /// Removes an id.
    fn remove(&self, key: &RemoteKey) {
        let removed = self.shards.shard(hash(key)).and_then(|shard| {
            let mut ids = shard.lock();
            match key.is_qpn() {
                true => remove(&mut ids.qpns, &RemoteQpn(*key)),
                false => remove(&mut ids.comm_ids, &RemoteCommId(*key)),
            }
        });
        // The reference is dropped outside the shard lock.
        drop(removed);
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

/// Returns the hash that chooses the shard of `key`. It need not be secret, because each shard is a
/// balanced tree.
fn hash(key: &RemoteKey) -> u64 {
    (key.peer().guid ^ u64::from(key.value())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58
}
