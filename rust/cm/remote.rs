// SPDX-License-Identifier: GPL-2.0

//! The table of the peers' communication ids and QPs that are in use. What it is for says
//! `cmproto::node`.
//!
//! Lock order: the shard locks are of the class "table shard"; nothing is locked and nothing is
//! allocated while one is held, and no two are held together.

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
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Mutex,
};

/// Number of shards; a power of two.
const SHARDS: usize = 64;

type Tree = RBTree<RemoteKey, EndpointRef>;
type Reservation = RBTreeNodeReservation<RemoteKey, EndpointRef>;

/// The table of the peers' names.
#[pin_data]
pub(crate) struct Remotes {
    #[pin]
    shards: [Mutex<Tree>; SHARDS],
}

/// Memory for the two entries of one connection, taken before any lock.
pub(crate) struct Space(Reservation, Reservation);

impl Space {
    /// Takes the memory.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Space(
            Reservation::new(GFP_KERNEL_ACCOUNT)?,
            Reservation::new(GFP_KERNEL_ACCOUNT)?,
        ))
    }
}

/// The entries of one connection, and the only handle by which they are removed.
pub(crate) struct Tracked(RemoteIds);

/// The table, with the memory for the entries of one connection.
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

    /// The handle of `ids`, which were entered; nothing if they were not.
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
            Some(memory) => {
                let node = memory.into_node(key, endpoint.clone());
                self.remotes.enter(node, &key)
            }
            // Each name is entered once.
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
        // It need not be secret: each shard is a balanced tree.
        let mixed = (key.peer().guid ^ u64::from(key.value())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shard = usize::try_from(mixed >> 58).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(shard)
    }

    /// Enters `node`, or returns the endpoint that has its key.
    fn enter(
        &self,
        node: RBTreeNode<RemoteKey, EndpointRef>,
        key: &RemoteKey,
    ) -> Option<EndpointRef> {
        let lock = self.shard(key)?;
        let unused;
        {
            let mut tree = lock.lock();
            match tree.get(key) {
                Some(owner) => {
                    let owner = owner.clone();
                    drop(tree);
                    unused = Some((node, owner));
                }
                None => {
                    let _ = tree.insert(node);
                    unused = None;
                }
            }
        }
        unused.map(|(_node, owner)| owner)
    }

    /// Removes `key` if it is `endpoint`'s.
    pub(super) fn leave(&self, key: &RemoteKey, endpoint: &EndpointRef) {
        let Some(lock) = self.shard(key) else {
            return;
        };
        let node = {
            let mut tree = lock.lock();
            match tree.get(key) {
                Some(owner) if EndpointRef::ptr_eq(owner, endpoint) => tree.remove_node(key),
                _ => None,
            }
        };
        // The node and its reference go away outside the shard lock.
        drop(node);
    }

    /// Enters the names in a REP for `endpoint`, whose connection `connection` is.
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

    /// Finds the endpoint whose connection has a name of a peer.
    pub(super) fn get(&self, key: &RemoteKey) -> Option<EndpointRef> {
        self.shard(key)?.lock().get(key).cloned()
    }

    /// Removes the entries that `tracked` stands for.
    pub(crate) fn untrack(&self, tracked: Tracked, endpoint: &EndpointRef) {
        let Tracked(ids) = tracked;
        self.leave(&ids.comm_id_key(), endpoint);
        self.leave(&ids.qpn_key(), endpoint);
    }
}
