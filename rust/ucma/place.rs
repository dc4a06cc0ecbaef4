// SPDX-License-Identifier: GPL-2.0

//! The entry of a context in its channel, which the channel's lock protects.

use super::{
    context::Context,
    event::{Need, ParamSpace, Reserve},
    places::Joined,
    queue::{Node, Queue, Rest, Room},
};
use crate::endpoint::Event;
use cmproto::{
    ucma::{backlog::Backlog, order::Numbers},
    ucma_abi::CmEvent,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// Memory for an entry in the tree that maps the turn of a context's oldest event to its number.
pub(super) type Entry = RBTreeNodeReservation<u64, u32>;

/// The entry of a context in its channel.
///
/// # Invariants
///
/// - `spare` is `Some` if and only if `queue` is empty.
/// - `groups` has `joined` entries.
/// - `written` of the events in `queue` were written by programs.
pub(super) struct Place {
    pub(super) context: Arc<Context>,
    /// The user's value for the context; 0 as long as the context wants no events.
    pub(super) uid: u64,
    /// The number of events that were read.
    pub(super) reported: u32,
    /// Counts the connection requests in `queue`.
    pub(super) backlog: Backlog,
    pub(super) queue: Queue,
    /// The memberships in multicast groups, by the endpoint's numbers for them.
    pub(super) groups: RBTree<u64, Joined>,
    pub(super) joined: usize,
    pub(super) written: usize,
    /// The source of the positions of events in `queue`.
    pub(super) numbers: Numbers,
    pub(super) spare: Option<Entry>,
    pub(super) reserve: Reserve,
}

/// Memory for the entry of a context in its channel.
pub(super) struct PlaceRoom {
    node: RBTreeNodeReservation<u32, Place>,
    spare: Entry,
}

/// The state of a context that was removed from its channel.
pub(super) struct Leavings {
    /// The number of events that were read.
    pub(super) reported: u32,
    /// The unread events.
    pub(super) queue: Queue,
    /// The memberships in multicast groups.
    pub(super) groups: RBTree<u64, Joined>,
}

/// The recipient of an event, with memory for the event.
pub(super) struct Recipient {
    pub(super) uid: u64,
    pub(super) id: u32,
    pub(super) room: Room,
    pub(super) param: Option<ParamSpace>,
}

impl PlaceRoom {
    /// Allocates memory for an entry.
    pub(super) fn new() -> Result<Self> {
        Ok(PlaceRoom {
            node: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            spare: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Makes the memory the entry of `context`, with the user's value `uid`.
    pub(super) fn fill(self, context: Arc<Context>, uid: u64) -> RBTreeNode<u32, Place> {
        let id = context.id();
        self.node.into_node(
            id,
            Place {
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
                reserve: Reserve::new(),
            },
        )
    }
}

impl Place {
    /// Returns the part of `need` for which there is no memory.
    pub(super) fn lacks(&self, need: Need) -> Need {
        self.reserve.lacks(need.beyond(self.queue.free()))
    }

    /// Returns the recipient of an event, with memory for the event: the context, or `group` if the
    /// context is still a member. Returns `None` if the owner of the context wants no events.
    ///
    /// Without `extra`, a lack of memory is an error, which says how much is missing. With `extra`,
    /// memory comes from there, too, and `None` is returned if neither has memory for the event.
    pub(super) fn recipient(
        &mut self,
        group: Option<u64>,
        event: &Event<'_>,
        extra: Option<&mut Reserve>,
    ) -> Result<Option<Recipient>, Need> {
        if self.uid == 0 {
            return Ok(None);
        }
        let (uid, id, reserve, own) = match group {
            None => (
                self.uid,
                self.context.id(),
                &mut self.reserve,
                self.queue.draw(),
            ),
            Some(group) => match self.groups.get_mut(&group) {
                Some(joined) => (joined.uid, joined.id, &mut joined.reserve, None),
                None => return Ok(None),
            },
        };
        let lacks = reserve.lacks(Need::of(event).beyond(usize::from(own.is_some())));
        if extra.is_none() && !lacks.is_nothing() {
            if own.is_some() {
                self.queue.undraw();
            }
            return Err(lacks);
        }
        let mut none = Reserve::new();
        let extra = extra.unwrap_or(&mut none);
        let allocated = || reserve.take().or_else(|| extra.take()).map(Room::Allocated);
        let Some(room) = own.or_else(allocated) else {
            return Ok(None);
        };
        let param = match event.param.is_some() {
            true => reserve.take_param().or_else(|| extra.take_param()),
            false => None,
        };
        if event.kind == CmEvent::Established {
            // No event after this one has parameters.
            drop(reserve.take_param());
        }
        Ok(Some(Recipient {
            uid,
            id,
            room,
            param,
        }))
    }

    /// Disposes of an event that was read, and keeps its memory for later events if it is needed.
    /// The caller drops the returned value without a lock.
    pub(super) fn finish(&mut self, node: Node) -> Option<Rest> {
        match self.queue.finish(node) {
            Rest::Allocated(room) => self.reserve.put(room).map(Rest::Allocated),
            own => Some(own),
        }
    }

    /// Enters the context into the channel's `oldest` for an event with position `turn`, which is
    /// put into the queue next.
    pub(super) fn enter(&mut self, oldest: &mut RBTree<u64, u32>, turn: u64) {
        let entry = match self.queue.first_turn() {
            None => self.spare.take(),
            Some(first) if turn < first => {
                oldest.remove_node(&first).map(RBTreeNode::into_reservation)
            }
            Some(_) => None,
        };
        if let Some(entry) = entry {
            // INVARIANT: From here on `turn` is that of the first event in the queue.
            oldest.insert(entry.into_node(turn, self.context.id()));
        }
    }

    /// Takes the entry apart, into its context and the state that is to be cleared.
    pub(super) fn leavings(self) -> (Arc<Context>, Leavings) {
        let leavings = Leavings {
            reported: self.reported,
            queue: self.queue,
            groups: self.groups,
        };
        (self.context, leavings)
    }
}
