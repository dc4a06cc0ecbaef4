// SPDX-License-Identifier: GPL-2.0

//! The state of one side of a resolution, and its transitions.

use super::{
    action::{Action, Actions, Event, Outgoing},
    params::{ReplyParams, ResolveParams},
    status::Status,
};
use crate::{
    cm::{Counter, DestroyCause, Expiry, Retransmit, RetryPolicy, Schedule, State, Waiting},
    errno::Errno,
    time::{Duration, Instant},
    wire::{Attribute, Header, Message, SidrRep, SidrReq, INFO_LEN},
};

/// Phase of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not used yet.
    Fresh,
    /// Requesting side: the SIDR_REQ was sent.
    ReqSent(Schedule, Retransmit),
    /// Responding side: the user has not answered.
    ReqRcvd,
    /// Responding side: the user has answered, and the SIDR_REP is kept until the given time.
    Answered(Instant),
    /// The resolution is over: [`Action::Release`] was returned.
    Closed,
}

/// Parameters of the one message that a side sends, for when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// No message was sent.
    Nothing,
    /// A SIDR_REQ.
    Req,
    /// A SIDR_REP.
    Rep(ReplyParams),
}

/// Private data and additional information of the one message that a side sends.
type Payload = crate::payload::Payload<Outgoing, { SidrReq::PRIVATE_DATA_LEN }>;

/// One side of a service id resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    phase: Phase,
    /// Request id, chosen by the requesting side.
    request_id: u32,
    /// Transaction id, chosen by the requesting side.
    tid: u64,
    service_id: u64,
    pkey: u16,
    /// Time for which a SIDR_REP is kept.
    memory: Duration,
    policy: RetryPolicy,
    sent: Sent,
    pub(super) payload: Payload,
}

impl Resolution {
    /// Default of the time for which a SIDR_REP is kept: a kernel peer sends its SIDR_REQ 16 times,
    /// every 4096 ms.
    pub const MEMORY: Duration = Duration::from_millis(65_536);

    /// Creates an unused resolution with this request id and transaction id.
    pub fn new(request_id: u32, tid: u64) -> Self {
        Self {
            phase: Phase::Fresh,
            request_id,
            tid,
            service_id: 0,
            pkey: 0,
            memory: Self::MEMORY,
            policy: RetryPolicy::Classic,
            sent: Sent::Nothing,
            payload: Payload::EMPTY,
        }
    }

    /// Creates the resolution for a received SIDR_REQ, in [`State::SidrReqRcvd`].
    ///
    /// The caller has matched the SIDR_REQ with a listener, and enters the resolution into the
    /// table of SIDR requests. The SIDR_REP is kept for `memory`, usually [`MEMORY`](Self::MEMORY).
    pub fn from_req(hdr: &Header, req: &SidrReq<'_>, memory: Duration) -> Self {
        Self {
            phase: Phase::ReqRcvd,
            service_id: req.service_id,
            pkey: req.pkey,
            memory,
            ..Self::new(req.request_id, hdr.tid)
        }
    }

    /// Returns the state, which is [`State::Idle`] before the SIDR_REQ and after the SIDR_REP.
    pub const fn state(&self) -> State {
        match self.phase {
            Phase::ReqSent(..) => State::SidrReqSent,
            Phase::ReqRcvd => State::SidrReqRcvd,
            Phase::Fresh | Phase::Answered(_) | Phase::Closed => State::Idle,
        }
    }

    /// Returns the request id, which the requesting side has chosen.
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// Returns the service id of the SIDR_REQ, or 0 if there was none yet.
    pub const fn service_id(&self) -> u64 {
        self.service_id
    }

    /// Returns the P_Key of the SIDR_REQ, or 0 if there was none yet.
    pub const fn pkey(&self) -> u16 {
        self.pkey
    }

    /// Sets how soon the SIDR_REQ may be sent early, from now on. A new resolution has
    /// [`RetryPolicy::Classic`].
    pub fn set_retry_policy(&mut self, policy: RetryPolicy) {
        self.policy = policy;
    }

    /// Returns the SIDR_REQ, if it waits for its answer.
    pub const fn waiting(&self) -> Option<Waiting> {
        match &self.phase {
            Phase::ReqSent(_, request) => Some(request.waiting(Attribute::SidrReq, false)),
            Phase::Fresh | Phase::ReqRcvd | Phase::Answered(_) | Phase::Closed => None,
        }
    }

    /// Returns the time at which [`timeout`](Self::timeout) has something to do, if any.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::ReqSent(_, request) => Some(request.deadline()),
            Phase::Answered(until) => Some(*until),
            Phase::Fresh | Phase::ReqRcvd | Phase::Closed => None,
        }
    }

    /// Returns whether the resolution is answered, and kept only to answer its SIDR_REQ again.
    pub const fn is_answered(&self) -> bool {
        matches!(self.phase, Phase::Answered(_))
    }

    /// Returns the status of the SIDR_REP, if one was sent that names no queue pair.
    pub fn refusal(&self) -> Option<Status> {
        match self.sent {
            Sent::Rep(params) if !params.status.is_success() => Some(params.status),
            _ => None,
        }
    }

    /// Returns whether the resolution is over, which means that [`Action::Release`] was returned.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Returns the transaction id of the SIDR_REQ and the SIDR_REP.
    pub(super) const fn tid(&self) -> u64 {
        self.tid
    }

    /// Returns the parameters of the message that was sent.
    pub(super) const fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Sends a SIDR_REQ with up to 216 bytes of private data: `Idle` to `SidrReqSent`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the resolution was used before, or if there is too much private data.
    pub fn resolve(
        &mut self,
        params: &ResolveParams,
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        if self.phase != Phase::Fresh {
            return Err(Errno::EINVAL);
        }
        self.payload = Payload::new(Outgoing::Req, &[], private_data).ok_or(Errno::EINVAL)?;
        self.service_id = params.service_id;
        self.pkey = params.pkey;
        self.sent = Sent::Req;
        let schedule = Schedule::fixed(params.timeout, params.max_cm_retries.min(15));
        let request = Retransmit::start(schedule, now)
            .within(params.total)
            .with_policy(self.policy, self.request_id);
        self.phase = Phase::ReqSent(schedule, request);
        let mut actions = Actions::none();
        actions.push(Action::Send(Outgoing::Req));
        actions.push(Action::Timer);
        Ok(actions)
    }

    /// Answers with a SIDR_REP with up to 72 bytes of additional information and 136 bytes of
    /// private data: `SidrReqRcvd` to `Idle`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no SIDR_REQ waits for an answer, or if there is too much information or private
    /// data.
    pub fn reply(
        &mut self,
        params: &ReplyParams,
        info: &[u8],
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        let fits = info.len() <= INFO_LEN && private_data.len() <= SidrRep::PRIVATE_DATA_LEN;
        if self.phase != Phase::ReqRcvd || !fits {
            return Err(Errno::EINVAL);
        }
        self.payload = Payload::new(Outgoing::Rep, info, private_data).ok_or(Errno::EINVAL)?;
        self.sent = Sent::Rep(*params);
        let mut actions = Actions::none();
        self.answer(now, &mut actions);
        Ok(actions)
    }

    /// Sends the SIDR_REP and keeps it for repeated SIDR_REQs.
    fn answer(&mut self, now: Instant, actions: &mut Actions) {
        self.phase = Phase::Answered(now + self.memory);
        actions.push(Action::Send(Outgoing::Rep));
        actions.push(Action::Timer);
    }

    /// Returns whether `msg` is a SIDR_REP to this resolution's SIDR_REQ.
    pub fn is_for(&self, msg: &Message<'_>) -> bool {
        match (msg, self.phase) {
            (Message::SidrRep(rep), Phase::Fresh | Phase::ReqSent(..) | Phase::Closed) => {
                rep.request_id == self.request_id
            }
            _ => false,
        }
    }

    /// Receives a SIDR_REP from the peer's address.
    ///
    /// A repeated SIDR_REQ goes to [`duplicate_req`](Self::duplicate_req) instead.
    pub fn receive(&mut self, msg: &Message<'_>, _now: Instant) -> Actions {
        let Message::SidrRep(rep) = msg else {
            return Actions::count(Counter::Mismatch(msg.attribute()));
        };
        if !self.is_for(msg) {
            return Actions::count(Counter::Mismatch(Attribute::SidrRep));
        }
        if !matches!(self.phase, Phase::ReqSent(..)) {
            return Actions::count(Counter::Unexpected(Attribute::SidrRep));
        }
        let status = Status(rep.status);
        self.end(Event::RepReceived { status })
    }

    /// Returns whether a SIDR_REQ with the request id of this resolution is the same request.
    ///
    /// A peer that was restarted may use a request id for another request.
    pub fn is_same_req(&self, hdr: &Header, req: &SidrReq<'_>) -> bool {
        (hdr.tid, req.request_id, req.service_id, req.pkey)
            == (self.tid, self.request_id, self.service_id, self.pkey)
    }

    /// Handles a repeated copy of the SIDR_REQ.
    pub fn duplicate_req(&mut self, _now: Instant) -> Actions {
        let mut actions = Actions::count(Counter::Duplicate(Attribute::SidrReq));
        if self.is_answered() {
            actions.push(Action::Send(Outgoing::Rep));
            actions.push(Action::Count(Counter::Repeat(Attribute::SidrRep)));
        }
        actions
    }

    /// Handles the expiry of the timer at `now`: sends the SIDR_REQ again, gives up, or forgets the
    /// SIDR_REP. Does nothing before the [`deadline`](Self::deadline).
    pub fn timeout(&mut self, now: Instant) -> Actions {
        match &mut self.phase {
            Phase::ReqSent(schedule, sent) => match sent.expire(*schedule, self.policy, now) {
                Expiry::Early => Actions::none(),
                Expiry::Later => {
                    let mut actions = Actions::none();
                    actions.push(Action::Timer);
                    actions
                }
                Expiry::Resend => {
                    let mut actions = Actions::none();
                    actions.push(Action::Send(Outgoing::Req));
                    actions.push(Action::Count(Counter::Retry(Attribute::SidrReq)));
                    actions.push(Action::Timer);
                    actions
                }
                Expiry::GiveUp => self.end(Event::ReqError),
            },
            Phase::Answered(until) if now >= *until => self.close_responder(Action::Timer),
            Phase::Fresh | Phase::ReqRcvd | Phase::Answered(_) | Phase::Closed => Actions::none(),
        }
    }

    /// Ends the resolution without its user, who is told nothing from now on.
    ///
    /// On the requesting side, the SIDR_REQ is not sent any more. On the responding side, a
    /// SIDR_REQ that waits for an answer is rejected. A rejection for lack of memory is not kept,
    /// as a repeated SIDR_REQ may succeed; any other SIDR_REP is kept until its time is over. A
    /// second call does nothing.
    pub fn destroy(&mut self, cause: DestroyCause, now: Instant) -> Actions {
        let mut actions = Actions::none();
        match self.phase {
            Phase::Fresh => {
                self.phase = Phase::Closed;
                actions.push(Action::Release);
            }
            Phase::ReqSent(..) => {
                self.phase = Phase::Closed;
                actions.push(Action::Timer);
                actions.push(Action::Release);
            }
            Phase::ReqRcvd => {
                self.sent = Sent::Rep(ReplyParams::failure(Status::REJECT));
                self.payload = Payload::EMPTY;
                match cause {
                    DestroyCause::User | DestroyCause::Superseded => self.answer(now, &mut actions),
                    DestroyCause::NoMemory => {
                        return self.close_responder(Action::Send(Outgoing::Rep))
                    }
                }
            }
            Phase::Answered(_) | Phase::Closed => {}
        }
        actions
    }

    /// Ends the responding side. `last` is the first action to carry out.
    fn close_responder(&mut self, last: Action) -> Actions {
        self.phase = Phase::Closed;
        let mut actions = Actions::none();
        actions.push(last);
        actions.push(Action::ReleaseRequest);
        actions.push(Action::Release);
        actions
    }

    /// Ends the requesting side with an event for the user.
    fn end(&mut self, event: Event) -> Actions {
        self.phase = Phase::Closed;
        let mut actions = Actions::none();
        actions.push(Action::Timer);
        actions.push(Action::Deliver(event));
        actions.push(Action::Release);
        actions
    }
}
