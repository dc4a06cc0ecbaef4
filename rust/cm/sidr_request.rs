// SPDX-License-Identifier: GPL-2.0

//! Handling of SIDR_REQs (IBTA 12.11).
//!
//! The checks of a SIDR_REQ and their order are those of `cmproto::node::sidr_request`. Cheap ones
//! come first: a SIDR_REQ is compared with the known ones and the listeners before anything is
//! allocated for it.

use super::{
    child,
    incoming_mad::IncomingMad,
    matched_listener::{MatchedListener, RequestKey},
    pending_request::PendingRequest,
    reply_path::ReplyPath,
    resolve::{resolve, Deferred},
};
use crate::{
    endpoint::{
        ConnEventParam, Endpoint, EndpointRef, Event, EventParam, Exchange, OwnedEvent, Sidr,
        UdEventParam,
    },
    ib::{counters::CounterGroup, dev_addr::DevAddr},
    kext::{error::to_protocol, users::IdCharge},
    table::{
        resolve_budget::ResolvePurpose,
        sidr_requests::{self, SidrReservation},
    },
};
use cmproto::{
    cm::{Counter, DestroyCause},
    event::Phase,
    node::{self, Acceptor, Declined, Entry, KnownSidr, RequestEnd, SidrAcceptor, SidrRequest},
    qp::QpType,
    sidr::{Action, Resolution},
    ucma_abi::CmEvent,
    wire::{SidrReq, MAD_LEN},
};
use core::result::Result;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, error::Error, prelude::*};

/// A SIDR_REQ that waits until its sender can be answered.
struct PendingSidrReq {
    pending: PendingRequest,
    /// The event for the listener's consumer.
    event: OwnedEvent,
}

impl Deferred for PendingSidrReq {
    const PURPOSE: ResolvePurpose = ResolvePurpose::Request;

    fn reply_path(&self) -> &ReplyPath {
        &self.pending.reply_path
    }

    fn defer(&mut self) -> Result<bool, Error> {
        self.pending.defer()
    }

    fn resume(&self) -> bool {
        self.pending.resume()
    }

    fn resolved(&self, link: Result<&DevAddr, Error>) {
        let _scope = self.pending.child.memcg_scope();
        let Some(ah) = self.pending.address(link) else {
            return;
        };
        let PendingRequest {
            listener, child, ..
        } = &self.pending;
        match child.inner.lock().exchange.sidr_mut() {
            Some(sidr) => sidr.ah = Some(ah),
            // The device is being removed.
            None => return,
        }
        if let Err(declined) = child.offer(listener, &self.event.get(), None) {
            self.pending.end(&RequestEnd::sidr_req(declined));
        }
    }
}

impl IncomingMad<'_> {
    /// Handles a SIDR_REQ.
    #[inline(never)] // Keeps the frame of the caller small.
    pub(super) fn sidr_request(&self, req: &SidrReq<'_>) {
        let mut incoming = IncomingSidr {
            mad: self,
            req,
            key: sidr_requests::Key {
                device: self.device.device.index(),
                origin: self.origin,
                request_id: req.request_id,
            },
            reply_path: None,
            charge: None,
            memory: None,
            event: None,
        };
        match node::sidr_request(&mut incoming, self.header, req) {
            SidrRequest::Duplicate(endpoint) => endpoint.duplicate_sidr_req(),
            SidrRequest::Answered(answer) => self.answer_again(answer),
            SidrRequest::New(child, matched) => incoming.resolve(child, &matched),
            SidrRequest::Refused(response) => {
                let key = |_: &ReplyPath| RequestKey::of_sidr_req(req);
                self.tell_refused(Phase::SidrReq, &response, key);
                self.respond(&response);
            }
            SidrRequest::Nothing => {}
        }
    }

    /// Sends the answer to a repeated SIDR_REQ.
    fn answer_again(&self, mut answer: Resolution) {
        for action in answer.duplicate_req(self.globals.now()) {
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
                // The repeated answer is counted when it is sent. No other state changes.
                Action::Count(_)
                | Action::Timer
                | Action::ReleaseRequest
                | Action::Deliver(_)
                | Action::Release => {}
            }
        }
    }

    /// Returns the parameters of the event for a SIDR_REQ.
    fn sidr_req_param<'a>(&self, matched: &MatchedListener<'a>) -> Result<EventParam<'a>, Error> {
        let (target, listener) = match matched {
            MatchedListener::Address(target, listener) => (target, listener),
            MatchedListener::Service(_) => return self.message_param(),
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
    mad: &'a IncomingMad<'a>,
    req: &'a SidrReq<'a>,
    key: sidr_requests::Key,
    reply_path: Option<ReplyPath>,
    charge: Option<IdCharge>,
    /// Memory for the entry in the table of SIDR requests, set when the endpoint is created.
    memory: Option<SidrReservation<EndpointRef>>,
    /// The event for the listener's consumer.
    event: Option<Event<'a>>,
}

impl<'a> IncomingSidr<'a> {
    /// Offers the request to its listener as soon as its sender can be answered.
    fn resolve(self, child: EndpointRef, matched: &MatchedListener<'_>) {
        let _scope = matched.endpoint().memcg_scope();
        // Both were set before the endpoint was created or while it was.
        let (Some(reply_path), Some(event)) = (self.reply_path, self.event) else {
            return child.end(DestroyCause::NoMemory);
        };
        let listener = matched.endpoint().clone();
        let request = PendingSidrReq {
            pending: PendingRequest::new(self.mad, reply_path, listener, child),
            event: OwnedEvent::new(&event),
        };
        resolve(self.mad.globals, request);
    }

    /// Creates the endpoint of the request, and the event for the consumer.
    fn create_child(&mut self, matched: &MatchedListener<'a>) -> Result<EndpointRef, Error> {
        let _scope = matched.endpoint().memcg_scope();
        let mad = self.mad;
        let reply_path = self.reply_path.as_ref().ok_or(EINVAL)?;
        self.memory = Some(SidrReservation::new()?);
        let attachment = mad.attachment(matched, reply_path)?;
        let param = mad.sidr_req_param(matched)?;
        let listener = matched.endpoint();
        let charge = self.charge.take();
        let child = Endpoint::create_child(listener, listener.ps, QpType::UD, charge)?;
        let sidr = KBox::new(
            Sidr {
                machine: Resolution::from_req(mad.header, self.req, Resolution::MEMORY),
                comm_id: None,
                request: None,
                peer: mad.origin,
                ah: None,
                pkey_index: reply_path.pkey_index,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        child::init_child(&child, matched, attachment, |inner| {
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

impl<'a> Acceptor for IncomingSidr<'a> {
    type Endpoint = EndpointRef;
    type Listener = MatchedListener<'a>;

    fn find_reply_path(&mut self) -> bool {
        self.reply_path = self.mad.reply_path().ok();
        self.reply_path.is_some()
    }

    fn is_served(&self, service_id: u64) -> bool {
        self.mad.is_served(service_id)
    }

    fn listener(&mut self) -> Option<MatchedListener<'a>> {
        let reply_path = self.reply_path.as_ref()?;
        let key = RequestKey::of_sidr_req(self.req);
        let mut place = None;
        self.mad.match_listener(&key, reply_path, &mut place)?;
        place
    }

    fn check_backlog(&mut self, matched: &MatchedListener<'a>) -> Result<(), Declined> {
        (_, self.charge) = child::takes_requests(matched.endpoint(), None)?;
        Ok(())
    }

    fn create(&mut self, matched: &MatchedListener<'a>) -> Result<EndpointRef, Declined> {
        let child = self.create_child(matched).map_err(to_protocol)?;
        Ok(child)
    }

    fn discard(&mut self, child: EndpointRef) {
        child.end(DestroyCause::NoMemory);
    }
}

impl SidrAcceptor for IncomingSidr<'_> {
    fn known(&self) -> KnownSidr<EndpointRef> {
        self.mad.globals.sidr_requests.find(&self.key)
    }

    fn takes_datagrams(&self, matched: &MatchedListener<'_>) -> bool {
        matched.endpoint().qp_type.takes(QpType::UD)
    }

    fn enter(&mut self, child: &EndpointRef) -> Entry {
        let table = &self.mad.globals.sidr_requests;
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
