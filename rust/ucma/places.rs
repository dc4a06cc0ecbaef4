// SPDX-License-Identifier: GPL-2.0

//! What a channel keeps under its lock: a place for each of its contexts, with the events that
//! nobody has read.
//!
//! Every context has a queue of its own, and the channel knows the turn of the oldest event of
//! each ([`cmproto::ucma::order`]). So readers see the events of all contexts in the order in which
//! they happened, and a context that goes or moves takes its events along without a search.

use super::{
    context::Context,
    event::{Need, Node, Queue, Reserve, Room, Unread},
};
use crate::endpoint::Event;
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

/// The most multicast groups that the contexts of a channel may join.
const MAX_GROUPS: usize = 1 << 16;

/// The most unread events that programs may write into a channel.
const MAX_WRITTEN: usize = 4096;

/// The places of a channel's contexts.
///
/// # Invariants
///
/// - `oldest` leads from the turn of the first event in the queue of every place whose queue is not
///   empty to the number of the context, and has no other entry.
/// - `contexts` has `count` entries.
/// - `joined` and `written` are the sums of those of all places.
pub(super) struct Places {
    contexts: RBTree<u32, Place>,
    count: usize,
    joined: usize,
    written: usize,
    oldest: RBTree<u64, u32>,
    turns: Numbers,
}

/// Memory for an entry of [`Places::oldest`].
type Entry = RBTreeNodeReservation<u64, u32>;

/// What a channel knows of a context.
///
/// # Invariants
///
/// - `spare` is there if and only if `queue` is empty.
/// - `groups` has `joined` entries.
/// - `written` of the events in `queue` were written by programs.
pub(super) struct Place {
    context: Arc<Context>,
    /// What the user calls the context; 0 as long as it wants no events.
    pub(super) uid: u64,
    /// How many events were read.
    pub(super) reported: u32,
    /// The connection requests in `queue`.
    pub(super) backlog: Backlog,
    queue: Queue,
    /// The multicast groups that the context is a member of, by the numbers of the endpoint.
    groups: RBTree<u64, Joined>,
    joined: usize,
    written: usize,
    /// Places of events in `queue`.
    numbers: Numbers,
    spare: Option<Entry>,
    pub(super) reserve: Reserve,
}

/// What a channel knows of the membership of a context in a multicast group.
pub(super) struct Joined {
    /// What the user knows the membership by.
    pub(super) id: u32,
    /// What the user calls it.
    uid: u64,
    /// How many of its events were read.
    reported: u32,
    reserve: Reserve,
}

/// What a membership leaves behind in its channel.
pub(super) struct Left {
    joined: RBTreeNode<u64, Joined>,
    _queue: Queue,
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
    /// The multicast group that the event is about.
    group: Option<u64>,
    /// Whether a program wrote it.
    is_written: bool,
    turn: u64,
    pub(super) node: Node,
}

/// What a context leaves behind in its channel.
pub(super) struct Leavings {
    /// How many events were read.
    pub(super) reported: u32,
    /// The events that nobody has read.
    pub(super) queue: Queue,
    /// The groups that the context was a member of.
    pub(super) groups: RBTree<u64, Joined>,
}

impl Joined {
    /// A membership that nothing is known of yet but its number, its uid and memory for its event.
    pub(super) fn new(id: u32, uid: u64, reserve: Reserve) -> Self {
        Joined {
            id,
            uid,
            reported: 0,
            reserve,
        }
    }
}

impl Left {
    /// How many of the membership's events were read.
    pub(super) fn reported(self) -> u32 {
        self.joined.to_key_value().1.reported
    }
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
            groups: RBTree::new(),
            joined: 0,
            written: 0,
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

    /// Who an event is for, by uid and number, and its memory: the context, or one of its groups
    /// unless that was left. Nobody if the owner of the context wants no events.
    fn recipient(&mut self, group: Option<u64>) -> Option<(u64, u32, &mut Reserve)> {
        if self.uid == 0 {
            return None;
        }
        match group {
            None => Some((self.uid, self.context.id(), &mut self.reserve)),
            Some(group) => {
                let joined = self.groups.get_mut(&group)?;
                Some((joined.uid, joined.id, &mut joined.reserve))
            }
        }
    }

    /// Ends the place.
    fn leavings(self) -> (Arc<Context>, Leavings) {
        let leavings = Leavings {
            reported: self.reported,
            queue: self.queue,
            groups: self.groups,
        };
        (self.context, leavings)
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
            joined: 0,
            written: 0,
            oldest: RBTree::new(),
            turns: Numbers::new(),
        }
    }

    /// Whether there can be another place.
    pub(super) fn has_room(&self) -> bool {
        self.count < MAX_CONTEXTS
    }

    /// Whether a program may write another event.
    pub(super) fn has_room_to_write(&self) -> bool {
        self.written < MAX_WRITTEN
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
        Some(place.leavings().1)
    }

    /// Takes all places out.
    pub(super) fn clear(&mut self) -> Self {
        mem::replace(self, Places::new())
    }

    /// Takes any place out: its context, and what it leaves behind. Leaves `oldest` as it is, for
    /// places that nobody reads from any more.
    pub(super) fn pop(&mut self) -> Option<(Arc<Context>, Leavings)> {
        let (_, node) = self.contexts.cursor_front_mut()?.remove_current();
        let (_, place) = node.to_key_value();
        Some(place.leavings())
    }

    // Moving
    // ------------------------------------------------------------------------------------------

    /// Takes the place of a context out, and its entry in `oldest`, if it has one.
    fn detach(&mut self, context: &Context) -> Option<(RBTreeNode<u32, Place>, Option<Entry>)> {
        let place = self.get(context)?;
        let (first, joined, written) = (place.first(), place.joined, place.written);
        let entry = first.and_then(|first| self.oldest.remove_node(&first));
        let place = self.contexts.remove_node(&context.id())?;
        self.count = self.count.saturating_sub(1);
        self.joined = self.joined.saturating_sub(joined);
        self.written = self.written.saturating_sub(written);
        Some((place, entry.map(RBTreeNode::into_reservation)))
    }

    /// Moves the place of a context to another channel, with its events, whose turns are the last
    /// there. Allocates and frees nothing.
    ///
    /// Returns whether there was such a place.
    pub(super) fn hand_over(&mut self, context: &Context, to: &mut Places) -> bool {
        let counts = self.get(context).map(|place| (place.joined, place.written));
        let (Some((joined, written)), Some((place, entry))) = (counts, self.detach(context)) else {
            return false;
        };
        to.add(place);
        to.joined = to.joined.saturating_add(joined);
        to.written = to.written.saturating_add(written);
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

    // Multicast groups
    // ------------------------------------------------------------------------------------------

    /// Whether another group may be joined.
    pub(super) fn has_room_for_group(&self) -> bool {
        self.joined < MAX_GROUPS
    }

    /// Adds a membership of `context`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if there are too many;
    /// - `ENOENT` if the context has gone.
    pub(super) fn join(&mut self, context: &Context, node: RBTreeNode<u64, Joined>) -> Result {
        if !self.has_room_for_group() {
            return Err(ENOMEM);
        }
        let place = self.get(context).ok_or(ENOENT)?;
        // Numbers of groups are unique, so that nothing is replaced.
        place.groups.insert(node);
        place.joined = place.joined.saturating_add(1);
        self.joined = self.joined.saturating_add(1);
        Ok(())
    }

    /// Takes a membership of `context` out, with its unread events.
    pub(super) fn leave(&mut self, context: &Context, group: u64) -> Option<Left> {
        let place = self.get(context)?;
        let joined = place.groups.remove_node(&group)?;
        place.joined = place.joined.saturating_sub(1);
        self.joined = self.joined.saturating_sub(1);
        let mut queue = Queue::new();
        while let Some(node) = self.withdraw(context, group) {
            queue.insert(node);
        }
        Some(Left {
            joined,
            _queue: queue,
        })
    }

    /// Takes an unread event about `group` out of the queue of `context`.
    fn withdraw(&mut self, context: &Context, group: u64) -> Option<Node> {
        let place = self.get(context)?;
        let before = place.first();
        let (&at, _) = place
            .queue
            .iter()
            .find(|(_, unread)| unread.group() == Some(group))?;
        let node = place.queue.remove_node(&at)?;
        let first = place.first();
        if before != first {
            let entry = before.and_then(|before| self.oldest.remove_node(&before));
            let entry = entry.map(RBTreeNode::into_reservation);
            // INVARIANT: The entry follows the first event, or is spare if there is none.
            match (first, entry) {
                (Some(first), Some(entry)) => {
                    self.oldest.insert(entry.into_node(first, context.id()));
                }
                (_, entry) => self.get(context)?.spare = entry,
            }
        }
        Some(node)
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
        let unread = unread(turn);
        if unread.is_written() {
            self.count_written(context);
        }
        self.insert(context, room.into_node(at, unread), turn);
    }

    /// Counts an event of `context` that a program wrote and that is about to be queued.
    fn count_written(&mut self, context: &Context) {
        if let Some(place) = self.get(context) {
            place.written = place.written.saturating_add(1);
            self.written = self.written.saturating_add(1);
        }
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
    /// oldest of its context; gives it back if the context has gone, or the group that it is about was
    /// left. `moved` says whether the context has come from another channel since.
    pub(super) fn put_back(&mut self, taken: Taken, moved: bool) -> Option<Node> {
        let Taken {
            owner,
            group,
            is_written,
            turn,
            node,
            ..
        } = taken;
        let Some(place) = self.get(&owner) else {
            return Some(node);
        };
        place.reported = place.reported.wrapping_sub(1);
        if let Some(group) = group {
            let Some(joined) = place.groups.get_mut(&group) else {
                return Some(node);
            };
            joined.reported = joined.reported.wrapping_sub(1);
        }
        if is_written {
            self.count_written(&owner);
        }
        if !moved {
            return self.insert(&owner, node, turn);
        }
        // Its turn is one of the other channel.
        let place = self.get(&owner)?;
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

    /// Queues an event of `context` or of its multicast group `group`, unless its owner wants none.
    ///
    /// Memory comes from the reserve of the context or group. Without `extra`, what that lacks is returned;
    /// with it, the event is lost if neither has memory. Returns whether the event was queued.
    pub(super) fn queue(
        &mut self,
        context: &Context,
        group: Option<u64>,
        event: &Event,
        extra: Option<&mut Reserve>,
    ) -> Result<bool, Need> {
        let place = self.get(context);
        let Some((uid, id, reserve)) = place.and_then(|place| place.recipient(group)) else {
            return Ok(false);
        };
        let lacks = reserve.lacks(Need::of(event));
        if extra.is_none() && !lacks.is_nothing() {
            return Err(lacks);
        }
        let Some((room, param)) = reserve.draw(extra.unwrap_or(&mut Reserve::new()), event) else {
            return Ok(false);
        };
        self.append(context, room, |turn| {
            Unread::new(uid, event, param, id, turn).of_group(group)
        });
        Ok(true)
    }

    /// Takes the oldest event of all out of its queue and counts it as read. Puts what user space
    /// reads into `response`.
    pub(super) fn take(&mut self, response: &mut abi::EventResp) -> Option<Taken> {
        let Places {
            contexts,
            written,
            oldest,
            ..
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
        let (group, is_written) = (unread.group(), unread.is_written());
        let (_, node) = cursor.remove_current();
        // INVARIANT: The entry follows the first event, or is spare if there is none.
        match place.first() {
            Some(first) => {
                oldest.insert(entry.into_node(first, id));
            }
            None => place.spare = Some(entry),
        }
        place.reported = place.reported.wrapping_add(1);
        if is_written {
            place.written = place.written.saturating_sub(1);
            *written = written.saturating_sub(1);
        }
        if let Some(joined) = group.and_then(|group| place.groups.get_mut(&group)) {
            joined.reported = joined.reported.wrapping_add(1);
        }
        Some(Taken {
            owner: place.context.clone(),
            child,
            group,
            is_written,
            turn,
            node,
        })
    }
}
