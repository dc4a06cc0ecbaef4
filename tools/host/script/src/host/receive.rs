// SPDX-License-Identifier: GPL-2.0

//! Messages that come in, and what they do.

use super::{event, sock, Arrived, Cause, Conn, Node, Object, Peer, Refusal, GUID, MISMATCH};
use crate::{
    wire::{self, Mad},
    world::{Endpoint, Event, Sent},
};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::{Connection, DestroyCause},
    cma,
    errno::Errno,
    listen::{ListenView, RequestView},
    private_data::{self, IP_HEADER_LEN},
    reject::Reason,
    service_id::PortSpace,
    ucma::backlog::Admission,
    ucma_abi::CmEvent,
    wire::{Drep, Header, Message, Rej, RejMessage, Rep, Req, Transport, INFO_LEN},
};

impl Node {
    pub(super) fn answer(&mut self, arrived: &Arrived<'_>, message: &Message<'_>) {
        let header = Header::new(message.attribute(), arrived.header.tid);
        let mut mad = Mad([0; wire::MAD_LEN]);
        cmproto::wire::encode(&header, message, &mut mad.0).expect("an answer can be written");
        let at = self.now.as_micros();
        let to = self.who(arrived.from);
        self.wire.push_back(Sent { at, to, mad });
    }

    /// Refuses a REQ or REP that names `own`, or nothing, as the id of this end.
    fn refuse(
        &mut self,
        arrived: &Arrived<'_>,
        refused: RejMessage,
        own: u32,
        peers: u32,
        reason: Reason,
    ) {
        let mut ari = [0; INFO_LEN];
        let mut ari_len = 0;
        if let Reason::INVALID_GID | Reason::INVALID_ALT_GID = reason {
            // Who named a wrong GID is told a right one.
            ari[..16].copy_from_slice(&wire::gid(self.names.local));
            ari_len = 16;
        }
        let rej = Rej {
            local_comm_id: own,
            remote_comm_id: peers,
            message: refused,
            ari_len,
            reason: reason.0,
            ari: &ari,
            private_data: &[],
        };
        self.answer(arrived, &Message::Rej(rej));
    }

    pub(super) fn dispatch(&mut self, from: Gid, bytes: &[u8; wire::MAD_LEN]) {
        let Ok((header, message)) = cmproto::wire::decode(bytes) else {
            return;
        };
        let arrived = Arrived {
            from,
            header: &header,
        };
        self.note(&arrived, &message);
        let by_id = |id: u32| self.by_id.get(&id).copied();
        let found = match &message {
            Message::Req(req) => return self.request(&arrived, req),
            Message::Rep(m) => by_id(m.remote_comm_id),
            Message::Rtu(m) => by_id(m.remote_comm_id),
            Message::Mra(m) => by_id(m.remote_comm_id),
            Message::Dreq(m) => by_id(m.remote_comm_id),
            Message::Drep(m) => by_id(m.remote_comm_id),
            Message::Rej(m) if Reason(m.reason) == Reason::TIMEOUT => {
                let guid = m.ari.first_chunk().copied().map_or(0, u64::from_be_bytes);
                self.by_comm.get(&((guid, from), m.local_comm_id)).copied()
            }
            Message::Rej(m) => by_id(m.remote_comm_id),
            Message::SidrReq(req) => return self.question(&arrived, req),
            Message::SidrRep(m) => by_id(m.request_id),
            Message::Lap(_) | Message::Apr(_) => return,
        };
        match (found, &message) {
            (Some(index), Message::Rep(rep)) if self.receive_rep(index, &arrived, rep) => {}
            (_, Message::Rep(rep)) => {
                let (own, peers) = (rep.remote_comm_id, rep.local_comm_id);
                let reason = Reason::INVALID_COMM_ID;
                self.refuse(&arrived, RejMessage::Rep, own, peers, reason);
            }
            (Some(index), Message::SidrRep(rep)) => self.receive_sidr_rep(index, &arrived, rep),
            (Some(index), _) if self.receive(index, &arrived, &message) => {}
            (_, Message::Dreq(dreq)) => {
                let drep = Drep {
                    local_comm_id: dreq.remote_comm_id,
                    remote_comm_id: dreq.local_comm_id,
                    private_data: &[],
                };
                self.answer(&arrived, &Message::Drep(drep));
            }
            _ => {}
        }
    }

    fn receive(&mut self, index: usize, arrived: &Arrived<'_>, message: &Message<'_>) -> bool {
        let now = self.now;
        let Some(conn) = self.conn(index) else {
            return false;
        };
        if conn.peer != arrived.from {
            return true;
        }
        if !conn.machine.is_for(message) {
            return false;
        }
        let actions = conn.machine.receive(arrived.header, message, now);
        let cause = match message {
            Message::Rej(rej) => Cause::Rej(rej),
            _ => Cause::None,
        };
        self.execute(index, actions, &cause);
        true
    }

    /// False if it is for no connection of the object.
    fn receive_rep(&mut self, index: usize, arrived: &Arrived<'_>, rep: &Rep<'_>) -> bool {
        let now = self.now;
        let Some(conn) = self.conn(index) else {
            return false;
        };
        if conn.peer != arrived.from {
            return true;
        }
        // It has given up, or was ended.
        if conn.machine.is_closed() && !conn.machine.is_for(&Message::Rep(*rep)) {
            return false;
        }
        if conn.machine.wants_rep() && conn.machine.has_refused(rep) {
            let (own, peers) = (rep.remote_comm_id, rep.local_comm_id);
            self.refuse(arrived, RejMessage::Rep, own, peers, Reason::STALE_CONN);
            return true;
        }
        if conn.machine.wants_rep() {
            let peer = (rep.local_ca_guid, arrived.from);
            let names = (peer, rep.local_comm_id, conn.machine.rep_qpn(rep));
            if self.by_comm.contains_key(&(names.0, names.1)) {
                return true;
            }
            if let Some(other) = self.by_qpn.get(&(names.0, names.2)).copied() {
                let (own, peers) = (rep.remote_comm_id, rep.local_comm_id);
                if let Some(conn) = self.conn(index) {
                    conn.machine.refuse_rep(rep);
                }
                self.refuse(arrived, RejMessage::Rep, own, peers, Reason::STALE_CONN);
                self.stale_peer(other, arrived.from);
                return true;
            }
            self.track(index, names);
        }
        let Some(conn) = self.conn(index) else {
            return false;
        };
        let actions = conn
            .machine
            .receive(arrived.header, &Message::Rep(*rep), now);
        self.execute(index, actions, &Cause::Rep(arrived.header, rep));
        true
    }

    fn track(&mut self, index: usize, names: (Peer, u32, u32)) {
        self.by_comm.insert((names.0, names.1), index);
        self.by_qpn.insert((names.0, names.2), index);
        if let Some(conn) = self.conn(index) {
            conn.tracked = Some(names);
        }
    }

    fn stale_peer(&mut self, index: usize, from: Gid) {
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
        let peer = (req.local_ca_guid, arrived.from);
        let known = self.by_comm.get(&(peer, req.local_comm_id)).copied();
        if let Some(index) = known {
            self.note_request(index, "its REQ again");
            if let Some(conn) = self.conn(index).filter(|conn| conn.peer == arrived.from) {
                let actions = conn.machine.duplicate_req(now);
                self.execute(index, actions, &Cause::None);
            }
            return;
        }
        let stale = self.by_qpn.get(&(peer, req.local_qpn)).copied();
        let refusal = match stale {
            Some(_) => Some(Reason::STALE_CONN),
            None => match self.take(arrived, req) {
                Ok(()) => return,
                Err(refusal) => refusal,
            },
        };
        if let Some(reason) = refusal {
            self.refuse(arrived, RejMessage::Req, 0, req.local_comm_id, reason);
        }
        if let Some(other) = stale {
            self.stale_peer(other, arrived.from);
        }
    }

    /// Whether packets of this address come and go by the one interface.
    fn leads_back(&self, local: &SockAddr, peer: &SockAddr) -> bool {
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
    pub(super) fn find_listener(
        &self,
        service: u64,
        private_data: &[u8],
    ) -> Option<(usize, PortSpace)> {
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
        let private_data::Header::Ip(ip) = &header else {
            return None;
        };
        self.leads_back(&ip.dst, &ip.src).then_some(found)
    }

    fn take(&mut self, arrived: &Arrived<'_>, req: &Req<'_>) -> Result<(), Refusal> {
        if !self.is_served(req.service_id) {
            return Err(Some(Reason::INVALID_SERVICE_ID));
        }
        if req.pkey & 0x7fff != 0x7fff {
            return Err(Some(Reason::INVALID_GID));
        }
        if !req.alternate.is_empty() {
            return Err(Some(Reason::INVALID_ALT_GID));
        }
        let (listener, space) = self
            .find_listener(req.service_id, req.private_data)
            .ok_or(MISMATCH)?;
        if req.transport != Transport::Rc || space != PortSpace::Tcp {
            return Err(MISMATCH);
        }
        let comm_id = self.comm_id();
        let tid = 0x1000_0000_0000 | u64::from(comm_id);
        let limits = self.tuning.limits();
        let mut machine =
            Connection::from_req(comm_id, GUID, tid, arrived.header, req, &limits).map_err(Some)?;
        machine.set_pace(self.pace());
        let child = self.object(Object {
            conn: Some(Conn {
                machine,
                peer: arrived.from,
                is_active: false,
                tracked: None,
            }),
            psn: comm_id & 0x00ff_ffff,
            ..Object::new(cma::State::Connect, false)
        });
        self.by_id.insert(comm_id, child);
        let peer = (req.local_ca_guid, arrived.from);
        self.track(child, (peer, req.local_comm_id, req.local_qpn));
        self.offer(listener, child, arrived, req);
        Ok(())
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
            .ok_or(Errno::ECONNABORTED)
            .and_then(|listen| listen.backlog.admit(parking));
        if let Err(errno) = admitted {
            if errno == Errno::ENOSPC {
                let _ = self.reject(child, Reason::NO_RESOURCES, &[]);
            }
            let cause = match errno {
                Errno::ENOMEM | Errno::ENOSPC => DestroyCause::NoMemory,
                _ => DestroyCause::User,
            };
            self.destroy(child, cause);
        }
        admitted.ok()
    }
}
