// SPDX-License-Identifier: GPL-2.0

//! Service id resolution (SIDR, IBTA 12.11) of both sides.
//!
//! The checks of a SIDR_REQ and their order are those of `cmproto::node::sidr_request`. Cheap ones
//! come first: a SIDR_REQ is compared with the known ones and the listeners before anything is
//! allocated for it.

use super::{
    held::Held,
    receive::Arrived,
    resolve::{resolve, Sender, Waiting},
    target::{self, Asked, Heard},
};
use crate::{
    endpoint::{
        ConnEventParam, Endpoint, EndpointRef, Event, EventParam, Exchange, IdKind, Inner,
        KeptEvent, Sidr, UdEventParam,
    },
    ib::{
        counters::CounterGroup,
        debug::{self, Failure},
        dev_addr::DevAddr,
        trace::icm::{self, IcmId},
    },
    kext::error::{to_protocol, ResultExt},
    table::{
        resolve_budget::Purpose,
        sidr_requests::{self, Responder, SidrReservation},
    },
};
use cmproto::{
    cm::{Counter, DestroyCause, State},
    cma,
    node::{self, Declined, Entry, KnownSidr, Passive, PassiveSidr, SidrRequest, Unwanted},
    qp::QpType,
    sidr::{self, Action, Actions, Outgoing, Resolution},
    time::Instant,
    ucma_abi::CmEvent,
    wire::{self, Header, Message, SidrRep, SidrReq, MAD_LEN},
};
use core::result::Result;
use kernel::{alloc::flags::GFP_KERNEL, error::Error, prelude::*};

/// Returns the name of a peer's SIDR request for tracepoints. It has no communication id of this
/// side.
pub(super) fn asked(request_id: u32) -> IcmId<'static> {
    IcmId {
        head: None,
        local_id: 0,
        remote_id: request_id,
        state: State::SidrReqRcvd as u32,
    }
}

impl Responder for EndpointRef {}

impl Endpoint {
    /// Carries out `actions` in their order. `rep` is the SIDR_REP that caused them, if any.
    pub(super) fn execute_sidr(
        self: &EndpointRef,
        inner: &mut Inner,
        actions: Actions,
        rep: Option<&SidrRep<'_>>,
    ) {
        for action in actions {
            match action {
                Action::Send(outgoing) => self.transmit_sidr(inner, outgoing),
                Action::Timer => self.time_sidr(inner),
                Action::Untrack => {
                    if let Some(sidr) = inner.exchange.sidr_mut() {
                        sidr.request = None;
                    }
                }
                Action::Deliver(event) => self.report_sidr(inner, event, rep),
                // The request id is released with the endpoint.
                Action::Release => {}
                Action::Count(counter) => self.count(inner, counter),
            }
        }
        self.show_moved(inner);
    }

    /// Sends a message of the resolution, if there is an address handle for its peer.
    fn transmit_sidr(&self, inner: &Inner, outgoing: Outgoing) {
        let Some(sidr) = inner.exchange.sidr() else {
            return;
        };
        let Some(ah) = &sidr.ah else {
            return;
        };
        self.post(inner, ah, sidr.pkey_index, outgoing.attribute(), |mad| {
            // Encoding fails only for a message that the resolution does not have.
            sidr.machine.encode(outgoing, mad).kernel()?;
            if outgoing == Outgoing::Rep {
                icm::icm_send_sidr_rep(&IcmId {
                    head: Some(&self.head),
                    ..asked(sidr.machine.request_id())
                });
            }
            Ok(())
        });
    }

    /// Sets the timer of a SIDR_REQ, or moves an answered resolution to the table of SIDR requests.
    fn time_sidr(self: &EndpointRef, inner: &mut Inner) {
        let Some(sidr) = inner.exchange.sidr_mut() else {
            return;
        };
        if !sidr.machine.is_answered() {
            return self.set_timer(inner);
        }
        if let Some(request) = sidr.request.take() {
            request.answer(&sidr.machine);
        }
    }

    /// Delivers the result of a resolution. For a consumer of the RDMA CM, the event is converted
    /// first.
    fn report_sidr(&self, inner: &mut Inner, event: sidr::Event, rep: Option<&SidrRep<'_>>) {
        if self.kind == IdKind::IbCm {
            let mut mad = [0; MAD_LEN];
            let message = rep.map(|rep| Message::SidrRep(*rep));
            let known = message.is_some_and(|message| {
                let header = Header::new(message.attribute(), 0);
                wire::encode(&header, &message, &mut mad).is_ok()
            });
            return self.pass_on(inner, event.into(), known.then_some(&mad));
        }
        let qkey = match (event, rep) {
            (sidr::Event::RepReceived { status }, Some(rep)) if status.is_success() => {
                inner.qkey.take(rep.qkey)
            }
            _ => Ok(()),
        };
        let Some(upcall) = cma::resolution_upcall(inner.state(), event, qkey) else {
            return;
        };
        let param = rep.map_or(EventParam::None, |rep| {
            let mut param = UdEventParam::with_private_data(rep.private_data);
            if upcall.event == CmEvent::Established {
                param.qp_num = rep.qpn;
                param.qkey = rep.qkey;
                if let Some(ah_attr) = inner.address_vector() {
                    param.ah_attr = ah_attr;
                }
            }
            EventParam::Ud(param)
        });
        let failure = match upcall.event {
            CmEvent::AddrError => Some(Failure::AddrQkey),
            CmEvent::Unreachable if rep.is_some() => Some(Failure::SidrRefused),
            _ => None,
        };
        if let Some(failure) = failure {
            debug::tell(&self.head, failure, upcall.status);
        }
        let event = Event {
            param,
            ..Event::new(upcall.event, upcall.status)
        };
        self.deliver(inner, &event);
        if upcall.event != CmEvent::Established {
            inner.watching = None;
        }
    }

    /// Handles a SIDR_REP for this endpoint. `message` is the same SIDR_REP.
    #[inline(never)] // Keeps the frame of the caller small.
    pub(super) fn receive_sidr_rep(
        self: &EndpointRef,
        inner: &mut Inner,
        message: &Message<'_>,
        rep: &SidrRep<'_>,
        now: Instant,
    ) {
        let Some(sidr) = inner.exchange.sidr_mut() else {
            return;
        };
        let waited = sidr.machine.waiting();
        let actions = sidr.machine.receive(message, now);
        self.note_answer(inner, waited, now);
        self.execute_sidr(inner, actions, Some(rep));
    }

    /// Handles a repeated SIDR_REQ of this endpoint.
    fn duplicate_sidr_req(self: &EndpointRef) {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        if let Some(sidr) = inner.exchange.sidr_mut() {
            let actions = sidr.machine.duplicate_req(now);
            self.execute_sidr(&mut inner, actions, None);
        }
    }
}

/// A SIDR_REQ that waits until its sender can be answered.
struct Inquiry {
    held: Held,
    /// The event for the listener's consumer.
    event: KeptEvent,
}

impl Waiting for Inquiry {
    const PURPOSE: Purpose = Purpose::Request;

    fn sender(&self) -> &Sender {
        &self.held.sender
    }

    fn held(&self) -> Option<&Held> {
        Some(&self.held)
    }

    fn resolved(&self, link: Result<&DevAddr, Error>) {
        let Some(ah) = self.held.address(link) else {
            return;
        };
        let Held {
            listener, child, ..
        } = &self.held;
        match child.inner.lock().exchange.sidr_mut() {
            Some(sidr) => sidr.ah = Some(ah),
            // The device is being removed.
            None => return,
        }
        if let Err(declined) = target::offer(listener, child, &self.event.get(), 0) {
            self.held.end(&Unwanted::sidr_req(declined));
        }
    }
}

impl Arrived<'_> {
    /// Handles a SIDR_REQ.
    #[inline(never)] // Keeps the frame of the caller small.
    pub(super) fn sidr_request(&self, req: &SidrReq<'_>) {
        let mut incoming = IncomingSidr {
            arrived: self,
            req,
            key: sidr_requests::Key {
                device: self.device.device.index(),
                origin: self.origin,
                request_id: req.request_id,
            },
            sender: None,
            memory: None,
            event: None,
        };
        match node::sidr_request(&mut incoming, self.header, req) {
            SidrRequest::Duplicate(endpoint) => endpoint.duplicate_sidr_req(),
            SidrRequest::Answered(answer) => self.answer_again(answer),
            SidrRequest::New(child, heard) => incoming.resolve(child, &heard),
            SidrRequest::Refused(response) => self.respond(&response),
            SidrRequest::Nothing => {}
        }
    }

    /// Sends the answer to a repeated SIDR_REQ.
    fn answer_again(&self, mut answer: Resolution) {
        for action in answer.duplicate_req(self.core.now()) {
            match action {
                Action::Send(outgoing) => {
                    let mut mad = [0; MAD_LEN];
                    if answer.encode(outgoing, &mut mad).is_ok() {
                        self.repeat(outgoing.attribute(), mad);
                    }
                }
                Action::Count(Counter::Duplicate(attribute)) => {
                    let group = CounterGroup::RxDuplicates;
                    self.port.counts.add(group, attribute.id(), 1);
                }
                // The repeated answer is counted when it is sent. Nothing else changes.
                Action::Count(_)
                | Action::Timer
                | Action::Untrack
                | Action::Deliver(_)
                | Action::Release => {}
            }
        }
    }

    /// Returns the parameters of the event for a SIDR_REQ.
    fn sidr_req_param<'a>(&self, heard: &Heard<'a>) -> Result<EventParam<'a>, Error> {
        let (target, listener) = match heard {
            Heard::Address(target, listener) => (target, listener),
            Heard::Messages(_) => return self.message_param(),
        };
        let data = target.user_data(listener);
        Ok(match listener.endpoint.qp_type {
            QpType::UD => EventParam::Ud(UdEventParam::with_private_data(data)),
            // The type of the listener determines the kind of parameters.
            _ => EventParam::Conn(ConnEventParam::with_private_data(data)),
        })
    }
}

/// A SIDR_REQ that is being checked, and the results of the checks so far.
struct IncomingSidr<'a> {
    arrived: &'a Arrived<'a>,
    req: &'a SidrReq<'a>,
    key: sidr_requests::Key,
    sender: Option<Sender>,
    /// Memory for the entry in the table of SIDR requests, set when the endpoint is created.
    memory: Option<SidrReservation<EndpointRef>>,
    /// The event for the listener's consumer.
    event: Option<Event<'a>>,
}

impl<'a> IncomingSidr<'a> {
    /// Offers the request to its listener as soon as its sender can be answered.
    fn resolve(self, child: EndpointRef, heard: &Heard<'_>) {
        // Both were set before the endpoint was created or while it was.
        let (Some(sender), Some(event)) = (self.sender, self.event) else {
            return child.end(DestroyCause::NoMemory);
        };
        let listener = heard.endpoint().clone();
        let inquiry = Inquiry {
            held: self.arrived.hold(sender, listener, child),
            event: KeptEvent::new(&event),
        };
        resolve(self.arrived.core, inquiry);
    }

    /// Creates the endpoint of the request, and the event for the consumer.
    fn create_child(&mut self, heard: &Heard<'a>) -> Result<EndpointRef, Error> {
        let arrived = self.arrived;
        let sender = self.sender.as_ref().ok_or(EINVAL)?;
        self.memory = Some(SidrReservation::new()?);
        let attachment = arrived.attachment(heard, sender)?;
        let param = arrived.sidr_req_param(heard)?;
        let listener = heard.endpoint();
        let child = Endpoint::create_child(listener, listener.ps, QpType::UD)?;
        let sidr = KBox::new(
            Sidr {
                machine: Resolution::from_req(arrived.header, self.req, Resolution::MEMORY),
                comm_id: None,
                request: None,
                peer: arrived.origin,
                ah: None,
                pkey_index: sender.pkey_index,
            },
            GFP_KERNEL,
        )?;
        target::seat(&child, heard, attachment, |inner| {
            inner.exchange = Exchange::Sidr(sidr);
            Ok(())
        })?;
        self.event = Some(Event {
            param,
            ..Event::new(CmEvent::ConnectRequest, 0)
        });
        Ok(child)
    }
}

impl<'a> Passive for IncomingSidr<'a> {
    type Endpoint = EndpointRef;
    type Listener = Heard<'a>;

    fn find_sender(&mut self) -> bool {
        self.sender = self.arrived.sender().ok();
        self.sender.is_some()
    }

    fn is_served(&self, service_id: u64) -> bool {
        self.arrived.is_served(service_id)
    }

    fn listener(&mut self) -> Option<Heard<'a>> {
        let sender = self.sender.as_ref()?;
        let asked = Asked {
            service_id: self.req.service_id,
            private_data: self.req.private_data,
            pkey: self.req.pkey,
            path: None,
        };
        self.arrived.heard(&asked, sender)
    }

    fn room(&mut self, heard: &Heard<'a>) -> Result<(), Declined> {
        target::takes_requests(heard.endpoint(), 0)
    }

    fn create(&mut self, heard: &Heard<'a>) -> Result<EndpointRef, Declined> {
        let child = self.create_child(heard).map_err(to_protocol)?;
        Ok(child)
    }

    fn discard(&mut self, child: EndpointRef) {
        child.end(DestroyCause::NoMemory);
    }
}

impl PassiveSidr for IncomingSidr<'_> {
    fn known(&self) -> KnownSidr<EndpointRef> {
        self.arrived.core.sidr_requests.find(&self.key)
    }

    fn takes_datagrams(&self, heard: &Heard<'_>) -> bool {
        heard.endpoint().qp_type.takes(QpType::UD)
    }

    fn enter(&mut self, child: &EndpointRef) -> Entry {
        let table = &self.arrived.core.sidr_requests;
        let memory = self.memory.take();
        let request = memory.and_then(|memory| table.enter(memory, self.key, child));
        let Some(request) = request else {
            return Entry::Duplicate;
        };
        let mut inner = child.inner.lock();
        let Some(sidr) = inner.exchange.sidr_mut() else {
            // The device was removed after the endpoint was attached to it.
            drop(inner);
            drop(request);
            return Entry::Gone;
        };
        sidr.request = Some(request);
        Entry::New
    }
}
