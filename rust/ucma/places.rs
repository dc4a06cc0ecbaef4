// SPDX-License-Identifier: GPL-2.0

//! What a channel keeps under its lock: a place for each of its contexts, with the events that
//! nobody has read.
//!
//! Every context has a queue of its own, and the channel knows the turn of the oldest event of
//! each ([`cmproto::ucma::order`]). So readers see the events of all contexts in the order in which
//! they happened, and a context that goes or moves takes its events along without a search.

use super::{
    by_id::ById,
    context::Context,
    event::{Need, Reserve, Unread, Whole},
    place::{Entry, Leavings, Place, Recipient},
    queue::{About, Allocated, AllocatedNode, Node, Room},
};
use crate::endpoint::Event;
use cmproto::{ucma::order::Numbers, ucma_abi::EventStart};
use core::{mem, ptr};
use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
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
/// - `joined` and `written` are the sums of those of all places.
pub(super) struct Places {
    contexts: ById,
    joined: usize,
    written: usize,
    oldest: RBTree<u64, u32>,
    turns: Numbers,
}

/// What a channel knows of the membership of a context in a multicast group.
pub(super) struct Joined {
    /// What the user knows the membership by.
    pub(super) id: u32,
    /// What the user calls it.
    pub(super) uid: u64,
    /// How many of its events were read.
    reported: u32,
    pub(super) reserve: Reserve,
}

/// What a membership leaves behind in its channel.
pub(super) struct Left {
    joined: RBTreeNode<u64, Joined>,
    _events: RBTree<u64, (Unread, About)>,
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
    /// As [`Unread::start`].
    pub(super) start: EventStart,
    /// As [`Unread::whole`].
    pub(super) whole: Option<Whole>,
    pub(super) node: Node,
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

impl Places {
    /// No places.
    pub(super) fn new() -> Self {
        Places {
            contexts: ById::new(),
            joined: 0,
            written: 0,
            oldest: RBTree::new(),
            turns: Numbers::new(),
        }
    }

    /// Whether there can be another place.
    pub(super) fn has_room(&self) -> bool {
        self.count() < MAX_CONTEXTS
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
        Some(self.find(context)?.0)
    }

    /// The same with what else an event needs: `oldest` and `turns`.
    fn find(
        &mut self,
        context: &Context,
    ) -> Option<(&mut Place, &mut RBTree<u64, u32>, &mut Numbers)> {
        let place = self
            .contexts
            .get_mut(context.id())
            .filter(|place| ptr::eq(&*place.context, context))?;
        Some((place, &mut self.oldest, &mut self.turns))
    }

    /// Adds a place.
    pub(super) fn add(&mut self, context: &Context, place: RBTreeNode<u32, Place>) {
        self.contexts.insert(context.id(), place);
    }

    /// Takes the place of a context out, with its events.
    pub(super) fn remove(&mut self, context: &Context) -> Option<Leavings> {
        let (node, _) = self.detach(context)?;
        let (_, place) = node.to_key_value();
        Some(place.leavings().1)
    }

    /// How many contexts have a place.
    pub(super) fn count(&self) -> usize {
        self.contexts.count()
    }

    /// The contexts.
    pub(super) fn contexts(&self) -> impl Iterator<Item = &Arc<Context>> {
        self.contexts.places().map(|place| &place.context)
    }

    /// Takes all places out.
    pub(super) fn clear(&mut self) -> Self {
        mem::replace(self, Places::new())
    }

    /// Takes any place out: its context, and what it leaves behind. Leaves `oldest` as it is, for
    /// places that nobody reads from any more.
    pub(super) fn pop(&mut self) -> Option<(Arc<Context>, Leavings)> {
        let (_, place) = self.contexts.pop()?.to_key_value();
        Some(place.leavings())
    }

    // Moving
    // ------------------------------------------------------------------------------------------

    /// Takes the place of a context out, and its entry in `oldest`, if it has one.
    fn detach(&mut self, context: &Context) -> Option<(RBTreeNode<u32, Place>, Option<Entry>)> {
        let place = self.get(context)?;
        let (first, joined, written) = (place.queue.first_turn(), place.joined, place.written);
        let entry = first.and_then(|first| self.oldest.remove_node(&first));
        let place = self.contexts.remove(context.id())?;
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
        to.add(context, place);
        to.joined = to.joined.saturating_add(joined);
        to.written = to.written.saturating_add(written);
        to.renew(context, entry);
        true
    }

    /// Gives the events of a context new turns. `entry` is for the first of them.
    fn renew(&mut self, context: &Context, entry: Option<Entry>) {
        let id = context.id();
        let Some(place) = self.contexts.get_mut(id) else {
            return;
        };
        let first = place.queue.renew(&mut self.turns);
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
        self.get(listener)?.queue.request(from)
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
        let mut events = RBTree::new();
        while let Some(node) = self.withdraw(context, group) {
            events.insert(node);
        }
        Some(Left {
            joined,
            _events: events,
        })
    }

    /// Takes an unread event about `group` out of the queue of `context`.
    fn withdraw(&mut self, context: &Context, group: u64) -> Option<AllocatedNode> {
        let place = self.get(context)?;
        let before = place.queue.first_turn();
        let node = place.queue.withdraw(group)?;
        let first = place.queue.first_turn();
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
        room: Allocated,
        about: About,
        unread: impl FnOnce(u64) -> Unread,
    ) {
        let turn = self.turns.take();
        let Some(place) = self.get(context) else {
            return;
        };
        let (at, unread) = (place.numbers.take(), unread(turn));
        if unread.is_written() {
            self.count_written(context);
        }
        if let Some((place, oldest, _)) = self.find(context) {
            place.enter(oldest, turn);
            place.queue.fill(Room::Allocated(room), at, unread, about);
        }
    }

    /// Counts an event of `context` that a program wrote and that is about to be queued.
    fn count_written(&mut self, context: &Context) {
        if let Some(place) = self.get(context) {
            place.written = place.written.saturating_add(1);
            self.written = self.written.saturating_add(1);
        }
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
            whole,
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
        let (place, oldest, _) = self.find(&owner)?;
        if !moved {
            place.enter(oldest, turn);
            place.queue.put_back(node, whole);
            return None;
        }
        // Its turn is one of the other channel.
        let entry = match place.queue.first_turn() {
            Some(first) => oldest.remove_node(&first).map(RBTreeNode::into_reservation),
            None => place.spare.take(),
        };
        place.queue.put_back(node, whole);
        self.renew(&owner, entry);
        None
    }

    /// Queues an event of `context` or of its multicast group `group`, unless its owner wants none.
    ///
    /// Memory comes from the reserve of the context or group. Without `extra`, what that lacks is returned;
    /// with it, the event is lost if neither has memory. Returns whether the event was queued.
    pub(super) fn queue(
        &mut self,
        context: &Context,
        group: Option<u64>,
        event: &Event<'_>,
        extra: Option<&mut Reserve>,
    ) -> Result<bool, Need> {
        // An endpoint has no events of the kinds that programs write.
        let Some((place, oldest, turns)) = self.find(context) else {
            return Ok(false);
        };
        let Some(recipient) = place.recipient(group, event, extra)? else {
            return Ok(false);
        };
        let Recipient {
            uid,
            id,
            room,
            param,
        } = recipient;
        let (turn, at) = (turns.take(), place.numbers.take());
        let unread = Unread::new(uid, event, param, id, turn);
        let about = About {
            group,
            ..About::default()
        };
        place.enter(oldest, turn);
        place.queue.fill(room, at, unread, about);
        Ok(true)
    }

    /// Takes the oldest event of all out of its queue and counts it as read.
    pub(super) fn take(&mut self) -> Option<Taken> {
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
        let place = contexts.get_mut(id)?;
        let (node, (start, whole, child, group, is_written)) =
            place.queue.take_first(|unread, about| {
                let child = about.and_then(|about| about.child.clone());
                let group = about.and_then(|about| about.group);
                let whole = unread.whole().take();
                (unread.start(), whole, child, group, unread.is_written())
            })?;
        // INVARIANT: The entry follows the first event, or is spare if there is none.
        match place.queue.first_turn() {
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
            start,
            whole,
            node,
        })
    }
}
