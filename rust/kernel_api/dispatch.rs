// SPDX-License-Identifier: GPL-2.0

//! Dispatch of events to the handler of a kernel consumer.

use super::{
    ffi::{self, cm::IbCmId, PathLink, ServiceRecs},
    queue::{IdState, Message, Notification, Queued},
    HandlerGuard, KernelId,
};
use crate::{
    endpoint::{Admitted, Consumer, Ece, EndpointRef, Event, OwnedEvent, View},
    ib::{
        debug::{self, Failure},
        dev_addr::DevAddr,
        gid::{GidAttr, GidType},
    },
    kext::{delay, error::to_protocol, lock::lock_nested, reclaim::NoIo, users::IdCharge},
};
use cmproto::{
    cm::DestroyCause,
    cma::{qp::QpStage, State},
    ibcm::{EventType, COMM_EST, PATH_MIG},
    node::{Admission, Asker, Declined},
    ucma::path::PathRecord,
    ucma_abi::CmEvent,
    wire::MAD_LEN,
};
use core::ptr;
use kernel::{
    current, impl_has_work,
    prelude::*,
    sync::{atomic::Relaxed, Arc},
    workqueue::WorkItem,
};

impl_has_work! {
    impl HasWork<Self> for KernelId { self.work }
}

impl WorkItem for KernelId {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _scope = NoIo::begin();
        this.pass_on_notices();
        while this.deliver_next() {}
        delay::at("consumer-told");
    }
}

/// Returns a number that identifies the current task.
fn current_task() -> u64 {
    u64::try_from(ptr::from_ref(&*current!()).addr()).unwrap_or(u64::MAX)
}

impl KernelId {
    /// Enqueues the work item that tells the consumer of queued events. Can be called in any
    /// context.
    pub(super) fn wake(self: Arc<Self>) {
        let queue = &self.endpoint.globals.clone().callbacks;
        // A work item that is pending already is returned.
        let _ = queue.enqueue(self);
    }

    /// Tells the endpoint that data arrived at its queue pair, or that the queue pair has migrated,
    /// if the consumer has reported that.
    ///
    /// A function whose result depends on it calls this first, because the work item that does so
    /// may still be waiting. May sleep.
    pub(super) fn pass_on_notices(&self) {
        if self.has_data.take() {
            let _ = self.endpoint.notify(COMM_EST);
        }
        if self.has_migrated.take() {
            let _ = self.endpoint.notify(PATH_MIG);
        }
    }

    /// Returns whether the current task is in the consumer's callback.
    pub(super) fn is_called(&self) -> bool {
        self.caller.load(Relaxed) == current_task()
    }

    /// Tells the consumer of the oldest event.
    ///
    /// Returns false if there is none, or if the consumer has destroyed the identifier.
    fn deliver_next(self: &Arc<Self>) -> bool {
        delay::point();
        let Some((guard, queued)) = self.lock_handler_for_next() else {
            return false;
        };
        delay::point();
        let goes_on = match queued.child {
            Some(child) => {
                self.deliver_request(&guard, &child, &queued.notification);
                true
            }
            None => self.deliver(&guard, queued),
        };
        if !goes_on {
            let removed = self.close();
            drop(guard);
            delay::point();
            self.endpoint.destroy();
            removed.discard();
        }
        goes_on
    }

    /// Tells the consumer of an event; returns false if its handler asks to destroy the identifier.
    fn deliver(&self, guard: &HandlerGuard<'_>, queued: Queued) -> bool {
        let mut event = match queued.notification {
            Notification::Event(event) => event,
            Notification::Message(message) => return self.call_message(guard, None, &message) == 0,
        };
        match event.kind {
            CmEvent::AddrResolved => self.show_link(),
            CmEvent::RouteResolved => self.show_path(),
            CmEvent::AddrinfoResolved => self.show_services(),
            CmEvent::ConnectResponse if self.endpoint.id_priv.has_qp() => {
                self.establish(&mut event);
            }
            // Over iWARP the driver changes the state of the queue pair.
            CmEvent::Rejected if !self.endpoint.is_iwarp() => {
                let _ = self.change_qp(QpStage::Ended, None);
            }
            _ => {}
        }
        self.call(guard, &event.get(), queued.group) == 0
    }

    /// Calls the handler of the consumer.
    fn call(&self, guard: &HandlerGuard<'_>, event: &Event<'_>, group: usize) -> i32 {
        let (tos, hop) = {
            let inner = self.endpoint.inner.lock();
            (inner.tos(), View::of(&inner).next_hop())
        };
        self.caller.store(current_task(), Relaxed);
        let status = self.endpoint.traced(tos, event, || {
            let group = ptr::without_provenance_mut(group);
            self.endpoint.id_priv.deliver(guard, event, hop, group)
        });
        self.caller.store(0, Relaxed);
        status
    }

    /// Calls the handler of a consumer of the IB CM.
    ///
    /// `listener` is the listener that has received the message, if it is a request.
    fn call_message(
        &self,
        guard: &HandlerGuard<'_>,
        listener: Option<&IbCmId>,
        message: &Message,
    ) -> i32 {
        let Some(ib_cm_id) = self.ib_cm_id() else {
            return 0;
        };
        self.caller.store(current_task(), Relaxed);
        let status = self.deliver_message(guard, ib_cm_id, listener, message);
        self.caller.store(0, Relaxed);
        status
    }

    /// Tells the consumer of this listener of a connection request.
    fn deliver_request(
        &self,
        guard: &HandlerGuard<'_>,
        child: &Arc<Self>,
        notification: &Notification,
    ) {
        let handler = lock_nested(&child.handler);
        if child.endpoint.state() != State::Connect {
            // The device was removed before the consumer was told of the request.
            drop(handler);
            return child.end();
        }
        child.show_link();
        child.show_path();
        // A call of the handler for the child may destroy the listener, which must not wait for
        // itself.
        self.caller.store(current_task(), Relaxed);
        let status = match notification {
            Notification::Event(event) => child.call(guard, &event.get(), 0),
            Notification::Message(message) => child.call_message(guard, self.ib_cm_id(), message),
        };
        self.caller.store(0, Relaxed);
        if status == 0 {
            child.reveal();
            return;
        }
        let removed = child.close();
        drop(handler);
        // The sender of a request for which there was no memory tries again.
        child.endpoint.end(if status == ENOMEM.to_errno() {
            DestroyCause::NoMemory
        } else {
            DestroyCause::User
        });
        removed.discard();
    }

    /// Makes the queue pair ready and sends the RTU, after the peer has accepted.
    ///
    /// Changes the event to that of the result. On failure the peer is rejected.
    fn establish(&self, event: &mut OwnedEvent) {
        let established = self
            .change_qp(QpStage::Accepting, None)
            .inspect_err(|_| self.refuse())
            .and_then(|()| self.endpoint.accept(None, Ece::default(), || ()))
            .inspect_err(|_| {
                let _ = self.change_qp(QpStage::Ended, None);
            });
        match established {
            Ok(()) => event.kind = CmEvent::Established,
            Err(error) => {
                event.kind = CmEvent::ConnectError;
                event.status = error.to_errno();
                let id_priv = &self.endpoint.id_priv;
                debug::log(id_priv, Failure::NotEstablished, event.status);
            }
        }
    }

    /// Shows the link-layer addresses to the consumer.
    fn show_link(&self) {
        let inner = self.endpoint.inner.lock();
        if let Some(link) = &inner.resolution.dev_addr {
            ffi::show_link(self, View::of(&inner), link);
        } else if inner.is_ib() {
            // A connection between native addresses has no interface.
            let (own, peer) = self.endpoint.ends(&inner);
            if let Ok(link) = DevAddr::native(own, peer, inner.addr.pkey) {
                ffi::show_link(self, View::of(&inner), &link);
            }
        }
    }

    /// Shows the services that were found to the consumer. Called once for an identifier.
    ///
    /// They are not shown if there is no memory for them.
    fn show_services(&self) {
        let found = self.endpoint.services();
        let records = found.and_then(|found| ServiceRecs::new(&found).ok());
        if let Some(records) = records {
            self.services.populate(records);
        }
        ffi::show_services(self, View::of(&self.endpoint.inner.lock()));
    }

    /// Shows the path to the consumer.
    fn show_path(&self) {
        let inner = self.endpoint.inner.lock();
        let (Some(path), Some(attachment)) = (inner.route.path, &inner.device) else {
            return;
        };
        let dmac = View::of(&inner).dst_mac().unwrap_or_default();
        let gid_type = attachment.gid.as_ref().map(GidAttr::gid_type);
        let link = match gid_type {
            _ if attachment.is_ib() => PathLink::Ib,
            Some(GidType::RoceV1) => PathLink::RoceV1(dmac),
            _ => PathLink::RoceV2(dmac),
        };
        // A path that the consumer or the administrator has given is shown unchanged.
        let record = match inner.route.path_record() {
            Some(given) => *given,
            None => path.to_record(),
        };
        ffi::show_path(self, View::of(&inner), &record, link);
    }

    /// Sets the path that the consumer has found itself, and shows it.
    ///
    /// Fails like [`Endpoint::set_path`].
    pub(crate) fn set_path(&self, record: &PathRecord) -> Result {
        self.endpoint.set_path(record, false)?;
        // No route resolution follows, so that there is no event to show the path with.
        self.show_path();
        Ok(())
    }

    /// Handles an event of the queue pair, an `enum ib_event_type`.
    ///
    /// Can be called in any context, so that the event is passed on later. Fails with `EINVAL` if
    /// there is no connection, or for an event that a connection does not use. Over iWARP, where no
    /// event is of use, it succeeds.
    pub(crate) fn notify(self: Arc<Self>, event: u32) -> Result {
        if self.endpoint.id_priv.has_iw() {
            return Ok(());
        }
        if self.endpoint.id_priv.state() != State::Connect as u32 {
            return Err(EINVAL);
        }
        match event {
            COMM_EST => self.has_data.leave(),
            PATH_MIG => self.has_migrated.leave(),
            _ => return Err(EINVAL),
        }
        self.wake();
        Ok(())
    }
}

impl Consumer for KernelId {
    fn event(&self, _: View<'_>, event: &Event<'_>) {
        // The event is lost if there is no memory and the spare memory is in use.
        let _ = self.push(Queued::new(Notification::Event(OwnedEvent::new(event))));
    }

    fn message(&self, event: EventType, mad: Option<Arc<[u8; MAD_LEN]>>) {
        let message = Message { event, mad };
        // A peer can send any number of LAPs. The consumer is told of the last one.
        if event == EventType::LapReceived && self.replace(&message) {
            return;
        }
        let _ = self.push(Queued::new(Notification::Message(message)));
    }

    fn state_changed(&self, view: View<'_>) {
        if let Some(ib_cm_id) = &self.ib_cm_id {
            ib_cm_id.show(view);
        }
    }

    fn group_event(&self, _: View<'_>, group: u64, event: &Event<'_>) {
        let name = {
            let queue = self.queue.lock();
            queue.groups.get(&group).map(|group| group.name)
        };
        if let Some(group) = name {
            let _ = self.push(Queued {
                group,
                ..Queued::new(Notification::Event(OwnedEvent::new(event)))
            });
        }
    }

    /// Checks that the listener has room for a request.
    ///
    /// No request is parked, because kernel consumers have no backlog of their own.
    fn takes_requests(&self, _: Option<Asker>) -> Result<(Admission, Option<IdCharge>), Declined> {
        if self.has_room() {
            Ok((Admission::Queued, None))
        } else {
            Err(Declined::NoRoom)
        }
    }

    fn connect_request<'a>(
        &self,
        child: &'a EndpointRef,
        event: &Event<'_>,
        _: Option<Asker>,
    ) -> Result<Admitted<'a>, Declined> {
        let (ib_cm_id, notification) = match &self.ib_cm_id {
            None => {
                child.id_priv.inherit(&self.endpoint.id_priv);
                (None, Notification::Event(OwnedEvent::new(event)))
            }
            Some(ib_cm_id) => {
                let (ib_cm_id, message) =
                    Self::cm_request(ib_cm_id, child, event).map_err(to_protocol)?;
                (Some(ib_cm_id), Notification::Message(message))
            }
        };
        let id = Self::of(child, IdState::Hidden, ib_cm_id).map_err(to_protocol)?;
        delay::point();
        let request = Queued {
            child: Some(id.clone()),
            ..Queued::new(notification)
        };
        Admitted::lock(child, || {
            Ok((self.push(request).map(|()| Admission::Queued)?, None))
        })
        .inspect_err(|_| id.close().discard())
    }

    /// Does nothing: the event tells the consumer, which has the device until it destroys the
    /// identifier.
    fn device_removed(&self) {}
}
