// SPDX-License-Identifier: GPL-2.0

//! What a channel keeps under its lock: a place for each of its contexts, with the events that
//! nobody has read.
//!
//! Every context has a queue of its own, and the channel knows the turn of the oldest event of
//! each ([`cmproto::ucma::order`]). So readers see the events of all contexts in the order in which
//! they happened, and a context that goes or moves takes its events along without a search.

use super::{
    context::Context,
    event::{ConnSpace, Need, Node, Queue, Reserve, Room, Unread},
};
use crate::endpoint::{Event, EventParam};
use cmproto::{
    ucma::{backlog::Backlog, order::Numbers},
    ucma_abi as abi,
};
use core::{mem, ptr};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// The most contexts that a channel may have.
const MAX_CONTEXTS: usize = 1 << 20;

/// The places of a channel's contexts.
///
/// # Invariants
///
/// - `oldest` leads from the turn of the first event in the queue of every place whose queue is not
///   empty to the number of the context, and has no other entry.
/// - `contexts` has `count` entries.
pub(super) struct Places {
    contexts: RBTree<u32, Place>,
    count: usize,
    oldest: RBTree<u64, u32>,
    turns: Numbers,
}

/// Memory for an entry of [`Places::oldest`].
type Entry = RBTreeNodeReservation<u64, u32>;

/// What a channel knows of a context.
///
/// # Invariants
///
/// `spare` is there if and only if `queue` is empty.
pub(super) struct Place {
    context: Arc<Context>,
    /// What the user calls the context; 0 as long as it wants no events.
    pub(super) uid: u64,
    /// How many events were read.
    pub(super) reported: u32,
    /// The connection requests in `queue`.
    pub(super) backlog: Backlog,
    queue: Queue,
    /// Places of events in `queue`.
    numbers: Numbers,
    spare: Option<Entry>,
    pub(super) reserve: Reserve,
}

/// Memory for the place of a context in its channel.
pub(super) struct PlaceRoom {
    node: RBTreeNodeReservation<u32, Place>,
    spare: Entry,
}

/// An event that a reader has taken out of its queue, in order to copy it to the user.
///
/// It counts as read from here on: a page fault can hold the copy up for as long as a hostile user
/// likes, and whoever destroys the context meanwhile does not wait for that. Only if the copy then
/// fails has the destroyer been told of one event too many.
#[must_use]
pub(super) struct Taken {
    /// The context that the event is of.
    pub(super) owner: Arc<Context>,
    /// The context that it announces, if it is a connection request.
    pub(super) child: Option<Arc<Context>>,
    turn: u64,
    pub(super) node: Node,
}

/// What a context leaves behind in its channel.
pub(super) struct Leavings {
    /// How many events were read.
    pub(super) reported: u32,
    /// The events that nobody has read.
    pub(super) queue: Queue,
}

impl PlaceRoom {
    /// Allocates it.
    pub(super) fn new() -> Result<Self> {
        Ok(PlaceRoom {
            node: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            spare: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Makes it the place of `context`.
    pub(super) fn fill(
        self,
        context: Arc<Context>,
        uid: u64,
        reserve: Reserve,
    ) -> RBTreeNode<u32, Place> {
        let id = context.id();
        let place = Place {
            context,
            uid,
            reported: 0,
            backlog: Backlog::new(),
            queue: Queue::new(),
            numbers: Numbers::new(),
            spare: Some(self.spare),
            reserve,
        };
        self.node.into_node(id, place)
    }
}

impl Place {
    /// The turn of the oldest event that nobody has read.
    fn first(&self) -> Option<u64> {
        self.queue.values().next().map(Unread::turn)
    }

    /// Takes memory for an event and its parameters, from the reserve or else from `extra`.
    fn draw(&mut self, extra: &mut Reserve, event: &Event) -> Option<(Room, Option<ConnSpace>)> {
        let room = self.reserve.take().or_else(|| extra.take())?;
        let conn = match event.param {
            EventParam::Conn(_) => self.reserve.take_conn().or_else(|| extra.take_conn()),
            EventParam::None => None,
        };
        Some((room, conn))
    }

    /// The first connection request at `from` or behind: its place, and whom it announces.
    fn request(&self, from: u64) -> Option<(u64, Arc<Context>)> {
        let mut from = from;
        loop {
            let cursor = self.queue.cursor_lower_bound(&from)?;
            let (&at, unread) = cursor.current();
            if let Some(child) = unread.child() {
                return Some((at, child.clone()));
            }
            from = at.checked_add(1)?;
        }
    }
}

impl Places {
    /// No places.
    pub(super) fn new() -> Self {
        Places {
            contexts: RBTree::new(),
            count: 0,
            oldest: RBTree::new(),
            turns: Numbers::new(),
        }
    }

    /// Whether there can be another place.
    pub(super) fn has_room(&self) -> bool {
        self.count < MAX_CONTEXTS
    }

    /// Whether there is anything to read.
    pub(super) fn is_readable(&self) -> bool {
        !self.oldest.is_empty()
    }

    /// The place of `context`, unless it has gone.
    ///
    /// The comparison is needed because its number may be that of another one by now.
    pub(super) fn get(&mut self, context: &Context) -> Option<&mut Place> {
        self.contexts
            .get_mut(&context.id())
            .filter(|place| ptr::eq(&*place.context, context))
    }

    /// Adds a place.
    pub(super) fn add(&mut self, place: RBTreeNode<u32, Place>) {
        // Numbers of contexts are unique, so that nothing is replaced.
        self.contexts.insert(place);
        self.count = self.count.saturating_add(1);
    }

    /// Takes the place of a context out, with its events.
    pub(super) fn remove(&mut self, context: &Context) -> Option<Leavings> {
        let (node, _) = self.detach(context)?;
        let (_, place) = node.to_key_value();
        Some(Leavings {
            reported: place.reported,
            queue: place.queue,
        })
    }

    /// Takes all places out.
    pub(super) fn clear(&mut self) -> Self {
        mem::replace(self, Places::new())
    }

    /// Takes any place out: its context, and what nobody has read. Leaves `oldest` as it is, for
    /// places that nobody reads from any more.
    pub(super) fn pop(&mut self) -> Option<(Arc<Context>, Queue)> {
        let (_, node) = self.contexts.cursor_front_mut()?.remove_current();
        let (_, place) = node.to_key_value();
        Some((place.context, place.queue))
    }

    // Moving
    // ------------------------------------------------------------------------------------------

    /// Takes the place of a context out, and its entry in `oldest`, if it has one.
    fn detach(&mut self, context: &Context) -> Option<(RBTreeNode<u32, Place>, Option<Entry>)> {
        let first = self.get(context)?.first();
        let entry = first.and_then(|first| self.oldest.remove_node(&first));
        let place = self.contexts.remove_node(&context.id())?;
        self.count = self.count.saturating_sub(1);
        Some((place, entry.map(RBTreeNode::into_reservation)))
    }

    /// Moves the place of a context to another channel, with its events, whose turns are the last
    /// there. Allocates and frees nothing.
    ///
    /// Returns whether there was such a place.
    pub(super) fn hand_over(&mut self, context: &Context, to: &mut Places) -> bool {
        let Some((place, entry)) = self.detach(context) else {
            return false;
        };
        to.add(place);
        to.renew(context, entry);
        true
    }

    /// Gives the events of a context new turns. `entry` is for the first of them.
    fn renew(&mut self, context: &Context, entry: Option<Entry>) {
        let id = context.id();
        let Some(place) = self.contexts.get_mut(&id) else {
            return;
        };
        let first = self
            .turns
            .renew(place.queue.values_mut().map(Unread::turn_mut));
        if let (Some(first), Some(entry)) = (first, entry) {
            // INVARIANT: `first` is the turn of the first event from here on.
            self.oldest.insert(entry.into_node(first, id));
        }
    }

    /// The context that an unread connection request of `listener` announces: the first one whose
    /// request has a place at `from` or behind, and that place.
    pub(super) fn announced(
        &mut self,
        listener: &Context,
        from: u64,
    ) -> Option<(u64, Arc<Context>)> {
        self.get(listener)?.request(from)
    }

    // Events
    // ------------------------------------------------------------------------------------------

    /// Queues an event of `context` that has just happened. `unread` makes it of the turn.
    ///
    /// Does nothing if the context has gone.
    pub(super) fn append(
        &mut self,
        context: &Context,
        room: Room,
        unread: impl FnOnce(u64) -> Unread,
    ) {
        let turn = self.turns.take();
        let Some(place) = self.get(context) else {
            return;
        };
        let at = place.numbers.take();
        self.insert(context, room.into_node(at, unread(turn)), turn);
    }

    /// Puts an event into the queue of `context`; gives it back if the context has gone.
    fn insert(&mut self, context: &Context, node: Node, turn: u64) -> Option<Node> {
        let id = context.id();
        let Places {
            contexts, oldest, ..
        } = self;
        let Some(place) = contexts
            .get_mut(&id)
            .filter(|place| ptr::eq(&*place.context, context))
        else {
            return Some(node);
        };
        let entry = match place.first() {
            None => place.spare.take(),
            Some(first) if turn < first => {
                oldest.remove_node(&first).map(RBTreeNode::into_reservation)
            }
            Some(_) => None,
        };
        if let Some(entry) = entry {
            // INVARIANT: `turn` is that of the first event in the queue from here on.
            oldest.insert(entry.into_node(turn, id));
        }
        // No other event has this place, so that nothing is replaced.
        place.queue.insert(node)
    }

    /// Returns an event that was taken out and could not be copied to its place, where it is the
    /// oldest of its context; gives it back if the context has gone. `moved` says whether the
    /// context has come from another channel since.
    pub(super) fn put_back(&mut self, taken: Taken, moved: bool) -> Option<Node> {
        let Taken {
            owner, turn, node, ..
        } = taken;
        let Some(place) = self.get(&owner) else {
            return Some(node);
        };
        place.reported = place.reported.wrapping_sub(1);
        if !moved {
            return self.insert(&owner, node, turn);
        }
        // Its turn is one of the other channel.
        let entry = match place.first() {
            Some(first) => self
                .oldest
                .remove_node(&first)
                .map(RBTreeNode::into_reservation),
            None => place.spare.take(),
        };
        let replaced = self.get(&owner)?.queue.insert(node);
        self.renew(&owner, entry);
        replaced
    }

    /// Queues an event of `context`, unless its owner wants none.
    ///
    /// Memory comes from the reserve of the context. Without `extra`, what that lacks is returned;
    /// with it, the event is lost if neither has memory. Returns whether the event was queued.
    pub(super) fn queue(
        &mut self,
        context: &Context,
        event: &Event,
        extra: Option<&mut Reserve>,
    ) -> Result<bool, Need> {
        let Some(place) = self.get(context).filter(|place| place.uid != 0) else {
            return Ok(false);
        };
        let lacks = place.reserve.lacks(Need::of(event));
        if extra.is_none() && !lacks.is_nothing() {
            return Err(lacks);
        }
        let uid = place.uid;
        let Some((room, conn)) = place.draw(extra.unwrap_or(&mut Reserve::new()), event) else {
            return Ok(false);
        };
        self.append(context, room, |turn| {
            Unread::new(uid, event, conn, context.id(), turn)
        });
        Ok(true)
    }

    /// Takes the oldest event of all out of its queue and counts it as read. Puts what user space
    /// reads into `response`.
    pub(super) fn take(&mut self, response: &mut abi::EventResp) -> Option<Taken> {
        let Places {
            contexts, oldest, ..
        } = self;
        let cursor = oldest.cursor_front_mut()?;
        let (&turn, &id) = cursor.current();
        let (_, entry) = cursor.remove_current();
        let entry = entry.into_reservation();
        let place = contexts.get_mut(&id)?;
        let cursor = place.queue.cursor_front_mut()?;
        let (_, unread) = cursor.current();
        unread.encode(response);
        let child = unread.child().cloned();
        let (_, node) = cursor.remove_current();
        // INVARIANT: The entry follows the first event, or is spare if there is none.
        match place.first() {
            Some(first) => {
                oldest.insert(entry.into_node(first, id));
            }
            None => place.spare = Some(entry),
        }
        place.reported = place.reported.wrapping_add(1);
        Some(Taken {
            owner: place.context.clone(),
            child,
            turn,
            node,
        })
    }
}
