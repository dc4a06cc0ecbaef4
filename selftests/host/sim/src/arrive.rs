// SPDX-License-Identifier: GPL-2.0

//! How a node carries out what `cmproto::node` decides about a message, and what is judged on the way.

use cmproto::{
    addr::Gid,
    cm::{Actions, Connection, DestroyCause, Limits, State},
    node::{
        self, Declined, ExchangeView, Passive, PassiveReq, Refused, RemoteIds, RemoteKey,
        RemoteTable, Request, Response, Route, Tables, Verdict,
    },
    origin::Origin,
    qp::QpType,
    time::{Instant, TimeCode},
    ucma_abi::CmEvent,
    wire::{self, Attribute, Header, Message, Req, MAD_LEN},
};

use crate::{
    endpoint::Endpoint,
    node::{Effect, Node, Service},
    rules::{Rule, Watch},
    script::{Plant, Side, Tag},
    tables::EpId,
};

/// A message, and where it came from.
pub struct Arrived<'a> {
    /// Whose connection it was sent for, for the record only.
    pub tag: Tag,
    pub origin: Origin,
    pub mad: &'a [u8; MAD_LEN],
    pub now: Instant,
}

impl Arrived<'_> {
    /// A number that is the same for the same message, and for hardly any other.
    fn digest(&self) -> u64 {
        let words = self.mad.chunks_exact(8);
        words.fold(0x9e37_79b9_7f4a_7c15, |sum, word| {
            let word = word.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
            (sum.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd)
        })
    }
}

impl Tables for Node {
    type Endpoint = EpId;

    fn by_comm_id(&self, comm_id: u32) -> Option<EpId> {
        self.ids.get(comm_id)
    }

    fn by_remote(&self, key: &RemoteKey) -> Option<EpId> {
        self.remotes.get(key)
    }
}

impl Node {
    /// Handles a message; false if it is none.
    pub fn receive(&mut self, arrived: &Arrived<'_>) -> bool {
        let Ok((header, message)) = wire::decode(arrived.mad) else {
            return false;
        };
        match node::route(self, arrived.origin, &message) {
            Route::Req(req) => self.request(arrived, &header, req),
            Route::SidrReq(req) => self.receive_sidr_req(arrived, &header, req),
            Route::Endpoint(ep) => self.receive_for(arrived, &header, ep, &message),
            Route::Nobody(response) => self.respond(arrived, &header, &response),
        }
        true
    }

    /// What `ep` is engaged in.
    fn exchange(&self, ep: EpId) -> ExchangeView<'_> {
        if let Some(endpoint) = self.endpoints.get(&ep) {
            ExchangeView::Connection(&endpoint.machine, endpoint.peer)
        } else if let Some(datagram) = self.datagrams.get(&ep) {
            ExchangeView::Resolution(&datagram.machine, datagram.peer)
        } else {
            ExchangeView::None
        }
    }

    /// Handles a message that names `ep`.
    fn receive_for(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        ep: EpId,
        message: &Message<'_>,
    ) {
        match node::judge(&self.exchange(ep), arrived.origin, message) {
            Verdict::Nobody(response) => return self.respond(arrived, header, &response),
            Verdict::Claim(ids) => {
                if !self.claim(arrived, header, ep, &ids, message) {
                    return;
                }
            }
            Verdict::Deliver => {}
        }
        if self.datagrams.contains_key(&ep) {
            return self.answered(arrived, ep, message);
        }
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let before = endpoint.machine.state();
        if let Message::Mra(mra) = message {
            let wait = TimeCode::new(mra.service_timeout).to_duration();
            endpoint.watch.receive_mra(mra.message, wait, arrived.now);
        }
        self.feed(arrived, ep, message.attribute(), |machine| {
            machine.receive(header, message, arrived.now)
        });
        let Message::Dreq(dreq) = message else {
            return;
        };
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return;
        };
        // S4: who hears that its peer is gone, is not connected any more.
        let after = endpoint.machine.state();
        let names_qpn = dreq.remote_qpn_eecn == endpoint.machine.local_qpn();
        if before == State::Established && after == State::Established && names_qpn {
            let judgement = endpoint.watch.violation(Rule::S4, "a DREQ did not end it");
            self.judge(judgement);
        }
        if self.setup.plant == Some(Plant::RepeatedEvent) && before == State::DreqRcvd {
            self.tell(ep, CmEvent::Disconnected, 0, arrived.now);
        }
    }

    /// Makes the names in the REP that `message` is those of `ep`'s peer; false if it may not have them.
    fn claim(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        ep: EpId,
        ids: &RemoteIds,
        message: &Message<'_>,
    ) -> bool {
        self.note_reuse(ids);
        let (Some(endpoint), Message::Rep(rep)) = (self.endpoints.get_mut(&ep), message) else {
            return false;
        };
        let machine = &mut endpoint.machine;
        match node::claim_rep(&mut self.remotes, ids, &ep, machine, rep) {
            Ok(()) => {
                endpoint.tracked = Some(*ids);
                true
            }
            Err(refused) => {
                self.refused(arrived, header, &refused);
                false
            }
        }
    }

    /// Does what is to be done about a request or reply that has no effect.
    fn refused(&mut self, arrived: &Arrived<'_>, header: &Header, refused: &Refused<EpId>) {
        self.respond(arrived, header, &refused.response);
        if let Some(other) = refused.stale {
            self.stale_peer(arrived, other);
        }
    }

    /// The peer claims to have forgotten the connection of `ep`.
    fn stale_peer(&mut self, arrived: &Arrived<'_>, ep: EpId) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        if endpoint.peer != arrived.origin {
            return;
        }
        let before = endpoint.machine.state();
        let actions = endpoint.machine.stale_peer(arrived.now);
        self.execute(ep, before, actions, arrived.now);
    }

    /// Gives a message to the state machine of `ep`. S6: if it has changed the state before, it
    /// changes nothing now.
    fn feed(
        &mut self,
        arrived: &Arrived<'_>,
        ep: EpId,
        kind: Attribute,
        input: impl FnOnce(&mut Connection) -> Actions,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let digest = arrived.digest();
        let applied = endpoint.watch.has_applied(kind, digest);
        if !applied && kind == Attribute::Dreq {
            endpoint.watch.supersede(kind);
        }
        let is_mra = kind == Attribute::Mra;
        let copy = (applied || is_mra).then(|| endpoint.machine.clone());
        let before = endpoint.machine.state();
        endpoint.watch.receive(kind);
        let actions = input(&mut endpoint.machine);
        let judgement = match &copy {
            Some(copy) if applied => endpoint.watch.repeated(copy, &endpoint.machine),
            _ => Ok(()),
        };
        let extended = is_mra && copy.is_some_and(|copy| copy != endpoint.machine);
        if endpoint.machine.state() != before || extended {
            endpoint.watch.apply(kind, digest);
        }
        self.judge(judgement);
        self.execute(ep, before, actions, arrived.now);
    }

    /// Handles a REQ.
    fn request(&mut self, arrived: &Arrived<'_>, header: &Header, req: &Req<'_>) {
        let mut incoming = IncomingReq {
            node: self,
            arrived,
            header,
            req,
        };
        match node::request(&mut incoming, arrived.origin, req) {
            Request::Duplicate(ep) => self.duplicate_req(arrived, ep),
            Request::New(ep, Service) => {
                self.execute(ep, State::ReqRcvd, Actions::default(), arrived.now);
                self.effects.push(Effect::Reach { ep });
            }
            Request::Refused(refused) => self.refused(arrived, header, &refused),
            Request::Nothing => {}
        }
    }

    fn duplicate_req(&mut self, arrived: &Arrived<'_>, ep: EpId) {
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return;
        };
        if endpoint.peer != arrived.origin {
            return;
        }
        let planted = self.setup.plant == Some(Plant::EagerRep);
        self.feed(arrived, ep, Attribute::Req, |machine| {
            if planted && machine.state() == State::RepSent {
                return machine.timeout(machine.deadline().unwrap_or(arrived.now));
            }
            machine.duplicate_req(arrived.now)
        });
    }

    /// Counts a queue pair that is in use again while its last connection is in time wait.
    fn note_reuse(&mut self, ids: &RemoteIds) {
        let is_last = |e: &Endpoint| {
            let machine = &e.machine;
            machine.state() == State::Timewait
                && (machine.remote_ca_guid(), machine.remote_qpn()) == (ids.peer.guid, ids.qpn)
        };
        if self.endpoints.values().any(is_last) {
            self.reused += 1;
        }
    }

    /// Does what the node itself does about a message.
    pub(crate) fn respond(&mut self, arrived: &Arrived<'_>, header: &Header, response: &Response) {
        let Response::Answer(answer) = response else {
            return;
        };
        let kind = answer.attribute();
        if kind == Attribute::Drep && self.setup.plant == Some(Plant::NoConfirm) {
            return;
        }
        // As many as the module sends.
        if !self.answers.take(arrived.now) {
            return;
        }
        let mut mad = [0; MAD_LEN];
        answer.encode(header, &mut mad);
        self.effects.push(Effect::Send {
            tag: arrived.tag,
            kind,
            to: arrived.origin,
            mad: Box::new(mad),
        });
    }
}

/// A REQ that has come in.
struct IncomingReq<'a> {
    node: &'a mut Node,
    arrived: &'a Arrived<'a>,
    header: &'a Header,
    req: &'a Req<'a>,
}

impl IncomingReq<'_> {
    /// Whether a planted bug has the node believe that it knows nobody.
    fn is_forgetful(&self) -> bool {
        self.node.setup.plant == Some(Plant::NoDuplicates)
    }
}

impl Passive for IncomingReq<'_> {
    type Endpoint = EpId;
    type Listener = Service;

    fn find_reply_path(&mut self) -> bool {
        true
    }

    fn is_served(&self, service_id: u64) -> bool {
        service_id == Node::service_id()
    }

    fn listener(&mut self) -> Option<Service> {
        self.node.listener(self.req.private_data)
    }

    fn check_backlog(&mut self, _: &Service) -> Result<(), Declined> {
        self.node.next_admission().map(|_| ())
    }

    fn create(&mut self, _: &Service) -> Result<EpId, Declined> {
        let (node, arrived, req) = (&mut *self.node, self.arrived, self.req);
        let comm_id = node.ids.reserve();
        let tid = (1 << 32) | u64::from(comm_id);
        let limits = Limits::DEFAULT;
        let machine = Connection::from_req(comm_id, node.guid, tid, self.header, req, &limits);
        let Ok(mut machine) = machine else {
            node.ids.free(comm_id);
            return Err(Declined::Refused);
        };
        machine.set_retry_policy(node.retry_policy());
        let ep = node.take_ep();
        let interval = TimeCode::new(req.local_cm_response_timeout)
            .to_duration()
            .min(limits.passive_interval);
        let watch = Watch::new(arrived.tag, Side::Passive, req.max_cm_retries, interval);
        let mut watch = watch.with_policy(node.retry_policy());
        watch.apply(Attribute::Req, arrived.digest());
        let endpoint = Endpoint::new(machine, arrived.origin, watch);
        node.endpoints.insert(ep, endpoint);
        node.ids.publish(comm_id, ep);
        Ok(ep)
    }

    fn discard(&mut self, ep: EpId) {
        self.node.end(ep, DestroyCause::NoMemory, self.arrived.now);
    }
}

impl RemoteTable<EpId> for IncomingReq<'_> {
    fn owner(&self, key: &RemoteKey) -> Option<EpId> {
        self.node.remotes.get(key).filter(|_| !self.is_forgetful())
    }

    fn enter(&mut self, key: RemoteKey, ep: &EpId) -> Option<EpId> {
        let owner = self.node.remotes.enter(key, ep);
        owner.filter(|_| !self.is_forgetful())
    }

    fn leave(&mut self, key: &RemoteKey, ep: &EpId) {
        self.node.remotes.leave(key, ep);
    }
}

impl PassiveReq for IncomingReq<'_> {
    fn has_pkey(&self, _: u16) -> bool {
        true
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

    fn takes_qp(&self, _: &Service, _: QpType) -> bool {
        true
    }

    fn find_neighbour(&mut self) -> bool {
        true
    }

    fn publish(&mut self, ep: &EpId, ids: &RemoteIds) -> bool {
        self.node.note_reuse(ids);
        // Not so with a planted bug.
        let is_owner = self.node.remotes.get(&ids.qpn_key()) == Some(*ep);
        if let Some(endpoint) = self.node.endpoints.get_mut(ep).filter(|_| is_owner) {
            endpoint.tracked = Some(*ids);
        }
        true
    }
}
