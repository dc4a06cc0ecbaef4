// SPDX-License-Identifier: GPL-2.0

//! What a node does with a message: the checks of `rust/cm/receive.rs` and `rust/cm/request.rs`,
//! in their order.

use cmproto::{
    addr::Gid,
    cm::{Actions, Connection, DestroyCause, Limits, State},
    private_data,
    reject::Reason,
    time::{Instant, TimeCode},
    ucma_abi::CmEvent,
    wire::{
        self, Attribute, Drep, Dreq, Header, Message, Rej, RejMessage, Rep, Req, INFO_LEN, MAD_LEN,
    },
};

use crate::{
    endpoint::Endpoint,
    node::{Effect, Node},
    rules::{Rule, Watch},
    script::{Plant, Side, Tag},
    tables::{EpId, Peer, Track},
};

/// A message, and where it came from.
pub struct Arrived<'a> {
    /// Whose connection it was sent for, for the record only.
    pub tag: Tag,
    pub source: Gid,
    pub mad: &'a [u8; MAD_LEN],
    pub now: Instant,
}

impl Arrived<'_> {
    fn peer(&self, guid: u64) -> Peer {
        Peer {
            guid,
            gid: self.source,
        }
    }

    /// A number that is the same for the same message, and for hardly any other.
    fn digest(&self) -> u64 {
        let words = self.mad.chunks_exact(8);
        words.fold(0x9e37_79b9_7f4a_7c15, |sum, word| {
            let word = word.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
            (sum.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd)
        })
    }
}

/// Why a REQ does not become a connection request.
enum Refusal {
    Reject(Reason),
    Drop,
}

fn timed_out_guid(rej: &Rej<'_>) -> Option<u64> {
    if Reason(rej.reason) != Reason::TIMEOUT {
        return None;
    }
    Some(u64::from_be_bytes(*rej.ari.first_chunk()?))
}

impl Node {
    /// Handles a message; false if it is none.
    pub fn receive(&mut self, arrived: &Arrived<'_>) -> bool {
        let Ok((header, message)) = wire::decode(arrived.mad) else {
            return false;
        };
        let ep = match &message {
            Message::Req(req) => {
                self.request(arrived, &header, req);
                return true;
            }
            Message::Rep(rep) => self.ids.get(rep.remote_comm_id),
            Message::Rtu(rtu) => self.ids.get(rtu.remote_comm_id),
            Message::Mra(mra) => self.ids.get(mra.remote_comm_id),
            Message::Dreq(dreq) => self.ids.get(dreq.remote_comm_id),
            Message::Drep(drep) => self.ids.get(drep.remote_comm_id),
            Message::Rej(rej) => match timed_out_guid(rej) {
                Some(guid) => self
                    .remotes
                    .by_comm_id(arrived.peer(guid), rej.local_comm_id),
                None => self.ids.get(rej.remote_comm_id),
            },
            Message::SidrReq(req) => {
                self.question(arrived, &header, req);
                return true;
            }
            Message::SidrRep(rep) => {
                self.answered(arrived, rep);
                return true;
            }
            Message::Lap(_) | Message::Apr(_) => return true,
        };
        match (ep, &message) {
            (Some(ep), Message::Rep(rep)) if self.receive_rep(arrived, &header, ep, rep) => {}
            (_, Message::Rep(rep)) => {
                let ids = (rep.remote_comm_id, rep.local_comm_id);
                let reason = Reason::INVALID_COMM_ID;
                self.refuse(arrived, &header, RejMessage::Rep, ids, reason);
            }
            (Some(ep), _) if self.receive_for(arrived, &header, ep, &message) => {}
            (_, Message::Dreq(dreq)) => self.confirm(arrived, &header, dreq),
            _ => {}
        }
        true
    }

    /// Handles a message that names `ep`; false if it is for no connection of its own.
    fn receive_for(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        ep: EpId,
        message: &Message<'_>,
    ) -> bool {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return false;
        };
        if endpoint.peer != arrived.source {
            // A stranger learns nothing.
            return true;
        }
        if !endpoint.machine.is_for(message) {
            return false;
        }
        let before = endpoint.machine.state();
        if let Message::Mra(mra) = message {
            let wait = TimeCode::new(mra.service_timeout).to_duration();
            endpoint.watch.receive_mra(mra.message, wait, arrived.now);
        }
        self.feed(arrived, ep, message.attribute(), |machine| {
            machine.receive(header, message, arrived.now)
        });
        let Message::Dreq(dreq) = message else {
            return true;
        };
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return true;
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
        true
    }

    /// Handles a REP: the first one makes the peer's names this connection's. False if it is for no
    /// connection of `ep`.
    fn receive_rep(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        ep: EpId,
        rep: &Rep<'_>,
    ) -> bool {
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return false;
        };
        if endpoint.peer != arrived.source {
            return true;
        }
        let is_over = endpoint.machine.is_closed();
        if is_over && !endpoint.machine.is_for(&Message::Rep(*rep)) {
            return false;
        }
        if endpoint.machine.wants_rep() {
            let ids = (rep.remote_comm_id, rep.local_comm_id);
            if endpoint.machine.has_refused(rep) {
                self.refuse(arrived, header, RejMessage::Rep, ids, Reason::STALE_CONN);
                return true;
            }
            let qpn = endpoint.machine.rep_qpn(rep);
            let peer = arrived.peer(rep.local_ca_guid);
            self.note_reuse(peer, qpn);
            match self.remotes.track(peer, rep.local_comm_id, qpn, ep) {
                Track::New(tracked) => {
                    if let Some(endpoint) = self.endpoints.get_mut(&ep) {
                        endpoint.tracked = Some(tracked);
                    }
                }
                Track::Duplicate => return true,
                Track::Stale(other) => {
                    if let Some(endpoint) = self.endpoints.get_mut(&ep) {
                        endpoint.machine.refuse_rep(rep);
                    }
                    self.refuse(arrived, header, RejMessage::Rep, ids, Reason::STALE_CONN);
                    self.stale_peer(arrived, other);
                    return true;
                }
            }
        }
        self.feed(arrived, ep, Attribute::Rep, |machine| {
            machine.receive(header, &Message::Rep(*rep), arrived.now)
        });
        true
    }

    /// The peer claims to have forgotten the connection of `ep`.
    fn stale_peer(&mut self, arrived: &Arrived<'_>, ep: EpId) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        if endpoint.peer != arrived.source {
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
        let peer = arrived.peer(req.local_ca_guid);
        let planted = self.setup.plant == Some(Plant::NoDuplicates);
        let known = self.remotes.by_comm_id(peer, req.local_comm_id);
        if let Some(ep) = known.filter(|_| !planted) {
            return self.duplicate_req(arrived, ep);
        }
        let other = self.remotes.by_qpn(peer, req.local_qpn);
        let taken = match other.filter(|_| !planted) {
            Some(other) => Err((Refusal::Reject(Reason::STALE_CONN), Some(other))),
            None => self.take(arrived, header, req),
        };
        let Err((refusal, stale)) = taken else {
            return;
        };
        if let Refusal::Reject(reason) = refusal {
            let ids = (0, req.local_comm_id);
            self.refuse(arrived, header, RejMessage::Req, ids, reason);
        }
        if let Some(other) = stale {
            self.stale_peer(arrived, other);
        }
    }

    fn duplicate_req(&mut self, arrived: &Arrived<'_>, ep: EpId) {
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return;
        };
        if endpoint.peer != arrived.source {
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

    /// Makes a connection request of a REQ that is neither a duplicate nor from a stale peer.
    fn take(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        req: &Req<'_>,
    ) -> Result<(), (Refusal, Option<EpId>)> {
        let reject = |reason| Err((Refusal::Reject(reason), None));
        if req.service_id != Self::service_id() {
            return reject(Reason::INVALID_SERVICE_ID);
        }
        if !req.alternate.is_empty() {
            return reject(Reason::INVALID_ALT_GID);
        }
        let Ok(private_data::Header::Ip(ip)) = private_data::Header::decode(req.private_data)
        else {
            return reject(Reason::CONSUMER_DEFINED);
        };
        if ip.dst.to_gid() != self.gid {
            return reject(Reason::CONSUMER_DEFINED);
        }
        if !self.takes_requests() {
            return Err((self.overload(), None));
        }
        let comm_id = self.ids.reserve();
        let tid = (1 << 32) | u64::from(comm_id);
        let limits = Limits::DEFAULT;
        let mut machine = match Connection::from_req(comm_id, self.guid, tid, header, req, &limits)
        {
            Ok(machine) => machine,
            Err(_) => {
                self.ids.free(comm_id);
                return reject(Reason::CONSUMER_DEFINED);
            }
        };
        machine.set_pace(self.pace());
        let ep = self.take_ep();
        let interval = TimeCode::new(req.local_cm_response_timeout)
            .to_duration()
            .min(limits.passive_interval);
        let watch = Watch::new(arrived.tag, Side::Passive, req.max_cm_retries, interval);
        let mut watch = watch.paced(self.pace());
        watch.apply(Attribute::Req, arrived.digest());
        self.endpoints
            .insert(ep, Endpoint::new(machine, arrived.source, watch));
        let peer = arrived.peer(req.local_ca_guid);
        self.note_reuse(peer, req.local_qpn);
        let track = self
            .remotes
            .track(peer, req.local_comm_id, req.local_qpn, ep);
        self.ids.publish(comm_id, ep);
        match track {
            Track::New(tracked) => {
                if let Some(endpoint) = self.endpoints.get_mut(&ep) {
                    endpoint.tracked = Some(tracked);
                }
            }
            Track::Duplicate | Track::Stale(_) => {
                // Only a race leads here, or a planted bug, which shall have its effect.
                if self.setup.plant.is_none() {
                    self.end(ep, DestroyCause::NoMemory, arrived.now);
                    return Ok(());
                }
            }
        }
        self.execute(ep, State::ReqRcvd, Actions::default(), arrived.now);
        self.effects.push(Effect::Reach { ep });
        Ok(())
    }

    /// What becomes of a request that there is no room for.
    fn overload(&self) -> Refusal {
        match self.setup.parking {
            0 => Refusal::Drop,
            _ => Refusal::Reject(Reason::NO_RESOURCES),
        }
    }

    /// Counts a queue pair that is in use again while its last connection is in time wait.
    fn note_reuse(&mut self, peer: Peer, qpn: u32) {
        let is_last = |e: &Endpoint| {
            let machine = &e.machine;
            machine.state() == State::Timewait
                && (machine.remote_ca_guid(), machine.remote_qpn()) == (peer.guid, qpn)
        };
        if self.endpoints.values().any(is_last) {
            self.reused += 1;
        }
    }

    /// Sends an answer that belongs to no connection, if there were not too many of late.
    pub(crate) fn answer(&mut self, arrived: &Arrived<'_>, header: &Header, message: &Message<'_>) {
        if !self.answers.take(arrived.now) {
            return;
        }
        let kind = message.attribute();
        let mut mad = [0; MAD_LEN];
        if wire::encode(&Header::new(kind, header.tid), message, &mut mad).is_ok() {
            self.effects.push(Effect::Send {
                tag: arrived.tag,
                kind,
                to: arrived.source,
                mad: Box::new(mad),
            });
        }
    }

    /// Refuses a REQ or REP; `ids` are the own and the peer's communication id.
    fn refuse(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        refused: RejMessage,
        ids: (u32, u32),
        reason: Reason,
    ) {
        let rej = Rej {
            local_comm_id: ids.0,
            remote_comm_id: ids.1,
            message: refused,
            ari_len: 0,
            reason: reason.0,
            ari: &[0; INFO_LEN],
            private_data: &[],
        };
        self.answer(arrived, header, &Message::Rej(rej));
    }

    /// Confirms the end of a connection that is not known any more.
    fn confirm(&mut self, arrived: &Arrived<'_>, header: &Header, dreq: &Dreq<'_>) {
        if self.setup.plant == Some(Plant::NoConfirm) {
            return;
        }
        let drep = Drep {
            local_comm_id: dreq.remote_comm_id,
            remote_comm_id: dreq.local_comm_id,
            private_data: &[],
        };
        self.answer(arrived, header, &Message::Drep(drep));
    }
}
