// SPDX-License-Identifier: GPL-2.0

//! Accepts over iWARP that are under way.
//!
//! A driver may begin to watch a connection for data of its peer some time after it has sent the
//! answer to the request. siw notices data that arrives before that only when more arrives; only a
//! peer at this host is that quick. So the consumer of such a peer is told of the answer when the
//! accepting call has returned, by the task that has made that call. Nobody waits for that: if a
//! driver does not return, only the one connection hangs.
//!
//! Lock order: the lock of the table is of the class "table shard". While it is held, nothing is
//! locked and nothing is allocated.

use cmproto::addr::SockAddr;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
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
    /// The number of the endpoint that accepts. It tells connections apart that have the same
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

/// An end of a connection that waits until the other end has finished its accept.
pub(crate) trait AcceptWaiter: Clone + Unpin {
    /// Continues, as the accept is over. Called with no lock held but that of a kernel consumer's
    /// handler.
    fn accept_is_over(&self);
}

/// Memory for the entry of an accept.
pub(crate) struct Reservation<T>(RBTreeNodeReservation<Key, Option<T>>);

impl<T> Reservation<T> {
    /// Allocates memory for an entry. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Ok(Reservation(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

/// The accepts that are under way, by connection.
#[pin_data]
pub(crate) struct AcceptLocks<T> {
    /// The end to be told when the accept is over, if one waits for that.
    #[pin]
    table: Mutex<RBTree<Key, Option<T>>>,
}

impl<T: AcceptWaiter> AcceptLocks<T> {
    /// Creates an empty table. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                table <- new_mutex!(RBTree::new(), "rdma_cm_accept_locks"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the request for the connection between these addresses is being accepted.
    pub(crate) fn is_locked(&self, one: &SockAddr, other: &SockAddr) -> bool {
        let first = Key::first(one, other);
        let table = self.table.lock();
        let found = table.cursor_lower_bound(&first);
        found.is_some_and(|cursor| cursor.current().0.ends == first.ends)
    }

    /// Makes the accept of the request for this connection call [`AcceptWaiter::accept_is_over`] of
    /// `waiter` when it is over. Returns false if the request is not being
    /// accepted, or if somebody waits for that already.
    pub(crate) fn wait(&self, one: &SockAddr, other: &SockAddr, waiter: &T) -> bool {
        let first = Key::first(one, other);
        let mut table = self.table.lock();
        let Some(mut cursor) = table.cursor_lower_bound_mut(&first) else {
            return false;
        };
        let (key, waiting) = cursor.current_mut();
        let is_free = key.ends == first.ends && waiting.is_none();
        if is_free {
            *waiting = Some(waiter.clone());
        }
        is_free
    }
}

/// An accept that is under way. Dropping this ends it and tells the peer that waits. To be dropped
/// with no lock held but that of a kernel consumer's handler.
///
/// # Invariants
///
/// The table has an entry for `key`.
pub(crate) struct AcceptLock<T: AcceptWaiter> {
    table: Arc<AcceptLocks<T>>,
    key: Key,
}

impl<T: AcceptWaiter> AcceptLock<T> {
    /// Begins the accept of the request for the connection between these addresses, by the
    /// endpoint with the number `number`, which accepts at most once.
    pub(crate) fn new(
        table: &Arc<AcceptLocks<T>>,
        reservation: Reservation<T>,
        number: u64,
        one: &SockAddr,
        other: &SockAddr,
    ) -> Self {
        let key = Key {
            number,
            ..Key::first(one, other)
        };
        // There is no such entry, as nobody accepts twice.
        let before = table
            .table
            .lock()
            .insert(reservation.0.into_node(key, None));
        drop(before);
        // INVARIANT: The entry was just inserted.
        AcceptLock {
            table: table.clone(),
            key,
        }
    }
}

impl<T: AcceptWaiter> Drop for AcceptLock<T> {
    fn drop(&mut self) {
        let node = self.table.table.lock().remove_node(&self.key);
        if let Some((_, Some(waiter))) = node.map(|node| node.to_key_value()) {
            waiter.accept_is_over();
        }
    }
}
