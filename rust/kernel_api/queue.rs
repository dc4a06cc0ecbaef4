// SPDX-License-Identifier: GPL-2.0

//! What a kernel consumer has not been told yet.

use super::{cm::Message, KernelId};
use crate::{
    cma::listeners::Service,
    endpoint::KeptEvent,
    kext::{delay, error::ToKernel},
};
use cmproto::{addr::SockAddr, errno::Errno};
use core::mem;
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// Connection requests that may wait for a listener's consumer. More are dropped: their senders try
/// again.
const MAX_REQUESTS: u32 = 1024;

/// What a consumer is told.
#[allow(clippy::large_enum_variant)] // The large one is the usual one.
pub(super) enum What {
    /// For one who speaks of addresses.
    Event(KeptEvent),
    /// For one who speaks of messages.
    Message(Message),
}

/// Something to tell.
pub(super) struct Queued {
    pub(super) what: What,
    /// The identifier of a connection request.
    pub(super) child: Option<Arc<KernelId>>,
    /// What the consumer calls the multicast group that it is about; 0 if none.
    pub(super) group: usize,
}

impl Queued {
    /// Something about nothing but its identifier.
    pub(super) fn new(what: What) -> Self {
        Queued {
            what,
            child: None,
            group: 0,
        }
    }
}

/// Memory for one.
type Room = RBTreeNodeReservation<u64, Option<Queued>>;

/// Who may be told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// The consumer has not seen the identifier yet: what happens to it waits.
    Hidden,
    /// The consumer has it.
    Open,
    /// The consumer has destroyed it.
    Closed,
}

/// A multicast group.
pub(super) struct Group {
    /// What it was joined by.
    pub(super) addr: SockAddr,
    /// What the consumer calls it.
    pub(super) name: usize,
}

/// What a consumer has not been told yet, in the order in which it happened.
///
/// # Invariants
///
/// There is something in each entry of `events`.
pub(super) struct Queue {
    events: RBTree<u64, Option<Queued>>,
    /// Memory that is used first, and comes back when the consumer is told: nothing that storage depends on
    /// waits for an allocation.
    spare: [Option<Room>; 2],
    turn: u64,
    requests: u32,
    life: Life,
    /// The consumer's reference, from the moment that it may have the identifier until it destroys
    /// it.
    this: Option<Arc<KernelId>>,
    /// The service that a consumer of messages listens on.
    pub(super) service: Option<Service>,
    /// The multicast groups, by number.
    pub(super) groups: RBTree<u64, Group>,
}

impl Queue {
    /// An empty queue.
    pub(super) fn new(life: Life) -> Result<Self> {
        Ok(Queue {
            events: RBTree::new(),
            spare: [Some(Room::new(GFP_KERNEL)?), Some(Room::new(GFP_KERNEL)?)],
            turn: 0,
            requests: 0,
            life,
            this: None,
            service: None,
            groups: RBTree::new(),
        })
    }
}

/// What is left when the consumer has destroyed its identifier.
pub(super) struct Leavings {
    events: RBTree<u64, Option<Queued>>,
    this: Option<Arc<KernelId>>,
}

impl KernelId {
    /// Gives the consumer its reference.
    pub(super) fn give(self: &Arc<Self>) {
        let before = self.queue.lock().this.replace(self.clone());
        drop(before);
    }

    /// Whether the consumer may be told of a request now.
    pub(super) fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        queue.life == Life::Open && queue.requests < MAX_REQUESTS
    }

    /// Appends something, and has the consumer told.
    ///
    /// Fails with `ENOMEM`, also if too many requests wait, and with `ECONNABORTED` if the consumer
    /// has destroyed the identifier.
    pub(super) fn push(&self, queued: Queued) -> Result {
        let is_request = queued.child.is_some();
        delay::point();
        let mut queue = self.queue.lock();
        // Requests can be sent again, and leave it to what cannot.
        let kept = queue.spare.iter_mut().filter(|_| !is_request);
        let mut room = kept.into_iter().find_map(Option::take);
        if room.is_none() {
            drop(queue);
            room = Room::new(GFP_KERNEL).ok();
            delay::point();
            queue = self.queue.lock();
        }
        let refused = if queue.life == Life::Closed {
            Some(Errno::ECONNABORTED.to_kernel())
        } else {
            (is_request && queue.requests >= MAX_REQUESTS).then_some(ENOMEM)
        };
        let (Some(room), None) = (room, refused) else {
            // Without the lock, as the event may hold a child.
            drop(queue);
            drop(queued);
            return Err(refused.unwrap_or(ENOMEM));
        };
        let turn = queue.turn;
        queue.turn = turn.wrapping_add(1);
        queue.requests = queue.requests.saturating_add(u32::from(is_request));
        queue.events.insert(room.into_node(turn, Some(queued)));
        let runner = queue.this.clone().filter(|_| queue.life == Life::Open);
        drop(queue);
        if let Some(runner) = runner {
            runner.wake();
        }
        Ok(())
    }

    /// Takes the oldest out, unless the consumer must not be told.
    pub(super) fn pop(&self) -> Option<Queued> {
        let mut queue = self.queue.lock();
        if queue.life != Life::Open {
            return None;
        }
        let mut first = queue.events.cursor_front_mut()?;
        let queued = first.current_mut().1.take();
        let (_, node) = first.remove_current();
        if queued.as_ref().is_some_and(|queued| queued.child.is_some()) {
            queue.requests = queue.requests.saturating_sub(1);
        }
        let mut room = Some(node.into_reservation());
        if let Some(spare) = queue.spare.iter_mut().find(|spare| spare.is_none()) {
            *spare = room.take();
        }
        drop(queue);
        drop(room);
        queued
    }

    /// The consumer has seen the identifier: from here on it is told what happens.
    pub(super) fn reveal(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        if queue.life != Life::Hidden {
            return;
        }
        queue.life = Life::Open;
        let is_empty = queue.events.is_empty();
        drop(queue);
        if !is_empty {
            self.clone().wake();
        }
    }

    /// The consumer is told nothing any more. Returns what it has not been told.
    pub(super) fn close(&self) -> Leavings {
        let mut queue = self.queue.lock();
        queue.life = Life::Closed;
        Leavings {
            events: mem::replace(&mut queue.events, RBTree::new()),
            this: queue.this.take(),
        }
    }
}

impl Leavings {
    /// Drops what is left: the connections of requests that nobody saw are refused.
    pub(super) fn discard(self) {
        let Leavings { mut events, this } = self;
        while let Some(cursor) = events.cursor_front_mut() {
            let (_, node) = cursor.remove_current();
            let (_, queued) = node.to_key_value();
            if let Some(child) = queued.and_then(|queued| queued.child) {
                // A child listens to nothing, so that this does not go deeper.
                child.end();
            }
        }
        drop(this);
    }
}
