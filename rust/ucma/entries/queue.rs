// SPDX-License-Identifier: GPL-2.0

//! The unread events of a context.
//!
//! The queue has memory for as many events of the context itself as usually come between two reads.
//! All other events bring their memory along.

use super::event::{EventRespBox, Unread};
use crate::kext::users::Charge;
use cmproto::ucma::order::Numbers;
use core::{array, iter, mem};
use kernel::{
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// Number of slots that a queue has for events of its context.
const SLOTS: usize = 5;

/// The subject of an event, besides its context.
pub(crate) struct EventSubject<C> {
    /// The multicast group that the event is about.
    pub(crate) group: Option<u64>,
    /// The context of a connection request, which is destroyed if the event is never read.
    pub(crate) child: Option<Arc<C>>,
    /// The charge for an event that a program has written.
    pub(crate) _written: Option<Charge>,
}

impl<C> Default for EventSubject<C> {
    fn default() -> Self {
        EventSubject {
            group: None,
            child: None,
            _written: None,
        }
    }
}

/// Memory for an event outside the queue's own slots.
pub(crate) type EventNodeReservation<C> = RBTreeNodeReservation<u64, (Unread, EventSubject<C>)>;

/// An event in memory outside the queue's own slots.
pub(crate) type EventNode<C> = RBTreeNode<u64, (Unread, EventSubject<C>)>;

/// Memory for an event.
pub(crate) enum EventMemory<C> {
    /// A slot of the queue, for an event whose only subject is its context.
    Slot,
    /// Memory outside the queue's own slots, for any event.
    Node(EventNodeReservation<C>),
}

/// The memory of an event that a reader has taken out of its queue.
pub(crate) enum TakenMemory<C> {
    /// The event is in a slot of the queue, at this position.
    Slot(u64),
    /// The event is in memory of its own, and was at this position.
    Node(u64, EventNode<C>),
}

/// An event that was read and removed, to be dropped without a lock.
pub(crate) enum RemovedEvent<C> {
    /// The event itself, whose slot stays in the queue.
    Slot { _event: Option<Unread> },
    /// The memory of an event that was not in a slot.
    Node(EventNodeReservation<C>),
}

/// Memory for one event of the context itself.
enum Slot {
    Free,
    /// Lent to the caller as a [`EventMemory::Slot`], or for the moment of a look at an event.
    Lent,
    /// A slot with an unread event, which has this position.
    Full(u64, Unread),
    /// A slot with an event, at this position, that a reader has taken as a [`TakenMemory::Slot`].
    Read(u64, Unread),
}

/// Unread events, in the order of their positions.
///
/// # Invariants
///
/// `full` of the slots are [`Slot::Full`].
pub(crate) struct Queue<C> {
    /// The number of slots with an unread event.
    full: usize,
    /// The unread events that are not in a slot, by position.
    allocated: RBTree<u64, (Unread, EventSubject<C>)>,
    /// Memory for the first events of the context itself.
    slots: [Slot; SLOTS],
}

impl<C> TakenMemory<C> {
    /// Returns the context that the event announces, if the event is a connection request.
    pub(crate) fn into_child(self) -> Option<Arc<C>> {
        match self {
            TakenMemory::Slot(_) => None,
            TakenMemory::Node(_, node) => {
                let (_, (_, subject)) = node.to_key_value();
                subject.child
            }
        }
    }
}

impl Slot {
    fn full(&self) -> Option<(u64, &Unread)> {
        match self {
            Slot::Full(at, unread) => Some((*at, unread)),
            _ => None,
        }
    }

    fn full_mut(&mut self) -> Option<(u64, &mut Unread)> {
        match self {
            Slot::Full(at, unread) => Some((*at, unread)),
            _ => None,
        }
    }

    fn is_free(&self) -> bool {
        matches!(self, Slot::Free)
    }

    fn is_lent(&self) -> bool {
        matches!(self, Slot::Lent)
    }

    /// Returns whether a reader has taken the event at `position`.
    fn is_read(&self, position: u64) -> bool {
        matches!(self, Slot::Read(at, _) if *at == position)
    }
}

impl<C> Queue<C> {
    /// Creates an empty queue.
    pub(crate) fn new() -> Self {
        Queue {
            full: 0,
            allocated: RBTree::new(),
            slots: array::from_fn(|_| Slot::Free),
        }
    }

    /// Returns the position of the first event that is not in a slot.
    fn first_allocated(&self) -> Option<u64> {
        if self.allocated.is_empty() {
            return None;
        }
        self.allocated.iter().next().map(|(at, _)| *at)
    }

    /// Returns the slot of the oldest event, or `None` if the oldest event is not in a slot.
    fn first_slot(&self) -> Option<usize> {
        if self.full == 0 {
            return None;
        }
        let slots = self.slots.iter().enumerate();
        let full = slots.filter_map(|(index, slot)| Some((slot.full()?.0, index)));
        let (at, index) = full.min()?;
        let is_first = self.first_allocated().is_none_or(|other| at < other);
        is_first.then_some(index)
    }

    /// Returns the sequence number of the oldest event.
    pub(crate) fn first_seq(&self) -> Option<u64> {
        if let Some(index) = self.first_slot() {
            let (_, unread) = self.slots.get(index)?.full()?;
            return Some(unread.seq());
        }
        if self.allocated.is_empty() {
            return None;
        }
        self.allocated
            .values()
            .next()
            .map(|(unread, _)| unread.seq())
    }

    /// Returns the first connection request whose position is not before `from`: its position, and
    /// the context that it announces.
    pub(crate) fn request(&self, from: u64) -> Option<(u64, Arc<C>)> {
        let mut from = from;
        loop {
            let cursor = self.allocated.cursor_lower_bound(&from)?;
            let (&at, (_, subject)) = cursor.current();
            if let Some(child) = &subject.child {
                return Some((at, child.clone()));
            }
            from = at.checked_add(1)?;
        }
    }

    /// Adds an event at the position `at`, which no other event has. If `memory` is a slot of the
    /// queue, the event's only subject is its context, and `subject` is not used.
    pub(crate) fn fill(
        &mut self,
        memory: EventMemory<C>,
        at: u64,
        unread: Unread,
        subject: EventSubject<C>,
    ) {
        match memory {
            EventMemory::Slot => {
                if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_lent()) {
                    *slot = Slot::Full(at, unread);
                    // INVARIANT: One more slot is full.
                    self.full = self.full.saturating_add(1);
                }
            }
            EventMemory::Node(memory) => {
                let _ = self
                    .allocated
                    .insert(memory.into_node(at, (unread, subject)));
            }
        }
    }

    /// Removes the oldest event, after `look` has been called on it. The queue keeps its slot for
    /// it.
    pub(crate) fn take_first<R>(
        &mut self,
        look: impl FnOnce(&mut Unread, Option<&EventSubject<C>>) -> R,
    ) -> Option<(TakenMemory<C>, R)> {
        let Some(index) = self.first_slot() else {
            let mut cursor = self.allocated.cursor_front_mut()?;
            let (&at, (unread, subject)) = cursor.current_mut();
            let seen = look(unread, Some(subject));
            let (_, node) = cursor.remove_current();
            return Some((TakenMemory::Node(at, node), seen));
        };
        let slot = self.slots.get_mut(index)?;
        let Slot::Full(at, mut unread) = mem::replace(slot, Slot::Lent) else {
            return None;
        };
        let seen = look(&mut unread, None);
        *slot = Slot::Read(at, unread);
        // INVARIANT: One slot less is full.
        self.full = self.full.saturating_sub(1);
        Some((TakenMemory::Slot(at), seen))
    }

    /// Puts an event back at its position. `resp` is the part of the event that its reader took.
    pub(crate) fn put_back(&mut self, node: TakenMemory<C>, resp: Option<EventRespBox>) {
        match node {
            TakenMemory::Slot(at) => {
                let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_read(at)) else {
                    return;
                };
                if let Slot::Read(at, mut unread) = mem::replace(slot, Slot::Free) {
                    *unread.resp() = resp;
                    *slot = Slot::Full(at, unread);
                    // INVARIANT: One more slot is full.
                    self.full = self.full.saturating_add(1);
                }
            }
            TakenMemory::Node(at, node) => {
                let _ = self.allocated.insert(node);
                if let Some((unread, _)) = self.allocated.get_mut(&at) {
                    *unread.resp() = resp;
                }
            }
        }
    }

    /// Disposes of an event that was read. The caller drops the returned value without a lock.
    pub(crate) fn finish(&mut self, node: TakenMemory<C>) -> RemovedEvent<C> {
        match node {
            TakenMemory::Slot(at) => {
                let slot = self.slots.iter_mut().find(|slot| slot.is_read(at));
                let event = match slot.map(|slot| mem::replace(slot, Slot::Free)) {
                    Some(Slot::Read(_, event)) => Some(event),
                    _ => None,
                };
                RemovedEvent::Slot { _event: event }
            }
            TakenMemory::Node(_, node) => RemovedEvent::Node(node.into_reservation()),
        }
    }

    /// Removes the oldest event about the multicast group `group`.
    pub(crate) fn withdraw(&mut self, group: u64) -> Option<EventNode<C>> {
        let mut events = self.allocated.iter();
        let (&at, _) = events.find(|(_, (_, subject))| subject.group == Some(group))?;
        self.allocated.remove_node(&at)
    }

    /// Sorts the slots by the position of the unread event in them. Slots without one come first.
    ///
    /// There are only a few slots, and the sorting functions of the core library can panic.
    fn sort_slots(&mut self) {
        let position = |slot: &Slot| slot.full().map(|(at, _)| at);
        // Odd-even transposition sort: one pass for each slot; passes alternate between pairs that
        // start at even and at odd indices.
        for pass in 0..self.slots.len() {
            let slots = self.slots.get_mut(pass % 2..).unwrap_or_default();
            for pair in slots.chunks_exact_mut(2) {
                if let [a, b] = pair {
                    if position(a) > position(b) {
                        mem::swap(a, b);
                    }
                }
            }
        }
    }

    /// Gives all events new sequence numbers. Returns the new sequence number of the first one.
    pub(crate) fn renew(&mut self, sequence: &mut Numbers) -> Option<u64> {
        self.sort_slots();
        let mut slots = self.slots.iter_mut().filter_map(Slot::full_mut).peekable();
        let mut allocated = self.allocated.iter_mut().peekable();
        sequence.renew(iter::from_fn(|| {
            let is_in_slot = match (slots.peek(), allocated.peek()) {
                (Some((slot, _)), Some((other, _))) => slot < *other,
                (slot, _) => slot.is_some(),
            };
            match is_in_slot {
                true => slots.next().map(|(_, unread)| unread.seq_mut()),
                false => allocated.next().map(|(_, (unread, _))| unread.seq_mut()),
            }
        }))
    }

    // Memory
    // ------------------------------------------------------------------------------------------

    /// Returns the number of free slots.
    pub(crate) fn free(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_free()).count()
    }

    /// Takes a free slot for an event that will be added by [`fill`](Self::fill).
    pub(crate) fn take_slot(&mut self) -> Option<EventMemory<C>> {
        let slot = self.slots.iter_mut().find(|slot| slot.is_free())?;
        *slot = Slot::Lent;
        Some(EventMemory::Slot)
    }

    /// Puts back a slot that was taken by [`take_slot`](Self::take_slot) and not used.
    pub(crate) fn put_slot(&mut self) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_lent()) {
            *slot = Slot::Free;
        }
    }
}
