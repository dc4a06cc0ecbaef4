// SPDX-License-Identifier: GPL-2.0

//! A channel: an open file of the device, with the contexts that were created through it or moved
//! to it, and the events that wait for its readers.
//!
//! # Lock order
//!
//! endpoint -> channel -> table shard -> context. The lock of a channel is held for a few
//! operations on the trees of [`ChannelContexts`], and while the number of a new context is
//! published. Under it, nothing is allocated, no user memory is touched and no method of an
//! endpoint is called: endpoints deliver their events under their own lock.
//!
//! A context changes its channel under the locks of both channels; the lock with the lower address
//! is taken first. No other code takes the locks of two channels. So a task that has locked the
//! channel that a context names, and finds that the context still names it, knows that the context
//! stays there until the lock is released ([`Channel::of`]).

use super::{
    context::{Context, Unpublished},
    entries::{
        request_child, ChannelContexts, ChannelEntry, EventMemory, EventReservation, EventSubject,
        ExpectedEvents, ListenerEntry, MembershipEntry, MissingMemory, MoreSlots, ParamReservation,
        RemovedEntry, TakenEvent, Unread,
    },
    globals::Ucma,
    multicast::{Multicast, UnpublishedGroup},
};
use crate::{
    endpoint::Event,
    kext::{
        chardev::Poll,
        delay,
        error::to_protocol,
        lock::lock_both,
        net::Net,
        slab::Wait,
        users::{Charge, IdCharge, OpenUser},
        wait::{new_wait_queue, WaitQueue},
    },
};
use cmproto::{
    node::{Admission, Asker, Declined},
    ucma::{account::Resource, backlog::Backlog},
    ucma_abi::{EventResp, EventStart},
};
use core::ptr;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// An open file of the device.
#[pin_data]
pub(crate) struct Channel {
    /// The state that all channels share.
    pub(super) ucma: Arc<Ucma>,
    /// The user who has opened the file, and pays for all objects that are made through it.
    pub(super) user: OpenUser,
    #[pin]
    contexts: Mutex<ChannelContexts<Context>>,
    /// Readers and pollers; woken when an event can be read.
    #[pin]
    readable: WaitQueue,
}

impl Channel {
    /// Creates the channel of a file that `user` opens.
    pub(super) fn new(ucma: Arc<Ucma>, user: OpenUser) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Channel {
                ucma,
                user,
                contexts <- new_mutex!(ChannelContexts::new(), "rdma_ucm_channel"),
                readable <- new_wait_queue!("rdma_ucm_channel_readable"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Locks the channel that `context` belongs to and calls `run` on it. Returns that channel,
    /// too.
    fn of<R>(
        context: &Context,
        run: impl FnOnce(&Arc<Channel>, &mut ChannelContexts<Context>) -> R,
    ) -> (Arc<Channel>, R) {
        loop {
            let channel = context.channel();
            delay::point();
            let mut contexts = channel.contexts.lock();
            if context.is_in(&channel) {
                let value = run(&channel, &mut contexts);
                drop(contexts);
                return (channel, value);
            }
        }
    }

    /// Changes the entry of a context in its channel, if there is one.
    fn with_entry(context: &Context, change: impl FnOnce(&mut ChannelEntry<Context>)) {
        Self::of(context, |_, contexts| contexts.get(context).map(change));
    }

    // Contexts
    // ------------------------------------------------------------------------------------------

    /// Looks up the context `id` of the channel.
    ///
    /// # Errors
    ///
    /// - `ENOENT` if the channel has no such context;
    /// - `ENXIO` if its device was removed.
    pub(super) fn context(&self, id: u32) -> Result<Arc<Context>> {
        let context = self.ucma.contexts.get(id).ok_or(ENOENT)?;
        context.check(self)?;
        Ok(context)
    }

    /// Returns whether the channel may have another context.
    pub(super) fn has_room(&self) -> bool {
        self.contexts.lock().has_room()
    }

    /// Adds the entry of a context and publishes the context's number.
    pub(super) fn add(&self, unpublished: Unpublished<'_>, uid: u64) {
        let Unpublished {
            context,
            number,
            place,
        } = unpublished;
        let mut contexts = self.contexts.lock();
        contexts.add(place, uid);
        number.publish(context);
    }

    /// Counts a connection request in the backlog of `listener`, queues it for the owner, adds the
    /// entry of its context and publishes the context's number, in one step: a reader of the
    /// request finds the context, and no command finds the context much earlier.
    ///
    /// `events` has memory for the event. There is no room if the channel has too many contexts,
    /// and a listener that has gone takes no request. Returns the context of the request that
    /// gives way to this one, too, if one does.
    pub(super) fn add_request(
        listener: &Context,
        unpublished: Unpublished<'_>,
        event: &Event<'_>,
        mut events: EventReservation<Context>,
        asker: Option<Asker>,
    ) -> Result<(Admission, Option<Arc<Context>>), Declined> {
        let Unpublished {
            context,
            number,
            place,
        } = unpublished;
        let request = EventMemory::Node(events.take().ok_or(Declined::NoRoom)?);
        let param = events.take_param();

        let (channel, admitted) = Self::of(listener, |channel, contexts| {
            if !contexts.has_room() {
                return Err(Declined::NoRoom);
            }
            let mut found = contexts.find(listener).ok_or(Declined::Gone)?;
            let (admission, replaced) = found.admit(asker)?;
            listener.endpoint().vacancy.set_full(found.entry.is_full());
            let uid = found.entry.uid;
            let parked = asker.filter(|_| admission != Admission::Queued);
            let subject = EventSubject {
                uid,
                id: context.id(),
                child: Some(context.clone()),
                parked: parked.map(|asker| asker.priority),
                ..EventSubject::default()
            };
            found.append(request, subject, |seq| {
                Unread::new(uid, event, param, context.id(), seq)
            });
            context.set_channel(channel);
            contexts.add(place, 0);
            number.publish(context);
            Ok((admission, replaced))
        });
        let (admission, replaced) = admitted?;
        channel.readable.wake_all();
        Ok((admission, replaced.and_then(request_child)))
    }

    /// Removes a context from its channel, with its events.
    ///
    /// The endpoint of the context must be dead, and the number no longer published.
    pub(super) fn remove(context: &Context) -> Option<RemovedEntry<Context>> {
        Self::of(context, |_, contexts| contexts.remove(context)).1
    }

    /// Takes the entries of all contexts out, when the file is closed. Requests that arrive from
    /// now on find no listener.
    pub(super) fn close(&self) -> ChannelContexts<Context> {
        self.contexts.lock().clear()
    }

    /// Moves a context from one channel to another, with its unread events and the contexts that
    /// its unread connection requests announce. Returns the number of its events that were read.
    ///
    /// # Errors
    ///
    /// - `ENOENT` if the context is being destroyed, or has left `from`;
    /// - `ENOMEM` if there are too many contexts in `to`.
    pub(super) fn migrate(context: &Context, from: &Arc<Self>, to: &Arc<Self>) -> Result<u32> {
        if ptr::eq(&**from, &**to) {
            let mut contexts = from.contexts.lock();
            return Self::departing(context, to, &mut contexts);
        }
        let (mut source, mut target) = lock_both(&from.contexts, &to.contexts);
        if !target.has_room() {
            return Err(ENOMEM);
        }
        let reported = Self::departing(context, to, &mut source)?;
        let mut next = Some(0);
        while let Some((at, child)) = next.and_then(|at| source.announced(context, at)) {
            // A child that was moved by a MIGRATE_ID of its own is no longer in `from`.
            if child.is_in(from) {
                source.hand_over(&child, &mut target);
                child.set_channel(to);
            }
            next = at.checked_add(1);
        }
        source.hand_over(context, &mut target);
        context.set_channel(to);
        drop(target);
        drop(source);
        to.readable.wake_all();
        Ok(reported)
    }

    /// Lets a context enter the channel `to`, if it has an entry in `contexts`. Returns the number
    /// of its events that were read.
    fn departing(
        context: &Context,
        to: &Channel,
        contexts: &mut ChannelContexts<Context>,
    ) -> Result<u32> {
        let reported = contexts.get(context).ok_or(ENOENT)?.reported;
        context.enter(to)?;
        Ok(reported)
    }

    /// Sets the user's value for a context. The context gets events as soon as the value is not 0.
    pub(super) fn set_uid(context: &Context, uid: u64) {
        Self::with_entry(context, |entry| entry.uid = uid);
    }

    // Multicast groups
    // ------------------------------------------------------------------------------------------

    /// Returns whether another multicast group may be joined.
    pub(super) fn has_room_for_group(&self) -> bool {
        self.contexts.lock().has_room_for_group()
    }

    /// Adds the entry of a membership of `context`, with the user's value `uid`, and publishes its
    /// number.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if the channel has too many memberships;
    /// - `ENOENT` if the context has gone.
    pub(super) fn add_group(
        context: &Context,
        unpublished: UnpublishedGroup<'_>,
        uid: u64,
    ) -> Result {
        let UnpublishedGroup {
            multicast,
            number,
            reservation,
            events,
        } = unpublished;
        let joined = MembershipEntry::new(number.id(), uid, events);
        let node = reservation.into_node(multicast.group(), joined);
        Self::of(context, |_, contexts| {
            contexts.join(context, node)?;
            number.publish(multicast);
            Ok(())
        })
        .1
    }

    /// Removes a membership from the channel, with its events. Returns the number of them that were
    /// read.
    ///
    /// The number of the membership must not be published any more.
    pub(super) fn remove_group(multicast: &Multicast) -> u32 {
        let context = multicast.context();
        // The events are dropped when the lock has been released.
        let (_, left) = Self::of(context, |_, contexts| {
            contexts.leave(context, multicast.group())
        });
        left.map_or(0, |left| left.reported())
    }

    // Backlog
    // ------------------------------------------------------------------------------------------

    /// Proposes the limit of the backlog of a context that is about to listen. Fails with `ENOMEM`.
    pub(super) fn propose_backlog(context: &Context, limit: u32) -> Result {
        // Memory that is not needed is freed when the lock has been released.
        let mut memory = Some(KBox::new(ListenerEntry::default(), GFP_KERNEL_ACCOUNT)?);
        Self::with_entry(context, |entry| {
            if entry.listener.is_none() {
                entry.listener = memory.take();
            }
            if let Some(listener) = &mut entry.listener {
                listener.backlog.propose(limit);
            }
        });
        Ok(())
    }

    /// Notes that a context listens, with the limit `limit` of its backlog.
    pub(super) fn set_listener(context: &Context, limit: u32, charge: Charge) {
        Self::with_entry(context, |entry| {
            if let Some(listener) = &mut entry.listener {
                listener.backlog.set(limit);
                listener.charge = Some(charge);
            }
        });
    }

    /// Checks whether a connection request would be admitted now, and charges it to the user of the
    /// listener's file. A listener that has gone counts as admitting, so that the request gets
    /// as far as [`add_request`](Self::add_request), which refuses it.
    pub(super) fn takes_requests(
        listener: &Context,
        asker: Option<Asker>,
    ) -> Result<(Admission, Option<IdCharge>), Declined> {
        let (channel, room) = Self::of(listener, |_, contexts| {
            if !contexts.has_room() {
                return Err(Declined::NoRoom);
            }
            match contexts.get(listener) {
                Some(entry) => entry.next_admission(asker).inspect_err(|_| entry.refuse()),
                None => Ok(Admission::Queued),
            }
        });
        let admission = room?;
        let charge = IdCharge::new(channel.user.as_ref(), true)
            .inspect_err(|_| channel.tell_limit(&listener.endpoint().net, Resource::Requests));
        Ok((admission, Some(charge.map_err(to_protocol)?)))
    }

    /// Tells administrators that the user of the file has as much of a resource as it may have.
    /// `net` is the network namespace of the identifier that is made, or that has asked.
    #[cold]
    pub(super) fn tell_limit(&self, net: &Net, resource: Resource) {
        self.ucma.globals.events.limit(net, &self.user, resource);
    }

    /// Returns a copy of the backlog of a context.
    pub(super) fn backlog(context: &Context) -> Option<Backlog> {
        Self::of(context, |_, contexts| {
            let listener = contexts.get(context)?.listener.as_ref();
            Some(listener.map_or_else(Backlog::new, |listener| listener.backlog.clone()))
        })
        .1
    }

    // Events
    // ------------------------------------------------------------------------------------------

    /// Reserves memory for the events that a command on `context` is about to cause. The context
    /// has just been seen in this channel.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is not enough memory.
    pub(super) fn reserve_events(&self, context: &Context, expected: ExpectedEvents) -> Result {
        // A context that has moved meanwhile has its entry in another channel.
        let missing = match self.contexts.lock().get(context) {
            Some(entry) => entry.missing(expected),
            None => MissingMemory::for_all(expected),
        };
        let slabs = &self.ucma.slabs;
        if missing.slots {
            let mut more = Some(MoreSlots::new(&slabs.slots)?);
            delay::point();
            Self::with_entry(context, |entry| {
                more = more.take().and_then(|more| entry.add_slots(more));
            });
        }
        if !missing.events.is_none() {
            let mut fresh = EventReservation::allocate(missing.events, &slabs.params, Wait::May)?;
            delay::point();
            Self::with_entry(context, |entry| entry.reservation.fill_from(&mut fresh));
        }
        Ok(())
    }

    /// Queues an event of `context`, or of one of its multicast groups, unless its owner wants no
    /// events.
    ///
    /// Called with the lock of the endpoint held. The event is lost only if the context has had
    /// more events than [`ExpectedEvents`] foresees, none of them was read, and there is no memory.
    pub(super) fn queue(context: &Context, group: Option<u64>, event: &Event<'_>) {
        let (mut channel, mut queued) = Self::of(context, |_, contexts| {
            contexts.queue(context, group, event, None)
        });
        if let Err(missing) = queued {
            delay::point();
            let params = &channel.ucma.slabs.params;
            let mut extra = EventReservation::allocate_some(missing, params, Wait::MustNot);
            (channel, queued) = Self::of(context, |_, contexts| {
                contexts.queue(context, group, event, Some(&mut extra))
            });
        }
        if let Ok(true) = queued {
            channel.readable.wake_all();
        }
    }

    /// Queues an event that a program writes for `context`. `charge` is held until it is read.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the context's owner wants no events, or if the context has gone;
    /// - `EAGAIN` if too many such events of the channel are unread;
    /// - `ENOMEM` if `reservation` is empty.
    pub(super) fn write(
        context: &Context,
        event: &Event<'_>,
        mut reservation: EventReservation<Context>,
        charge: Charge,
    ) -> Result {
        let memory = EventMemory::Node(reservation.take().ok_or(ENOMEM)?);
        let param = reservation.take_param();
        let (channel, written) = Self::of(context, |_, contexts| {
            let has_room = contexts.has_room_to_write();
            let found = contexts.find(context).ok_or(EINVAL)?;
            let uid = found.entry.uid;
            if uid == 0 {
                return Err(EINVAL);
            }
            if !has_room {
                return Err(EAGAIN);
            }
            let subject = EventSubject {
                uid,
                id: context.id(),
                _written: Some(charge),
                ..EventSubject::default()
            };
            found.append(memory, subject, |seq| {
                Unread::new(uid, event, param, context.id(), seq)
            });
            Ok(())
        });
        if written.is_ok() {
            channel.readable.wake_all();
        }
        written
    }

    /// Reads the oldest event. Waits for one unless the caller does not want to.
    ///
    /// `copy` copies the event to the user: its start, or all of it if it has parameters. While
    /// `copy` runs, the event is in no queue and the lock is not held: no other reader gets the
    /// event, and no reader waits for this one. If `copy` fails, the event becomes unread again and
    /// is the oldest one of its context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN` if there is no event and `is_nonblocking` returns true; it is called each time
    ///   before the caller would sleep;
    /// - `ERESTARTSYS` if a signal came first;
    /// - the errors of `copy`.
    pub(super) fn read(
        &self,
        is_nonblocking: impl Fn() -> bool,
        copy: impl FnOnce(&EventStart, Option<&EventResp>) -> Result,
    ) -> Result {
        let mut taken = None;
        self.readable.wait_interruptible(|| {
            taken = self.contexts.lock().take();
            taken.is_some() || is_nonblocking()
        })?;
        let taken = taken.ok_or(EAGAIN)?;
        delay::point();
        match copy(&taken.start, taken.resp.as_deref()) {
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

    /// Disposes of an event of this channel that was copied to the user. The memory of a request's
    /// parameters is kept for those of the answer to it.
    fn finish(&self, taken: TakenEvent<Context>) {
        let mut node = Some(taken.node);
        // Dropped when the lock has been released.
        let mut removed = None;
        let (owner, child) = (&taken.owner, taken.child.as_ref());
        let resp = taken.resp.filter(|_| child.is_some());
        let mut param = resp.map(ParamReservation::of_read);
        let mut dispose = |contexts: &mut ChannelContexts<Context>| {
            let entry = contexts.get(owner)?;
            if child.is_some() {
                if let Some(listener) = &mut entry.listener {
                    listener.backlog.release();
                }
                owner.endpoint().vacancy.set_full(entry.is_full());
            }
            removed = node.take().and_then(|node| entry.finish(node));
            if let Some(child) = child.and_then(|child| contexts.get(child)) {
                let kept = &mut child.reservation;
                param = param.take().and_then(|param| kept.put_param(param));
            }
            Some(())
        };
        let disposed = dispose(&mut self.contexts.lock());
        if disposed.is_none() {
            // The context of the event has moved to another channel meanwhile, or has gone.
            Self::of(owner, |_, contexts| dispose(contexts));
        }
    }

    /// Puts an event of this channel that could not be copied back into its queue.
    ///
    /// If the context of the event has moved meanwhile, the event moves to the new channel, and the
    /// context that it announces does, too.
    fn put_back(&self, taken: TakenEvent<Context>) {
        let owner = taken.owner.clone();
        let (home, refused) = loop {
            let home = owner.channel();
            delay::point();
            if ptr::eq(&*home, self) {
                let mut contexts = self.contexts.lock();
                if owner.is_in(self) {
                    let refused = contexts.put_back(taken);
                    drop(contexts);
                    break (home, refused);
                }
            } else {
                let (mut here, mut there) = lock_both(&self.contexts, &home.contexts);
                if owner.is_in(&home) {
                    if let Some(child) = taken.child.as_ref().filter(|child| child.is_in(self)) {
                        here.hand_over(child, &mut there);
                        child.set_channel(&home);
                    }
                    let refused = there.put_back(taken);
                    drop(there);
                    drop(here);
                    break (home, refused);
                }
            }
        };
        match refused {
            None => home.readable.wake_all(),
            // The context has gone meanwhile; the connection that its event announced goes, too.
            Some(node) => {
                if let Some(child) = node.into_child() {
                    child.discard();
                }
            }
        }
    }

    /// Returns whether an event can be read. A poller is woken when one can.
    pub(super) fn poll(&self, poll: &Poll<'_, Self>) -> bool {
        poll.register(&self.readable);
        self.contexts.lock().is_readable()
    }
}
