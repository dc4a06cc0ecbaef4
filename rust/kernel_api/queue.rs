// SPDX-License-Identifier: GPL-2.0

//! The queue of events that a kernel consumer has not been told of yet.

use super::KernelId;
use crate::{
    endpoint::{EndpointRef, OwnedEvent, ServiceConsumer},
    kext::delay,
    table::listeners::ServiceShare,
};
use cmproto::{addr::SockAddr, ibcm::EventType, node::Declined, wire::MAD_LEN};
use core::mem;
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// The maximum number of connection requests in the queue of a listener.
///
/// Further requests are dropped, and their senders try again.
const MAX_REQUESTS: u32 = 1024;

/// An event for a consumer of the IB CM.
#[derive(Clone)]
pub(crate) struct Message {
    /// The type of the event.
    pub(crate) event: EventType,
    /// The message that was received, if the event is about one.
    pub(crate) mad: Option<Arc<[u8; MAD_LEN]>>,
}

/// An event for one of the two APIs.
#[allow(clippy::large_enum_variant)] // The large variant is the frequent one.
pub(super) enum Notification {
    /// An event of the RDMA CM.
    Event(OwnedEvent),
    /// An event of the IB CM.
    Message(Message),
}

/// An entry of the queue.
pub(super) struct Queued {
    pub(super) notification: Notification,
    /// The new identifier, if the event is a connection request.
    pub(super) child: Option<Arc<KernelId>>,
    /// The context of the multicast group that the event is about; 0 if there is none.
    pub(super) group: usize,
}

impl Queued {
    /// Creates an entry for an event that is about nothing but its identifier.
    pub(super) fn new(notification: Notification) -> Self {
        Queued {
            notification,
            child: None,
            group: 0,
        }
    }
}

/// The memory of an entry.
type QueuedReservation = RBTreeNodeReservation<u64, Option<Queued>>;

/// The state of an identifier, as the consumer sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IdState {
    /// The consumer does not know the identifier yet; its events are kept.
    Hidden,
    /// The consumer uses the identifier.
    Open,
    /// The consumer has destroyed the identifier.
    Closed,
}

/// A multicast group that was joined.
pub(super) struct Group {
    /// The address with which the group was joined.
    pub(super) addr: SockAddr,
    /// The context that the consumer has given to the group.
    pub(super) name: usize,
}

/// The events that a consumer has not been told of yet, in the order in which they happened.
///
/// # Invariants
///
/// Each entry of `events` is `Some`. There is none if `state` is [`IdState::Closed`].
pub(super) struct Queue {
    events: RBTree<u64, Option<Queued>>,
    /// Memory that is used first, and returns after the consumer was told, so that storage drivers
    /// do not depend on an allocation.
    spare: [Option<QueuedReservation>; 2],
    /// The sequence number of the next event.
    seq: u64,
    requests: u32,
    state: IdState,
    /// The consumer's reference, from the moment that it may know the identifier until it destroys
    /// the identifier.
    this: Option<Arc<KernelId>>,
    /// The service id on which a consumer of the IB CM listens.
    pub(super) service: Option<ServiceShare<EndpointRef, ServiceConsumer>>,
    /// The multicast groups, by their numbers.
    pub(super) groups: RBTree<u64, Group>,
}

impl Queue {
    /// Creates an empty queue. Fails with [`ENOMEM`].
    pub(super) fn new(state: IdState) -> Result<Self> {
        Ok(Queue {
            events: RBTree::new(),
            spare: [
                Some(QueuedReservation::new(GFP_KERNEL)?),
                Some(QueuedReservation::new(GFP_KERNEL)?),
            ],
            seq: 0,
            requests: 0,
            state,
            this: None,
            service: None,
            groups: RBTree::new(),
        })
    }
}

/// The events and the reference that are left when the consumer destroys its identifier.
pub(super) struct Removed {
    events: RBTree<u64, Option<Queued>>,
    this: Option<Arc<KernelId>>,
}

impl KernelId {
    /// Stores the consumer's reference.
    pub(super) fn set_owner(self: &Arc<Self>) {
        let before = self.queue.lock().this.replace(self.clone());
        drop(before);
    }

    /// Returns whether a connection request can be queued.
    pub(super) fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        queue.state == IdState::Open && queue.requests < MAX_REQUESTS
    }

    /// Appends an event, and wakes the work item that tells the consumer.
    ///
    /// There is no room if there is no memory, or if too many requests wait. A consumer that has
    /// destroyed the identifier has gone, and gets none.
    pub(super) fn push(&self, queued: Queued) -> Result<(), Declined> {
        let is_request = queued.child.is_some();
        delay::point();
        let mut queue = self.queue.lock();
        // The spare memory is not for requests, because their senders repeat them.
        let spare = queue.spare.iter_mut().filter(|_| !is_request);
        let mut reservation = spare.into_iter().find_map(Option::take);
        if reservation.is_none() {
            drop(queue);
            reservation = QueuedReservation::new(GFP_KERNEL).ok();
            delay::point();
            queue = self.queue.lock();
        }
        let refused = if queue.state == IdState::Closed {
            Some(Declined::Gone)
        } else {
            (is_request && queue.requests >= MAX_REQUESTS).then_some(Declined::NoRoom)
        };
        let (Some(reservation), None) = (reservation, refused) else {
            // Drop the event without the lock, as it may hold a child.
            drop(queue);
            drop(queued);
            return Err(refused.unwrap_or(Declined::NoRoom));
        };
        let seq = queue.seq;
        queue.seq = seq.wrapping_add(1);
        queue.requests = queue.requests.saturating_add(u32::from(is_request));
        if is_request {
            self.endpoint
                .vacancy
                .set_full(queue.requests >= MAX_REQUESTS);
        }
        queue
            .events
            .insert(reservation.into_node(seq, Some(queued)));
        let runner = queue.this.clone().filter(|_| queue.state == IdState::Open);
        drop(queue);
        if let Some(runner) = runner {
            runner.wake();
        }
        Ok(())
    }

    /// Puts a message in the place of one of the same kind that the consumer has not been told of.
    /// Returns false if there is none.
    pub(super) fn replace(&self, message: &Message) -> bool {
        let mut queue = self.queue.lock();
        let mut waiting = queue.events.values_mut().flatten();
        let last = waiting.find_map(|queued| match &mut queued.notification {
            Notification::Message(last) if last.event == message.event => Some(last),
            _ => None,
        });
        last.map(|last| *last = message.clone()).is_some()
    }

    /// Removes the oldest event and returns it.
    ///
    /// This is called for the work item, which is not enqueued for a hidden identifier. A closed
    /// queue is empty.
    pub(super) fn pop(&self) -> Option<Queued> {
        let mut queue = self.queue.lock();
        let mut first = queue.events.cursor_front_mut()?;
        let queued = first.current_mut().1.take();
        let (_, node) = first.remove_current();
        if queued.as_ref().is_some_and(|queued| queued.child.is_some()) {
            queue.requests = queue.requests.saturating_sub(1);
            self.endpoint
                .vacancy
                .set_full(queue.requests >= MAX_REQUESTS);
        }
        let mut reservation = Some(node.into_reservation());
        if let Some(spare) = queue.spare.iter_mut().find(|spare| spare.is_none()) {
            *spare = reservation.take();
        }
        drop(queue);
        drop(reservation);
        queued
    }

    /// Lets the consumer be told of events, after it has accepted the identifier.
    pub(super) fn reveal(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        if queue.state != IdState::Hidden {
            return;
        }
        queue.state = IdState::Open;
        let is_empty = queue.events.is_empty();
        drop(queue);
        if !is_empty {
            self.clone().wake();
        }
    }

    /// Closes the queue, so that the consumer is not told of events any more. Returns the rest.
    pub(super) fn close(&self) -> Removed {
        let mut queue = self.queue.lock();
        queue.state = IdState::Closed;
        Removed {
            events: mem::replace(&mut queue.events, RBTree::new()),
            this: queue.this.take(),
        }
    }
}

impl Removed {
    /// Drops the events, and rejects connection requests that the consumer was not told of, unless
    /// another listener takes them.
    pub(super) fn discard(self) {
        let Removed { mut events, this } = self;
        while let Some(cursor) = events.cursor_front_mut() {
            let (_, node) = cursor.remove_current();
            let (_, queued) = node.to_key_value();
            let Some(queued) = queued else {
                continue;
            };
            if let Some(child) = queued.child {
                // A child is no listener, so that this does not recurse further.
                child.end_request(&queued.notification);
            }
        }
        drop(this);
    }
}
