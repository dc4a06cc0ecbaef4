// SPDX-License-Identifier: GPL-2.0

//! A context: what user space knows by a number, between a channel and an endpoint.
//!
//! Numbers are those of one table for all channels: the lowest that is free, because librdmacm uses
//! them as indices. A number can be looked up from the moment its context is complete until
//! somebody begins to destroy it, and is given to nobody else until that is done.

use super::{
    call::Call,
    channel::Channel,
    event::{Need, Reserve},
    multicast::Multicast,
    place::{Leavings, PlaceRoom},
    Ucma,
};
use crate::{
    endpoint::{Consumer, Endpoint, EndpointRef, Event, Inner},
    ib::dev_addr::DevAddr,
    kext::{delay, idtable::Reserved, net::Net},
};
use cmproto::{
    service_id::PortSpace,
    ucma::backlog::Admission,
    ucma_abi::{self as abi, CmEvent},
};
use core::{mem, ptr};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, SpinLock,
    },
};

/// Reliable connections (`IB_QPT_RC`).
const QP_TYPE_RC: u8 = 2;
/// Unreliable datagrams (`IB_QPT_UD`).
const QP_TYPE_UD: u8 = 4;

/// What user space knows by a number.
///
/// What changes with its events (its uid, how many were read, its backlog) is in its channel,
/// under the channel's lock.
#[pin_data]
pub(super) struct Context {
    id: u32,
    /// The channel that has it. Changes only under the lock of that channel and that of the new one
    /// ([`Channel::of`]); the lock here is held for no more than a copy.
    #[pin]
    channel: SpinLock<Arc<Channel>>,
    /// The address of that channel, to be compared. Changes under the lock of `channel`.
    home: Atomic<usize>,
    endpoint: EndpointRef,
    /// Whether the endpoint has died with its device.
    removed: Atomic<bool>,
}

/// What tells a channel from others while it exists.
fn address(channel: &Channel) -> usize {
    ptr::from_ref(channel).addr()
}

/// A context whose number is reserved, but cannot be looked up yet.
pub(super) struct Unpublished<'a> {
    pub(super) context: Arc<Context>,
    pub(super) number: Reserved<'a, Context>,
    /// Memory for its place in the channel.
    pub(super) room: PlaceRoom,
}

impl<'a> Unpublished<'a> {
    /// Makes a context of `channel` for an endpoint.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(ucma: &'a Ucma, channel: Arc<Channel>, endpoint: EndpointRef) -> Result<Self> {
        let number = ucma.contexts.reserve().map_err(|_| ENOMEM)?;
        let id = number.id();
        let home = Atomic::new(address(&channel));
        let context: Arc<_> = Arc::pin_init(
            pin_init!(Context {
                id,
                channel <- new_spinlock!(channel, "rdma_ucm_context"),
                home,
                endpoint,
                removed: Atomic::new(false),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let head = &context.endpoint.head;
        head.belong_to_program(Arc::as_ptr(&context).cast());
        Ok(Unpublished {
            context,
            number,
            room: PlaceRoom::new()?,
        })
    }
}

impl Context {
    /// The number.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The endpoint.
    pub(super) fn endpoint(&self) -> &EndpointRef {
        &self.endpoint
    }

    /// The channel that has the context now; it may move at any time.
    pub(super) fn channel(&self) -> Arc<Channel> {
        self.channel.lock().clone()
    }

    /// Whether it is this channel. The answer stays true while the lock of the channel is held.
    pub(super) fn is_in(&self, channel: &Channel) -> bool {
        self.home.load(ordering::Relaxed) == address(channel)
    }

    /// Moves the context. Only for [`Channel`], under the locks of both, or before there is a place.
    pub(super) fn set_channel(&self, channel: &Arc<Channel>) {
        let before = {
            let mut current = self.channel.lock();
            self.home.store(address(channel), ordering::Relaxed);
            mem::replace(&mut *current, channel.clone())
        };
        drop(before);
    }

    /// Whether the context can be looked up: nobody has begun to destroy it.
    pub(super) fn is_published(&self, channel: &Channel) -> bool {
        let found = channel.ucma.contexts.get(self.id);
        found.is_some_and(|found| ptr::eq(&*found, self))
    }

    /// Looks a number of `channel` up.
    ///
    /// # Errors
    ///
    /// - `ENOENT` if there is no such context;
    /// - `EINVAL` if it is of another channel;
    /// - `ENXIO` if its device has gone.
    pub(super) fn find(channel: &Channel, id: u32) -> Result<Arc<Self>> {
        let context = channel.ucma.contexts.get(id).ok_or(ENOENT)?;
        context.check(channel)?;
        Ok(context)
    }

    /// Whether the context can be used through `channel`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if it is of another channel;
    /// - `ENXIO` if its device has gone.
    pub(super) fn check(&self, channel: &Channel) -> Result {
        if !self.is_in(channel) {
            return Err(EINVAL);
        }
        if self.removed.load(ordering::Acquire) {
            return Err(ENXIO);
        }
        Ok(())
    }

    /// Destroys the context, unless somebody else does.
    pub(super) fn discard(this: &Arc<Self>) {
        let channel = this.channel();
        let taken = channel.ucma.contexts.take_if(this.id, |found| {
            if ptr::eq(found, &**this) {
                Ok(())
            } else {
                Err(())
            }
        });
        if let Ok(Some((context, number))) = taken {
            context.end(number);
        }
    }

    /// Destroys the context, whose number was taken out of sight before.
    ///
    /// When this returns there will be no more events of it; the connections of its unread requests
    /// are destroyed too. Waits for no peer. Returns how many of its events were read.
    fn end(&self, number: Reserved<'_, Self>) -> u32 {
        delay::point();
        self.endpoint.destroy();
        delay::point();
        let mut reported = 0;
        if let Some(leavings) = Channel::remove(self) {
            reported = leavings.reported;
            self.clear(leavings);
        }
        delay::point();
        // Only now nothing is left in the channel under this number.
        drop(number);
        reported
    }

    /// Destroys the connections that unread events ask for, and takes the numbers of groups out of
    /// sight.
    pub(super) fn clear(&self, leavings: Leavings) {
        let Leavings {
            mut queue, groups, ..
        } = leavings;
        Multicast::forget(&self.channel().ucma, groups);
        while let Some((node, ())) = queue.take_first(|_, _| ()) {
            if let Some(child) = node.into_child() {
                // A child listens to nothing, so that this does not go deeper.
                Self::discard(&child);
            }
        }
    }

    /// Tells the program of an event of this context, or of one of its multicast groups.
    fn tell(&self, inner: &Inner, group: Option<u64>, event: &Event<'_>) {
        let dmac = || inner.link.as_ref().map(DevAddr::dst_mac);
        let _ = self.endpoint.traced(inner.tos(), event, || {
            let head = &self.endpoint.head;
            head.show_event(event, || dmac().unwrap_or_default());
            Channel::queue(self, group, event);
            0
        });
    }

    /// Counts a connection request in the backlog, and queues it.
    fn take_request(
        &self,
        child: &EndpointRef,
        event: &Event<'_>,
        parking: u32,
    ) -> Result<Admission> {
        let admission = Channel::admit(self, parking)?;
        self.offer(child, event)
            .inspect_err(|_| Channel::with_backlog(self, |backlog| backlog.release()))?;
        Ok(admission)
    }

    /// Makes the context of a connection request and queues the request.
    fn offer(&self, child: &EndpointRef, event: &Event<'_>) -> Result {
        let memory = Reserve::allocate(Need::EVENT, GFP_KERNEL_ACCOUNT)?;
        let channel = self.channel();
        let unpublished = Unpublished::new(&channel.ucma, channel.clone(), child.clone())?;
        child.set_consumer(unpublished.context.clone())?;
        delay::point();
        Channel::add_request(self, unpublished, event, memory)
    }
}

impl Consumer for Context {
    fn event(&self, inner: &Inner, event: &Event<'_>) {
        if event.kind == CmEvent::DeviceRemoval {
            // Before the event can be read: whoever has read it gets `ENXIO`.
            self.device_removed();
        }
        self.tell(inner, None, event);
    }

    fn group_event(&self, inner: &Inner, group: u64, event: &Event<'_>) {
        self.tell(inner, Some(group), event);
    }

    fn takes_requests(&self, parking: u32) -> Result {
        Channel::takes_requests(self, parking)
    }

    /// Refuses with `ENOMEM` if the backlog is full, or `ENOSPC` if requests are parked and that is full,
    /// too.
    ///
    /// The request is queued even if the listener has no uid, as C does.
    fn connect_request(
        &self,
        child: &EndpointRef,
        event: &Event<'_>,
        parking: u32,
    ) -> Result<Admission> {
        // As in C, it has the listener's until it has its own.
        child.head.belong_to_program(ptr::from_ref(self).cast());
        let mut taken = Ok(Admission::Queued);
        let _ = child.traced(0, event, || {
            // A request has no address vector, which is what the address is for.
            child.head.show_event(event, Default::default);
            taken = self.take_request(child, event, parking);
            taken.map_or_else(Error::to_errno, |_| 0)
        });
        taken
    }

    fn device_removed(&self) {
        self.removed.store(true, ordering::Release);
    }
}

/// `CREATE_ID`: makes a context and an endpoint for it.
///
/// # Errors
///
/// - `EINVAL` for an unknown port space;
/// - `ENOMEM`, also if there are too many contexts;
/// - `EFAULT` if the answer cannot be written; the context is gone again then.
pub(super) fn create(call: &Call<'_>, request: &abi::CreateId) -> Result {
    let ps = PortSpace::try_from(request.ps).map_err(|_| EINVAL)?;
    let qp_type = match ps {
        PortSpace::Tcp => QP_TYPE_RC,
        PortSpace::Udp | PortSpace::Ipoib => QP_TYPE_UD,
        // Whatever it is, as C.
        PortSpace::Ib => request.qp_type,
    };
    let channel = call.channel();
    if !channel.has_room() {
        return Err(ENOMEM);
    }
    let endpoint = Endpoint::create(&channel.ucma.core, Net::current(), ps, qp_type)?;
    create_for(call, request, &endpoint).inspect_err(|_| endpoint.destroy())
}

/// Makes the context for a new endpoint, and answers.
///
/// The number is published last: a context that was not announced is never seen.
fn create_for(call: &Call<'_>, request: &abi::CreateId, endpoint: &EndpointRef) -> Result {
    let channel = call.channel();
    let unpublished = Unpublished::new(&channel.ucma, call.channel_arc(), endpoint.clone())?;
    let id = unpublished.context.id();
    call.respond(request.response, &abi::IdResp { id })?;
    endpoint.set_consumer(unpublished.context.clone())?;
    delay::point();
    channel.add(unpublished, request.uid);
    Ok(())
}

/// `DESTROY_ID`: destroys a context and says how many of its events were read.
///
/// The answer tells librdmacm for how many events to wait until they are acknowledged.
///
/// # Errors
///
/// - `ENOENT`, also if the context is being destroyed, and `EINVAL` as for all commands;
/// - `EFAULT` if the answer cannot be written; the context is gone nevertheless.
pub(super) fn destroy(call: &Call<'_>, request: &abi::DestroyId) -> Result {
    let channel = call.channel();
    let (context, number) = channel
        .ucma
        .contexts
        .take_if(request.id, |context| {
            if context.is_in(channel) {
                Ok(())
            } else {
                Err(EINVAL)
            }
        })?
        .ok_or(ENOENT)?;
    let events_reported = context.end(number);
    call.respond(
        request.response,
        &abi::EventsReportedResp { events_reported },
    )
}

/// `MIGRATE_ID`: moves a context of another open file to the channel that is written to, with its
/// unread events, and says how many of its events were read.
///
/// # Errors
///
/// - `ENOENT` if there is no such descriptor or no such context, also if that is being destroyed;
/// - `EINVAL` if the file is not one of this device, or if the context is of yet another one;
/// - `ENXIO` if its device has gone;
/// - `ENOMEM` if there are too many contexts in the channel;
/// - `EFAULT` if the answer cannot be written; the context has moved nevertheless.
pub(super) fn migrate(call: &Call<'_>, request: &abi::MigrateId) -> Result {
    let from = call.sibling(request.fd)?;
    let context = Context::find(&from, request.id)?;
    delay::point();
    let events_reported = Channel::migrate(&context, &from, &call.channel_arc())?;
    call.respond(
        request.response,
        &abi::EventsReportedResp { events_reported },
    )
}
