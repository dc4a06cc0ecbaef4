// SPDX-License-Identifier: GPL-2.0

//! Accepts over iWARP that are under way.
//!
//! A driver may begin to watch a connection for data of its peer some time after it has sent the
//! answer to the request. What arrives before that, siw notices only when more arrives; only a peer
//! at this host is that quick. So the consumer of such a peer is told of the answer when the
//! accepting call has returned, by the task that has made that call. Nobody waits for that: if a
//! driver does not return, only the one connection hangs.
//!
//! Lock order: the lock is of the class "table shard". While it is held, nothing is locked and
//! nothing is allocated.

use crate::{
    core::Core,
    endpoint::{Endpoint, EndpointRef},
};
use cmproto::addr::SockAddr;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// An end of a connection: its IP address as a GID, and its port in host order.
type End = ([u8; 16], u16);

/// The key of a connection: the addresses of its ends, in ascending order, so that both ends use
/// the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    ends: [End; 2],
    /// The number of the accepting endpoint. It tells connections apart that have the same
    /// addresses, in network namespaces that know nothing of each other.
    number: u64,
}

impl Key {
    /// Returns the lowest key of a connection between these addresses.
    fn first(one: &SockAddr, other: &SockAddr) -> Self {
        let end = |addr: &SockAddr| (addr.to_gid().0, addr.port());
        let mut ends = [end(one), end(other)];
        ends.sort_unstable();
        Key { ends, number: 0 }
    }
}

/// The endpoint to be told when the accept is over, if one waits for that.
type Waiting = Option<EndpointRef>;

/// Memory for the entry of an accept.
pub(super) struct Room(RBTreeNodeReservation<Key, Waiting>);

impl Room {
    /// Allocates memory for an entry. Fails with `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Room(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

/// The accepts that are under way, by connection.
#[pin_data]
pub(crate) struct Answers {
    #[pin]
    table: Mutex<RBTree<Key, Waiting>>,
}

impl Answers {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_answers"),
        })
    }

    /// Returns whether the request for the connection between these addresses is being accepted.
    pub(super) fn is_given(&self, one: &SockAddr, other: &SockAddr) -> bool {
        let first = Key::first(one, other);
        let table = self.table.lock();
        let found = table.cursor_lower_bound(&first);
        found.is_some_and(|cursor| cursor.current().0.ends == first.ends)
    }

    /// Makes the accept of the request for this connection call [`Endpoint::answer_is_given`] of
    /// `peer` when it is over. Returns false if the request is not being accepted, or if another
    /// endpoint waits for that already.
    pub(super) fn wait(&self, one: &SockAddr, other: &SockAddr, peer: &EndpointRef) -> bool {
        let first = Key::first(one, other);
        let mut table = self.table.lock();
        let Some(mut cursor) = table.cursor_lower_bound_mut(&first) else {
            return false;
        };
        let (key, waiting) = cursor.current_mut();
        let is_free = key.ends == first.ends && waiting.is_none();
        if is_free {
            *waiting = Some(peer.clone());
        }
        is_free
    }
}

/// An accept that is under way. Dropping this ends it and tells the peer. To be dropped with no
/// lock held but that of a kernel consumer's handler.
///
/// # Invariants
/// The table has an entry for `key`.
pub(super) struct Giving {
    core: Arc<Core>,
    key: Key,
}

impl Giving {
    /// Begins to accept the request of `endpoint`, for the connection between these addresses.
    pub(super) fn new(room: Room, endpoint: &Endpoint, one: &SockAddr, other: &SockAddr) -> Self {
        let key = Key {
            number: endpoint.number,
            ..Key::first(one, other)
        };
        let core = endpoint.core.clone();
        // An endpoint accepts at most once, so that there is no such entry.
        let before = core
            .answers
            .table
            .lock()
            .insert(room.0.into_node(key, None));
        drop(before);
        // INVARIANT: The entry was just inserted.
        Giving { core, key }
    }
}

impl Drop for Giving {
    fn drop(&mut self) {
        let node = self.core.answers.table.lock().remove_node(&self.key);
        if let Some((_, Some(peer))) = node.map(|node| node.to_key_value()) {
            peer.answer_is_given();
        }
    }
}
