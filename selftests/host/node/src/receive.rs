// SPDX-License-Identifier: GPL-2.0

//! The functions that carry out the decisions of `cmproto::node` about a message.

use cmproto::{
    addr::Gid,
    cm::{self, Connection, DestroyCause},
    node::{
        self, Acceptor, Asker, Declined, Entry, KnownSidr, Refused, RemoteIds, RemoteKey,
        RemoteTable, ReqAcceptor, Request, Response, Route, SidrAcceptor, SidrRequest, Verdict,
    },
    origin::Origin,
    qp::QpType,
    sidr::Resolution,
    wire::{self, Message, Req, SidrReq, MAD_LEN},
};

use crate::{
    alternate::Paths,
    endpoint::Machine,
    environment::{Arrived, Cause, Environment},
    node::{transaction_id, Node, Plant},
    tables::EpId,
};

impl<E: Environment> Node<E> {
    /// Handles a message, if the bytes are one.
    pub fn receive(&mut self, origin: Origin, mad: &[u8; MAD_LEN]) {
        let Ok((header, message)) = wire::decode(mad) else {
            return;
        };
        let arrived = Arrived {
            origin,
            mad,
            header: &header,
            message: &message,
        };
        match node::route(&self.tables, origin, &message) {
            Route::Req(req) => self.request(&arrived, req),
            Route::SidrReq(req) => self.sidr_request(&arrived, req),
            Route::Endpoint(ep) => self.receive_for(ep, &arrived),
            Route::Nobody(response) => self.respond(&arrived, &response),
        }
    }

    /// Handles a message that names `ep`.
    fn receive_for(&mut self, ep: EpId, arrived: &Arrived<'_>) {
        let now = self.now;
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return;
        };
        match node::judge(&endpoint.exchange(), arrived.origin, arrived.message) {
            Verdict::Nobody(response) => return self.respond(arrived, &response),
            Verdict::Claim(ids) => {
                if !self.claim(ep, arrived, &ids) {
                    return;
                }
            }
            Verdict::Deliver => {}
        }
        if let (true, Message::Lap(lap)) = (self.is_ib, arrived.message) {
            return self.receive_lap(ep, arrived, lap);
        }
        if let Message::Rej(rej) = arrived.message {
            self.answers.note_rej(rej, arrived.origin, now);
        }
        let _ = self.step(ep, &Cause::Message(arrived), |machine| {
            Ok(machine.receive(arrived.header, arrived.message, now))
        });
    }

    /// Makes the ids in a REP, or the queue pair that an RTU confirms, those of the peer of `ep`;
    /// false if it may not have them.
    fn claim(&mut self, ep: EpId, arrived: &Arrived<'_>, ids: &RemoteIds) -> bool {
        E::claim(self, ids);
        let Message::Rep(rep) = arrived.message else {
            let confirmed = self.confirm(ep, ids);
            if confirmed.is_err() {
                let now = self.now;
                let _ = self.step(ep, &Cause::Message(arrived), |machine| {
                    Ok(machine.connection_mut()?.refuse_rtu(now).into())
                });
            }
            return confirmed.map_err(|other| self.stale_peer(other)).is_ok();
        };
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return false;
        };
        let Machine::Connection(machine) = &mut endpoint.machine else {
            return false;
        };
        match node::claim_rep(&mut self.tables.remote_ids, ids, &ep, machine, rep) {
            Ok(()) => {
                endpoint.remote_ids = Some(*ids);
                endpoint.is_confirmed = true;
                true
            }
            Err(refused) => {
                self.refused(arrived, &refused);
                false
            }
        }
    }

    /// Enters the queue pair of the peer of `ep`; fails with the endpoint that has it.
    pub(crate) fn confirm(&mut self, ep: EpId, ids: &RemoteIds) -> Result<(), EpId> {
        self.sources.confirm(&ids.peer.origin, self.now);
        node::confirm(&mut self.tables.remote_ids, ids, &ep)?;
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.is_confirmed = true;
        }
        Ok(())
    }

    /// Asks the peer of `ep` whether it still has the connection.
    pub(crate) fn stale_peer(&mut self, ep: EpId) {
        let now = self.now;
        let _ = self.step(ep, &Cause::StalePeer, |machine| {
            Ok(machine.connection_mut()?.stale_peer(now).into())
        });
    }

    /// Does what is to be done about a request or reply that has no effect.
    fn refused(&mut self, arrived: &Arrived<'_>, refused: &Refused<EpId>) {
        self.respond(arrived, &refused.response);
        if let Some(other) = refused.stale {
            self.stale_peer(other);
        }
    }

    /// Does what the node itself does about a message.
    fn respond(&mut self, arrived: &Arrived<'_>, response: &Response) {
        if let Response::Answer(answer) = response {
            let (now, to) = (self.now, arrived.origin);
            if !self.answers.may_answer(answer.attribute(), to, now) {
                return;
            }
            let mut mad = [0; MAD_LEN];
            answer.encode(arrived.header, &mut mad);
            E::send(self, None, arrived.origin, answer.attribute(), &mad);
        }
    }

    fn request(&mut self, arrived: &Arrived<'_>, req: &Req<'_>) {
        let mut incoming = Incoming {
            node: self,
            arrived,
            asker: None,
        };
        match node::request(&mut incoming, arrived.origin, req) {
            Request::Duplicate(ep) => self.duplicate_req(ep, arrived),
            Request::New(ep, _) => self.new_request(ep, arrived),
            Request::Refused(refused) => self.refused(arrived, &refused),
            Request::Nothing => {}
        }
    }

    fn sidr_request(&mut self, arrived: &Arrived<'_>, req: &SidrReq<'_>) {
        let mut incoming = Incoming {
            node: self,
            arrived,
            asker: None,
        };
        match node::sidr_request(&mut incoming, arrived.header, req) {
            SidrRequest::Duplicate(ep) => self.duplicate_req(ep, arrived),
            // The endpoint outlives its user, and remembers the answer.
            SidrRequest::Answered(_) => {
                let key = (arrived.origin, req.request_id);
                if let Some(ep) = self.tables.sidr_requests.get(&key) {
                    self.duplicate_req(*ep, arrived);
                }
            }
            SidrRequest::New(ep, _) => self.new_request(ep, arrived),
            SidrRequest::Refused(response) => self.respond(arrived, &response),
            SidrRequest::Nothing => {}
        }
    }

    fn new_request(&mut self, ep: EpId, arrived: &Arrived<'_>) {
        // Nothing is to be done yet, but to see what was created.
        let _ = self.step(ep, &Cause::New, |_| Ok(cm::Actions::default().into()));
        E::reach(self, ep, arrived);
    }

    fn duplicate_req(&mut self, ep: EpId, arrived: &Arrived<'_>) {
        let now = self.now;
        let _ = self.step(ep, &Cause::Message(arrived), |machine| {
            Ok(machine.duplicate_req(now))
        });
    }
}

/// A REQ or SIDR_REQ that has come in.
struct Incoming<'a, E: Environment> {
    node: &'a mut Node<E>,
    arrived: &'a Arrived<'a>,
    asker: Option<Asker>,
}

impl<E: Environment> Incoming<'_, E> {
    /// Returns true if a planted bug makes the node believe that it knows nobody.
    fn is_forgetful(&self) -> bool {
        self.node.plant == Some(Plant::NoDuplicates)
    }

    /// The key in the table of SIDR requests, if it is a SIDR_REQ.
    fn sidr_key(&self) -> Option<(Origin, u32)> {
        match self.arrived.message {
            Message::SidrReq(req) => Some((self.arrived.origin, req.request_id)),
            _ => None,
        }
    }
}

impl<E: Environment> Acceptor for Incoming<'_, E> {
    type Endpoint = EpId;
    type Listener = EpId;

    fn find_reply_path(&mut self) -> bool {
        true
    }

    fn is_served(&self, service_id: u64) -> bool {
        let mut listeners = self.node.listeners.values();
        listeners.any(|listener| listener.service_id == service_id)
    }

    fn listener(&mut self) -> Option<EpId> {
        match self.arrived.message {
            Message::Req(req) => self.node.find_listener(req.service_id, req.private_data),
            Message::SidrReq(req) => self.node.find_listener(req.service_id, req.private_data),
            _ => None,
        }
    }

    fn check_backlog(&mut self, listener: &EpId) -> Result<(), Declined> {
        let Message::Req(req) = self.arrived.message else {
            return self.node.next_admission(*listener, None).map(|_| ());
        };
        let (origin, comm_id) = (self.arrived.origin, req.local_comm_id);
        (self.asker, ()) = Asker::ask(
            self.node,
            self.node.tuning.parking(),
            |node, asker| Ok((node.next_admission(*listener, asker)?, ())),
            |node| node.sources.priority(&origin, comm_id, node.now),
        )?;
        Ok(())
    }

    fn create(&mut self, listener: &EpId) -> Result<EpId, Declined> {
        let (node, header) = (&mut *self.node, self.arrived.header);
        let machine = match self.arrived.message {
            Message::Req(req) => {
                let comm_id = node.tables.comm_ids.reserve();
                let (tid, limits) = (transaction_id(comm_id), node.tuning.limits());
                match Connection::from_req(comm_id, node.guid, tid, header, req, &limits) {
                    Ok(machine) => Machine::Connection(machine),
                    Err(_) => {
                        node.tables.comm_ids.free(comm_id);
                        return Err(Declined::Refused);
                    }
                }
            }
            Message::SidrReq(req) => {
                Machine::Resolution(Resolution::from_req(header, req, Resolution::MEMORY))
            }
            _ => return Err(Declined::Refused),
        };
        let watch = node.env.watch(self.arrived);
        let ep = node.insert(machine, self.arrived.origin, Some(*listener), watch);
        if let Ok(endpoint) = node.live(ep) {
            endpoint.asker = self.asker;
            if let Message::Req(req) = self.arrived.message {
                endpoint.paths = Paths::of_req(req);
            }
        }
        Ok(ep)
    }

    fn discard(&mut self, ep: EpId) {
        self.node.destroy(ep, DestroyCause::NoMemory);
    }
}

impl<E: Environment> RemoteTable<EpId> for Incoming<'_, E> {
    fn owner(&self, key: &RemoteKey) -> Option<EpId> {
        let owner = self.node.tables.remote_ids.owner(key);
        owner.filter(|_| !self.is_forgetful())
    }

    fn enter(&mut self, key: RemoteKey, ep: &EpId) -> Option<EpId> {
        let owner = self.node.tables.remote_ids.enter(key, ep);
        owner.filter(|_| !self.is_forgetful())
    }

    fn leave(&mut self, key: &RemoteKey, ep: &EpId) {
        self.node.tables.remote_ids.leave(key, ep);
    }
}

impl<E: Environment> ReqAcceptor for Incoming<'_, E> {
    fn has_pkey(&self, pkey: u16) -> bool {
        pkey & 0x7fff == 0x7fff
    }

    fn has_alternate_paths(&self) -> bool {
        false
    }

    fn port_gid(&self) -> Option<Gid> {
        Some(self.node.gid)
    }

    fn local_gid(&self) -> Option<Gid> {
        Some(self.node.gid)
    }

    fn takes_qp(&self, listener: &EpId, qp_type: QpType) -> bool {
        let listener = self.node.listeners.get(listener);
        listener.is_some_and(|listener| listener.qp_type.takes(qp_type))
    }

    fn find_neighbour(&mut self) -> bool {
        true
    }

    fn publish(&mut self, ep: &EpId, ids: &RemoteIds) -> bool {
        E::claim(self.node, ids);
        let Some(endpoint) = self.node.endpoints.get_mut(ep) else {
            return false;
        };
        endpoint.remote_ids = Some(*ids);
        if let Some(comm_id) = endpoint.comm_id() {
            self.node.tables.comm_ids.publish(comm_id, *ep);
        }
        true
    }
}

impl<E: Environment> SidrAcceptor for Incoming<'_, E> {
    fn known(&self) -> KnownSidr<EpId> {
        let ep = self
            .sidr_key()
            .and_then(|key| self.node.tables.sidr_requests.get(&key));
        let endpoint = ep.and_then(|ep| self.node.endpoints.get(ep));
        match (ep, endpoint.and_then(|own| own.machine.resolution())) {
            (Some(_), Some(answer)) if answer.is_answered() => KnownSidr::Answered(answer.clone()),
            (Some(ep), Some(_)) => KnownSidr::Pending(*ep),
            _ => KnownSidr::Nothing,
        }
    }

    fn takes_datagrams(&self, listener: &EpId) -> bool {
        let listener = self.node.listeners.get(listener);
        listener.is_some_and(|listener| listener.qp_type.takes(QpType::UD))
    }

    fn enter(&mut self, ep: &EpId) -> Entry {
        let Some(key) = self.sidr_key() else {
            return Entry::Gone;
        };
        let before = self.node.tables.sidr_requests.insert(key, *ep);
        // The answer to another request is forgotten.
        for (ep, own) in [(before, None), (Some(*ep), Some(key))] {
            let endpoint = ep.and_then(|ep| self.node.endpoints.get_mut(&ep));
            if let Some(endpoint) = endpoint {
                endpoint.sidr_request = own;
            }
        }
        Entry::New
    }
}
