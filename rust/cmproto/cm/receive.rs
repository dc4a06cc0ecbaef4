// SPDX-License-Identifier: GPL-2.0

//! Transitions of a connection on a received message.

use super::{
    action::{Action, Actions, Counter, Event, Outgoing},
    connection::{Connection, Lifecycle, Timer},
    retransmit::RetryPolicy,
    retransmit_buffer::RetransmitMemory,
    state::State,
};
use crate::{
    qp::low24,
    reject::Reason,
    time::{Instant, TimeCode},
    wire::{Attribute, Dreq, Header, Message, Mra, MraMessage, Rej, RejMessage, Rep},
};

/// Counts a message that is not expected in the state.
pub(super) fn unexpected(attribute: Attribute) -> Actions {
    Actions::count(Counter::Unexpected(attribute))
}

/// Counts a repeated message.
pub(super) fn duplicate(attribute: Attribute) -> Actions {
    Actions::count(Counter::Duplicate(attribute))
}

/// Counts a repeated message, and answers it again.
pub(super) fn repeat(attribute: Attribute, answer: Outgoing) -> Actions {
    let mut actions = duplicate(attribute);
    actions.push(Action::Send(answer));
    actions.push(Action::Count(Counter::Repeat(answer.attribute())));
    actions
}

impl<B: RetransmitMemory> Connection<B> {
    /// Returns whether the communication ids in `msg` are those of this connection, as the kernel
    /// looks them up.
    ///
    /// A DREQ that is for no connection is answered with a DREP, and a REP with a REJ. All other
    /// messages that are for no connection are dropped. A DREQ or REP for a connection that is over
    /// is for no connection, because the peer has missed the end and would retry.
    ///
    /// An established connection takes only messages with both communication ids.
    pub fn is_for(&self, msg: &Message<'_>) -> bool {
        let local = self.local_comm_id;
        let both = |to: u32, from: u32| to == local && self.remote_comm_id == Some(from);
        let before_rep = |to: u32| to == local && self.remote_comm_id.is_none();
        match msg {
            Message::Rep(m) => {
                // A repeated REP that was rejected is answered with the REJ of the connection,
                // including its private data.
                let over = self.is_closed() && !self.has_rejected_rep();
                let names = before_rep(m.remote_comm_id) || both(m.remote_comm_id, m.local_comm_id);
                names && !over
            }
            Message::Rtu(m) => both(m.remote_comm_id, m.local_comm_id),
            Message::Dreq(m) => both(m.remote_comm_id, m.local_comm_id) && !self.is_closed(),
            Message::Drep(m) => both(m.remote_comm_id, m.local_comm_id),
            Message::Lap(m) => both(m.remote_comm_id, m.local_comm_id),
            Message::Apr(m) => both(m.remote_comm_id, m.local_comm_id),
            Message::Mra(m) => match m.message {
                MraMessage::Req => before_rep(m.remote_comm_id),
                MraMessage::Rep | MraMessage::Other => both(m.remote_comm_id, m.local_comm_id),
                MraMessage::Reserved => false,
            },
            // The sender has given up before it knew the communication id of the receiver, which
            // can be so only until it has confirmed its request.
            Message::Rej(m) if m.reason == Reason::TIMEOUT.0 => {
                let named = m.remote_comm_id == local || self.is_unconfirmed();
                named
                    && self.remote_comm_id == Some(m.local_comm_id)
                    && m.timed_out_guid() == Some(self.remote_ca_guid)
            }
            Message::Rej(m) => match m.message {
                RejMessage::Req => before_rep(m.remote_comm_id),
                RejMessage::Rep | RejMessage::Other => both(m.remote_comm_id, m.local_comm_id),
            },
            Message::Req(_) | Message::SidrReq(_) | Message::SidrRep(_) => false,
        }
    }

    /// Receives a message for this connection.
    ///
    /// The caller has checked that the message comes from the peer's address, and, if
    /// [`wants_rep`](Self::wants_rep) returns true, a REP against the tables. A repeated REQ goes
    /// to [`duplicate_req`](Self::duplicate_req) instead, and a LAP over InfiniBand to
    /// [`receive_lap`](Self::receive_lap). A message that is not [for this
    /// connection](Self::is_for) is counted and dropped.
    pub fn receive(&mut self, hdr: &Header, msg: &Message<'_>, now: Instant) -> Actions {
        let attribute = msg.attribute();
        if !self.is_for(msg) {
            return Actions::count(Counter::Mismatch(attribute));
        }
        match msg {
            Message::Mra(mra) => self.receive_mra(mra, now),
            Message::Rej(rej) => self.receive_rej(rej, now),
            Message::Rep(rep) => self.receive_rep(rep),
            Message::Rtu(_) => self.receive_rtu(now),
            Message::Dreq(dreq) => self.receive_dreq(hdr, dreq, now),
            Message::Drep(_) => self.receive_drep(now),
            // On RoCE there are no alternate paths. The sender's request times out.
            Message::Lap(_) => Actions::count(Counter::Unsupported(attribute)),
            Message::Apr(apr) => self.receive_apr(hdr, apr),
            Message::Req(_) | Message::SidrReq(_) | Message::SidrRep(_) => unexpected(attribute),
        }
    }

    /// Handles a repeated REQ of this connection.
    pub fn duplicate_req(&mut self, _now: Instant) -> Actions {
        match self.state {
            State::MraReqSent => repeat(Attribute::Req, Outgoing::Mra(MraMessage::Req)),
            // The REP was lost, or is on its way.
            State::RepSent => {
                let mut actions = duplicate(Attribute::Req);
                actions.push(Action::Send(Outgoing::Rep));
                actions.push(Action::Count(Counter::Retry(Attribute::Rep)));
                actions
            }
            // The caller has found the connection in its table just before the connection was
            // removed from it.
            State::Timewait => {
                // The DREP may have to be sent again with its private data.
                if self.rejection.is_some() {
                    self.buffer = None;
                }
                let mut actions = duplicate(Attribute::Req);
                self.send_rej(Reason::STALE_CONN, &mut actions);
                actions.push(Action::Count(Counter::Repeat(Attribute::Rej)));
                actions
            }
            _ => duplicate(Attribute::Req),
        }
    }

    /// Returns whether this is the connection of a request that its sender has not confirmed by an
    /// RTU. The request may be anybody's, because nothing in it has to be known.
    pub const fn is_unconfirmed(&self) -> bool {
        matches!(
            self.state,
            State::ReqRcvd | State::MraReqSent | State::RepSent | State::MraRepRcvd
        )
    }

    /// Refuses the confirmation of a request whose QPN belongs to another connection: sends a REJ,
    /// and ends the connection. Does nothing if no RTU [is expected](Self::wants_rtu).
    pub fn refuse_rtu(&mut self, now: Instant) -> Actions {
        let mut actions = Actions::none();
        if self.wants_rtu() {
            self.buffer = None;
            self.send_rej(Reason::STALE_CONN, &mut actions);
            self.enter_timewait(now, &mut actions);
            self.deliver(Event::RepError, &mut actions);
        }
        actions
    }

    fn receive_mra(&mut self, mra: &Mra<'_>, now: Instant) -> Actions {
        let next = match (self.state, mra.message) {
            (State::ReqSent | State::MraReqRcvd, MraMessage::Req) => State::MraReqRcvd,
            (State::RepSent | State::MraRepRcvd, MraMessage::Rep) => State::MraRepRcvd,
            (State::MraReqRcvd | State::MraRepRcvd, _) => return duplicate(Attribute::Mra),
            (State::Established, MraMessage::Other) => return self.receive_mra_of_lap(mra, now),
            _ => return unexpected(Attribute::Mra),
        };
        let wait = self.mra_wait(mra);
        // The user is told of the first MRA only.
        let is_first = self.state != next;
        self.state = next;
        let mut actions = match is_first {
            true => Actions::none(),
            false => duplicate(Attribute::Mra),
        };
        if let Timer::Request(request) = &mut self.timer {
            if request.extend(self.schedule.unpacked(), wait, now) {
                // A peer that has sent an MRA for a REP sends the RTU once, and does not send it
                // again if it is lost.
                if next == State::MraRepRcvd && self.policy.unpacked() != RetryPolicy::Classic {
                    request.resume_early(self.schedule.unpacked(), now);
                }
                actions.push(Action::Timer);
            }
        }
        if is_first {
            self.deliver(Event::MraReceived, &mut actions);
        }
        actions
    }

    fn receive_rej(&mut self, rej: &Rej<'_>, now: Instant) -> Actions {
        let reason = Reason(rej.reason);
        let timewait = match self.state {
            State::ReqSent
            | State::MraReqRcvd
            | State::ReqRcvd
            | State::MraReqSent
            | State::RepSent
            | State::MraRepRcvd => reason == Reason::STALE_CONN,
            State::RepRcvd | State::MraRepSent | State::Established | State::DreqSent => true,
            _ => return unexpected(Attribute::Rej),
        };
        let mut actions = Actions::none();
        if timewait {
            self.enter_timewait(now, &mut actions);
            self.deliver(Event::RejReceived { reason }, &mut actions);
        } else {
            self.enter_idle(&mut actions);
            self.deliver(Event::RejReceived { reason }, &mut actions);
            self.release(&mut actions);
        }
        actions
    }

    /// Returns whether the last REJ that was sent was for the peer's REP.
    fn has_rejected_rep(&self) -> bool {
        let rejected = self.rejection.map(|rejection| rejection.message);
        rejected == Some(RejMessage::Rep)
    }

    fn receive_rep(&mut self, rep: &Rep<'_>) -> Actions {
        match self.state {
            State::ReqSent | State::MraReqRcvd if self.has_refused(rep) => {
                return duplicate(Attribute::Rep);
            }
            State::ReqSent | State::MraReqRcvd => {}
            // The RTU was lost. Only the active side has sent one.
            State::Established if self.is_active => {
                return repeat(Attribute::Rep, Outgoing::Rtu);
            }
            State::MraRepSent => {
                return repeat(Attribute::Rep, Outgoing::Mra(MraMessage::Rep));
            }
            State::ReqRcvd
            | State::MraReqSent
            | State::RepSent
            | State::RepRcvd
            | State::MraRepRcvd
            | State::Established
            | State::DreqSent
            | State::DreqRcvd => return duplicate(Attribute::Rep),
            // The REJ was lost, and nothing else would end the wait of the peer.
            State::Idle if self.has_rejected_rep() => {
                return repeat(Attribute::Rep, Outgoing::Rej);
            }
            // After a REJ "stale connection" of the REQ, the peer is not known.
            State::Timewait if self.remote_comm_id.is_some() => {
                return duplicate(Attribute::Rep);
            }
            _ => return unexpected(Attribute::Rep),
        }

        let life_time = self.ack_timeout.get().saturating_sub(1);
        self.remote_comm_id = Some(rep.local_comm_id);
        self.remote_ca_guid = rep.local_ca_guid;
        self.remote_qpn = self.rep_qpn(rep);
        self.sq_psn = low24(rep.starting_psn);
        // The responder resources of one side are the initiator depth of the other.
        self.initiator_depth = rep.responder_resources;
        self.responder_resources = rep.initiator_depth;
        self.rnr_retry_count = rep.rnr_retry_count;
        self.ack_timeout = TimeCode::ack_timeout(rep.target_ack_delay, life_time);
        self.answer_alternate(rep);
        self.has_remote_ids = true;
        self.state = State::RepRcvd;
        let mut actions = Actions::none();
        self.disarm(&mut actions);
        self.deliver(Event::RepReceived, &mut actions);
        actions
    }

    fn receive_rtu(&mut self, now: Instant) -> Actions {
        if !matches!(self.state, State::RepSent | State::MraRepRcvd) {
            return duplicate(Attribute::Rtu);
        }
        // The REP was received.
        self.buffer = None;
        let mut actions = Actions::none();
        self.enter_established(now, &mut actions);
        self.deliver(Event::RtuReceived, &mut actions);
        actions
    }

    fn receive_dreq(&mut self, hdr: &Header, dreq: &Dreq<'_>, now: Instant) -> Actions {
        // A challenge is met with silence if this side has the connection. In time wait it is over.
        let is_challenge = low24(dreq.remote_qpn_eecn) != self.local_qpn;
        if is_challenge && self.state != State::Timewait {
            return Actions::count(Counter::Mismatch(Attribute::Dreq));
        }
        match self.state {
            State::RepSent | State::MraRepRcvd | State::Established | State::DreqSent => {}
            State::Timewait => {
                // The DREP was lost, or both sides have disconnected at the same time.
                self.tid = hdr.tid;
                return repeat(Attribute::Dreq, Outgoing::Drep);
            }
            State::DreqRcvd => return duplicate(Attribute::Dreq),
            _ => return unexpected(Attribute::Dreq),
        }
        self.tid = hdr.tid;
        let mut actions = Actions::none();
        if self.lifecycle == Lifecycle::Told {
            // The user has no connection that it would confirm the end of.
            self.buffer = None;
            actions.push(Action::Send(Outgoing::Drep));
            self.enter_timewait(now, &mut actions);
            return actions;
        }
        self.state = State::DreqRcvd;
        self.disarm(&mut actions);
        self.deliver(Event::DreqReceived, &mut actions);
        actions
    }

    fn receive_drep(&mut self, now: Instant) -> Actions {
        // A peer that was challenged does not have the connection.
        let is_asked = match self.state {
            State::Established => self.has_challenged(),
            state => matches!(state, State::DreqSent | State::DreqRcvd),
        };
        if !is_asked {
            return unexpected(Attribute::Drep);
        }
        let mut actions = Actions::none();
        self.enter_timewait(now, &mut actions);
        self.deliver(Event::DrepReceived, &mut actions);
        actions
    }
}
