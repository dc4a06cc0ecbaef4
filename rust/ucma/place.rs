// SPDX-License-Identifier: GPL-2.0

//! The place of a context in its channel, under whose lock it is.

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

/// Memory for an entry of what leads from the turn of a context's oldest event to its number.
pub(super) type Entry = RBTreeNodeReservation<u64, u32>;

/// What a channel knows of a context.
///
/// # Invariants
///
/// - `spare` is there if and only if `queue` is empty.
/// - `groups` has `joined` entries.
/// - `written` of the events in `queue` were written by programs.
pub(super) struct Place {
    pub(super) context: Arc<Context>,
    /// What the user calls the context; 0 as long as it wants no events.
    pub(super) uid: u64,
    /// How many events were read.
    pub(super) reported: u32,
    /// The connection requests in `queue`.
    pub(super) backlog: Backlog,
    pub(super) queue: Queue,
    /// The multicast groups that the context is a member of, by the numbers of the endpoint.
    pub(super) groups: RBTree<u64, Joined>,
    pub(super) joined: usize,
    pub(super) written: usize,
    /// Places of events in `queue`.
    pub(super) numbers: Numbers,
    pub(super) spare: Option<Entry>,
    pub(super) reserve: Reserve,
}

/// Memory for the place of a context in its channel.
pub(super) struct PlaceRoom {
    node: RBTreeNodeReservation<u32, Place>,
    spare: Entry,
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

/// Who an event is for, and memory for it.
pub(super) struct Recipient {
    pub(super) uid: u64,
    pub(super) id: u32,
    pub(super) room: Room,
    pub(super) param: Option<ParamSpace>,
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
    /// What of `need` there is no memory for.
    pub(super) fn lacks(&self, need: Need) -> Need {
        self.reserve.lacks(need.beyond(self.queue.free()))
    }

    /// Who an event is for, by uid and number, and memory for it: the context, or one of its groups
    /// unless that was left. Nobody if the owner of the context wants no events.
    ///
    /// Without `extra`, what there is no memory for is returned; with it, nobody if neither has memory.
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
            // Nothing that comes after it has parameters.
            drop(reserve.take_param());
        }
        Ok(Some(Recipient {
            uid,
            id,
            room,
            param,
        }))
    }

    /// Ends an event that was read, and keeps its memory if that is needed. What is returned is to be
    /// dropped without a lock.
    pub(super) fn finish(&mut self, node: Node) -> Option<Rest> {
        match self.queue.finish(node) {
            Rest::Allocated(room) => self.reserve.put(room).map(Rest::Allocated),
            own => Some(own),
        }
    }

    /// Enters the place into `oldest`, that of the channel, for an event of this turn that is put into
    /// the queue next.
    pub(super) fn enter(&mut self, oldest: &mut RBTree<u64, u32>, turn: u64) {
        let entry = match self.queue.first_turn() {
            None => self.spare.take(),
            Some(first) if turn < first => {
                oldest.remove_node(&first).map(RBTreeNode::into_reservation)
            }
            Some(_) => None,
        };
        if let Some(entry) = entry {
            // INVARIANT: `turn` is that of the first event in the queue from here on.
            oldest.insert(entry.into_node(turn, self.context.id()));
        }
    }

    /// Ends the place.
    pub(super) fn leavings(self) -> (Arc<Context>, Leavings) {
        let leavings = Leavings {
            reported: self.reported,
            queue: self.queue,
            groups: self.groups,
        };
        (self.context, leavings)
    }
}
