// SPDX-License-Identifier: GPL-2.0

//! Table of the communication ids and QPNs of peers that are in use, for `cmproto::node`.
//!
//! Lock order: the shard locks are of the class "table shard". While one is held, no other lock is
//! taken and nothing is allocated.

use crate::{endpoint::EndpointRef, kext::delay};
use cmproto::{
    cm::Connection,
    node::{self, Refused, RemoteIds, RemoteKey, RemoteTable},
    wire::Rep,
};
use core::result::Result;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    error::Error,
    new_mutex,
    prelude::*,
    rbtree::{Entry, RBTree, RBTreeNodeReservation},
    sync::Mutex,
};

/// Number of shards, a power of two.
const SHARDS: usize = 64;

type Tree = RBTree<RemoteKey, EndpointRef>;
type Reservation = RBTreeNodeReservation<RemoteKey, EndpointRef>;

/// The table of the peers' ids.
#[pin_data]
pub(crate) struct Remotes {
    #[pin]
    shards: [Mutex<Tree>; SHARDS],
}

/// Memory for the two entries of one connection, allocated before any lock is taken.
pub(crate) struct Space(Reservation, Reservation);

impl Space {
    /// Allocates the memory. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Space(
            Reservation::new(GFP_KERNEL_ACCOUNT)?,
            Reservation::new(GFP_KERNEL_ACCOUNT)?,
        ))
    }
}

/// The handle of the two entries of one connection, which is needed to remove them.
pub(crate) struct Tracked(RemoteIds);

/// The table, with memory for the two entries of one connection.
pub(super) struct Entering<'a> {
    remotes: &'a Remotes,
    comm_id: Option<Reservation>,
    qpn: Option<Reservation>,
}

impl<'a> Entering<'a> {
    pub(super) fn new(remotes: &'a Remotes, space: Space) -> Self {
        let Space(comm_id, qpn) = space;
        Entering {
            remotes,
            comm_id: Some(comm_id),
            qpn: Some(qpn),
        }
    }

    /// Returns the handle of `ids` if both were entered.
    pub(super) fn tracked(self, ids: &RemoteIds) -> Option<Tracked> {
        (self.comm_id.is_none() && self.qpn.is_none()).then_some(Tracked(*ids))
    }
}

impl RemoteTable<EndpointRef> for Entering<'_> {
    fn owner(&self, key: &RemoteKey) -> Option<EndpointRef> {
        self.remotes.get(key)
    }

    fn enter(&mut self, key: RemoteKey, endpoint: &EndpointRef) -> Option<EndpointRef> {
        let memory = if key.is_qpn() {
            delay::point();
            self.qpn.take()
        } else {
            self.comm_id.take()
        };
        match memory {
            Some(memory) => self.remotes.enter(memory, key, endpoint),
            // There is memory for one communication id and one QPN, and each is entered once.
            None => Some(endpoint.clone()),
        }
    }

    fn leave(&mut self, key: &RemoteKey, endpoint: &EndpointRef) {
        self.remotes.leave(key, endpoint);
    }
}

impl Remotes {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(|_| {
                new_mutex!(RBTree::new(), "rdma_cm_remotes")
            }),
        })
    }

    fn shard(&self, key: &RemoteKey) -> Option<&Mutex<Tree>> {
        // The hash need not be secret, because each shard is a balanced tree.
        let mixed = (key.peer().guid ^ u64::from(key.value())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shard = usize::try_from(mixed >> 58).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)
    }

    /// Enters `key` for `endpoint`, or returns the endpoint that has it.
    fn enter(
        &self,
        memory: Reservation,
        key: RemoteKey,
        endpoint: &EndpointRef,
    ) -> Option<EndpointRef> {
        let lock = self.shard(&key)?;
        // Memory that is not needed is freed outside the shard lock.
        let _unused;
        let mut tree = lock.lock();
        match tree.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(endpoint.clone(), memory);
                None
            }
            Entry::Occupied(entry) => {
                _unused = memory;
                Some(entry.get().clone())
            }
        }
    }

    /// Removes `key`, if it belongs to `endpoint`.
    pub(super) fn leave(&self, key: &RemoteKey, endpoint: &EndpointRef) {
        let Some(lock) = self.shard(key) else {
            return;
        };
        let node = {
            let mut tree = lock.lock();
            let entry = tree.find_mut(key);
            entry
                .filter(|entry| EndpointRef::ptr_eq(entry.get(), endpoint))
                .map(|entry| entry.remove_node())
        };
        // The node and its reference are dropped outside the shard lock.
        drop(node);
    }

    /// Enters the ids in a REP for `endpoint`, which has the connection `connection`.
    pub(super) fn claim_rep(
        &self,
        space: Space,
        ids: &RemoteIds,
        endpoint: &EndpointRef,
        connection: &mut Connection,
        rep: &Rep<'_>,
    ) -> Result<Tracked, Refused<EndpointRef>> {
        let mut table = Entering::new(self, space);
        node::claim_rep(&mut table, ids, endpoint, connection, rep).map(|()| Tracked(*ids))
    }

    /// Finds the endpoint whose connection has an id of a peer.
    pub(super) fn get(&self, key: &RemoteKey) -> Option<EndpointRef> {
        self.shard(key)?.lock().get(key).cloned()
    }

    /// Removes the entries of the handle `tracked`.
    pub(crate) fn untrack(&self, tracked: Tracked, endpoint: &EndpointRef) {
        let Tracked(ids) = tracked;
        self.leave(&ids.comm_id_key(), endpoint);
        self.leave(&ids.qpn_key(), endpoint);
    }
}
