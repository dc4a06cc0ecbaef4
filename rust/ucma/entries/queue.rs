// SPDX-License-Identifier: GPL-2.0

//! The unread events of a context.
//!
//! Events of the context itself are in its [`Slots`], as long as one is free. All other events
//! bring their memory along.

use super::{
    event::{EventRespBox, Unread},
    slots::Slots,
};
use crate::kext::users::Charge;
use cmproto::{node::Priority, ucma::turn::Turn};
use core::mem;
use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// The subject of an event in memory of its own.
pub(crate) struct EventSubject<C> {
    /// The user's value for the context or multicast group that the event is for.
    pub(crate) uid: u64,
    /// The number of that context or group; in a connection request, the number of the new context.
    pub(crate) id: u32,
    /// The multicast group that the event is about.
    pub(crate) group: Option<u64>,
    /// The context of a connection request, which is destroyed if the event is never read.
    pub(crate) child: Option<Arc<C>>,
    /// The priority of a connection request that is parked.
    pub(crate) parked: Option<Priority>,
    /// The charge for an event that a program has written.
    pub(crate) _written: Option<Charge>,
}

impl<C> Default for EventSubject<C> {
    fn default() -> Self {
        EventSubject {
            uid: 0,
            id: 0,
            group: None,
            child: None,
            parked: None,
            _written: None,
        }
    }
}

/// Memory for an event outside the queue's own slots.
pub(crate) type EventNodeReservation<C> = RBTreeNodeReservation<u64, (Unread, EventSubject<C>)>;

/// An event in memory outside the queue's own slots.
pub(crate) type EventNode<C> = RBTreeNode<u64, (Unread, EventSubject<C>)>;

/// Events that are not in a slot, by position.
pub(crate) type Events<C> = RBTree<u64, (Unread, EventSubject<C>)>;

/// The connection requests of a listener that has gone, in the order in which they would have been
/// read.
pub(crate) struct Requests<C>(Events<C>);

impl<C> Requests<C> {
    /// Returns the connection requests that were taken out of a queue.
    pub(crate) fn of(requests: Events<C>) -> Self {
        Requests(requests)
    }
}

impl<C> Iterator for Requests<C> {
    type Item = UnreadRequest<C>;

    fn next(&mut self) -> Option<UnreadRequest<C>> {
        let cursor = self.0.cursor_front_mut()?;
        let (_, node) = cursor.remove_current();
        let (_, (event, subject)) = node.to_key_value();
        Some(UnreadRequest {
            event,
            // INVARIANT of the queue: it has a child.
            child: subject.child?,
            parked: subject.parked,
        })
    }
}

/// A connection request that was not read.
pub(crate) struct UnreadRequest<C> {
    pub(crate) event: Unread,
    /// The context of the request.
    pub(crate) child: Arc<C>,
    /// The priority of the request if it is parked.
    pub(crate) parked: Option<Priority>,
}

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
    /// The event is a connection request in memory of its own, and had this turn.
    Request(Turn, EventNode<C>),
    /// The event is another one in memory of its own, and was at this position.
    Event(u64, EventNode<C>),
}

/// An event that was read and removed, to be dropped without a lock.
pub(crate) enum RemovedEvent<C> {
    /// The event itself, whose slot stays in the queue.
    Slot { _event: Option<Unread> },
    /// The memory of an event that was not in a slot.
    Node(EventNodeReservation<C>),
}

/// The part of a queue that an event is in.
#[derive(Clone, Copy)]
enum Place {
    Slot,
    Requests,
    Events,
}

/// The first event of a queue to be read.
struct Oldest {
    /// The position of the event.
    at: u64,
    /// The sequence number of the event.
    seq: u64,
    place: Place,
}

/// Unread events, in the order of their positions, and connection requests among themselves in that
/// of their turns.
///
/// # Invariants
///
/// - The subjects of the events in `requests` have a child, those of `events` have none.
/// - The keys of `requests` are those of their [`Turn`], the keys of `events` their positions.
pub(crate) struct Queue<C> {
    /// The unread connection requests. They have a tree of their own so that they are found among
    /// any number of other events.
    requests: Events<C>,
    /// The other unread events that are not in a slot.
    events: Events<C>,
    /// The events of the context itself that are in a slot.
    pub(crate) slots: Slots,
}

/// Returns the first event in `events`, and its position.
fn front<C>(events: &Events<C>) -> Option<(u64, &Unread)> {
    if events.is_empty() {
        return None;
    }
    let (at, (unread, _)) = events.iter().next()?;
    Some((*at, unread))
}

impl<C> TakenMemory<C> {
    /// Returns the position of the event.
    pub(crate) fn position(&self) -> u64 {
        match self {
            TakenMemory::Slot(at) | TakenMemory::Event(at, _) => *at,
            TakenMemory::Request(turn, _) => turn.position(),
        }
    }

    /// Returns the context that the event announces, if the event is a connection request.
    pub(crate) fn into_child(self) -> Option<Arc<C>> {
        match self {
            TakenMemory::Slot(_) | TakenMemory::Event(..) => None,
            TakenMemory::Request(_, node) => request_child(node),
        }
    }
}

/// Returns the context that a connection request announces.
pub(crate) fn request_child<C>(request: EventNode<C>) -> Option<Arc<C>> {
    let (_, (_, subject)) = request.to_key_value();
    subject.child
}

/// Puts an event back at the position `at`, with the part of it that its reader took.
fn put_back_into<C>(
    events: &mut Events<C>,
    at: u64,
    node: EventNode<C>,
    resp: Option<EventRespBox>,
) {
    let _ = events.insert(node);
    if let Some((unread, _)) = events.get_mut(&at) {
        *unread.resp() = resp;
    }
}

impl<C> Queue<C> {
    /// Initialises an empty queue.
    pub(crate) fn new() -> impl Init<Self> {
        init!(Queue {
            requests: RBTree::new(),
            events: RBTree::new(),
            slots: Slots::FIRST,
        })
    }

    /// Takes the unread connection requests out, for a context that has left its channel.
    pub(crate) fn take_requests(&mut self) -> Events<C> {
        mem::take(&mut self.requests)
    }

    /// Returns whether there is no event.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.requests.is_empty() && self.events.is_empty()
    }

    /// Returns the first event to be read. It is the oldest one, but that of all requests only the
    /// one whose turn it is counts.
    fn oldest(&self) -> Option<Oldest> {
        let mut oldest = self.slots.oldest().map(|(at, unread)| Oldest {
            at,
            seq: unread.seq(),
            place: Place::Slot,
        });
        let mut consider = |events, place| {
            let Some((key, unread)) = front(events) else {
                return;
            };
            // The key of an event is its position, as far as a turn is concerned.
            let at = Turn::from(key).position();
            if oldest.as_ref().is_none_or(|other| at < other.at) {
                let seq = unread.seq();
                oldest = Some(Oldest { at, seq, place });
            }
        };
        consider(&self.requests, Place::Requests);
        consider(&self.events, Place::Events);
        oldest
    }

    /// Returns the position and the sequence number of the oldest event.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.oldest().map(|oldest| (oldest.at, oldest.seq))
    }

    /// Returns the first connection request whose key is not before `from`: its key, and the
    /// context that it announces.
    pub(crate) fn request(&self, from: u64) -> Option<(u64, Arc<C>)> {
        let cursor = self.requests.cursor_lower_bound(&from)?;
        let (&at, (_, subject)) = cursor.current();
        Some((at, subject.child.clone()?))
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
            EventMemory::Slot => self.slots.fill(at, unread),
            EventMemory::Node(memory) => {
                // INVARIANT: The subject decides.
                let (events, key) = match subject.child {
                    Some(_) => (&mut self.requests, Turn::new(subject.parked, at).into()),
                    None => (&mut self.events, at),
                };
                let _ = events.insert(memory.into_node(key, (unread, subject)));
            }
        }
    }

    /// Removes the oldest event, after `look` has been called on it. The queue keeps its slot for
    /// it.
    pub(crate) fn take_first<R>(
        &mut self,
        look: impl FnOnce(&mut Unread, Option<&EventSubject<C>>) -> R,
    ) -> Option<(TakenMemory<C>, R)> {
        let Oldest { at, place, .. } = self.oldest()?;
        let events = match place {
            Place::Slot => {
                let seen = self.slots.take(at, |unread| look(unread, None))?;
                return Some((TakenMemory::Slot(at), seen));
            }
            Place::Requests => &mut self.requests,
            Place::Events => &mut self.events,
        };
        let mut cursor = events.cursor_front_mut()?;
        let (&at, (unread, subject)) = cursor.current_mut();
        let seen = look(unread, Some(subject));
        let (_, node) = cursor.remove_current();
        let taken = match place {
            Place::Requests => TakenMemory::Request(Turn::from(at), node),
            _ => TakenMemory::Event(at, node),
        };
        Some((taken, seen))
    }

    /// Puts an event back at its position. `resp` is the part of the event that its reader took.
    pub(crate) fn put_back(&mut self, node: TakenMemory<C>, resp: Option<EventRespBox>) {
        match node {
            TakenMemory::Slot(at) => self.slots.put_back(at, resp),
            TakenMemory::Request(turn, node) => {
                put_back_into(&mut self.requests, turn.into(), node, resp);
            }
            TakenMemory::Event(at, node) => put_back_into(&mut self.events, at, node, resp),
        }
    }

    /// Disposes of an event that was read. The caller drops the returned value without a lock.
    pub(crate) fn finish(&mut self, node: TakenMemory<C>) -> RemovedEvent<C> {
        match node {
            TakenMemory::Slot(at) => RemovedEvent::Slot {
                _event: self.slots.finish(at),
            },
            TakenMemory::Request(_, node) | TakenMemory::Event(_, node) => {
                RemovedEvent::Node(node.into_reservation())
            }
        }
    }

    /// Removes the event at the position `at`, which is no connection request and not in a slot.
    pub(crate) fn withdraw(&mut self, at: u64) -> Option<EventNode<C>> {
        self.events.remove_node(&at)
    }

    /// Returns the turn of the last connection request.
    fn last_turn(&self) -> Option<Turn> {
        let (&key, _) = self.requests.cursor_back()?.current();
        Some(key.into())
    }

    /// Returns whether a connection request gives way to others.
    pub(crate) fn has_replaceable(&self) -> bool {
        self.last_turn().is_some_and(Turn::gives_way)
    }

    /// Removes a connection request that gives way to another one ([`Turn::replaced`]), if there is
    /// such a request.
    pub(crate) fn replace(&mut self, random: u64) -> Option<EventNode<C>> {
        let replaced = Turn::replaced(self.last_turn(), random, |turn| {
            let cursor = self.requests.cursor_lower_bound(&turn.into())?;
            Some(Turn::from(*cursor.current().0))
        })?;
        self.requests.remove_node(&replaced.into())
    }
}
