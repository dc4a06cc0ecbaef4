// SPDX-License-Identifier: GPL-2.0

//! A context: the object that user space names by a number, between a channel and an endpoint.
//!
//! The numbers are from one table for all channels. A new context gets the lowest free number,
//! because librdmacm uses numbers as indices. A number can be looked up from the moment its context
//! is complete until somebody begins to destroy the context, and is not used again until the
//! context is destroyed.

use super::{
    channel::Channel,
    entries::{
        EventReservation, ExpectedEvents, Numbered, Place, PlaceRef, RemovedEntry, Requests,
        UnreadRequest,
    },
    globals::Ucma,
    multicast::Multicast,
};
use crate::{
    endpoint::{Admitted, ClaimSlot, Consumer, EndpointRef, Event, View},
    ib::qp::NextHop,
    kext::{
        delay,
        error::{to_protocol, ToKernel},
        idtable::Reserved,
        slab::Wait,
        users::IdCharge,
    },
};
use cmproto::{
    errno::Errno,
    node::{Admission, Asker, Declined},
    qp::QpType,
    ucma::backlog::Backlog,
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

/// A context, which user space names by a number.
///
/// Its uid, the number of its events that were read, and its backlog are in its channel, under the
/// channel's lock.
#[pin_data]
pub(super) struct Context {
    id: u32,
    /// The channel that the context belongs to. Changes only under the lock of that channel and
    /// that of the new one ([`Channel::of`]). This spinlock is held for no more than a copy of the
    /// reference.
    #[pin]
    channel: SpinLock<Arc<Channel>>,
    /// The address of that channel, for comparison. Changes under the lock of `channel`.
    home: Atomic<usize>,
    endpoint: EndpointRef,
    /// The endpoint's claim to the number of a queue pair.
    #[pin]
    claim: ClaimSlot,
    /// Set when the endpoint has been taken down because its device was removed.
    removed: Atomic<bool>,
}

/// Returns the address of a channel, which tells it from other channels while it exists.
fn address(channel: &Channel) -> usize {
    ptr::from_ref(channel).addr()
}

/// A context whose number is reserved, but cannot be looked up yet.
pub(super) struct Unpublished<'a> {
    pub(super) context: Arc<Context>,
    pub(super) number: Reserved<'a, Context>,
    /// The place that it gets in the channel.
    pub(super) place: PlaceRef<Context>,
}

impl<'a> Unpublished<'a> {
    /// Creates a context of `channel` for an endpoint.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory or no free number.
    pub(super) fn new(
        ucma: &'a Ucma,
        channel: Arc<Channel>,
        endpoint: EndpointRef,
    ) -> Result<Self> {
        let number = ucma.contexts.reserve().map_err(|_| ENOMEM)?;
        let id = number.id();
        let home = Atomic::new(address(&channel));
        let context: Arc<_> = Arc::pin_init(
            pin_init!(Context {
                id,
                channel <- new_spinlock!(channel, "rdma_ucm_context"),
                home,
                endpoint,
                claim <- ClaimSlot::new(),
                removed: Atomic::new(false),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let id_priv = &context.endpoint.id_priv;
        id_priv.belong_to_program(Arc::as_ptr(&context).cast());
        Ok(Unpublished {
            place: Place::new(&ucma.slabs.places, context.clone())?,
            context,
            number,
        })
    }
}

impl Context {
    /// Returns the number of the context.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Returns the endpoint of the context.
    pub(super) fn endpoint(&self) -> &EndpointRef {
        &self.endpoint
    }

    /// Returns the channel that the context belongs to now. The context may move at any time.
    pub(super) fn channel(&self) -> Arc<Channel> {
        self.channel.lock().clone()
    }

    /// Returns whether the context belongs to `channel`. The answer stays true while the lock of
    /// `channel` is held.
    pub(super) fn is_in(&self, channel: &Channel) -> bool {
        self.home.load(ordering::Relaxed) == address(channel)
    }

    /// Moves the context to `channel`. Only [`Channel`] may call this, under the locks of both
    /// channels, or before the context has an entry.
    pub(super) fn set_channel(&self, channel: &Arc<Channel>) {
        let before = {
            let mut current = self.channel.lock();
            self.home.store(address(channel), ordering::Relaxed);
            mem::replace(&mut *current, channel.clone())
        };
        drop(before);
    }

    /// Makes the context one that commands find in `channel`, and in no other one. Only [`Channel`]
    /// may call this, under the locks of both channels.
    ///
    /// Fails with `ENOENT` if somebody has begun to destroy the context. DESTROY_ID looks at the
    /// channel under the lock of the table of numbers, so that either it or this succeeds.
    pub(super) fn enter(&self, channel: &Channel) -> Result {
        let entered = channel.ucma.contexts.with(self.id, |found| {
            let is_published = ptr::eq(&*found, self);
            if is_published {
                self.home.store(address(channel), ordering::Relaxed);
            }
            is_published
        });
        match entered {
            Some(true) => Ok(()),
            _ => Err(ENOENT),
        }
    }

    /// Checks whether the context can be used through `channel`.
    ///
    /// # Errors
    ///
    /// - the errors of [`check_in`](Self::check_in);
    /// - `ENXIO` if its device was removed.
    pub(super) fn check(&self, channel: &Channel) -> Result {
        self.check_in(channel)?;
        if self.removed.load(ordering::Relaxed) {
            return Err(ENXIO);
        }
        Ok(())
    }

    /// Checks whether the context belongs to `channel`.
    ///
    /// # Errors
    ///
    /// `ENOENT` if not, as if there were no such context, so that the contexts of others are not
    /// disclosed.
    pub(super) fn check_in(&self, channel: &Channel) -> Result {
        if self.is_in(channel) {
            Ok(())
        } else {
            Err(ENOENT)
        }
    }

    /// Destroys the context, unless somebody else does already.
    pub(super) fn discard(&self) {
        self.take(|context, number| {
            context.end(number);
        });
    }

    /// Destroys the context, whose file was closed, unless somebody else does already.
    pub(super) fn abandon(&self) {
        self.take(|context, number| {
            // The endpoint of a request that was handed over is not this context's any more, and
            // the context is not in the table.
            context.endpoint.end_unanswered();
            context.end(number);
        });
    }

    /// Removes the context from the table of numbers and calls `end` with its number, unless
    /// somebody else destroys it already.
    fn take(&self, end: impl FnOnce(&Self, Reserved<'_, Self>)) {
        let channel = self.channel();
        let taken = channel.ucma.contexts.take_if(self.id, |found| {
            if ptr::eq(found, self) {
                Ok(())
            } else {
                Err(())
            }
        });
        if let Ok(Some((context, number))) = taken {
            end(&context, number);
        }
    }

    /// Destroys the context, whose number is no longer published.
    ///
    /// After this, the context has no more events. The connections of its unread requests are
    /// destroyed, too. Waits for no peer. Returns the number of its events that were read.
    pub(super) fn end(&self, number: Reserved<'_, Self>) -> u32 {
        delay::point();
        self.endpoint.destroy();
        // A dead endpoint claims nothing any more.
        self.claim.clear();
        delay::point();
        let mut reported = 0;
        if let Some(removed) = Channel::remove(self) {
            reported = removed.reported;
            self.clear(removed);
        }
        delay::point();
        // The number is free for another context only now that nothing is left in the channel under
        // it.
        drop(number);
        reported
    }

    /// Destroys the connections that unread events announce, and the numbers of the multicast
    /// memberships.
    pub(super) fn clear(&self, removed: RemovedEntry<Context>) {
        let RemovedEntry {
            requests, groups, ..
        } = removed;
        Multicast::remove_all(&self.channel().ucma, groups);
        Self::end_requests(Requests::of(requests));
    }

    /// Hands the unread requests of a listener that has gone to others that share its address, or
    /// destroys their connections.
    pub(super) fn end_requests(requests: Requests<Context>) {
        for request in requests {
            let child = request.child.clone();
            // A child does not listen, so that this recursion ends here.
            if child.endpoint.has_port_group() {
                child.hand_over(request);
            } else {
                child.discard();
            }
        }
    }

    /// Hands the connection request that this context is for to another listener. If there is none,
    /// the context is destroyed.
    fn hand_over(&self, request: UnreadRequest<Context>) {
        let UnreadRequest {
            mut event, parked, ..
        } = request;
        self.take(|context, number| {
            let endpoint = &context.endpoint;
            let event = event.request(endpoint.qp_type == QpType::UD);
            delay::point();
            if !endpoint.hand_over(&event, parked) {
                context.end(number);
                return;
            }
            // The endpoint has another context from here on, or has ended.
            delay::point();
            context.claim.clear();
            drop(Channel::remove(context));
            drop(number);
        });
    }

    /// Reports an event of this context, or of one of its multicast groups, to the program.
    fn deliver(&self, view: View<'_>, group: Option<u64>, event: &Event<'_>) {
        let _ = self.endpoint.traced(view.tos(), event, || {
            let id_priv = &self.endpoint.id_priv;
            id_priv.show_event(event, || view.next_hop());
            let shown = view.shown_vector(event);
            let shown = shown.map(|vector| event.with_vector(vector));
            Channel::queue(self, group, shown.as_ref().unwrap_or(event));
            0
        });
    }

    /// Creates the context of a connection request and queues the request.
    fn take_request<'a>(
        &self,
        child: &'a EndpointRef,
        event: &Event<'_>,
        asker: Option<Asker>,
    ) -> Result<Admitted<'a>, Declined> {
        let channel = self.channel();
        let params = &channel.ucma.slabs.params;
        let memory = EventReservation::allocate(ExpectedEvents::ONE, params, Wait::May)
            .map_err(to_protocol)?;
        let unpublished = Unpublished::new(&channel.ucma, channel.clone(), child.clone());
        let unpublished = unpublished.map_err(to_protocol)?;
        let context = unpublished.context.clone();
        child.set_consumer(context).map_err(to_protocol)?;
        delay::point();
        Admitted::lock(child, || {
            let (admission, replaced) =
                Channel::add_request(self, unpublished, event, memory, asker)?;
            Ok((
                admission,
                replaced.map(|context| -> Arc<dyn Consumer> { context }),
            ))
        })
    }
}

impl Numbered for Context {
    fn id(&self) -> u32 {
        self.id
    }
}

impl Consumer for Context {
    fn event(&self, view: View<'_>, event: &Event<'_>) {
        self.deliver(view, None, event);
    }

    fn group_event(&self, view: View<'_>, group: u64, event: &Event<'_>) {
        self.deliver(view, Some(group), event);
    }

    fn takes_requests(
        &self,
        asker: Option<Asker>,
    ) -> Result<(Admission, Option<IdCharge>), Declined> {
        Channel::takes_requests(self, asker)
    }

    /// Queues a connection request.
    ///
    /// As in C, the request is queued even if the listener has no uid.
    fn connect_request<'a>(
        &self,
        child: &'a EndpointRef,
        event: &Event<'_>,
        asker: Option<Asker>,
    ) -> Result<Admitted<'a>, Declined> {
        // As in C, the child has the listener's context until it has its own.
        child.id_priv.belong_to_program(ptr::from_ref(self).cast());
        let mut taken = Err(Declined::Refused);
        let _ = child.traced(0, event, || {
            // The next hop is for the address vector of an event, and a request has none.
            child.id_priv.show_event(event, || NextHop::NONE);
            taken = self.take_request(child, event, asker);
            match &taken {
                Ok(_) => 0,
                Err(declined) => Errno::from(*declined).to_kernel().to_errno(),
            }
        });
        taken
    }

    fn backlog(&self) -> Option<Backlog> {
        Channel::backlog(self)
    }

    fn give_way(&self) {
        self.endpoint.end_replaced();
        self.discard();
    }

    fn claim_slot(&self) -> Option<&ClaimSlot> {
        Some(&self.claim)
    }

    fn device_removed(&self) {
        self.removed.store(true, ordering::Relaxed);
    }
}
