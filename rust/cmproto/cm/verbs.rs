// SPDX-License-Identifier: GPL-2.0

//! Verbs of the user of a connection.
//!
//! Each verb makes all checks before it changes anything: a verb that fails leaves the connection
//! as it was. A verb in the wrong state, or with more private data than its message can hold, fails
//! with `EINVAL`. One whose message has private data fails with `ENOMEM` if there is no memory for
//! them.

use super::{
    action::{Action, Actions, Event, Outgoing},
    alternate::Alternate,
    connection::{Connection, Lifecycle, Rejection},
    params::{AcceptParams, ConnectParams},
    retransmit::Schedule,
    retransmit_buffer::{RetransmitMemory, Sent},
    state::State,
};
use crate::{
    errno::Errno,
    payload::Payload,
    qp::QpType,
    reject::Reason,
    time::{Instant, TimeCode},
    wire::{Drep, Dreq, MraMessage, Rej, RejMessage, Rep, Req, Rtu, INFO_LEN},
};

/// Fails with `EINVAL` unless the condition of a verb holds.
fn require(condition: bool) -> Result<(), Errno> {
    if !condition {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

impl Connection {
    /// The time code with which the kernel calls [`prepare_mra`](Self::prepare_mra): 69 s.
    pub const SERVICE_TIMEOUT: u8 = 24;
    /// The time code with which requests are [parked](Self::park): 17 s. After that time a peer
    /// repeats its request, and so learns whether it is still parked.
    pub const PARKING_TIMEOUT: u8 = 22;

    /// Checks the parameters and the private data of a REQ, which may have up to 92 bytes. Returns
    /// the type of the own queue pair.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the transport does not exist, or if there is too much private data.
    pub fn check_connect(params: &ConnectParams, private_data: &[u8]) -> Result<QpType, Errno> {
        require(private_data.len() <= Req::PRIVATE_DATA_LEN)?;
        QpType::of_sender(params.transport).ok_or(Errno::EINVAL)
    }
}

impl<B: RetransmitMemory> Connection<B> {
    /// Sends a REQ: `Idle` to `ReqSent`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection was used before; and the errors of
    /// [`check_connect`](Connection::check_connect); `ENOMEM` if no memory was
    /// [provided](Self::provide) and there is none.
    pub fn connect(
        &mut self,
        params: &ConnectParams,
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        require(self.lifecycle == Lifecycle::Fresh && self.state == State::Idle)?;
        let qp_type = Connection::check_connect(params, private_data)?;
        let params = params.sanitized();
        let life_time = TimeCode::new(params.packet_life_time);
        let mut buffer = match self.buffer.take() {
            Some(provided) => provided,
            None => B::new()?,
        };

        self.service_id = params.service_id;
        self.qp_type = qp_type;
        self.local_qpn = params.local_qpn;
        self.rq_psn = params.starting_psn;
        self.responder_resources = params.responder_resources;
        self.initiator_depth = params.initiator_depth;
        self.retry_count = params.retry_count;
        self.path_mtu = params.path_mtu;
        self.pkey = params.pkey;
        self.ack_timeout = TimeCode::new(life_time.get().saturating_add(1));
        self.schedule = Schedule::active(
            life_time,
            TimeCode::new(params.remote_cm_response_timeout),
            params.max_cm_retries,
        )
        .packed();
        self.tid = self.own_tid;
        buffer.sent = Sent::Req(params);
        buffer.payload.set(Outgoing::Req, private_data);
        self.buffer = Some(buffer);
        self.is_active = true;
        self.lifecycle = Lifecycle::Open;
        self.state = State::ReqSent;
        let mut actions = Actions::none();
        self.request(Outgoing::Req, now, &mut actions);
        Ok(actions)
    }

    /// Answers a REQ by a REP with up to 196 bytes of private data: to `RepSent`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no REQ waits for an answer, or if there is too much private data; `ENOMEM` if
    /// there is no memory.
    pub fn accept(
        &mut self,
        params: &AcceptParams,
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        require(matches!(self.state, State::ReqRcvd | State::MraReqSent))?;
        require(private_data.len() <= Rep::PRIVATE_DATA_LEN)?;
        let mut params = params.sanitized();
        if let Alternate::Declined(why) = self.alternate {
            params.failover_accepted = why.failover();
        }
        let mut buffer = match self.buffer.take() {
            Some(provided) => provided,
            None => B::new()?,
        };

        self.local_qpn = params.local_qpn;
        self.rq_psn = params.starting_psn;
        self.responder_resources = params.responder_resources;
        self.initiator_depth = params.initiator_depth;
        buffer.sent = Sent::Rep(params);
        buffer.payload.set(Outgoing::Rep, private_data);
        self.buffer = Some(buffer);
        self.state = State::RepSent;
        let mut actions = Actions::none();
        self.request(Outgoing::Rep, now, &mut actions);
        Ok(actions)
    }

    /// Answers a REP by an RTU with up to 224 bytes of private data: to `Established`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no REP waits for an answer, or if there is too much private data.
    pub fn establish(&mut self, private_data: &[u8], now: Instant) -> Result<Actions, Errno> {
        require(matches!(self.state, State::RepRcvd | State::MraRepSent))?;
        require(private_data.len() <= Rtu::PRIVATE_DATA_LEN)?;
        self.write(Outgoing::Rtu, &[], private_data)?;
        let mut actions = Actions::none();
        self.enter_established(now, &mut actions);
        actions.push(Action::Send(Outgoing::Rtu));
        Ok(actions)
    }

    /// Rejects the connection by a REJ with up to 72 bytes of additional rejection information and
    /// 148 bytes of private data.
    ///
    /// The connection ends at once, or after a time wait if a REP was sent.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is nothing to reject, or if there is too much information or private data.
    pub fn reject(
        &mut self,
        reason: Reason,
        ari: &[u8],
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        require(ari.len() <= INFO_LEN && private_data.len() <= Rej::PRIVATE_DATA_LEN)?;
        let timewait = match self.state {
            State::ReqSent
            | State::MraReqRcvd
            | State::ReqRcvd
            | State::MraReqSent
            | State::RepRcvd
            | State::MraRepSent => false,
            State::RepSent | State::MraRepRcvd => true,
            _ => return Err(Errno::EINVAL),
        };
        self.write(Outgoing::Rej, ari, private_data)?;

        let mut actions = Actions::none();
        self.send_rej(reason, &mut actions);
        if timewait {
            self.enter_timewait(now, &mut actions);
        } else {
            self.enter_idle(&mut actions);
            self.release(&mut actions);
        }
        Ok(actions)
    }

    /// Keeps what `message` has of its own, in place of what the message before had. Takes memory
    /// only if there was no such message, and if there is anything to keep.
    fn write(&mut self, message: Outgoing, info: &[u8], private_data: &[u8]) -> Result<(), Errno> {
        if info.is_empty() && private_data.is_empty() {
            self.buffer = None;
            return Ok(());
        }
        let payload = Payload::new(message, info, private_data).ok_or(Errno::EINVAL)?;
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            None => self.buffer.insert(B::new()?),
        };
        buffer.sent = Sent::None;
        buffer.payload = payload;
        Ok(())
    }

    /// Sends a REJ of the message that was received last in this state. Its additional information
    /// and private data are those of the buffer.
    pub(super) fn send_rej(&mut self, reason: Reason, actions: &mut Actions) {
        let (message, local_comm_id) = match self.state {
            // The peer does not know the own communication id, and will not learn it.
            State::ReqRcvd => (RejMessage::Req, 0),
            State::MraReqSent => (RejMessage::Req, self.local_comm_id),
            State::RepRcvd | State::MraRepSent => (RejMessage::Rep, self.local_comm_id),
            _ => (RejMessage::Other, self.local_comm_id),
        };
        self.rejection = Some(Rejection {
            message,
            reason,
            local_comm_id,
        });
        actions.push(Action::Send(Outgoing::Rej));
    }

    /// Sends a DREQ with up to 220 bytes of private data: `Established` to `DreqSent`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection is not established, or if there is too much private data.
    pub fn disconnect(&mut self, private_data: &[u8], now: Instant) -> Result<Actions, Errno> {
        require(self.state == State::Established)?;
        require(private_data.len() <= Dreq::PRIVATE_DATA_LEN)?;
        self.write(Outgoing::Dreq, &[], private_data)?;
        self.state = State::DreqSent;
        let mut actions = Actions::none();
        self.request(Outgoing::Dreq, now, &mut actions);
        Ok(actions)
    }

    /// Answers a DREQ by a DREP with up to 224 bytes of private data: `DreqRcvd` to `Timewait`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no DREQ waits for an answer, or if there is too much private data.
    pub fn confirm_disconnect(
        &mut self,
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        require(self.state == State::DreqRcvd)?;
        require(private_data.len() <= Drep::PRIVATE_DATA_LEN)?;
        self.write(Outgoing::Drep, &[], private_data)?;
        let mut actions = Actions::none();
        actions.push(Action::Send(Outgoing::Drep));
        self.enter_timewait(now, &mut actions);
        Ok(actions)
    }

    /// Parks a REQ: answers it, and each copy of it, with an MRA that asks for `service_timeout` (a
    /// time code).
    ///
    /// # Errors
    ///
    /// The function fails as [`prepare_mra`](Self::prepare_mra) does.
    pub fn park(&mut self, service_timeout: u8) -> Result<Actions, Errno> {
        self.prepare_mra(service_timeout)?;
        let mut actions = Actions::none();
        actions.push(match self.state {
            State::MraRepSent => Action::Send(Outgoing::Mra(MraMessage::Rep)),
            // The answer to the REQ is still to come.
            _ => Action::SendUnasked(Outgoing::Mra(MraMessage::Req)),
        });
        Ok(actions)
    }

    /// Prepares an MRA that asks for `service_timeout` (a time code), with which a repeated REQ or
    /// REP is answered from now on. Sends nothing.
    ///
    /// # Errors
    ///
    /// `EINVAL` if neither a REQ nor a REP waits for an answer, or if an MRA was prepared before.
    pub fn prepare_mra(&mut self, service_timeout: u8) -> Result<(), Errno> {
        self.state = match self.state {
            State::ReqRcvd => State::MraReqSent,
            State::RepRcvd => State::MraRepSent,
            _ => return Err(Errno::EINVAL),
        };
        self.service_timeout = TimeCode::new(service_timeout);
        Ok(())
    }

    /// Establishes the connection on data that has arrived on the queue pair before the RTU: to
    /// `Established`.
    ///
    /// # Errors
    ///
    /// - `EISCONN` if the connection is established already.
    /// - `EINVAL` if no REP was sent.
    pub fn notify_established(&mut self, now: Instant) -> Result<Actions, Errno> {
        match self.state {
            State::RepSent | State::MraRepRcvd => {}
            State::Established => return Err(Errno::EISCONN),
            _ => return Err(Errno::EINVAL),
        }
        self.buffer = None;
        let mut actions = Actions::none();
        self.enter_established(now, &mut actions);
        self.deliver(Event::UserEstablished, &mut actions);
        Ok(actions)
    }
}
