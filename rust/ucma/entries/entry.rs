// SPDX-License-Identifier: GPL-2.0

//! The entry of a context in its channel, which the channel's lock protects.

use super::{
    event::ParamReservation,
    membership::MembershipEntry,
    queue::{EventMemory, Queue, RemovedEvent, TakenMemory},
    reservation::{EventReservation, ExpectedEvents},
};
use crate::{endpoint::Event, kext::users::Charge};
use cmproto::{
    node::{Admission, Asker, Declined, Offer},
    ucma::{
        backlog::Backlog,
        order::{Arrival, Numbers},
    },
    ucma_abi::CmEvent,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// An object that has an entry in a channel and a number.
pub(crate) trait Numbered {
    /// Returns the number by which user space names the object.
    fn id(&self) -> u32;
}

/// Memory for an entry in the tree that maps the sequence number of a context's oldest event to its
/// number.
pub(crate) type OldestReservation = RBTreeNodeReservation<u64, u32>;

/// The entry of a context in its channel.
///
/// # Invariants
///
/// - `spare` is `Some` if and only if `queue` is empty.
/// - `groups` has `joined` entries.
/// - `written` of the events in `queue` were written by programs.
/// - `unread` of the memberships are the positions of their events in `queue`.
pub(crate) struct ChannelEntry<C> {
    pub(crate) context: Arc<C>,
    /// The user's value for the context; 0 as long as the context wants no events.
    pub(crate) uid: u64,
    /// The number of events that were read.
    pub(crate) reported: u32,
    /// Counts the connection requests in `queue`.
    pub(crate) backlog: Backlog,
    /// The charge for the listener, if the context is one.
    pub(crate) listener: Option<Charge>,
    pub(crate) queue: Queue<C>,
    /// The memberships in multicast groups, by the endpoint's numbers for them.
    pub(crate) groups: RBTree<u64, MembershipEntry<C>>,
    pub(crate) joined: usize,
    pub(crate) written: usize,
    /// The source of the positions of events in `queue`.
    pub(crate) numbers: Numbers,
    /// When the context has come to the channel.
    pub(crate) arrival: Arrival,
    pub(crate) spare: Option<OldestReservation>,
    pub(crate) reservation: EventReservation<C>,
}

/// Memory for the entry of a context in its channel.
pub(crate) struct EntryReservation<C> {
    node: RBTreeNodeReservation<u32, ChannelEntry<C>>,
    spare: OldestReservation,
}

/// The rest of an entry that was removed from its channel, to be cleared without its lock.
pub(crate) struct RemovedEntry<C> {
    /// The number of events that were read.
    pub(crate) reported: u32,
    /// The unread events.
    pub(crate) queue: Queue<C>,
    /// The memberships in multicast groups.
    pub(crate) groups: RBTree<u64, MembershipEntry<C>>,
}

/// The recipient of an event, with memory for the event.
pub(crate) struct Recipient<C> {
    pub(crate) uid: u64,
    pub(crate) id: u32,
    pub(crate) memory: EventMemory<C>,
    pub(crate) param: Option<ParamReservation>,
}

impl<C: Numbered> EntryReservation<C> {
    /// Allocates memory for an entry.
    pub(crate) fn new() -> Result<Self> {
        Ok(EntryReservation {
            node: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            spare: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Makes the memory the entry of `context`, with the user's value `uid`.
    pub(crate) fn fill(self, context: Arc<C>, uid: u64) -> RBTreeNode<u32, ChannelEntry<C>> {
        let id = context.id();
        self.node.into_node(
            id,
            ChannelEntry {
                context,
                uid,
                reported: 0,
                backlog: Backlog::new(),
                listener: None,
                queue: Queue::new(),
                groups: RBTree::new(),
                joined: 0,
                written: 0,
                numbers: Numbers::new(),
                arrival: Arrival::new(),
                spare: Some(self.spare),
                reservation: EventReservation::new(),
            },
        )
    }
}

impl<C: Numbered> ChannelEntry<C> {
    /// Returns the part of `expected` for which there is no memory.
    pub(crate) fn missing(&self, expected: ExpectedEvents) -> ExpectedEvents {
        self.reservation.missing(expected.beyond(self.queue.free()))
    }

    /// Returns the recipient of an event, with memory for the event: the context, or `group` if the
    /// context is still a member. Returns `None` if the owner of the context wants no events.
    ///
    /// Without `extra`, a lack of memory is an error, which says how much is missing. With `extra`,
    /// memory comes from there, too, and `None` is returned if neither has memory for the event.
    pub(crate) fn recipient(
        &mut self,
        group: Option<u64>,
        event: &Event<'_>,
        extra: Option<&mut EventReservation<C>>,
    ) -> Result<Option<Recipient<C>>, ExpectedEvents> {
        if self.uid == 0 {
            return Ok(None);
        }
        let (uid, id, reservation, own) = match group {
            None => (
                self.uid,
                self.context.id(),
                &mut self.reservation,
                self.queue.take_slot(),
            ),
            Some(group) => match self.groups.get_mut(&group) {
                Some(joined) if joined.has_room() => {
                    (joined.uid, joined.id, &mut joined.reservation, None)
                }
                _ => return Ok(None),
            },
        };
        let missing =
            reservation.missing(ExpectedEvents::of(event).beyond(usize::from(own.is_some())));
        if extra.is_none() && !missing.is_none() {
            if own.is_some() {
                self.queue.put_slot();
            }
            return Err(missing);
        }
        let mut none = EventReservation::new();
        let extra = extra.unwrap_or(&mut none);
        let allocated = || {
            reservation
                .take()
                .or_else(|| extra.take())
                .map(EventMemory::Node)
        };
        let Some(memory) = own.or_else(allocated) else {
            return Ok(None);
        };
        let param = match event.param.is_some() {
            true => reservation.take_param().or_else(|| extra.take_param()),
            false => None,
        };
        if event.kind == CmEvent::Established {
            // No event after this one has parameters.
            drop(reservation.take_param());
        }
        Ok(Some(Recipient {
            uid,
            id,
            memory,
            param,
        }))
    }

    /// Disposes of an event that was read, and keeps its memory for later events if it is needed.
    /// The caller drops the returned value without a lock.
    pub(crate) fn finish(&mut self, node: TakenMemory<C>) -> Option<RemovedEvent<C>> {
        match self.queue.finish(node) {
            RemovedEvent::Node(memory) => self.reservation.put(memory).map(RemovedEvent::Node),
            own => Some(own),
        }
    }

    /// Returns the sequence number of the first event in the queue.
    #[inline]
    pub(crate) fn first_seq(&self) -> Option<u64> {
        if self.queue.is_empty() {
            return None;
        }
        let (at, seq) = self.queue.first()?;
        Some(self.arrival.seq(at, seq))
    }

    /// Enters the context into the channel's `oldest` for a new event with the sequence number
    /// `seq`, which is put into the queue next, behind all others.
    pub(crate) fn enter_last(&mut self, oldest: &mut RBTree<u64, u32>, seq: u64) {
        // INVARIANT: The queue was empty, so that `seq` is that of the first event from here on.
        if let Some(spare) = self.spare.take() {
            oldest.insert(spare.into_node(seq, self.context.id()));
        }
    }

    /// Lets the entry of the context in the channel's `oldest` follow the first event, whose
    /// sequence number was `before` until the queue was changed.
    pub(crate) fn follow_first(&mut self, oldest: &mut RBTree<u64, u32>, before: Option<u64>) {
        let first = self.first_seq();
        if before == first {
            return;
        }
        let memory = match before {
            Some(before) => oldest
                .remove_node(&before)
                .map(RBTreeNode::into_reservation),
            None => self.spare.take(),
        };
        // INVARIANT: The entry follows the first event, or is the spare one if there is no event.
        match (first, memory) {
            (Some(first), Some(memory)) => {
                oldest.insert(memory.into_node(first, self.context.id()));
            }
            (_, memory) => self.spare = memory,
        }
    }

    /// Returns the admission that a connection request from `asker` would get now.
    pub(crate) fn next_admission(&self, asker: Option<Asker>) -> Offer {
        match self.backlog.next_admission(asker)? {
            Admission::Replaces if !self.queue.has_replaceable() => Err(Declined::NoRoom),
            admission => Ok(admission),
        }
    }

    /// Takes the entry apart, into its context and the state that is to be cleared.
    pub(crate) fn into_removed(self) -> (Arc<C>, RemovedEntry<C>) {
        let removed = RemovedEntry {
            reported: self.reported,
            queue: self.queue,
            groups: self.groups,
        };
        (self.context, removed)
    }
}
