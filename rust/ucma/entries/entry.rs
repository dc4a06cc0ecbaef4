// SPDX-License-Identifier: GPL-2.0

//! The entry of a context in its channel, which the channel's lock protects.

use super::{
    event::ParamReservation,
    membership::MembershipEntry,
    queue::{EventMemory, Events, Queue, RemovedEvent, TakenMemory},
    reservation::{EventReservation, ExpectedEvents},
    slots::MoreSlots,
};
use crate::{
    endpoint::Event,
    kext::{
        counted::init_tree_cell,
        slab::{SlabArc, SlabCache},
        users::Charge,
    },
};
use cmproto::{
    node::{Admission, Asker, Declined, Offer},
    ucma::{
        backlog::Backlog,
        order::{Arrival, Numbers},
    },
    ucma_abi::CmEvent,
};
use containers::{impl_has_cell, impl_has_link, Link, Tree, TreeCell};
use core::mem;
use kernel::{prelude::*, rbtree::RBTree, sync::Arc};

/// An object that has an entry in a channel and a number.
pub(crate) trait Numbered: 'static {
    /// Returns the number by which user space names the object.
    fn id(&self) -> u32;
}

/// The number of a context, by which its entry is found in a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ContextId(pub(super) u32);

/// The sequence number of the oldest event of a context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OldestSeq(pub(super) u64);

/// The place of a context in a channel: the object by which the channel's trees have it.
///
/// It exists before the context enters a channel, and moves to another one with the context.
#[pin_data]
pub(crate) struct Place<C> {
    pub(crate) context: Arc<C>,
    by_id: Link<ContextId>,
    by_oldest: Link<OldestSeq>,
    entry: TreeCell<ContextId, ChannelEntry<C>>,
}

impl_has_link! {
    impl {C} HasLink<ContextId> for Place<C> { self.by_id }
}
impl_has_link! {
    impl {C} HasLink<OldestSeq> for Place<C> { self.by_oldest }
}
impl_has_cell! {
    impl {C} HasCell<ContextId, Value = ChannelEntry<C>> for Place<C> { self.entry }
}

/// A counted reference to the place of a context.
pub(crate) type PlaceRef<C> = SlabArc<Place<C>>;

/// The slab cache of the places of all contexts.
pub(crate) type PlaceCache<C> = SlabCache<Place<C>>;

/// The places of the contexts with unread events, by the sequence number of the oldest.
pub(crate) type Oldest<C> = Tree<PlaceRef<C>, OldestSeq>;

impl<C: Numbered> Place<C> {
    /// Allocates the place of `context`, in no channel yet.
    pub(crate) fn new(cache: &PlaceCache<C>, context: Arc<C>) -> Result<PlaceRef<C>> {
        cache.pin_init(pin_init!(Place {
            context,
            by_id: Link::new(),
            by_oldest: Link::new(),
            entry <- init_tree_cell(ChannelEntry::new()),
        }))
    }

    /// Returns the number of the context.
    #[inline]
    pub(crate) fn id(&self) -> ContextId {
        ContextId(self.context.id())
    }
}

/// The entry of a context in its channel.
///
/// # Invariants
///
/// - `groups` has `joined` entries.
/// - `written` of the events in `queue` were written by programs.
/// - `unread` of the memberships are the positions of their events in `queue`.
pub(crate) struct ChannelEntry<C> {
    /// The user's value for the context; 0 as long as the context wants no events.
    pub(crate) uid: u64,
    /// The number of events that were read.
    pub(crate) reported: u32,
    /// The part that listeners have. It comes with the first attempt to listen.
    pub(crate) listener: Option<KBox<ListenerEntry>>,
    pub(crate) queue: Queue<C>,
    /// The memberships in multicast groups, by the endpoint's numbers for them.
    pub(crate) groups: RBTree<u64, MembershipEntry<C>>,
    pub(crate) joined: u32,
    pub(crate) written: u32,
    /// The source of the positions of events in `queue`.
    pub(crate) numbers: Numbers,
    /// When the context has come to the channel.
    pub(crate) arrival: Arrival,
    pub(crate) reservation: EventReservation<C>,
}

/// The part of the entry of a context that listens, or has tried to.
#[derive(Default)]
pub(crate) struct ListenerEntry {
    /// Counts the connection requests in the queue.
    pub(crate) backlog: Backlog,
    /// The charge for the listener, once it listens.
    pub(crate) charge: Option<Charge>,
}

/// The rest of a context that was removed from its channel, to be cleared without its lock.
pub(crate) struct RemovedEntry<C> {
    /// The number of events that were read.
    pub(crate) reported: u32,
    /// The unread connection requests.
    pub(crate) requests: Events<C>,
    /// The memberships in multicast groups.
    pub(crate) groups: RBTree<u64, MembershipEntry<C>>,
    /// The place, with the other unread events.
    pub(crate) place: PlaceRef<C>,
}

/// The memory that is missing for the events that may come.
#[derive(Clone, Copy)]
pub(crate) struct MissingMemory {
    /// Set if the context needs more slots.
    pub(crate) slots: bool,
    /// The events that have no slot.
    pub(crate) events: ExpectedEvents,
}

impl MissingMemory {
    /// Returns the memory that a context without any needs for `expected`.
    pub(crate) fn for_all(expected: ExpectedEvents) -> Self {
        MissingMemory {
            slots: false,
            events: expected,
        }
    }
}

/// The recipient of an event, with memory for the event.
pub(crate) struct Recipient<C> {
    pub(crate) uid: u64,
    pub(crate) id: u32,
    pub(crate) memory: EventMemory<C>,
    pub(crate) param: Option<ParamReservation>,
}

impl<C> ChannelEntry<C> {
    /// Initialises the entry of a context that wants no events yet.
    fn new() -> impl Init<Self> {
        init!(ChannelEntry {
            uid: 0,
            reported: 0,
            listener: None,
            queue <- Queue::new(),
            groups: RBTree::new(),
            joined: 0,
            written: 0,
            numbers: Numbers::new(),
            arrival: Arrival::new(),
            reservation: EventReservation::new(),
        })
    }

    /// Returns the memory that is missing for `expected`.
    #[inline]
    pub(crate) fn missing(&self, expected: ExpectedEvents) -> MissingMemory {
        let slots = &self.queue.slots;
        let left = self.reservation.missing(expected.beyond(slots.free()));
        if slots.has_more() || !left.has_events() {
            return MissingMemory {
                slots: false,
                events: left,
            };
        }
        MissingMemory {
            slots: true,
            events: left.beyond(MoreSlots::NUMBER),
        }
    }

    /// Adds slots. Returns them if the context has them already, to be dropped without a lock.
    pub(crate) fn add_slots(&mut self, more: MoreSlots) -> Option<MoreSlots> {
        self.queue.slots.add(more)
    }

    /// Returns the recipient of an event, with memory for the event: the context, whose number is
    /// `id`, or `group` if the context is still a member. Returns `None` if the owner wants no
    /// events.
    ///
    /// Without `extra`, a lack of memory is an error, which says how much is missing. With `extra`,
    /// memory comes from there, too, and `None` is returned if neither has memory for the event.
    pub(crate) fn recipient(
        &mut self,
        id: ContextId,
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
                id.0,
                &mut self.reservation,
                self.queue.slots.lend(),
            ),
            Some(group) => match self.groups.get_mut(&group) {
                Some(joined) if joined.has_room() => {
                    (joined.uid, joined.id, &mut joined.reservation, false)
                }
                _ => return Ok(None),
            },
        };
        let missing = reservation.missing(ExpectedEvents::of(event).beyond(usize::from(own)));
        if extra.is_none() && !missing.is_none() {
            if own {
                self.queue.slots.put_back_lent();
            }
            return Err(missing);
        }
        let mut extra = extra;
        let mut allocated = || {
            reservation
                .take()
                .or_else(|| extra.as_mut()?.take())
                .map(EventMemory::Node)
        };
        let memory = match own {
            true => Some(EventMemory::Slot),
            false => allocated(),
        };
        let Some(memory) = memory else {
            return Ok(None);
        };
        let param = match event.param.is_some() {
            true => reservation
                .take_param()
                .or_else(|| extra.and_then(EventReservation::take_param)),
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

    /// Lets `place`, which is that of the entry, follow the first event in the channel's `oldest`
    /// after the queue was changed.
    pub(crate) fn follow_first(&self, place: &PlaceRef<C>, oldest: &mut Oldest<C>) {
        let first = self.first_seq().map(OldestSeq);
        if oldest.key(place) == first {
            return;
        }
        let before = oldest.remove(place);
        if let Some(first) = first {
            // It is in no other channel, so that it is entered.
            let _ = oldest.insert(first, before.unwrap_or_else(|| place.clone()));
        }
    }

    /// Returns whether no request may wait beside those that do.
    pub(crate) fn is_full(&self) -> bool {
        let listener = self.listener.as_ref();
        listener.is_none_or(|listener| listener.backlog.is_full())
    }

    /// Counts a request for which there was no room.
    pub(crate) fn refuse(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.backlog.refuse();
        }
    }

    /// Returns the admission that a connection request from `asker` would get now.
    pub(crate) fn next_admission(&self, asker: Option<Asker>) -> Offer {
        let listener = self.listener.as_ref().ok_or(Declined::NoRoom)?;
        match listener.backlog.next_admission(asker)? {
            Admission::Replaces if !self.queue.has_replaceable() => Err(Declined::NoRoom),
            admission => Ok(admission),
        }
    }

    /// Takes out what is cleared when the context, whose place is `place`, has left its channel for
    /// good.
    pub(crate) fn take_rest(&mut self, place: PlaceRef<C>) -> RemovedEntry<C> {
        RemovedEntry {
            reported: self.reported,
            requests: self.queue.take_requests(),
            groups: mem::take(&mut self.groups),
            place,
        }
    }
}
