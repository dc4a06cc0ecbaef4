// SPDX-License-Identifier: GPL-2.0

//! One side of a resolution: what it knows, and what every input does to it.

use super::{
    action::{Action, Actions, Event, Outgoing},
    params::{ReplyParams, ResolveParams},
    status::Status,
};
use crate::{
    cm::{Counter, DestroyCause, Expiry, Pace, Retransmit, Schedule, State, Waiting},
    errno::Errno,
    time::{Duration, Instant},
    wire::{Attribute, Header, Message, SidrRep, SidrReq, INFO_LEN},
};

/// How far a resolution has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Never used.
    Fresh,
    /// Asking side: the question was sent.
    Asking(Schedule, Retransmit),
    /// Answering side: the user has not answered.
    Asked,
    /// Answering side: the user has answered, and the answer is remembered until then.
    Answered(Instant),
    /// Over: [`Action::Release`] was given.
    Closed,
}

/// The one message that a side sends, as it must be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// None yet.
    Nothing,
    /// The question.
    Req,
    /// The answer.
    Rep(ReplyParams),
}

/// The private data and additional information of the one message that a side sends.
///
/// # Invariants
///
/// `info_len + len` bytes of `bytes` are in use: first the additional information, then the private
/// data. All further bytes are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Payload {
    info_len: u8,
    len: u8,
    bytes: [u8; SidrReq::PRIVATE_DATA_LEN],
}

impl Payload {
    const EMPTY: Self = Self {
        info_len: 0,
        len: 0,
        bytes: [0; SidrReq::PRIVATE_DATA_LEN],
    };

    /// `EINVAL` if it does not fit.
    fn new(info: &[u8], data: &[u8]) -> Result<Self, Errno> {
        let mut payload = Self::EMPTY;
        let too_long = Errno::EINVAL;
        let (head, tail) = payload
            .bytes
            .split_at_mut_checked(info.len())
            .ok_or(too_long)?;
        head.copy_from_slice(info);
        tail.get_mut(..data.len())
            .ok_or(too_long)?
            .copy_from_slice(data);
        // INVARIANT: the lengths are those of what was just copied.
        payload.info_len = u8::try_from(info.len()).map_err(|_| too_long)?;
        payload.len = u8::try_from(data.len()).map_err(|_| too_long)?;
        Ok(payload)
    }
}

/// One side of a service id resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    phase: Phase,
    /// Chosen by the asking side.
    request_id: u32,
    /// Transaction id, chosen by the asking side.
    tid: u64,
    service_id: u64,
    pkey: u16,
    /// How long an answer is remembered.
    memory: Duration,
    pace: Pace,
    sent: Sent,
    payload: Payload,
}

impl Resolution {
    /// As long as a peer asks that does so as the kernel does: 16 x 4096 ms.
    pub const MEMORY: Duration = Duration::from_millis(65_536);

    /// An unused resolution. `request_id` is its number here, and `tid` its transaction id.
    pub fn new(request_id: u32, tid: u64) -> Self {
        Self {
            phase: Phase::Fresh,
            request_id,
            tid,
            service_id: 0,
            pkey: 0,
            memory: Self::MEMORY,
            pace: Pace::Classic,
            sent: Sent::Nothing,
            payload: Payload::EMPTY,
        }
    }

    /// The resolution that a received SIDR_REQ asks for, in [`State::SidrReqRcvd`].
    ///
    /// The caller has matched the SIDR_REQ with a listener and has entered it into the table of
    /// questions. Its answer is remembered for `memory`, usually [`MEMORY`](Self::MEMORY).
    pub fn from_req(hdr: &Header, req: &SidrReq<'_>, memory: Duration) -> Self {
        Self {
            phase: Phase::Asked,
            service_id: req.service_id,
            pkey: req.pkey,
            memory,
            ..Self::new(req.request_id, hdr.tid)
        }
    }

    /// The state; [`State::Idle`] before the question and after the answer.
    pub const fn state(&self) -> State {
        match self.phase {
            Phase::Asking(..) => State::SidrReqSent,
            Phase::Asked => State::SidrReqRcvd,
            Phase::Fresh | Phase::Answered(_) | Phase::Closed => State::Idle,
        }
    }

    /// The request id: the asking side's number for the resolution.
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// The service id that is asked for, 0 before that.
    pub const fn service_id(&self) -> u64 {
        self.service_id
    }

    /// The partition key of the question, 0 before that.
    pub const fn pkey(&self) -> u16 {
        self.pkey
    }

    /// Says how soon the question may be sent early, from now on. A new resolution is
    /// [`Pace::Classic`].
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// The question, while it waits for its answer.
    pub const fn waiting(&self) -> Option<Waiting> {
        match &self.phase {
            Phase::Asking(_, request) => Some(request.waiting(Attribute::SidrReq, false)),
            Phase::Fresh | Phase::Asked | Phase::Answered(_) | Phase::Closed => None,
        }
    }

    /// When [`timeout`](Self::timeout) has something to do, `None` for never.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Asking(_, request) => Some(request.deadline()),
            Phase::Answered(until) => Some(*until),
            Phase::Fresh | Phase::Asked | Phase::Closed => None,
        }
    }

    /// Whether the resolution is answered, and only remembers that.
    pub const fn is_answered(&self) -> bool {
        matches!(self.phase, Phase::Answered(_))
    }

    /// Whether the resolution is over: [`Action::Release`] was given.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Transaction id of the question and the answer.
    pub(super) const fn tid(&self) -> u64 {
        self.tid
    }

    /// The message that was sent.
    pub(super) const fn sent(&self) -> &Sent {
        &self.sent
    }

    /// The additional information and the private data of the message that was sent.
    pub(super) fn payload(&self) -> (&[u8], &[u8]) {
        let (info, rest) = self
            .payload
            .bytes
            .split_at_checked(usize::from(self.payload.info_len))
            .unwrap_or((&[], &[]));
        let data = rest.get(..usize::from(self.payload.len));
        (info, data.unwrap_or(&[]))
    }

    /// Sends a SIDR_REQ with up to 216 bytes of private data: `Idle` to `SidrReqSent`.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the resolution was used before, or there is too much private data.
    pub fn resolve(
        &mut self,
        params: &ResolveParams,
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        match self.phase {
            Phase::Fresh => {}
            Phase::Asking(..) | Phase::Asked | Phase::Answered(_) | Phase::Closed => {
                return Err(Errno::EINVAL)
            }
        }
        self.payload = Payload::new(&[], private_data)?;
        self.service_id = params.service_id;
        self.pkey = params.pkey;
        self.sent = Sent::Req;
        let schedule = Schedule::fixed(params.timeout, params.max_cm_retries.min(15));
        let request = Retransmit::start(schedule, now)
            .within(params.total)
            .paced(self.pace, self.request_id);
        self.phase = Phase::Asking(schedule, request);
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
    /// `EINVAL`: no question waits for an answer, or there is too much information or private data.
    pub fn reply(
        &mut self,
        params: &ReplyParams,
        info: &[u8],
        private_data: &[u8],
        now: Instant,
    ) -> Result<Actions, Errno> {
        match self.phase {
            Phase::Asked => {}
            Phase::Fresh | Phase::Asking(..) | Phase::Answered(_) | Phase::Closed => {
                return Err(Errno::EINVAL)
            }
        }
        if info.len() > INFO_LEN || private_data.len() > SidrRep::PRIVATE_DATA_LEN {
            return Err(Errno::EINVAL);
        }
        self.payload = Payload::new(info, private_data)?;
        self.sent = Sent::Rep(*params);
        let mut actions = Actions::none();
        self.answer(now, &mut actions);
        Ok(actions)
    }

    /// Sends the answer and remembers it.
    fn answer(&mut self, now: Instant, actions: &mut Actions) {
        self.phase = Phase::Answered(now + self.memory);
        actions.push(Action::Send(Outgoing::Rep));
        actions.push(Action::Timer);
    }

    /// Whether `msg` is the answer to this resolution's question.
    pub fn is_for(&self, msg: &Message<'_>) -> bool {
        match (msg, self.phase) {
            (Message::SidrRep(rep), Phase::Fresh | Phase::Asking(..) | Phase::Closed) => {
                rep.request_id == self.request_id
            }
            _ => false,
        }
    }

    /// A message for this resolution has arrived, from the peer's address: the answer. A repeated
    /// question goes to [`duplicate_req`](Self::duplicate_req) instead.
    pub fn receive(&mut self, msg: &Message<'_>, _now: Instant) -> Actions {
        let Message::SidrRep(rep) = msg else {
            return Actions::count(Counter::Mismatch(msg.attribute()));
        };
        if !self.is_for(msg) {
            return Actions::count(Counter::Mismatch(Attribute::SidrRep));
        }
        match self.phase {
            Phase::Asking(..) => {
                let status = Status(rep.status);
                self.end(Event::RepReceived { status })
            }
            Phase::Fresh | Phase::Asked | Phase::Answered(_) | Phase::Closed => {
                Actions::count(Counter::Unexpected(Attribute::SidrRep))
            }
        }
    }

    /// Whether a SIDR_REQ with the number of this resolution's asks the same again. A peer that has
    /// started anew may use a number for another question.
    pub fn is_same_req(&self, hdr: &Header, req: &SidrReq<'_>) -> bool {
        (hdr.tid, req.request_id, req.service_id, req.pkey)
            == (self.tid, self.request_id, self.service_id, self.pkey)
    }

    /// The SIDR_REQ of this resolution has arrived again.
    pub fn duplicate_req(&mut self, _now: Instant) -> Actions {
        let mut actions = Actions::count(Counter::Duplicate(Attribute::SidrReq));
        match self.phase {
            Phase::Answered(_) => {
                actions.push(Action::Send(Outgoing::Rep));
                actions.push(Action::Count(Counter::Repeat(Attribute::SidrRep)));
            }
            Phase::Fresh | Phase::Asking(..) | Phase::Asked | Phase::Closed => {}
        }
        actions
    }

    /// Time has come to `now`: asks again, gives up, or forgets the answer. Does nothing before the
    /// [`deadline`](Self::deadline).
    pub fn timeout(&mut self, now: Instant) -> Actions {
        match &mut self.phase {
            Phase::Asking(schedule, request) => match request.expire(*schedule, self.pace, now) {
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
            Phase::Answered(until) if now >= *until => self.forget(Action::Timer),
            Phase::Fresh | Phase::Asked | Phase::Answered(_) | Phase::Closed => Actions::none(),
        }
    }

    /// Ends the resolution without its user, who is told nothing from now on.
    ///
    /// A question is not asked any more. One that waits for an answer is rejected, and if that was
    /// for want of memory then it is not remembered: asked again, it may fare better. An answer is
    /// remembered until its time is over. Destroying again does nothing.
    pub fn destroy(&mut self, cause: DestroyCause, now: Instant) -> Actions {
        let mut actions = Actions::none();
        match self.phase {
            Phase::Fresh => {
                self.phase = Phase::Closed;
                actions.push(Action::Release);
            }
            Phase::Asking(..) => {
                self.phase = Phase::Closed;
                actions.push(Action::Timer);
                actions.push(Action::Release);
            }
            Phase::Asked => {
                self.sent = Sent::Rep(ReplyParams::failure(Status::REJECT));
                self.payload = Payload::EMPTY;
                match cause {
                    DestroyCause::User => self.answer(now, &mut actions),
                    DestroyCause::NoMemory => return self.forget(Action::Send(Outgoing::Rep)),
                }
            }
            Phase::Answered(_) | Phase::Closed => {}
        }
        actions
    }

    /// The answering side is over, with `last` to do.
    fn forget(&mut self, last: Action) -> Actions {
        self.phase = Phase::Closed;
        let mut actions = Actions::none();
        actions.push(last);
        actions.push(Action::Untrack);
        actions.push(Action::Release);
        actions
    }

    /// The asking side is over.
    fn end(&mut self, event: Event) -> Actions {
        self.phase = Phase::Closed;
        let mut actions = Actions::none();
        actions.push(Action::Timer);
        actions.push(Action::Deliver(event));
        actions.push(Action::Release);
        actions
    }
}
