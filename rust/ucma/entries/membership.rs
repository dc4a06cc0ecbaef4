// SPDX-License-Identifier: GPL-2.0

//! The entry of a multicast membership in its context's entry.

use super::{queue::EventNode, reservation::EventReservation};
use kernel::rbtree::RBTreeNode;

/// The most unread events of a membership: its outcome, and its loss, which is the last.
pub(crate) const MOST_UNREAD: usize = 2;

/// The entry of a multicast membership in its context's entry.
pub(crate) struct MembershipEntry<C> {
    /// The number by which user space names the membership.
    pub(crate) id: u32,
    /// The user's value for the membership.
    pub(crate) uid: u64,
    /// The number of its events that were read.
    pub(crate) reported: u32,
    pub(crate) reservation: EventReservation<C>,
    /// The positions of its unread events in the queue of the context, so that they are found there
    /// among any number of others.
    pub(crate) unread: [Option<u64>; MOST_UNREAD],
}

/// A membership that was removed from its channel, to be dropped without the lock.
pub(crate) struct RemovedMembership<C> {
    joined: RBTreeNode<u64, MembershipEntry<C>>,
    _events: [Option<EventNode<C>>; MOST_UNREAD],
}

impl<C> MembershipEntry<C> {
    /// Creates the entry of a membership, none of whose events was read.
    pub(crate) fn new(id: u32, uid: u64, reservation: EventReservation<C>) -> Self {
        MembershipEntry {
            id,
            uid,
            reported: 0,
            reservation,
            unread: [None; MOST_UNREAD],
        }
    }

    /// Returns whether the membership may have another unread event.
    pub(crate) fn has_room(&self) -> bool {
        self.unread.contains(&None)
    }

    /// Notes that the event at the position `at` is unread. There is room for it.
    pub(crate) fn add_unread(&mut self, at: u64) {
        if let Some(place) = self.unread.iter_mut().find(|place| place.is_none()) {
            *place = Some(at);
        }
    }

    /// Notes that the event at the position `at` was read.
    pub(crate) fn remove_unread(&mut self, at: u64) {
        if let Some(place) = self.unread.iter_mut().find(|place| **place == Some(at)) {
            *place = None;
        }
    }
}

impl<C> RemovedMembership<C> {
    /// Creates it from the entry and the unread events of the membership.
    pub(crate) fn new(
        joined: RBTreeNode<u64, MembershipEntry<C>>,
        events: [Option<EventNode<C>>; MOST_UNREAD],
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
