// SPDX-License-Identifier: GPL-2.0

//! Answers that are being given to requests over iWARP.
//!
//! A driver may only listen to a connection's peer some time after it has sent the answer: siw does not
//! notice what arrives before, until more does. Only a peer at this host is that quick. So it is told
//! of the answer when the call that gives it has returned, by who has called. Nobody waits for that: a driver
//! that does not return stops the one connection.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked and nothing is allocated
//! while it is held.

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

/// An end of a connection.
type End = ([u8; 16], u16);

/// A connection, by the addresses of its ends, the lower one first: both ends know it by the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    ends: [End; 2],
    /// Tells those that are answered apart which have the same addresses, in namespaces that know nothing of
    /// each other.
    number: u64,
}

impl Key {
    /// The first for the connection between these addresses.
    fn first(one: &SockAddr, other: &SockAddr) -> Self {
        let end = |addr: &SockAddr| (addr.to_gid().0, addr.port());
        let mut ends = [end(one), end(other)];
        ends.sort_unstable();
        Key { ends, number: 0 }
    }
}

/// Who is to be told of an answer when it has been given.
type Waiting = Option<EndpointRef>;

/// Memory for the entry of an answer.
pub(super) struct Room(RBTreeNodeReservation<Key, Waiting>);

impl Room {
    /// Allocates it; `ENOMEM` if there is none.
    pub(super) fn new() -> Result<Self> {
        Ok(Room(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

/// The answers that are being given, by connection.
#[pin_data]
pub(crate) struct Answers {
    #[pin]
    table: Mutex<RBTree<Key, Waiting>>,
}

impl Answers {
    /// None is being given yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_answers"),
        })
    }

    /// Whether the request for the connection between these addresses is being answered.
    pub(super) fn is_given(&self, one: &SockAddr, other: &SockAddr) -> bool {
        let first = Key::first(one, other);
        let table = self.table.lock();
        let found = table.cursor_lower_bound(&first);
        found.is_some_and(|cursor| cursor.current().0.ends == first.ends)
    }

    /// Has `peer` told, by [`Endpoint::answer_is_given`], when the request for this connection has been
    /// answered. False if it is not being answered, or somebody else waits for that.
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

/// An answer that is being given, until this is dropped, which tells the peer. To be dropped under no lock but
/// that of a handler.
///
/// # Invariants
///
/// The entry of `key` is in the table.
pub(super) struct Giving {
    core: Arc<Core>,
    key: Key,
}

impl Giving {
    /// Begins to answer the request of `endpoint`, for the connection between these addresses.
    pub(super) fn new(room: Room, endpoint: &Endpoint, one: &SockAddr, other: &SockAddr) -> Self {
        let key = Key {
            number: endpoint.number,
            ..Key::first(one, other)
        };
        let core = endpoint.core.clone();
        // A request is answered once, so that there is no such entry.
        let before = core
            .answers
            .table
            .lock()
            .insert(room.0.into_node(key, None));
        drop(before);
        // INVARIANT: Inserted just now.
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
