// SPDX-License-Identifier: GPL-2.0

//! Handling of REQs.
//!
//! The checks of a REQ and their order are those of `cmproto::node::request`. Cheap ones come
//! first: a REQ is compared with the known peers and the listeners before anything is allocated for
//! it.

use super::{
    child,
    incoming_mad::IncomingMad,
    matched_listener::{MatchedListener, RequestKey},
    pending_request::PendingRequest,
    reply_path::{Neighbour, ReplyPath},
    resolve::{start_resolving, Deferred},
};
use crate::{
    endpoint::{
        Alternates, Conn, ConnEventParam, Connection, Ece, Endpoint, EndpointRef, Event,
        EventParam, Exchange, OwnedEvent,
    },
    ib::{
        dev_addr::DevAddr,
        trace::icm::{self, IcmId},
    },
    kext::{error::to_protocol, slab::Wait, users::IdCharge},
    table::{comm_ids::CommId, remote_ids::RemoteIdClaim, resolve_budget::ResolvePurpose},
};
use cmproto::{
    addr::Gid,
    cm::{self, DestroyCause, Unusable},
    event::Phase,
    node::{
        self, Acceptor, Answer, Asker, Declined, Refused, RemoteIds, RemoteKey, RemoteTable,
        ReqAcceptor, Request, RequestEnd, Response,
    },
    path::Path,
    qp::QpType,
    reject::Reason,
    ucma_abi::CmEvent,
    wire::{Header, Req},
};
use core::result::Result;
use kernel::{error::Error, prelude::*};

/// A REQ for which an endpoint was created, until its sender can be answered.
struct PendingReq {
    pending: PendingRequest,
    asker: Option<Asker>,
}

/// A REQ whose sender is being resolved in the background.
struct UnresolvedReq {
    request: PendingReq,
    /// The event for the listener's consumer.
    event: OwnedEvent,
}

impl Deferred for UnresolvedReq {
    const PURPOSE: ResolvePurpose = ResolvePurpose::Request;

    fn reply_path(&self) -> &ReplyPath {
        &self.request.pending.reply_path
    }

    fn defer(&mut self) -> Result<bool, Error> {
        self.request.pending.defer()
    }

    fn resume(&self) -> bool {
        self.request.pending.resume()
    }

    fn resolved(&self, link: Result<&DevAddr, Error>) {
        self.request.resolved(link, &self.event.get());
    }
}

impl PendingReq {
    /// Continues when the sender was found at `link`, or cannot be found.
    fn resolved(&self, link: Result<&DevAddr, Error>, event: &Event<'_>) {
        let _scope = self.pending.child.memcg_scope();
        let (Some(ah), Ok(link)) = (self.pending.address(link), link) else {
            return;
        };
        {
            let mut inner = self.pending.child.inner.lock();
            match inner.exchange.conn_mut() {
                Some(conn) => conn.ah = Some(ah),
                // The peer has withdrawn its request meanwhile, or the device is being removed.
                None => return,
            }
            // On InfiniBand the hop limit and the link were known before.
            if self.pending.reply_path.link.is_none() {
                if let Some(path) = &mut inner.route.path {
                    path.hop_limit = link.hop_limit;
                }
                inner.resolution.dev_addr = Some(link.clone());
            }
        }
        self.offer(event);
    }

    /// Offers the request to the listener's consumer.
    fn offer(&self, event: &Event<'_>) {
        let PendingRequest {
            listener, child, ..
        } = &self.pending;
        if let Err(declined) = child.offer(listener, event, self.asker) {
            self.pending.end(&RequestEnd::req(declined));
        }
    }
}

/// Returns the event for a REQ, with the resources as seen from this side.
fn req_event<'a>(header: &Header, req: &Req<'_>, private_data: &'a [u8]) -> Event<'a> {
    Event {
        kind: CmEvent::ConnectRequest,
        status: 0,
        param: EventParam::Conn(ConnEventParam {
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            flow_control: u8::from(req.flow_control),
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            srq: u8::from(req.srq),
            qp_num: req.local_qpn,
            ..ConnEventParam::with_private_data(private_data)
        }),
        ece: Ece {
            vendor_id: req.vendor_id,
            attr_mod: header.attr_mod,
        },
    }
}

/// Returns the name of a REQ for tracepoints. It has no communication id of this side.
fn icm_id(req: &Req<'_>) -> IcmId<'static> {
    IcmId {
        id_priv: None,
        local_id: 0,
        remote_id: req.local_comm_id,
        state: cm::State::ReqRcvd as u32,
    }
}

impl IncomingMad<'_> {
    /// Handles a REQ.
    #[inline(never)] // Keeps the frame of the caller small.
    pub(super) fn request(&self, req: &Req<'_>) {
        let mut place = None;
        let mut incoming = IncomingReq {
            mad: self,
            req,
            place: Some(&mut place),
            path: Path::default(),
            reply_path: None,
            neighbour: None,
            asker: None,
            charge: None,
            event: None,
        };
        match node::request(&mut incoming, self.origin, req) {
            Request::Duplicate(known) => known.duplicate_req(self.origin),
            Request::New(child, matched) => incoming.resolve(child, matched),
            Request::Refused(refused) => self.refuse_req(req, refused),
            Request::Nothing => {}
        }
    }

    /// Refuses a REQ.
    #[cold]
    fn refuse_req(&self, req: &Req<'_>, refused: Refused<EndpointRef>) {
        self.tell_refused(Phase::Req, &refused.response, |reply_path| {
            RequestKey::of_req(req, reply_path.request_path(req))
        });
        let Response::Answer(Answer::Rej { reason, .. }) = refused.response else {
            return self.respond(&refused.response);
        };
        let is_for_nobody = matches!(reason, Reason::INVALID_SERVICE_ID | Reason::STALE_CONN);
        if is_for_nobody {
            icm::icm_issue_rej(req.local_comm_id, 0);
        } else {
            icm::icm_send_rej(&icm_id(req), reason.0);
        }
        self.respond(&refused.response);
        if let Some(other) = refused.stale {
            other.stale_peer(self.origin);
        }
        if is_for_nobody {
            icm::icm_no_listener_err(&icm_id(req));
        }
    }
}

/// A REQ that is being checked, and the results of the checks so far.
struct IncomingReq<'a> {
    mad: &'a IncomingMad<'a>,
    req: &'a Req<'a>,
    /// The place for the listener, which is not moved from there, until it is looked up.
    place: Option<&'a mut Option<MatchedListener<'a>>>,
    /// The path in the REQ, set when the listener is looked up.
    path: Path,
    reply_path: Option<ReplyPath>,
    neighbour: Option<Neighbour>,
    /// Set if the request may be parked.
    asker: Option<Asker>,
    charge: Option<IdCharge>,
    /// The event for the listener's consumer.
    event: Option<Event<'a>>,
}

impl<'a> IncomingReq<'a> {
    /// Offers the request to its listener as soon as its sender can be answered.
    fn resolve(&mut self, child: EndpointRef, matched: &MatchedListener<'_>) {
        // All three were set before the endpoint was created or while it was.
        let (Some(reply_path), Some(neighbour), Some(event)) = (
            self.reply_path.take(),
            self.neighbour.take(),
            self.event.take(),
        ) else {
            return child.end(DestroyCause::NoMemory);
        };
        let listener = matched.endpoint().clone();
        let request = PendingReq {
            pending: PendingRequest::new(self.mad, reply_path, listener, child),
            asker: self.asker,
        };
        match neighbour {
            Neighbour::Resolved(link) => request.resolved(Ok(&link), &event),
            Neighbour::Unresolved(permit) => {
                let _scope = matched.endpoint().memcg_scope();
                let event = OwnedEvent::new(&event);
                start_resolving(
                    &matched.endpoint().globals,
                    permit,
                    UnresolvedReq { request, event },
                );
            }
        }
    }

    /// Creates the endpoint of the request, and the event for the consumer.
    fn create_child(&mut self, matched: &'a MatchedListener<'a>) -> Result<EndpointRef, Error> {
        let _scope = matched.endpoint().memcg_scope();
        let (mad, req, path) = (self.mad, self.req, self.path);
        let reply_path = self.reply_path.as_ref().ok_or(EINVAL)?;
        let globals = mad.globals;
        let listener = matched.endpoint();
        let qp_type = QpType::of_receiver(req.transport).ok_or(EINVAL)?;
        let attachment = mad.attachment(matched, reply_path)?;
        let charge = self.charge.take();
        let child = Endpoint::create_child(listener, listener.ps, qp_type, charge)?;
        let memory = globals.slabs.conns.reserve(Wait::May)?;
        let (tuning, limits) = {
            let listener = listener.inner.lock();
            (listener.tuning, listener.limits_at(Some(mad.port)))
        };
        let comm_id = CommId::new(&globals.comm_ids);
        let tid = mad.agent.transaction_id(comm_id.value());
        let (own_id, guid) = (comm_id.value(), mad.port.guid);
        let machine = Connection::from_req(own_id, guid, tid, mad.header, req, &limits);
        let mut machine = machine.map_err(|_| EINVAL)?;
        let alternates = self.alternates(&path, reply_path, &child, &mut machine);
        let event = match matched {
            MatchedListener::Address(target, listener) => {
                req_event(mad.header, req, target.user_data(listener))
            }
            MatchedListener::Service(_) => Event {
                param: mad.message_param()?,
                ..Event::new(CmEvent::ConnectRequest, 0)
            },
        };
        child::init_child(&child, matched, attachment, |inner| {
            inner.exchange = Exchange::Connection(
                memory.with(Conn {
                    machine,
                    comm_id,
                    remote_ids: None,
                    peer: mad.origin,
                    ah: None,
                    alternates,
                    pkey_index: reply_path.pkey_index,
                    data_lid: reply_path
                        .link
                        .as_ref()
                        .map_or(0, |link| Path::data_lid(req, link)),
                    parked: None,
                    retries: 0,
                    before: cm::State::ReqRcvd,
                }),
            );
            inner.route.path = Some(path);
            inner.tuning = tuning;
            Ok(())
        })?;
        self.event = Some(event);
        Ok(child)
    }

    /// Prepares the alternate path of the REQ, if it has one that can be used. If it cannot, the
    /// REP of `machine` will say that.
    #[inline]
    fn alternates(
        &self,
        path: &Path,
        reply_path: &ReplyPath,
        child: &Endpoint,
        machine: &mut Connection,
    ) -> Option<KBox<Alternates>> {
        // There is a link on InfiniBand, and a REQ with an alternate path is refused elsewhere.
        let link = reply_path
            .link
            .as_ref()
            .filter(|_| machine.has_alternate())?;
        let named = &self.req.alternate;
        let prepared = self.mad.alternate(named, path, link, child.user());
        match prepared.and_then(|path| Alternates::of(path).map_err(|_| Unusable::NoResources)) {
            Ok(alternates) => Some(alternates),
            Err(why) => {
                machine.decline_alternate(why);
                None
            }
        }
    }
}

impl<'a> Acceptor for IncomingReq<'a> {
    type Endpoint = EndpointRef;
    type Listener = &'a MatchedListener<'a>;

    fn find_reply_path(&mut self) -> bool {
        self.reply_path = self.mad.reply_path().ok();
        self.reply_path.is_some()
    }

    fn is_served(&self, service_id: u64) -> bool {
        self.mad.is_served(service_id)
    }

    fn listener(&mut self) -> Option<Self::Listener> {
        let (reply_path, place) = (self.reply_path.as_mut()?, self.place.take()?);
        self.path = reply_path.request_path(self.req);
        reply_path.answer_by(&self.path);
        let key = RequestKey::of_req(self.req, self.path);
        self.mad.match_listener(&key, reply_path, place)
    }

    fn check_backlog(&mut self, matched: &Self::Listener) -> Result<(), Declined> {
        let (listener, globals) = (matched.endpoint(), self.mad.globals);
        (self.asker, self.charge) = Asker::ask(
            self,
            listener.parking(self.mad.port),
            |_, asker| child::takes_requests(listener, asker),
            |own| {
                let (source, comm_id) = (&own.mad.origin, own.req.local_comm_id);
                globals.sources.priority(source, comm_id, globals.now())
            },
        )?;
        Ok(())
    }

    fn create(&mut self, matched: &Self::Listener) -> Result<EndpointRef, Declined> {
        let child = self.create_child(matched).map_err(to_protocol)?;
        Ok(child)
    }

    fn discard(&mut self, child: EndpointRef) {
        child.end(DestroyCause::NoMemory);
    }
}

impl RemoteTable<EndpointRef> for IncomingReq<'_> {
    fn owner(&self, key: &RemoteKey) -> Option<EndpointRef> {
        self.mad.globals.remote_ids.get(key)
    }

    fn enter(&mut self, key: RemoteKey, child: &EndpointRef) -> Option<EndpointRef> {
        (&*self.mad.globals.remote_ids).enter(key, child)
    }

    fn leave(&mut self, key: &RemoteKey, child: &EndpointRef) {
        (&*self.mad.globals.remote_ids).leave(key, child);
    }
}

impl ReqAcceptor for IncomingReq<'_> {
    fn has_pkey(&self, pkey: u16) -> bool {
        let IncomingMad { port, device, .. } = self.mad;
        device.device.find_pkey(port.num, pkey).is_ok()
    }

    fn has_alternate_paths(&self) -> bool {
        self.reply_path
            .as_ref()
            .is_some_and(|reply_path| reply_path.link.is_some())
    }

    fn port_gid(&self) -> Option<Gid> {
        let IncomingMad { port, device, .. } = self.mad;
        device.device.query_gid(port.num, 0).ok()
    }

    fn local_gid(&self) -> Option<Gid> {
        Some(self.mad.received.source().dgid)
    }

    fn takes_qp(&self, matched: &Self::Listener, qp_type: QpType) -> bool {
        matched.endpoint().qp_type.takes(qp_type)
    }

    fn find_neighbour(&mut self) -> bool {
        let (reply_path, globals) = (self.reply_path.as_ref(), self.mad.globals);
        self.neighbour = reply_path
            .and_then(|reply_path| reply_path.neighbour(globals, UnresolvedReq::PURPOSE).ok());
        self.neighbour.is_some()
    }

    fn publish(&mut self, child: &EndpointRef, ids: &RemoteIds) -> bool {
        let claim = RemoteIdClaim::of_comm_id(child, ids);
        let mut inner = child.inner.lock();
        let Some(conn) = inner.exchange.conn_mut() else {
            // The device was removed after the endpoint was attached to it.
            drop(inner);
            drop(claim);
            return false;
        };
        conn.remote_ids = Some(claim);
        conn.comm_id.publish(child);
        true
    }
}
