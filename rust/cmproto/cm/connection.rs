// SPDX-License-Identifier: GPL-2.0

//! What a connection knows, and the steps that several transitions share.

use super::{
    action::{Action, Actions, Event, Outgoing},
    params::{low24, AcceptParams, ConnectParams, Limits, QpType},
    retransmit::{KeptPace, Pace, Retransmit, Schedule, Total, Waiting},
    state::State,
};
use crate::{
    bytes::fill,
    reject::Reason,
    time::{Duration, Instant, TimeCode},
    wire::{Attribute, Header, RejMessage, Rep, Req},
};

/// Whose hands a connection is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Never used.
    Fresh,
    /// In use.
    Open,
    /// Destroyed: waits out its time wait, and tells nobody.
    Detached,
    /// Over: [`Action::Release`] was given.
    Closed,
}

/// The message that the connection has made its offer with, as it must be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// None yet.
    None,
    /// A REQ: this is the active side.
    Req(ConnectParams),
    /// A REP: this is the passive side.
    Rep(AcceptParams),
}

/// The one timer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Not running.
    Off,
    /// A request waits for its answer.
    Request(Retransmit),
    /// The time wait ends then.
    Timewait(Instant),
}

/// The contents of a REJ, except for the private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) message: RejMessage,
    pub(super) reason: Reason,
    /// The own communication id, or 0 where the wire format says so.
    pub(super) local_comm_id: u32,
}

/// How long a connection waits: what it needs of [`Limits`] to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    /// In microseconds, at most 71 minutes.
    mra_wait: u32,
    total: Total,
    timewait: TimeCode,
}

impl Patience {
    fn new(limits: &Limits) -> Self {
        Self {
            mra_wait: u32::try_from(limits.mra_wait.as_micros()).unwrap_or(u32::MAX),
            total: limits.total.into(),
            timewait: limits.timewait,
        }
    }

    /// How long an MRA that asks for `wait` is believed.
    pub(super) fn after_mra(&self, wait: Duration) -> Duration {
        wait.min(Duration::from_micros(self.mra_wait.into()))
    }
}

/// The private data of the last message that had some, for when it is sent again.
///
/// # Invariants
///
/// `ari_len + len` bytes of `bytes` are in use: first the additional rejection information, then
/// the private data. All further bytes are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    owner: Option<Outgoing>,
    ari_len: u8,
    len: u8,
    bytes: [u8; Self::CAPACITY],
}

impl Payload {
    /// Enough for an RTU or DREP (224 bytes), and for a REJ (72 + 148 bytes).
    const CAPACITY: usize = 224;

    /// No private data.
    pub(super) const EMPTY: Self = Self {
        owner: None,
        ari_len: 0,
        len: 0,
        bytes: [0; Self::CAPACITY],
    };

    /// The private data, and the additional rejection information, for `owner`; `None` when it
    /// does not fit.
    pub(super) fn new(owner: Outgoing, ari: &[u8], data: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::CAPACITY];
        let (head, tail) = bytes.split_at_mut_checked(ari.len())?;
        head.copy_from_slice(ari);
        tail.get_mut(..data.len())?.copy_from_slice(data);
        // INVARIANT: the lengths are those of what was just copied.
        Some(Self {
            owner: Some(owner),
            ari_len: u8::try_from(ari.len()).ok()?,
            len: u8::try_from(data.len()).ok()?,
            bytes,
        })
    }

    /// Keeps `data`, or as much of it as there is room for, for `owner`.
    pub(super) fn set(&mut self, owner: Outgoing, data: &[u8]) {
        self.clear();
        // INVARIANT: the length is that of what is copied, and nothing else is in use.
        self.len = u8::try_from(fill(&mut self.bytes, data)).unwrap_or(0);
        self.owner = Some(owner);
    }

    /// Keeps nothing.
    pub(super) fn clear(&mut self) {
        let used = usize::from(self.ari_len).saturating_add(usize::from(self.len));
        if let Some(used) = self.bytes.get_mut(..used) {
            used.fill(0);
        }
        // INVARIANT: what was in use is zero now.
        self.owner = None;
        self.ari_len = 0;
        self.len = 0;
    }

    /// The additional rejection information and the private data kept for `message`.
    pub(super) fn of(&self, message: Outgoing) -> (&[u8], &[u8]) {
        if self.owner != Some(message) {
            return (&[], &[]);
        }
        let (ari, rest) = self
            .bytes
            .split_at_checked(usize::from(self.ari_len))
            .unwrap_or((&[], &[]));
        (ari, rest.get(..usize::from(self.len)).unwrap_or(&[]))
    }
}

/// One connection of the InfiniBand communication manager.
///
/// # Invariants
///
/// - The timer runs for a request in `ReqSent`, `MraReqRcvd`, `RepSent`, `MraRepRcvd` and
///   `DreqSent`, for the time wait in `Timewait`, and in no other state.
/// - The state is `Idle` when the life is `Fresh` or `Closed`, and it is `Timewait` when the life
///   is `Detached`.
/// - `tracked` implies that `remote_comm_id` is known and that the life is `Open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    pub(super) state: State,
    pub(super) life: Life,
    /// In the tables of duplicate requests and of stale peers.
    pub(super) tracked: bool,
    pub(super) patience: Patience,
    pub(super) local_comm_id: u32,
    /// Known from the REQ on the passive side, from the REP on the active one.
    pub(super) remote_comm_id: Option<u32>,
    pub(super) local_ca_guid: u64,
    pub(super) remote_ca_guid: u64,
    /// Transaction id of the requests that start an exchange here.
    pub(super) own_tid: u64,
    /// Transaction id of the exchange in progress: that of the REQ, then of the peer's DREQ.
    pub(super) tid: u64,
    pub(super) service_id: u64,
    pub(super) qp_type: QpType,
    pub(super) local_qpn: u32,
    pub(super) remote_qpn: u32,
    /// First sequence number that the own queue pair expects.
    pub(super) rq_psn: u32,
    /// First sequence number that the peer's queue pair expects.
    pub(super) sq_psn: u32,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    pub(super) path_mtu: u8,
    pub(super) pkey: u16,
    /// Time after which a packet of the queue pair counts as lost.
    pub(super) ack_timeout: TimeCode,
    /// The same for the alternate path, if the REQ has one.
    pub(super) alternate_ack_timeout: Option<TimeCode>,
    /// Whether the REQ has one that is not used.
    pub(super) is_alternate_declined: bool,
    /// Time that an MRA asks for.
    pub(super) service_timeout: TimeCode,
    pub(super) schedule: Schedule,
    pub(super) pace: KeptPace,
    pub(super) timer: Timer,
    pub(super) offer: Offer,
    pub(super) rejection: Option<Rejection>,
    /// The peer's communication ids in the REPs that were refused, modulo 64: a set of bits.
    pub(super) refused: u64,
    pub(super) payload: Payload,
}

impl Connection {
    /// An unused connection.
    ///
    /// `local_comm_id` is its number here, `local_ca_guid` the node GUID of the own channel
    /// adapter, and `tid` the transaction id of the exchanges that it starts (REQ and DREQ).
    pub fn new(local_comm_id: u32, local_ca_guid: u64, tid: u64) -> Self {
        // INVARIANT: unused, idle, not tracked, and no timer runs.
        Self {
            state: State::Idle,
            life: Life::Fresh,
            tracked: false,
            patience: Patience::new(&Limits::DEFAULT),
            local_comm_id,
            remote_comm_id: None,
            local_ca_guid,
            remote_ca_guid: 0,
            own_tid: tid,
            tid,
            service_id: 0,
            qp_type: QpType::Rc,
            local_qpn: 0,
            remote_qpn: 0,
            rq_psn: 0,
            sq_psn: 0,
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            path_mtu: 0,
            pkey: 0,
            ack_timeout: TimeCode::new(0),
            alternate_ack_timeout: None,
            is_alternate_declined: false,
            service_timeout: TimeCode::new(0),
            schedule: Schedule::active(TimeCode::new(0), TimeCode::new(0), 0),
            pace: Pace::Classic.kept(),
            timer: Timer::Off,
            offer: Offer::None,
            rejection: None,
            refused: 0,
            payload: Payload::EMPTY,
        }
    }

    /// The connection that a received REQ asks for, in [`State::ReqRcvd`].
    ///
    /// The caller has matched the REQ with a listener and has entered it into the tables of
    /// duplicate requests and of stale peers. The first three arguments are as in
    /// [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// The reason with which to reject a REQ for a transport that does not exist: consumer
    /// defined (28), as the kernel does.
    pub fn from_req(
        local_comm_id: u32,
        local_ca_guid: u64,
        tid: u64,
        hdr: &Header,
        req: &Req<'_>,
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let qp_type = QpType::of_receiver(req.transport).ok_or(Reason::CONSUMER_DEFINED)?;
        let alternate = (!req.alternate.is_empty()).then_some(req.alternate.local_ack_timeout);
        // The peer's timeout holds for both directions. 0 stands for a life time of 0, too.
        let ack_timeout = |code: u8| TimeCode::new(code.max(1));
        // INVARIANT: in use, with a peer, and no timer runs.
        Ok(Self {
            state: State::ReqRcvd,
            life: Life::Open,
            tracked: true,
            patience: Patience::new(limits),
            remote_comm_id: Some(req.local_comm_id),
            remote_ca_guid: req.local_ca_guid,
            tid: hdr.tid,
            service_id: req.service_id,
            qp_type,
            remote_qpn: low24(req.local_qpn),
            sq_psn: low24(req.starting_psn),
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            path_mtu: req.path_mtu,
            pkey: req.pkey,
            ack_timeout: ack_timeout(req.primary.local_ack_timeout),
            alternate_ack_timeout: alternate.map(ack_timeout),
            schedule: Schedule::passive(
                TimeCode::new(req.local_cm_response_timeout),
                req.max_cm_retries,
                limits,
            ),
            ..Self::new(local_comm_id, local_ca_guid, tid)
        })
    }

    /// Does without the alternate path of the REQ, if it has one: the REP will say that it is not
    /// supported (IBTA 12.6.8), and the queue pair gets none.
    pub fn decline_alternate(&mut self) {
        if self.alternate_ack_timeout.take().is_some() {
            self.is_alternate_declined = true;
        }
    }

    /// Sets how far the peer is believed, before the connection is used. A new connection has
    /// [`Limits::DEFAULT`].
    pub fn set_limits(&mut self, limits: &Limits) {
        self.patience = Patience::new(limits);
    }

    /// Says how soon requests may be sent early, from now on. A new connection is
    /// [`Pace::Classic`].
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace.kept();
    }

    /// The request that waits for its answer.
    pub const fn waiting(&self) -> Option<Waiting> {
        let Timer::Request(request) = &self.timer else {
            return None;
        };
        // Only a copy is answered by an MRA, or what is parked, and a copy means that both came.
        let (message, known) = match self.state {
            State::ReqSent => (Attribute::Req, false),
            State::MraReqRcvd => (Attribute::Req, true),
            State::RepSent => (Attribute::Rep, false),
            State::MraRepRcvd => (Attribute::Rep, true),
            State::DreqSent => (Attribute::Dreq, false),
            State::Idle
            | State::Listen
            | State::ReqRcvd
            | State::MraReqSent
            | State::RepRcvd
            | State::MraRepSent
            | State::Established
            | State::DreqRcvd
            | State::Timewait
            | State::SidrReqSent
            | State::SidrReqRcvd => return None,
        };
        Some(request.waiting(message, known))
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The own communication id.
    pub const fn local_comm_id(&self) -> u32 {
        self.local_comm_id
    }

    /// The peer's communication id, 0 before it is known.
    pub fn remote_comm_id(&self) -> u32 {
        self.remote_comm_id.unwrap_or(0)
    }

    /// The reason of the REJ that was sent last, if there was one.
    pub fn reject_reason(&self) -> Option<Reason> {
        self.rejection.map(|rejection| rejection.reason)
    }

    /// Number of the own queue pair, 0 before `connect` or `accept`.
    pub const fn local_qpn(&self) -> u32 {
        self.local_qpn
    }

    /// Number of the peer's queue pair, 0 before it is known.
    pub const fn remote_qpn(&self) -> u32 {
        self.remote_qpn
    }

    /// Node GUID of the peer's channel adapter, 0 before it is known.
    pub const fn remote_ca_guid(&self) -> u64 {
        self.remote_ca_guid
    }

    /// The service id of the REQ, 0 before it.
    pub const fn service_id(&self) -> u64 {
        self.service_id
    }

    /// The partition key of the REQ, 0 before it.
    pub const fn pkey(&self) -> u16 {
        self.pkey
    }

    /// Type of the own queue pair, reliable until the REQ says otherwise.
    pub const fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// When [`timeout`](Self::timeout) has something to do, `None` for never.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.timer {
            Timer::Off => None,
            Timer::Request(request) => Some(request.deadline()),
            Timer::Timewait(end) => Some(*end),
        }
    }

    /// Whether a REP would be a new one. If so, the caller checks it against the tables of
    /// duplicate requests and of stale peers, and enters it there, before it passes it on.
    pub const fn wants_rep(&self) -> bool {
        matches!(self.state, State::ReqSent | State::MraReqRcvd)
    }

    /// The caller has refused `rep`, because its queue pair belongs to a connection that still
    /// exists. Its sender is rejected, and so this REP shall not be accepted later either, when a
    /// copy of it comes after that connection has ended.
    pub(crate) fn refuse_rep(&mut self, rep: &Rep<'_>) {
        self.refused |= Self::refusal(rep);
    }

    /// Whether the caller must refuse `rep` because it has refused it before.
    ///
    /// One in 64 of all others looks like it. That costs the next try of the REQ, after which the
    /// peer has another communication id.
    pub(crate) const fn has_refused(&self, rep: &Rep<'_>) -> bool {
        self.refused & Self::refusal(rep) != 0
    }

    const fn refusal(rep: &Rep<'_>) -> u64 {
        1u64.wrapping_shl(rep.local_comm_id)
    }

    /// The number of the peer's queue pair in `rep`, which for XRC is that of an EE context.
    pub const fn rep_qpn(&self, rep: &Rep<'_>) -> u32 {
        match self.qp_type {
            QpType::XrcIni => low24(rep.local_eecn),
            QpType::Rc | QpType::Uc | QpType::XrcTgt => low24(rep.local_qpn),
        }
    }

    /// Whether the connection is over: [`Action::Release`] was given.
    pub fn is_closed(&self) -> bool {
        self.life == Life::Closed
    }

    /// Whether this is the side that sent the REQ.
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.offer, Offer::Req(_))
    }

    /// Tells the user, unless the connection was destroyed.
    pub(super) fn deliver(&self, event: Event, actions: &mut Actions) {
        match self.life {
            Life::Fresh | Life::Open => actions.push(Action::Deliver(event)),
            Life::Detached | Life::Closed => {}
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) fn request(&mut self, message: Outgoing, now: Instant, actions: &mut Actions) {
        let request = Retransmit::start(self.schedule, now)
            .within(self.patience.total)
            .paced(self.pace.pace(), self.local_comm_id);
        self.timer = Timer::Request(request);
        actions.push(Action::Send(message));
        actions.push(Action::Timer);
    }

    /// Stops the timer.
    pub(super) fn disarm(&mut self, actions: &mut Actions) {
        if self.timer != Timer::Off {
            self.timer = Timer::Off;
            actions.push(Action::Timer);
        }
    }

    /// Leaves the tables.
    pub(super) fn untrack(&mut self, actions: &mut Actions) {
        if self.tracked {
            self.tracked = false;
            actions.push(Action::Untrack);
        }
    }

    /// The connection ends, and waits for its packets to leave the network.
    pub(super) fn enter_timewait(&mut self, now: Instant, actions: &mut Actions) {
        let wait = self.ack_timeout.min(self.patience.timewait).to_duration();
        self.state = State::Timewait;
        self.untrack(actions);
        self.timer = Timer::Timewait(now + wait);
        actions.push(Action::Timer);
    }

    /// The connection ends now. The last action to add is [`release`](Self::release).
    pub(super) fn enter_idle(&mut self, actions: &mut Actions) {
        self.state = State::Idle;
        self.untrack(actions);
        self.disarm(actions);
    }

    /// The end.
    pub(super) fn release(&mut self, actions: &mut Actions) {
        self.life = Life::Closed;
        actions.push(Action::Release);
    }
}
