// SPDX-License-Identifier: GPL-2.0

//! What is known of the peers: which of their communication ids and QPs are in use.
//!
//! A REQ whose (CA GUID, communication id) is known is a duplicate; one whose (CA GUID, QPN) is
//! known comes from a peer that lost the old connection, which is then stale (IBTA 12.9.8.3.1).
//! A GUID is what the sender says it is. So that nobody takes the names of others, where the message
//! came from counts, too.
//!
//! Lock order: the shard locks are of the class "table shard"; nothing is locked and nothing is
//! allocated while one is held, and no two are held together.

use crate::{endpoint::EndpointRef, kext::delay};
use cmproto::origin::Origin;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Mutex,
};

/// Number of shards; a power of two.
const SHARDS: usize = 64;

/// What a key names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A communication id of the peer.
    CommId,
    /// A QP of the peer.
    Qpn,
}

/// A peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    /// The GUID of its node, as it says.
    pub(crate) guid: u64,
    /// Where its messages come from.
    pub(crate) origin: Origin,
}

/// A name that belongs to a peer. What differs most comes first, because keys are compared in that
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    value: u32,
    kind: Kind,
    peer: Peer,
}

impl Key {
    /// The shard that holds the key. It need not be secret: each shard is a balanced tree.
    fn shard(&self) -> usize {
        let mixed = (self.peer.guid ^ u64::from(self.value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> 58).unwrap_or(0) & (SHARDS - 1)
    }
}

type Tree = RBTree<Key, EndpointRef>;
type Reservation = RBTreeNodeReservation<Key, EndpointRef>;

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
    pub(crate) fn new() -> Result<Self> {
        Ok(Space(
            Reservation::new(GFP_KERNEL_ACCOUNT)?,
            Reservation::new(GFP_KERNEL_ACCOUNT)?,
        ))
    }
}

/// The entries of one connection, and the only handle by which they are removed.
pub(crate) struct Tracked {
    peer: Peer,
    comm_id: u32,
    qpn: u32,
}

impl Tracked {
    fn id_key(&self) -> Key {
        Key {
            peer: self.peer,
            kind: Kind::CommId,
            value: self.comm_id,
        }
    }

    fn qpn_key(&self) -> Key {
        Key {
            peer: self.peer,
            kind: Kind::Qpn,
            value: self.qpn,
        }
    }
}

/// What [`Remotes::track`] found.
pub(crate) enum Track {
    /// Both names were free and are now the endpoint's.
    New(Tracked),
    /// The communication id belongs to some endpoint already.
    Duplicate,
    /// The QP belongs to this endpoint's connection.
    Stale(EndpointRef),
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

    /// Enters `node`, or returns the endpoint that has its key.
    fn enter(&self, node: RBTreeNode<Key, EndpointRef>, key: &Key) -> Option<EndpointRef> {
        let lock = self.shards.get(key.shard())?;
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
    fn leave(&self, key: &Key, endpoint: &EndpointRef) {
        let Some(lock) = self.shards.get(key.shard()) else {
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

    /// Enters the peer's communication id and QPN for `endpoint`, if both are free.
    pub(crate) fn track(
        &self,
        space: Space,
        peer: Peer,
        comm_id: u32,
        qpn: u32,
        endpoint: &EndpointRef,
    ) -> Track {
        let tracked = Tracked { peer, comm_id, qpn };
        let (id_key, qpn_key) = (tracked.id_key(), tracked.qpn_key());
        let Space(first, second) = space;
        if self
            .enter(first.into_node(id_key, endpoint.clone()), &id_key)
            .is_some()
        {
            return Track::Duplicate;
        }
        delay::point();
        if let Some(owner) = self.enter(second.into_node(qpn_key, endpoint.clone()), &qpn_key) {
            self.leave(&id_key, endpoint);
            return Track::Stale(owner);
        }
        Track::New(tracked)
    }

    fn find(&self, key: Key) -> Option<EndpointRef> {
        self.shards.get(key.shard())?.lock().get(&key).cloned()
    }

    /// Finds the endpoint whose peer has this communication id.
    pub(crate) fn by_comm_id(&self, peer: Peer, comm_id: u32) -> Option<EndpointRef> {
        self.find(Key {
            peer,
            kind: Kind::CommId,
            value: comm_id,
        })
    }

    /// Finds the endpoint whose peer has this QP.
    pub(crate) fn by_qpn(&self, peer: Peer, qpn: u32) -> Option<EndpointRef> {
        self.find(Key {
            peer,
            kind: Kind::Qpn,
            value: qpn,
        })
    }

    /// Removes the entries that `tracked` stands for.
    pub(crate) fn untrack(&self, tracked: Tracked, endpoint: &EndpointRef) {
        self.leave(&tracked.id_key(), endpoint);
        self.leave(&tracked.qpn_key(), endpoint);
    }
}
