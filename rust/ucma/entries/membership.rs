// SPDX-License-Identifier: GPL-2.0

//! The entry of a multicast membership in its context's entry.

use super::{event::Unread, queue::EventSubject, reservation::EventReservation};
use kernel::rbtree::{RBTree, RBTreeNode};

/// The entry of a multicast membership in its context's entry.
pub(crate) struct MembershipEntry<C> {
    /// The number by which user space names the membership.
    pub(crate) id: u32,
    /// The user's value for the membership.
    pub(crate) uid: u64,
    /// The number of its events that were read.
    pub(crate) reported: u32,
    pub(crate) reservation: EventReservation<C>,
}

/// A membership that was removed from its channel, to be dropped without the lock.
pub(crate) struct RemovedMembership<C> {
    joined: RBTreeNode<u64, MembershipEntry<C>>,
    _events: RBTree<u64, (Unread, EventSubject<C>)>,
}

impl<C> MembershipEntry<C> {
    /// Creates the entry of a membership, none of whose events was read.
    pub(crate) fn new(id: u32, uid: u64, reservation: EventReservation<C>) -> Self {
        MembershipEntry {
            id,
            uid,
            reported: 0,
            reservation,
        }
    }
}

impl<C> RemovedMembership<C> {
    /// Creates it from the entry and the unread events of the membership.
    pub(crate) fn new(
        joined: RBTreeNode<u64, MembershipEntry<C>>,
        events: RBTree<u64, (Unread, EventSubject<C>)>,
    ) -> Self {
        RemovedMembership {
            joined,
            _events: events,
        }
    }

    /// Returns the number of the membership's events that were read.
    pub(crate) fn reported(self) -> u32 {
        self.joined.to_key_value().1.reported
    }
}
