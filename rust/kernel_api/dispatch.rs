// SPDX-License-Identifier: GPL-2.0

//! Telling a kernel consumer what has happened.

use super::{
    cm::{show_state, Message},
    queue::{Life, Queued, What},
    Face, KernelId, Turn,
};
use crate::{
    endpoint::{Consumer, Ece, EndpointRef, Event, Inner, KeptEvent},
    ib::{
        debug::{self, Failure},
        dev_addr::DevAddr,
        kapi::{self, cm::CmHead, PathLink, ServiceRecs},
    },
    kext::{delay, lock::lock_nested, reclaim::NoIo},
};
use cmproto::{
    cm::DestroyCause,
    cma::{qp::Occasion, State},
    ibcm::EventType,
    ucma::{backlog::Admission, path::PathRecord},
    ucma_abi::CmEvent,
    wire::MAD_LEN,
};
use core::ptr;
use kernel::{
    current, impl_has_work,
    prelude::*,
    sync::{
        atomic::{ordering::Full, Relaxed},
        Arc,
    },
    workqueue::WorkItem,
};

/// `IB_EVENT_COMM_EST`: data arrived before the RTU.
const EVENT_COMM_EST: u32 = 4;
/// `IB_EVENT_PATH_MIG`: the queue pair uses its alternate path.
const EVENT_PATH_MIG: u32 = 6;

impl_has_work! {
    impl HasWork<Self> for KernelId { self.work }
}

impl WorkItem for KernelId {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _scope = NoIo::begin();
        if this.has_data.xchg(false, Full) {
            let _ = this.endpoint.notify(EVENT_COMM_EST);
        }
        while this.tell_next() {}
    }
}

/// The current task, as a number.
fn current_task() -> u64 {
    u64::try_from(ptr::from_ref(&*current!()).addr()).unwrap_or(u64::MAX)
}

impl KernelId {
    /// Has the consumer told what is queued. Can be called in any context.
    pub(super) fn wake(self: Arc<Self>) {
        let queue = &self.endpoint.core.clone().callbacks;
        // What is pending already is given back.
        let _ = queue.enqueue(self);
    }

    /// Whether the current task is in the consumer's callback.
    pub(super) fn is_called(&self) -> bool {
        self.caller.load(Relaxed) == current_task()
    }

    /// Tells the consumer of the oldest event; false if there is none, or nobody to tell any more.
    fn tell_next(self: &Arc<Self>) -> bool {
        delay::point();
        let Some((turn, queued)) = self.next_turn() else {
            return false;
        };
        delay::point();
        let goes_on = match queued.child {
            Some(child) => {
                self.tell_request(&turn, &child, &queued.what);
                true
            }
            None => self.tell(&turn, queued),
        };
        if !goes_on {
            let leavings = self.close();
            drop(turn);
            delay::point();
            self.endpoint.destroy();
            leavings.discard();
        }
        goes_on
    }

    /// Tells the consumer of an event; false if it wants no more.
    fn tell(&self, turn: &Turn<'_>, queued: Queued) -> bool {
        let mut event = match queued.what {
            What::Event(event) => event,
            What::Message(message) => return self.call_message(turn, None, &message) == 0,
        };
        match event.kind {
            CmEvent::AddrResolved => self.show_link(),
            CmEvent::RouteResolved => self.show_path(),
            CmEvent::AddrinfoResolved => self.show_services(),
            CmEvent::ConnectResponse if self.endpoint.head.has_qp() => {
                self.establish(&mut event);
            }
            // With iWARP the driver has seen to it.
            CmEvent::Rejected if !self.endpoint.is_iwarp() => {
                let _ = self.change_qp(Occasion::Ended, None);
            }
            _ => {}
        }
        self.call(turn, &event.get(), queued.group) == 0
    }

    /// Calls the consumer.
    fn call(&self, turn: &Turn<'_>, event: &Event<'_>, group: usize) -> i32 {
        let (tos, dmac) = {
            let inner = self.endpoint.inner.lock();
            let dmac = inner.link.as_ref().map(|link| link.dst_mac());
            (inner.tos(), dmac.unwrap_or_default())
        };
        self.caller.store(current_task(), Relaxed);
        let told = self.endpoint.traced(tos, event, || {
            let group = ptr::without_provenance_mut(group);
            self.endpoint.head.tell(turn, event, dmac, group)
        });
        self.caller.store(0, Relaxed);
        told
    }

    /// Calls the consumer, who speaks of messages; `listener` is where a request came in.
    fn call_message(&self, turn: &Turn<'_>, listener: Option<&CmHead>, message: &Message) -> i32 {
        let Some(head) = self.cm_head() else {
            return 0;
        };
        self.caller.store(current_task(), Relaxed);
        let told = self.tell_message(turn, head, listener, message);
        self.caller.store(0, Relaxed);
        told
    }

    /// Offers a connection request to the consumer of this listener.
    fn tell_request(&self, turn: &Turn<'_>, child: &Arc<Self>, what: &What) {
        let handler = lock_nested(&child.handler);
        if child.endpoint.state() != State::Connect {
            // The device has gone before anybody saw the request.
            drop(handler);
            return child.end();
        }
        child.show_link();
        child.show_path();
        // So that the listener is not waited for either.
        self.caller.store(current_task(), Relaxed);
        let told = match what {
            What::Event(event) => child.call(turn, &event.get(), 0),
            What::Message(message) => child.call_message(turn, self.cm_head(), message),
        };
        self.caller.store(0, Relaxed);
        if told == 0 {
            child.reveal();
            return;
        }
        let leavings = child.close();
        drop(handler);
        // The sender of a request that there is no memory for tries again.
        child.endpoint.end(if told == ENOMEM.to_errno() {
            DestroyCause::NoMemory
        } else {
            DestroyCause::User
        });
        leavings.discard();
    }

    /// The peer has accepted: the queue pair is made ready and the peer told so, or neither. Changes
    /// the event into that of the outcome.
    fn establish(&self, event: &mut KeptEvent) {
        let established = self
            .change_qp(Occasion::Accepted, None)
            .inspect_err(|_| self.refuse())
            .and_then(|()| self.endpoint.accept(None, Ece::default(), || ()))
            .inspect_err(|_| {
                let _ = self.change_qp(Occasion::Ended, None);
            });
        match established {
            Ok(()) => event.kind = CmEvent::Established,
            Err(error) => {
                event.kind = CmEvent::ConnectError;
                event.status = error.to_errno();
                let head = &self.endpoint.head;
                debug::tell(head, Failure::NotEstablished, event.status);
            }
        }
    }

    /// Shows the consumer the link to the peer.
    fn show_link(&self) {
        let inner = self.endpoint.inner.lock();
        if let Some(link) = &inner.link {
            kapi::show_link(self, &inner, link);
        } else if inner.is_ib() {
            // Between native addresses there is no interface.
            let (own, peer) = inner.ends();
            if let Ok(link) = DevAddr::native(own, peer, inner.pkey) {
                kapi::show_link(self, &inner, &link);
            }
        }
    }

    /// Shows the consumer the services that were found, which happens once. Not shown is what there is
    /// no memory for.
    fn show_services(&self) {
        let found = self.endpoint.services();
        let records = found.and_then(|found| ServiceRecs::new(&found).ok());
        if let Some(records) = records {
            self.services.populate(records);
        }
        kapi::show_services(self, &self.endpoint.inner.lock());
    }

    /// Shows the consumer the path to the peer.
    fn show_path(&self) {
        let inner = self.endpoint.inner.lock();
        let (Some(path), Some(attachment)) = (inner.path, &inner.device) else {
            return;
        };
        let device = &attachment.device.device;
        let dmac = inner.link.as_ref().map(|link| link.dst_mac());
        let dmac = dmac.unwrap_or_default();
        let link = if attachment.is_ib() {
            PathLink::Ib
        } else if device.protocol_roce_udp_encap(attachment.port_num) {
            PathLink::RoceV2(dmac)
        } else {
            PathLink::RoceV1(dmac)
        };
        // As it was given, where it was.
        let record = match &inner.given_path {
            Some(given) => **given,
            None => path.to_record(),
        };
        kapi::show_path(self, &inner, &record, link);
    }

    /// Takes the route that the consumer has found by itself, and shows it. The errors are those of
    /// [`Endpoint::set_path`].
    pub(crate) fn set_path(&self, record: &PathRecord) -> Result {
        self.endpoint.set_path(record, false)?;
        // Whoever has given the route is alone: none is found besides, and no event announces it.
        self.show_path();
        Ok(())
    }

    /// Takes note of what the queue pair saw. Can be called in any context, so that it is passed on
    /// later.
    ///
    /// Fails with `EINVAL` if there is no connection, or for an event that means nothing to one.
    pub(crate) fn notify(self: Arc<Self>, event: u32) -> Result {
        if self.endpoint.head.state() != State::Connect as u32 {
            return Err(EINVAL);
        }
        match event {
            EVENT_COMM_EST => {
                self.has_data.store(true, Relaxed);
                self.wake();
                Ok(())
            }
            // Without alternate paths nothing follows from it.
            EVENT_PATH_MIG => Ok(()),
            _ => Err(EINVAL),
        }
    }
}

impl Consumer for KernelId {
    fn is_kernel(&self) -> bool {
        matches!(self.face, Face::Addresses)
    }

    fn event(&self, _: &Inner, event: &Event<'_>) {
        // Lost if memory is out, and more has happened than there are spare rooms.
        let _ = self.push(Queued::new(What::Event(KeptEvent::new(event))));
    }

    fn message(&self, event: EventType, mad: Option<Arc<[u8; MAD_LEN]>>) {
        let _ = self.push(Queued::new(What::Message(Message { event, mad })));
    }

    fn moved(&self, inner: &Inner) {
        if let Face::Messages(head) = &self.face {
            show_state(head, inner);
        }
    }

    fn group_event(&self, _: &Inner, group: u64, event: &Event<'_>) {
        let name = {
            let queue = self.queue.lock();
            queue.groups.get(&group).map(|group| group.name)
        };
        if let Some(group) = name {
            let _ = self.push(Queued {
                group,
                ..Queued::new(What::Event(KeptEvent::new(event)))
            });
        }
    }

    /// Nothing is parked: the kernel's consumers have no backlog of their own.
    fn takes_requests(&self, _: u32) -> Result {
        if self.has_room() {
            Ok(())
        } else {
            Err(ENOMEM)
        }
    }

    fn connect_request(&self, child: &EndpointRef, event: &Event<'_>, _: u32) -> Result<Admission> {
        let (face, what) = match &self.face {
            Face::Addresses => {
                child.head.inherit(&self.endpoint.head);
                (Face::Addresses, What::Event(KeptEvent::new(event)))
            }
            Face::Messages(head) => {
                let (head, message) = Self::cm_request(head, child, event)?;
                (Face::Messages(head), What::Message(message))
            }
        };
        let id = Self::of(child, Life::Hidden, face)?;
        delay::point();
        let request = Queued {
            child: Some(id.clone()),
            ..Queued::new(what)
        };
        self.push(request).inspect_err(|_| id.close().discard())?;
        Ok(Admission::Queued)
    }

    /// The consumer hears of it by the event, and has the device until it destroys the identifier.
    fn device_removed(&self) {}
}
