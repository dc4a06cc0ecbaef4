// SPDX-License-Identifier: GPL-2.0

//! The events of a context that nobody has read.
//!
//! Events of the context itself have their memory here: as many as usually come between two looks of a
//! reader. All others bring theirs along.

use super::{
    context::Context,
    event::{Unread, Whole},
};
use cmproto::ucma::order::Numbers;
use core::{array, iter, mem};
use kernel::{
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// What an event is about besides its context.
#[derive(Default)]
pub(super) struct About {
    /// The multicast group that it is about.
    pub(super) group: Option<u64>,
    /// The context of a connection request. It goes if the event is never read.
    pub(super) child: Option<Arc<Context>>,
}

/// Memory for an event that does not come with its queue.
pub(super) type Allocated = RBTreeNodeReservation<u64, (Unread, About)>;

/// An event in such memory.
pub(super) type AllocatedNode = RBTreeNode<u64, (Unread, About)>;

/// Memory for an event.
pub(super) enum Room {
    /// A slot of the queue, for an event that is about nothing but its context.
    Own,
    /// Any other.
    Allocated(Allocated),
}

/// An event that a reader has taken out of its queue.
pub(super) enum Node {
    /// It is in the queue's own memory, where it has this place.
    Own(u64),
    /// It is in any other, and had this place.
    Allocated(u64, AllocatedNode),
}

/// What is left of an event.
pub(super) enum Rest {
    /// The event itself; its memory is the queue's own.
    Own { _event: Option<Unread> },
    /// Memory.
    Allocated(Allocated),
}

/// Memory for one event.
enum Slot {
    Free,
    /// For an event that is on its way, a [`Room::Own`].
    Lent,
    /// With the event's place.
    Full(u64, Unread),
    /// The same, and the event is with a reader, a [`Node::Own`].
    Read(u64, Unread),
}

/// Unread events, in the order of their places.
///
/// # Invariants
///
/// `full` of the slots are [`Slot::Full`].
pub(super) struct Queue {
    full: usize,
    more: RBTree<u64, (Unread, About)>,
    own: [Slot; Self::OWN],
}

impl Node {
    /// The context that the event announces, if it is a connection request.
    pub(super) fn into_child(self) -> Option<Arc<Context>> {
        match self {
            Node::Own(_) => None,
            Node::Allocated(_, node) => {
                let (_, (_, about)) = node.to_key_value();
                about.child
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

    /// Whether a reader has the event at this place.
    fn is_read(&self, place: u64) -> bool {
        matches!(self, Slot::Read(at, _) if *at == place)
    }
}

impl Queue {
    /// How many events have memory in the queue.
    const OWN: usize = 5;

    /// A queue without events.
    pub(super) fn new() -> Self {
        Queue {
            full: 0,
            more: RBTree::new(),
            own: array::from_fn(|_| Slot::Free),
        }
    }

    /// The place of the first event in memory of its own.
    fn first_allocated(&self) -> Option<u64> {
        if self.more.is_empty() {
            return None;
        }
        self.more.iter().next().map(|(at, _)| *at)
    }

    /// The slot of the oldest event, if that is not one in memory of its own.
    fn first_own(&self) -> Option<usize> {
        if self.full == 0 {
            return None;
        }
        let slots = self.own.iter().enumerate();
        let full = slots.filter_map(|(index, slot)| Some((slot.full()?.0, index)));
        let (at, index) = full.min()?;
        let is_first = self.first_allocated().is_none_or(|other| at < other);
        is_first.then_some(index)
    }

    /// The turn of the oldest event.
    pub(super) fn first_turn(&self) -> Option<u64> {
        if let Some(index) = self.first_own() {
            let (_, unread) = self.own.get(index)?.full()?;
            return Some(unread.turn());
        }
        if self.more.is_empty() {
            return None;
        }
        self.more.values().next().map(|(unread, _)| unread.turn())
    }

    /// The first connection request at `from` or behind: its place, and whom it announces.
    pub(super) fn request(&self, from: u64) -> Option<(u64, Arc<Context>)> {
        let mut from = from;
        loop {
            let cursor = self.more.cursor_lower_bound(&from)?;
            let (&at, (_, about)) = cursor.current();
            if let Some(child) = &about.child {
                return Some((at, child.clone()));
            }
            from = at.checked_add(1)?;
        }
    }

    /// Puts an event at the place `at`, which no other has. It is about nothing but its context if the
    /// memory is the queue's own.
    pub(super) fn fill(&mut self, room: Room, at: u64, unread: Unread, about: About) {
        match room {
            Room::Own => {
                if let Some(slot) = self.own.iter_mut().find(|slot| slot.is_lent()) {
                    *slot = Slot::Full(at, unread);
                    // INVARIANT: One more is full.
                    self.full = self.full.saturating_add(1);
                }
            }
            Room::Allocated(room) => {
                let _ = self.more.insert(room.into_node(at, (unread, about)));
            }
        }
    }

    /// Takes the oldest event out, after a `look` at it. The queue keeps its memory for it.
    pub(super) fn take_first<R>(
        &mut self,
        look: impl FnOnce(&mut Unread, Option<&About>) -> R,
    ) -> Option<(Node, R)> {
        let Some(index) = self.first_own() else {
            let mut cursor = self.more.cursor_front_mut()?;
            let (&at, (unread, about)) = cursor.current_mut();
            let seen = look(unread, Some(about));
            let (_, node) = cursor.remove_current();
            return Some((Node::Allocated(at, node), seen));
        };
        let slot = self.own.get_mut(index)?;
        let Slot::Full(at, mut unread) = mem::replace(slot, Slot::Lent) else {
            return None;
        };
        let seen = look(&mut unread, None);
        *slot = Slot::Read(at, unread);
        // INVARIANT: One less is full.
        self.full = self.full.saturating_sub(1);
        Some((Node::Own(at), seen))
    }

    /// Returns an event to its place, and what its reader had of it.
    pub(super) fn put_back(&mut self, node: Node, whole: Option<Whole>) {
        match node {
            Node::Own(at) => {
                let Some(slot) = self.own.iter_mut().find(|slot| slot.is_read(at)) else {
                    return;
                };
                if let Slot::Read(at, mut unread) = mem::replace(slot, Slot::Free) {
                    *unread.whole() = whole;
                    *slot = Slot::Full(at, unread);
                    // INVARIANT: One more is full.
                    self.full = self.full.saturating_add(1);
                }
            }
            Node::Allocated(at, node) => {
                let _ = self.more.insert(node);
                if let Some((unread, _)) = self.more.get_mut(&at) {
                    *unread.whole() = whole;
                }
            }
        }
    }

    /// Ends an event that was read. What it leaves is to be dropped without a lock.
    pub(super) fn finish(&mut self, node: Node) -> Rest {
        match node {
            Node::Own(at) => {
                let slot = self.own.iter_mut().find(|slot| slot.is_read(at));
                let event = match slot.map(|slot| mem::replace(slot, Slot::Free)) {
                    Some(Slot::Read(_, event)) => Some(event),
                    _ => None,
                };
                Rest::Own { _event: event }
            }
            Node::Allocated(_, node) => Rest::Allocated(node.into_reservation()),
        }
    }

    /// Takes the oldest event about the multicast group `group` out.
    pub(super) fn withdraw(&mut self, group: u64) -> Option<AllocatedNode> {
        let mut events = self.more.iter();
        let (&at, _) = events.find(|(_, (_, about))| about.group == Some(group))?;
        self.more.remove_node(&at)
    }

    /// Sorts the slots by the place of what is in them, free ones first.
    ///
    /// There are a few only, and the sorting functions of the core library can panic.
    fn sort_own(&mut self) {
        let place = |slot: &Slot| slot.full().map(|(at, _)| at);
        // As many passes as there are slots, in which neighbours from even places and from odd ones
        // change places in turn.
        for pass in 0..self.own.len() {
            let slots = self.own.get_mut(pass % 2..).unwrap_or_default();
            for pair in slots.chunks_exact_mut(2) {
                if let [a, b] = pair {
                    if place(a) > place(b) {
                        mem::swap(a, b);
                    }
                }
            }
        }
    }

    /// Gives all events new turns. Returns the first of these.
    pub(super) fn renew(&mut self, turns: &mut Numbers) -> Option<u64> {
        self.sort_own();
        let mut own = self.own.iter_mut().filter_map(Slot::full_mut).peekable();
        let mut more = self.more.iter_mut().peekable();
        turns.renew(iter::from_fn(|| {
            let is_own = match (own.peek(), more.peek()) {
                (Some((own, _)), Some((more, _))) => own < *more,
                (own, _) => own.is_some(),
            };
            match is_own {
                true => own.next().map(|(_, unread)| unread.turn_mut()),
                false => more.next().map(|(_, (unread, _))| unread.turn_mut()),
            }
        }))
    }

    // Memory
    // ------------------------------------------------------------------------------------------

    /// How many events there is memory for.
    pub(super) fn free(&self) -> usize {
        self.own.iter().filter(|slot| slot.is_free()).count()
    }

    /// Takes memory for one event.
    pub(super) fn draw(&mut self) -> Option<Room> {
        let slot = self.own.iter_mut().find(|slot| slot.is_free())?;
        *slot = Slot::Lent;
        Some(Room::Own)
    }

    /// Returns memory of the queue's own, a [`Room::Own`].
    pub(super) fn undraw(&mut self) {
        if let Some(slot) = self.own.iter_mut().find(|slot| slot.is_lent()) {
            *slot = Slot::Free;
        }
    }
}
