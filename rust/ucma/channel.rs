// SPDX-License-Identifier: GPL-2.0

//! A channel: an open file of the device, with the contexts that were made through it and the
//! events that wait for its readers.
//!
//! Every context has a queue of its own, sorted by a number that the channel gives to events, and
//! the channel knows the oldest event of each. So readers see the events of all contexts in the
//! order in which they happened, and a context that goes takes its events along without a search.
//!
//! # Lock order
//!
//! endpoint -> channel -> table shard. The lock of a channel is held for a few steps in these trees
//! and while the number of a new context is published. Nothing is allocated, no user memory is
//! touched and no method of an endpoint is called under it: endpoints deliver their events under
//! their own lock.

use super::{
    context::{Context, Unpublished},
    event::{ConnSpace, Need, Node, Queue, Reserve, Room, Unread},
    Ucma,
};
use crate::{
    endpoint::{Event, EventParam},
    kext::{
        chardev::Poll,
        error::{ResultExt, ToKernel},
        wait::{new_wait_queue, WaitQueue},
    },
};
use cmproto::{
    errno::Errno,
    ucma::backlog::Backlog,
    ucma_abi::{self as abi, FromZeros},
};
use core::{mem, ptr};
use kernel::{
    alloc::flags::{GFP_KERNEL_ACCOUNT, GFP_NOWAIT, __GFP_NOWARN},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// The most contexts that a channel may have.
const MAX_CONTEXTS: usize = 1 << 20;

/// What a connection request meets whose listener has gone meanwhile: it is refused.
fn gone() -> Error {
    Errno::ECONNABORTED.to_kernel()
}

/// An open file of the device.
#[pin_data]
pub(crate) struct Channel {
    /// What all channels share.
    pub(super) ucma: Arc<Ucma>,
    #[pin]
    inner: Mutex<Inner>,
    /// Woken when there is something to read.
    #[pin]
    readable: WaitQueue,
}

/// What the lock of a channel protects.
///
/// # Invariants
///
/// - `oldest` leads from the number of the first event in the queue of every place whose queue is
///   not empty to the number of the context, and has no other entry.
/// - `contexts` has `count` entries.
struct Inner {
    contexts: RBTree<u32, Place>,
    count: usize,
    oldest: RBTree<u64, u32>,
    /// The number of the next event.
    next: u64,
}

/// What a channel knows of a context.
///
/// # Invariants
///
/// `spare` is there if and only if `queue` is empty.
struct Place {
    context: Arc<Context>,
    /// What the user calls the context; 0 as long as it wants no events.
    uid: u64,
    /// How many events were read.
    reported: u32,
    /// The connection requests in `queue`.
    backlog: Backlog,
    queue: Queue,
    /// Memory for the entry in [`Inner::oldest`].
    spare: Option<RBTreeNodeReservation<u64, u32>>,
    reserve: Reserve,
}

/// Memory for the place of a context in its channel.
pub(super) struct PlaceRoom {
    node: RBTreeNodeReservation<u32, Place>,
    spare: RBTreeNodeReservation<u64, u32>,
}

/// An event that a reader has taken out of its queue, in order to copy it to the user.
///
/// It counts as read from here on: a page fault can hold the copy up for as long as a hostile user
/// likes, and whoever destroys the context meanwhile does not wait for that. Only if the copy then
/// fails has the destroyer been told of one event too many. It ends with [`Channel::finish`] or
/// [`Channel::put_back`].
#[must_use]
struct Taken {
    owner: Arc<Context>,
    number: u64,
    node: Node,
    is_request: bool,
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
    fn fill(self, context: Arc<Context>, uid: u64, reserve: Reserve) -> RBTreeNode<u32, Place> {
        let id = context.id();
        let place = Place {
            context,
            uid,
            reported: 0,
            backlog: Backlog::new(),
            queue: Queue::new(),
            spare: Some(self.spare),
            reserve,
        };
        self.node.into_node(id, place)
    }
}

impl Place {
    /// The number of the oldest event that nobody has read.
    fn first(&self) -> Option<u64> {
        self.queue.keys().next().copied()
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
}

impl Inner {
    fn new() -> Self {
        Inner {
            contexts: RBTree::new(),
            count: 0,
            oldest: RBTree::new(),
            next: 0,
        }
    }

    /// The place of `context`, unless it has gone.
    ///
    /// The comparison is needed because its number may be that of another one by now.
    fn place(&mut self, context: &Context) -> Option<&mut Place> {
        self.contexts
            .get_mut(&context.id())
            .filter(|place| ptr::eq(&*place.context, context))
    }

    /// Takes the number of the next event.
    fn number(&mut self) -> u64 {
        let number = self.next;
        // Does not wrap: that would take centuries.
        self.next = number.wrapping_add(1);
        number
    }

    /// Puts an event into the queue of `context`; gives it back if the context has gone.
    fn insert(&mut self, context: &Context, number: u64, node: Node) -> Option<Node> {
        let id = context.id();
        let Inner {
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
            Some(first) if number < first => {
                oldest.remove_node(&first).map(RBTreeNode::into_reservation)
            }
            Some(_) => None,
        };
        if let Some(entry) = entry {
            // INVARIANT: `number` is that of the first event in the queue from here on.
            oldest.insert(entry.into_node(number, id));
        }
        // No other event has this number, so that nothing is replaced.
        place.queue.insert(node)
    }

    /// Takes the oldest event of all out of its queue and counts it as read. Puts what user space
    /// reads into `response`.
    fn take(&mut self, response: &mut abi::EventResp) -> Option<Taken> {
        let Inner {
            contexts, oldest, ..
        } = self;
        let cursor = oldest.cursor_front_mut()?;
        let (&number, &id) = cursor.current();
        let (_, entry) = cursor.remove_current();
        let entry = entry.into_reservation();
        let place = contexts.get_mut(&id)?;
        let unread = place.queue.get(&number)?;
        unread.encode(response);
        let is_request = unread.is_request();
        let node = place.queue.remove_node(&number)?;
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
            number,
            node,
            is_request,
        })
    }
}

impl Channel {
    /// Creates the channel of a file that is being opened.
    pub(super) fn new(ucma: Arc<Ucma>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Channel {
                ucma,
                inner <- new_mutex!(Inner::new(), "rdma_ucm_channel"),
                readable <- new_wait_queue!("rdma_ucm_channel_readable"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    // Contexts
    // ------------------------------------------------------------------------------------------

    /// Whether another context may be made.
    pub(super) fn has_room(&self) -> bool {
        self.inner.lock().count < MAX_CONTEXTS
    }

    /// Gives a context its place and publishes its number.
    pub(super) fn add(&self, unpublished: Unpublished<'_>, uid: u64) {
        let Unpublished {
            context,
            number,
            room,
            reserve,
        } = unpublished;
        let node = room.fill(context.clone(), uid, reserve);
        let mut inner = self.inner.lock();
        inner.contexts.insert(node);
        inner.count = inner.count.saturating_add(1);
        number.publish(context);
    }

    /// Gives the context of a connection request its place, publishes its number and queues the
    /// request for the owner of `listener`, all at once: whoever reads the request finds the
    /// context, and nobody finds it much earlier.
    ///
    /// `memory` is for the event.
    ///
    /// # Errors
    ///
    /// `ECONNABORTED` if the listener has gone.
    pub(super) fn add_request(
        &self,
        listener: &Context,
        unpublished: Unpublished<'_>,
        event: &Event,
        mut memory: Reserve,
    ) -> Result {
        let Unpublished {
            context,
            number,
            room,
            reserve,
        } = unpublished;
        let place = room.fill(context.clone(), 0, reserve);
        let request = memory.take().ok_or(ENOMEM)?;
        let conn = memory.take_conn();

        let mut inner = self.inner.lock();
        let uid = inner.place(listener).ok_or_else(gone)?.uid;
        let order = inner.number();
        let unread = Unread::new(uid, event, conn, context.id()).with_child(context.clone());
        inner.contexts.insert(place);
        inner.count = inner.count.saturating_add(1);
        // The listener is there, so that this takes the event.
        inner.insert(listener, order, request.into_node(order, unread));
        number.publish(context);
        drop(inner);
        self.readable.wake_all();
        Ok(())
    }

    /// Takes a context out of the channel, with its events.
    ///
    /// Its endpoint must be dead and its number out of sight.
    pub(super) fn remove(&self, context: &Context) -> Option<Leavings> {
        let mut inner = self.inner.lock();
        let first = inner.place(context)?.first();
        let entry = first.and_then(|first| inner.oldest.remove_node(&first));
        let node = inner.contexts.remove_node(&context.id())?;
        inner.count = inner.count.saturating_sub(1);
        drop(inner);
        drop(entry);
        let (_, place) = node.to_key_value();
        Some(Leavings {
            reported: place.reported,
            queue: place.queue,
        })
    }

    /// Ends all contexts, when the file is closed.
    ///
    /// Waits for no peer. Unread events go with their contexts.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        let mut contexts = mem::take(&mut inner.contexts);
        let oldest = mem::take(&mut inner.oldest);
        inner.count = 0;
        drop(inner);
        drop(oldest);
        // Requests that arrive from here on find no listener.
        while let Some(cursor) = contexts.cursor_front_mut() {
            let (_, node) = cursor.remove_current();
            let (_, place) = node.to_key_value();
            Context::discard(&place.context);
        }
    }

    /// Changes what the user calls a context. From a value that is not 0 on it gets events.
    pub(super) fn set_uid(&self, context: &Context, uid: u64) {
        if let Some(place) = self.inner.lock().place(context) {
            place.uid = uid;
        }
    }

    // Backlog
    // ------------------------------------------------------------------------------------------

    /// Lets `change` see the backlog of a context.
    pub(super) fn with_backlog(&self, context: &Context, change: impl FnOnce(&mut Backlog)) {
        if let Some(place) = self.inner.lock().place(context) {
            change(&mut place.backlog);
        }
    }

    /// Whether a connection request would be admitted now, or would hear that the listener has
    /// gone.
    pub(super) fn takes_requests(&self, listener: &Context) -> bool {
        let mut inner = self.inner.lock();
        inner.count < MAX_CONTEXTS
            && inner
                .place(listener)
                .is_none_or(|place| !place.backlog.is_full())
    }

    /// Counts a connection request that is about to be queued.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if too many wait already, or if the channel has too many contexts;
    /// - `ECONNABORTED` if the listener has gone.
    pub(super) fn admit(&self, listener: &Context) -> Result {
        let mut inner = self.inner.lock();
        if inner.count >= MAX_CONTEXTS {
            return Err(ENOMEM);
        }
        let place = inner.place(listener).ok_or_else(gone)?;
        place.backlog.admit().kernel()
    }

    // Events
    // ------------------------------------------------------------------------------------------

    /// Makes sure that there is memory for the events that a context is about to have.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn prepare(&self, context: &Context, need: Need) -> Result {
        let lacks = match self.inner.lock().place(context) {
            Some(place) => place.reserve.lacks(need),
            None => return Ok(()),
        };
        if lacks.is_nothing() {
            return Ok(());
        }
        let mut fresh = Reserve::allocate(lacks, GFP_KERNEL_ACCOUNT)?;
        let mut inner = self.inner.lock();
        if let Some(place) = inner.place(context) {
            place.reserve.fill_from(&mut fresh);
        }
        Ok(())
    }

    /// Queues an event of `context`, unless its owner wants none.
    ///
    /// Called with the lock of the endpoint held. The event is lost only if the context has had
    /// more events than [`Need`] foresees, nobody has read them, and there is no memory.
    pub(super) fn queue(&self, context: &Context, event: &Event) {
        let mut extra = Reserve::new();
        let mut inner = self.inner.lock();
        let Some(place) = inner.place(context).filter(|place| place.uid != 0) else {
            return;
        };
        let lacks = place.reserve.lacks(Need::of(event));
        if !lacks.is_nothing() {
            drop(inner);
            extra = Reserve::allocate_some(lacks, GFP_NOWAIT | __GFP_NOWARN);
            inner = self.inner.lock();
        }
        let Some(place) = inner.place(context) else {
            return;
        };
        let Some((room, conn)) = place.draw(&mut extra, event) else {
            return;
        };
        let unread = Unread::new(place.uid, event, conn, context.id());
        let number = inner.number();
        inner.insert(context, number, room.into_node(number, unread));
        drop(inner);
        self.readable.wake_all();
    }

    /// Reads the oldest event; waits for one unless the caller does not want to.
    ///
    /// `copy` takes it to the user. While it runs, the event is in no queue and the lock is not
    /// held, so that no other reader gets the event and none waits for this one. If it fails, the
    /// event is unread again and still the oldest.
    ///
    /// # Errors
    ///
    /// - `EAGAIN` if there is no event and `is_nonblocking`, which is asked whenever the caller is
    ///   about to sleep, says so;
    /// - `ERESTARTSYS` if a signal came first;
    /// - those of `copy`.
    pub(super) fn read(
        &self,
        is_nonblocking: impl Fn() -> bool,
        copy: impl FnOnce(&abi::EventResp) -> Result,
    ) -> Result {
        let mut response = abi::EventResp::new_zeroed();
        let taken = self.readable.wait_interruptible(|| {
            let taken = self.inner.lock().take(&mut response);
            match taken {
                Some(taken) => Some(Ok(taken)),
                None => is_nonblocking().then_some(Err(EAGAIN)),
            }
        })??;
        match copy(&response) {
            Ok(()) => {
                self.finish(taken);
                Ok(())
            }
            Err(error) => {
                self.put_back(taken);
                Err(error)
            }
        }
    }

    /// Disposes of an event that the user has.
    fn finish(&self, taken: Taken) {
        let room = taken.node.into_reservation();
        let mut inner = self.inner.lock();
        let Some(place) = inner.place(&taken.owner) else {
            return;
        };
        if taken.is_request {
            place.backlog.release();
        }
        let surplus = place.reserve.put(room);
        drop(inner);
        drop(surplus);
    }

    /// Returns an event that could not be copied to its place.
    fn put_back(&self, taken: Taken) {
        let mut inner = self.inner.lock();
        if let Some(place) = inner.place(&taken.owner) {
            place.reported = place.reported.wrapping_sub(1);
        }
        let refused = inner.insert(&taken.owner, taken.number, taken.node);
        drop(inner);
        match refused {
            None => self.readable.wake_all(),
            // The context went meanwhile. The connection that it had asked for goes too.
            Some(node) => {
                let (_, unread) = node.to_key_value();
                if let Some(child) = unread.into_child() {
                    Context::discard(&child);
                }
            }
        }
    }

    /// Whether there is something to read; whoever polls is woken when there is.
    pub(super) fn poll(&self, poll: &Poll<'_, Self>) -> bool {
        poll.register(&self.readable);
        !self.inner.lock().oldest.is_empty()
    }
}
