// SPDX-License-Identifier: GPL-2.0

//! The state of a connection, and the steps that several transitions share.

use super::{
    action::{Action, Actions, Event, Outgoing},
    alternate::Alternate,
    keepalive::Keepalive,
    params::Limits,
    retransmit::{
        PackedRetryPolicy, PackedSchedule, Retransmit, RetryPolicy, Schedule, TotalTimeout, Waiting,
    },
    retransmit_buffer::{Inline, RetransmitMemory},
    state::State,
};
use crate::{
    qp::{low24, QpType},
    reject::Reason,
    time::{Duration, Instant, TimeCode},
    wire::{Attribute, Header, RejMessage, Rep, Req},
};

/// The phase of the lifecycle of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// Not used yet.
    Fresh,
    /// In use.
    Open,
    /// Over for its user, who was told that the link is down, but not for the peer yet.
    Told,
    /// Destroyed: in time wait, without a user.
    Detached,
    /// The connection is over: [`Action::Release`] was returned.
    Closed,
}

/// The one timer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The timer is not running.
    Off,
    /// The timer of an established connection.
    Keepalive(Keepalive),
    /// The timer of a request that waits for its answer.
    Request(Retransmit),
    /// The timer of the time wait, with its end.
    Timewait(Instant),
}

/// Contents of a REJ, except for the private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) message: RejMessage,
    pub(super) reason: Reason,
    /// The own communication id, or 0 if the peer does not know it.
    pub(super) local_comm_id: u32,
}

/// Waiting times of a connection: the part of [`Limits`] that is needed until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedLimits {
    /// Longest wait for an MRA, in microseconds, at most 71 minutes.
    mra_wait: u32,
    total: TotalTimeout,
    /// Longest time between two questions to the peer, in seconds. 0 not to ask.
    keepalive: u16,
    timewait: TimeCode,
}

/// Returns a time in whole seconds, or 0 if there is none.
fn seconds(time: Option<Duration>) -> u16 {
    let seconds = time.map_or(0, |time| time.as_micros() / 1_000_000);
    u16::try_from(seconds).unwrap_or(u16::MAX)
}

impl PackedLimits {
    fn new(limits: &Limits) -> Self {
        Self {
            mra_wait: u32::try_from(limits.mra_wait.as_micros()).unwrap_or(u32::MAX),
            total: limits.total.into(),
            keepalive: seconds(limits.keepalive),
            timewait: limits.timewait,
        }
    }

    /// Returns the longest time between two questions to the peer, if it is asked.
    pub(super) fn keepalive(&self) -> Option<Duration> {
        (self.keepalive != 0).then_some(Duration::from_secs(self.keepalive.into()))
    }

    /// Sets the longest time between two questions to the peer, or that it is not asked.
    pub(super) fn set_keepalive(&mut self, interval: Option<Duration>) {
        self.keepalive = seconds(interval);
    }

    /// Returns the time to wait after an MRA that asks for `wait`.
    pub(super) fn after_mra(&self, wait: Duration) -> Duration {
        wait.min(Duration::from_micros(self.mra_wait.into()))
    }
}

/// One connection of the InfiniBand communication manager.
///
/// # Invariants
///
/// - The timer runs for a request in `ReqSent`, `MraReqRcvd`, `RepSent`, `MraRepRcvd` and
///   `DreqSent`, for the time wait in `Timewait`, possibly as a [`Keepalive`] in `Established`,
///   and in no other state.
/// - The state is `Idle` when the lifecycle is `Fresh` or `Closed`, `Timewait` when the lifecycle
///   is `Detached`, and `DreqSent` or `Timewait` when it is `Told`.
/// - `has_remote_ids` implies that `remote_comm_id` is known and that the lifecycle is `Open` or
///   `Told`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection<B = Inline> {
    pub(super) state: State,
    pub(super) lifecycle: Lifecycle,
    /// Set if ids of the peer are in the tables of duplicate requests and of stale peers: its
    /// communication id, and its QPN unless the peer has not confirmed its request yet.
    pub(super) has_remote_ids: bool,
    /// Set on the side that has sent the REQ.
    pub(super) is_active: bool,
    pub(super) limits: PackedLimits,
    pub(super) local_comm_id: u32,
    /// The peer's communication id, known from the REQ on the passive side and from the REP on the
    /// active side.
    pub(super) remote_comm_id: Option<u32>,
    pub(super) local_ca_guid: u64,
    pub(super) remote_ca_guid: u64,
    /// Transaction id of the exchanges that are started here.
    pub(super) own_tid: u64,
    /// Transaction id of the current exchange: that of the REQ, then that of the peer's DREQ.
    pub(super) tid: u64,
    pub(super) service_id: u64,
    pub(super) qp_type: QpType,
    pub(super) local_qpn: u32,
    pub(super) remote_qpn: u32,
    /// First PSN that the own queue pair expects.
    pub(super) rq_psn: u32,
    /// First PSN that the peer's queue pair expects.
    pub(super) sq_psn: u32,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    pub(super) path_mtu: u8,
    pub(super) pkey: u16,
    /// Local ack timeout of the queue pair.
    pub(super) ack_timeout: TimeCode,
    /// The alternate path.
    pub(super) alternate: Alternate,
    /// Set once the connection was established with other paths.
    pub(super) is_path_changed: bool,
    /// Service timeout of an MRA.
    pub(super) service_timeout: TimeCode,
    pub(super) schedule: PackedSchedule,
    pub(super) policy: PackedRetryPolicy,
    pub(super) timer: Timer,
    pub(super) rejection: Option<Rejection>,
    /// The contents of the last message that had some, as long as it may be sent again.
    pub(super) buffer: Option<B>,
}

impl<B: RetransmitMemory> Connection<B> {
    /// Creates an unused connection.
    ///
    /// `local_comm_id` is its communication id, `local_ca_guid` the node GUID of the own channel
    /// adapter, and `tid` the transaction id of the exchanges that it starts (REQ and DREQ).
    pub fn new(local_comm_id: u32, local_ca_guid: u64, tid: u64) -> Self {
        // INVARIANT: the connection is unused, idle and without ids of a peer, and no timer runs.
        Self {
            state: State::Idle,
            lifecycle: Lifecycle::Fresh,
            has_remote_ids: false,
            is_active: false,
            limits: PackedLimits::new(&Limits::DEFAULT),
            local_comm_id,
            remote_comm_id: None,
            local_ca_guid,
            remote_ca_guid: 0,
            own_tid: tid,
            tid,
            service_id: 0,
            qp_type: QpType::RC,
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
            alternate: Alternate::None,
            is_path_changed: false,
            service_timeout: TimeCode::new(0),
            schedule: Schedule::active(TimeCode::new(0), TimeCode::new(0), 0).packed(),
            policy: RetryPolicy::Classic.packed(),
            timer: Timer::Off,
            rejection: None,
            buffer: None,
        }
    }

    /// Creates the connection for a received REQ, in [`State::ReqRcvd`].
    ///
    /// The caller has matched the REQ with a listener, and enters the communication id of the peer
    /// into the table of duplicate requests. The first three arguments are those of
    /// [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// The reason for a REJ if the transport does not exist: consumer defined (28), as in the
    /// kernel.
    pub fn from_req(
        local_comm_id: u32,
        local_ca_guid: u64,
        tid: u64,
        hdr: &Header,
        req: &Req<'_>,
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let qp_type = QpType::of_receiver(req.transport).ok_or(Reason::CONSUMER_DEFINED)?;
        // The ack timeout in the REQ is used for both directions. A timeout of 0 also means a
        // packet life time of 0.
        let ack_timeout = |code: u8| TimeCode::new(code.max(1));
        // INVARIANT: the connection is in use and has a peer, and no timer runs.
        Ok(Self {
            state: State::ReqRcvd,
            lifecycle: Lifecycle::Open,
            has_remote_ids: true,
            limits: PackedLimits::new(limits),
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
            alternate: match &req.alternate {
                alternate if alternate.is_empty() => Alternate::None,
                alternate => Alternate::Usable(ack_timeout(alternate.local_ack_timeout)),
            },
            schedule: Schedule::passive(
                TimeCode::new(req.local_cm_response_timeout),
                req.max_cm_retries,
                limits,
            )
            .packed(),
            ..Self::new(local_comm_id, local_ca_guid, tid)
        })
    }

    /// Sets the limits, before the connection is used. A new connection has [`Limits::DEFAULT`].
    pub fn set_limits(&mut self, limits: &Limits) {
        self.limits = PackedLimits::new(limits);
    }

    /// Sets how soon requests may be sent early, from now on. A new connection has
    /// [`RetryPolicy::Classic`].
    pub fn set_retry_policy(&mut self, policy: RetryPolicy) {
        self.policy = policy.packed();
    }

    /// Provides memory for the REQ or REP that is sent next, if there is none, so that
    /// [`connect`](Self::connect) or [`accept`](Self::accept) needs no other.
    pub fn provide(&mut self, buffer: B) {
        let is_next = matches!(self.state, State::Idle | State::ReqRcvd | State::MraReqSent);
        if is_next && self.buffer.is_none() {
            self.buffer = Some(buffer);
        }
    }

    /// Returns the request that waits for its answer, if any.
    pub const fn waiting(&self) -> Option<Waiting> {
        let Timer::Request(request) = &self.timer else {
            return None;
        };
        // A peer sends an MRA for a repeated request, which shows that both copies have arrived, or
        // for a parked one. The answer is then taken as one to the first copy.
        let (message, known) = match self.state {
            State::ReqSent => (Attribute::Req, false),
            State::MraReqRcvd => (Attribute::Req, true),
            State::RepSent => (Attribute::Rep, false),
            State::MraRepRcvd => (Attribute::Rep, true),
            State::DreqSent => (Attribute::Dreq, false),
            _ => return None,
        };
        Some(request.waiting(message, known))
    }

    /// Returns the state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the own communication id.
    pub const fn local_comm_id(&self) -> u32 {
        self.local_comm_id
    }

    /// Returns the peer's communication id, or 0 if it is not known yet.
    pub fn remote_comm_id(&self) -> u32 {
        self.remote_comm_id.unwrap_or(0)
    }

    /// Returns the reason of the last REJ that was sent, if any.
    pub fn reject_reason(&self) -> Option<Reason> {
        self.rejection.map(|rejection| rejection.reason)
    }

    /// Returns the QPN of the own queue pair, or 0 before `connect` or `accept`.
    pub const fn local_qpn(&self) -> u32 {
        self.local_qpn
    }

    /// Returns the QPN of the peer's queue pair, or 0 if it is not known yet.
    pub const fn remote_qpn(&self) -> u32 {
        self.remote_qpn
    }

    /// Returns the node GUID of the peer's channel adapter, or 0 if it is not known yet.
    pub const fn remote_ca_guid(&self) -> u64 {
        self.remote_ca_guid
    }

    /// Returns the service id of the REQ, or 0 before there is one.
    pub const fn service_id(&self) -> u64 {
        self.service_id
    }

    /// Returns the P_Key of the REQ, or 0 before there is one.
    pub const fn pkey(&self) -> u16 {
        self.pkey
    }

    /// Returns the type of the own queue pair. It is [`RC`](QpType::RC) before there is a REQ.
    pub const fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// Returns the time at which [`timeout`](Self::timeout) has something to do, if any.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.timer {
            Timer::Off => None,
            Timer::Keepalive(keepalive) => keepalive.deadline(),
            Timer::Request(request) => Some(request.deadline()),
            Timer::Timewait(end) => Some(*end),
        }
    }

    /// Returns whether a REP would be the first one.
    ///
    /// If so, the caller checks the ids of the peer against the tables of duplicate requests and of
    /// stale peers, and enters them, before it calls [`receive`](Self::receive).
    pub const fn wants_rep(&self) -> bool {
        matches!(self.state, State::ReqSent | State::MraReqRcvd)
    }

    /// Returns whether an RTU would confirm the request of the peer: it would be the first.
    ///
    /// If so, the caller enters the QPN of the peer into the table of stale peers before it calls
    /// [`receive`](Self::receive).
    pub const fn wants_rtu(&self) -> bool {
        matches!(self.state, State::RepSent | State::MraRepRcvd)
    }

    /// Marks `rep` as refused, because its QPN belongs to another connection that still exists.
    ///
    /// Its sender is sent a REJ, so that a copy of this REP must not be accepted later either, when
    /// the other connection has ended.
    pub(crate) fn refuse_rep(&mut self, rep: &Rep<'_>) {
        if let Some(buffer) = &mut self.buffer {
            buffer.refused |= Self::refusal(rep);
        }
    }

    /// Returns whether `rep` was refused before, so that the caller must refuse it again.
    ///
    /// For one in 64 other REPs the result is wrong. Then the connection is made with the next
    /// retry of the REQ, as the peer has another communication id after that.
    pub(crate) fn has_refused(&self, rep: &Rep<'_>) -> bool {
        let refused = self.buffer.as_deref().map_or(0, |buffer| buffer.refused);
        refused & Self::refusal(rep) != 0
    }

    const fn refusal(rep: &Rep<'_>) -> u64 {
        1u64.wrapping_shl(rep.local_comm_id)
    }

    /// Returns the peer's QPN in `rep`. For XRC it is in the field of the end-to-end context.
    pub const fn rep_qpn(&self, rep: &Rep<'_>) -> u32 {
        match self.qp_type {
            QpType::XRC_INI => low24(rep.local_eecn),
            _ => low24(rep.local_qpn),
        }
    }

    /// Returns whether the connection is over, which means that [`Action::Release`] was returned.
    pub fn is_closed(&self) -> bool {
        self.lifecycle == Lifecycle::Closed
    }

    /// Delivers an event to the user, unless the connection was destroyed, or the user knows that
    /// it is over.
    pub(super) fn deliver(&self, event: Event, actions: &mut Actions) {
        let is_new = match self.lifecycle {
            Lifecycle::Fresh | Lifecycle::Open => true,
            Lifecycle::Told => event == Event::TimewaitExit,
            Lifecycle::Detached | Lifecycle::Closed => false,
        };
        if is_new {
            actions.push(Action::Deliver(event));
        }
    }

    /// Returns the retransmission of a request without early sends.
    pub(super) fn classic_request(&self, now: Instant) -> Retransmit {
        Retransmit::start(self.schedule.unpacked(), now).within(self.limits.total)
    }

    /// Sends a request and starts the timer for its answer.
    pub(super) fn request(&mut self, message: Outgoing, now: Instant, actions: &mut Actions) {
        let request = self
            .classic_request(now)
            .with_policy(self.policy.unpacked(), self.local_comm_id);
        self.timer = Timer::Request(request);
        actions.push(Action::Send(message));
        actions.push(Action::Timer);
    }

    /// Stops the timer.
    pub(super) fn disarm(&mut self, actions: &mut Actions) {
        if self.deadline().is_some() {
            actions.push(Action::Timer);
        }
        self.timer = Timer::Off;
    }

    /// Removes the ids of the peer from the tables.
    pub(super) fn release_remote_ids(&mut self, actions: &mut Actions) {
        if self.has_remote_ids {
            self.has_remote_ids = false;
            actions.push(Action::ReleaseRemoteIds);
        }
    }

    /// Ends the connection, and waits until its packets have left the network.
    pub(super) fn enter_timewait(&mut self, now: Instant, actions: &mut Actions) {
        let wait = self.ack_timeout.min(self.limits.timewait).to_duration();
        self.state = State::Timewait;
        self.release_remote_ids(actions);
        self.timer = Timer::Timewait(now + wait);
        actions.push(Action::Timer);
    }

    /// Ends the connection at once. The last action to add is [`release`](Self::release).
    pub(super) fn enter_idle(&mut self, actions: &mut Actions) {
        self.state = State::Idle;
        self.release_remote_ids(actions);
        self.disarm(actions);
    }

    /// Marks the connection as over.
    pub(super) fn release(&mut self, actions: &mut Actions) {
        self.lifecycle = Lifecycle::Closed;
        actions.push(Action::Release);
    }
}
