// SPDX-License-Identifier: GPL-2.0

//! Messages that come in, and what they do.

use super::{event, sock, Arrived, Cause, Conn, Node, Object, GUID};
use crate::{
    wire::{self, Mad},
    world::{Endpoint, Event, Sent},
};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::{Connection, DestroyCause},
    cma,
    listen::{ListenView, RequestView},
    node::{
        self, Admission, Declined, ExchangeView, Passive, PassiveReq, Refused, RemoteIds,
        RemoteKey, RemoteTable, Request, RequestEnd, Response, Route, Tables, Verdict,
    },
    origin::Origin,
    private_data::{self, IP_HEADER_LEN},
    qp::QpType,
    service_id::PortSpace,
    ucma_abi::CmEvent,
    wire::{Message, Req},
};

impl Tables for Node {
    type Endpoint = usize;

    fn by_comm_id(&self, comm_id: u32) -> Option<usize> {
        self.by_id.get(&comm_id).copied()
    }

    fn by_remote(&self, key: &RemoteKey) -> Option<usize> {
        self.remotes.0.get(key).copied()
    }
}

impl Node {
    /// Does what the node itself does about a message.
    pub(super) fn respond(&mut self, arrived: &Arrived<'_>, response: &Response) {
        if let Response::Answer(answer) = response {
            let mut mad = Mad([0; wire::MAD_LEN]);
            answer.encode(arrived.header, &mut mad.0);
            let at = self.now.as_micros();
            let to = self.who(arrived.from);
            self.wire.push_back(Sent { at, to, mad });
        }
    }

    /// Does what is to be done about a request or reply that has no effect.
    fn refused(&mut self, arrived: &Arrived<'_>, refused: &Refused<usize>) {
        self.respond(arrived, &refused.response);
        if let Some(other) = refused.stale {
            self.stale_peer(other, arrived.from);
        }
    }

    pub(super) fn dispatch(&mut self, from: Origin, bytes: &[u8; wire::MAD_LEN]) {
        let Ok((header, message)) = cmproto::wire::decode(bytes) else {
            return;
        };
        let arrived = Arrived {
            from,
            header: &header,
        };
        self.note(&arrived, &message);
        match node::route(self, from, &message) {
            Route::Req(req) => self.request(&arrived, req),
            Route::SidrReq(req) => self.receive_sidr_req(&arrived, req),
            Route::Endpoint(index) => self.receive(index, &arrived, &message),
            Route::Nobody(response) => self.respond(&arrived, &response),
        }
    }

    fn exchange(&self, index: usize) -> ExchangeView<'_> {
        let object = self.objects.get(index);
        match object.map(|object| (&object.conn, &object.sidr)) {
            Some((Some(conn), _)) => ExchangeView::Connection(&conn.machine, conn.peer),
            Some((None, Some(sidr))) => ExchangeView::Resolution(&sidr.machine, sidr.peer),
            Some((None, None)) | None => ExchangeView::None,
        }
    }

    fn receive(&mut self, index: usize, arrived: &Arrived<'_>, message: &Message<'_>) {
        let now = self.now;
        match node::judge(&self.exchange(index), arrived.from, message) {
            Verdict::Nobody(response) => return self.respond(arrived, &response),
            Verdict::Claim(ids) => {
                if !self.claim(index, arrived, &ids, message) {
                    return;
                }
            }
            Verdict::Deliver => {}
        }
        if let (Some(sidr), Message::SidrRep(rep)) = (self.sidr(index), message) {
            let actions = sidr.machine.receive(message, now);
            return self.execute_sidr(index, actions, Some(rep));
        }
        let Some(conn) = self.conn(index) else {
            return;
        };
        let actions = conn.machine.receive(arrived.header, message, now);
        let cause = match message {
            Message::Rej(rej) => Cause::Rej(rej),
            Message::Rep(rep) => Cause::Rep(arrived.header, rep),
            _ => Cause::None,
        };
        self.execute(index, actions, &cause);
    }

    /// Makes the names in the REP that `message` is those of the peer; false if it may not have them.
    fn claim(
        &mut self,
        index: usize,
        arrived: &Arrived<'_>,
        ids: &RemoteIds,
        message: &Message<'_>,
    ) -> bool {
        let object = self.objects.get_mut(index);
        let conn = object.and_then(|object| object.conn.as_mut());
        let (Some(conn), Message::Rep(rep)) = (conn, message) else {
            return false;
        };
        match node::claim_rep(&mut self.remotes, ids, &index, &mut conn.machine, rep) {
            Ok(()) => {
                conn.tracked = Some(*ids);
                true
            }
            Err(refused) => {
                self.refused(arrived, &refused);
                false
            }
        }
    }

    fn stale_peer(&mut self, index: usize, from: Origin) {
        let now = self.now;
        self.note_request(index, "stale peer");
        if let Some(conn) = self.conn(index).filter(|conn| conn.peer == from) {
            let actions = conn.machine.stale_peer(now);
            self.execute(index, actions, &Cause::None);
        }
    }

    // Requests
    // ------------------------------------------------------------------------------------------

    fn request(&mut self, arrived: &Arrived<'_>, req: &Req<'_>) {
        let now = self.now;
        let mut incoming = IncomingReq {
            node: self,
            arrived,
            req,
        };
        match node::request(&mut incoming, arrived.from, req) {
            Request::Duplicate(index) => {
                self.note_request(index, "its REQ again");
                if let Some(conn) = self.conn(index).filter(|conn| conn.peer == arrived.from) {
                    let actions = conn.machine.duplicate_req(now);
                    self.execute(index, actions, &Cause::None);
                }
            }
            Request::New(child, (listener, _)) => self.offer(listener, child, arrived, req),
            Request::Refused(refused) => self.refused(arrived, &refused),
            Request::Nothing => {}
        }
    }

    /// Whether packets of this address come and go by the one interface.
    fn has_route_back(&self, local: &SockAddr, peer: &SockAddr) -> bool {
        let is_near = match peer {
            SockAddr::V4 { addr, .. } => addr[0] == 10,
            SockAddr::V6 { addr, .. } => addr[0] == 0xfd,
            _ => false,
        };
        is_near && local.to_gid() == sock(self.names.local, 0).to_gid()
    }

    /// Whether anybody listens for a service.
    pub(super) fn is_served(&self, service: u64) -> bool {
        let mut listeners = self
            .objects
            .iter()
            .filter_map(|object| object.listen.as_ref());
        listeners.any(|listen| listen.service == service)
    }

    /// The listener that a request is for, and its port space.
    pub(super) fn find_listener(&self, service: u64, private_data: &[u8]) -> Option<Listener> {
        let header = private_data::Header::decode(private_data).ok()?;
        let view = RequestView {
            header: &header,
            interface: Some(1),
            port: 1,
        };
        let found = self
            .objects
            .iter()
            .enumerate()
            .find_map(|(index, object)| {
                let listen = object.listen.as_ref()?;
                let listener = ListenView {
                    addr: &listen.addr,
                    afonly: listen.afonly,
                    bound_if: 0,
                    port: None,
                };
                let is_for = listen.service == service && listener.accepts(&view);
                is_for.then_some((index, listen.space))
            })?;
        match &header {
            private_data::Header::Ip(ip) if self.has_route_back(&ip.dst, &ip.src) => Some(found),
            _ => None,
        }
    }

    /// Whether a listener has room for one more request, of which as many as `parking` are parked.
    pub(super) fn check_backlog(&self, listener: usize, parking: u32) -> Result<(), Declined> {
        let object = self.objects.get(listener);
        let listen = object.and_then(|object| object.listen.as_ref());
        listen.map_or(Ok(()), |listen| {
            listen.backlog.next_admission(parking).map(|_| ())
        })
    }

    fn offer(&mut self, listener: usize, child: usize, arrived: &Arrived<'_>, req: &Req<'_>) {
        let Some(admission) = self.admit(listener, child) else {
            return;
        };
        let at = self.now.as_micros();
        self.events.push_back(Event {
            child: Some(Endpoint(child)),
            private: req
                .private_data
                .get(IP_HEADER_LEN..)
                .unwrap_or(&[])
                .to_vec(),
            responder: req.initiator_depth,
            initiator: req.responder_resources,
            flow: req.flow_control.into(),
            retry: req.retry_count,
            rnr: req.rnr_retry_count,
            srq: req.srq.into(),
            qpn: req.local_qpn,
            vendor: req.vendor_id,
            attr_mod: arrived.header.attr_mod,
            ..event(CmEvent::ConnectRequest as u32, at, listener, 0)
        });
        let Some(conn) = self.conn(child) else {
            return;
        };
        match admission {
            Admission::Queued => {
                let _ = conn.machine.prepare_mra(Connection::SERVICE_TIMEOUT);
            }
            Admission::Parked => {
                let parked = conn.machine.park(Connection::PARKING_TIMEOUT);
                self.execute(child, parked.unwrap_or_default(), &Cause::None);
            }
        }
    }

    /// Counts a request in the backlog of its listener, or ends it.
    pub(super) fn admit(&mut self, listener: usize, child: usize) -> Option<Admission> {
        // Questions for datagram services are not parked.
        let parking = match self.conn(child) {
            Some(_) => self.tuning.parking(),
            None => 0,
        };
        let listen = self
            .objects
            .get_mut(listener)
            .and_then(|object| object.listen.as_mut());
        let admitted = listen
            .ok_or(Declined::Refused)
            .and_then(|listen| listen.backlog.admit(parking));
        if let Err(declined) = admitted {
            let end = match self.conn(child) {
                Some(_) => RequestEnd::req(declined),
                None => RequestEnd::sidr_req(declined),
            };
            if let Some(reason) = end.reject {
                let _ = self.reject(child, reason, &[]);
            }
            self.destroy(child, end.cause);
        }
        admitted.ok()
    }
}

/// A listener, and its port space.
pub(super) type Listener = (usize, PortSpace);

/// A REQ that has come in.
struct IncomingReq<'a> {
    node: &'a mut Node,
    arrived: &'a Arrived<'a>,
    req: &'a Req<'a>,
}

impl Passive for IncomingReq<'_> {
    type Endpoint = usize;
    type Listener = Listener;

    fn find_reply_path(&mut self) -> bool {
        true
    }

    fn is_served(&self, service_id: u64) -> bool {
        self.node.is_served(service_id)
    }

    fn listener(&mut self) -> Option<Listener> {
        let req = self.req;
        self.node.find_listener(req.service_id, req.private_data)
    }

    fn check_backlog(&mut self, (listener, _): &Listener) -> Result<(), Declined> {
        self.node
            .check_backlog(*listener, self.node.tuning.parking())
    }

    fn create(&mut self, _: &Listener) -> Result<usize, Declined> {
        let (node, header, req) = (&mut *self.node, self.arrived.header, self.req);
        let comm_id = node.comm_id();
        let tid = 0x1000_0000_0000 | u64::from(comm_id);
        let limits = node.tuning.limits();
        let machine = Connection::from_req(comm_id, GUID, tid, header, req, &limits);
        let mut machine = machine.map_err(|_| Declined::Refused)?;
        machine.set_retry_policy(node.retry_policy());
        Ok(node.object(Object {
            conn: Some(Conn {
                machine,
                peer: self.arrived.from,
                is_active: false,
                tracked: None,
            }),
            psn: comm_id & 0x00ff_ffff,
            ..Object::new(cma::State::Connect, false)
        }))
    }

    fn discard(&mut self, child: usize) {
        self.node.destroy(child, DestroyCause::NoMemory);
    }
}

impl RemoteTable<usize> for IncomingReq<'_> {
    fn owner(&self, key: &RemoteKey) -> Option<usize> {
        self.node.remotes.owner(key)
    }

    fn enter(&mut self, key: RemoteKey, index: &usize) -> Option<usize> {
        self.node.remotes.enter(key, index)
    }

    fn leave(&mut self, key: &RemoteKey, index: &usize) {
        self.node.remotes.leave(key, index);
    }
}

impl PassiveReq for IncomingReq<'_> {
    fn has_pkey(&self, pkey: u16) -> bool {
        pkey & 0x7fff == 0x7fff
    }

    fn has_alternate_paths(&self) -> bool {
        false
    }

    fn port_gid(&self) -> Option<Gid> {
        Some(Gid(wire::gid(self.node.names.local)))
    }

    fn local_gid(&self) -> Option<Gid> {
        self.port_gid()
    }

    fn takes_qp(&self, (_, space): &Listener, qp_type: QpType) -> bool {
        (*space, qp_type) == (PortSpace::Tcp, QpType::RC)
    }

    fn find_neighbour(&mut self) -> bool {
        true
    }

    fn publish(&mut self, child: &usize, ids: &RemoteIds) -> bool {
        let Some(conn) = self.node.conn(*child) else {
            return false;
        };
        conn.tracked = Some(*ids);
        let comm_id = conn.machine.local_comm_id();
        self.node.by_id.insert(comm_id, *child);
        true
    }
}
