// SPDX-License-Identifier: GPL-2.0

//! Retransmission of requests, until they are given up.
//!
//! The classic schedule has a fixed number of sends at fixed intervals. Before the first retry of
//! the classic schedule, a request may be sent early: once after about a round-trip time, and then
//! at gaps that double, up to [`EARLY_SENDS`] times. The classic sends are not moved by early ones,
//! so that a request that is answered without early sends is answered with them, too, and a request
//! without an answer is given up at the same time.

use super::{params::Limits, round_trip::RoundTrip};
use crate::{
    time::{Duration, Instant, TimeCode},
    wire::Attribute,
};

/// Maximum number of early sends of a request.
pub const EARLY_SENDS: u8 = 7;

/// Interval and number of the classic sends of every request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    interval: Duration,
    retries: u8,
}

impl Schedule {
    /// Creates a schedule that does not depend on the peer, as for service id resolution.
    pub const fn fixed(interval: Duration, retries: u8) -> Self {
        Self { interval, retries }
    }

    /// Creates the schedule of the active side.
    ///
    /// The interval is twice the packet life time plus the response timeout of the peer (IBTA
    /// volume 1, 12.7.20). There are `retries` retries, 0 to 15.
    pub fn active(
        packet_life_time: TimeCode,
        remote_cm_response_timeout: TimeCode,
        retries: u8,
    ) -> Self {
        let round_trip = packet_life_time.to_duration().saturating_mul(2);
        Self::fixed(
            round_trip + remote_cm_response_timeout.to_duration(),
            retries.min(15),
        )
    }

    /// Creates the schedule of the passive side, from the values in the REQ, which are reduced to
    /// `limits`.
    pub fn passive(local_cm_response_timeout: TimeCode, retries: u8, limits: &Limits) -> Self {
        Self::fixed(
            local_cm_response_timeout
                .to_duration()
                .min(limits.passive_interval),
            retries.min(limits.passive_retries),
        )
    }

    /// Returns the interval between two sends.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the number of retries after the first send.
    pub const fn retries(&self) -> u8 {
        self.retries
    }

    /// Returns the schedule in its small form.
    pub(super) fn packed(self) -> PackedSchedule {
        let interval = self.interval.as_micros().min(u64::MAX >> 8);
        PackedSchedule(interval << 8 | u64::from(self.retries))
    }
}

/// A [`Schedule`] in half the space: the interval in microseconds, above the number of retries in
/// the lowest byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedSchedule(u64);

impl PackedSchedule {
    /// Returns the schedule.
    pub(super) const fn unpacked(self) -> Schedule {
        let [retries, ..] = self.0.to_le_bytes();
        Schedule::fixed(Duration::from_micros(self.0 >> 8), retries)
    }
}

/// The policy of early sends of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryPolicy {
    /// No early sends.
    #[default]
    Classic,
    /// Early sends, the first of them after this time, which is a few round trips.
    After(Duration),
    /// Early sends like [`After`](Self::After), for a request that is probably lost, because a
    /// later request of its kind was answered.
    Overtaken(Duration),
    /// No early sends for now, because the peer is silent and enough other requests wait for it.
    /// This time is when to check again for the first time.
    Hold(Duration),
}

/// A [`RetryPolicy`] in a quarter of the space, with a time of up to 17 minutes: the time in
/// microseconds, above the kind in the lowest two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedRetryPolicy(u32);

impl PackedRetryPolicy {
    /// Returns the policy.
    pub(super) const fn unpacked(self) -> RetryPolicy {
        let first = long(self.0 >> 2);
        match self.0 & 3 {
            1 => RetryPolicy::After(first),
            2 => RetryPolicy::Hold(first),
            3 => RetryPolicy::Overtaken(first),
            _ => RetryPolicy::Classic,
        }
    }
}

impl RetryPolicy {
    /// Returns the policy in its small form.
    pub(super) fn packed(self) -> PackedRetryPolicy {
        let (kind, first) = match self {
            Self::Classic => (0, Duration::ZERO),
            Self::After(first) => (1, first),
            Self::Hold(first) => (2, first),
            Self::Overtaken(first) => (3, first),
        };
        PackedRetryPolicy(short(first).min(u32::MAX >> 2) << 2 | kind)
    }

    /// Maximum number of unanswered requests to a silent peer that are sent early.
    pub const WINDOW: u32 = 32;
    /// Time after its last message from which a peer is silent.
    pub const SILENCE: Duration = Duration::from_millis(1_000);

    /// Returns the policy of a request to a peer.
    ///
    /// The peer has `unanswered` requests and has sent its last message `silent` ago; `trip` is its
    /// round-trip time. The first early send is not before `floor`. `overtaken` is set if a later
    /// request of the same kind was answered.
    pub fn of(
        unanswered: u32,
        silent: Duration,
        trip: RoundTrip,
        floor: Duration,
        overtaken: bool,
    ) -> Self {
        let first = trip.retry_timeout(floor);
        if unanswered > Self::WINDOW && silent > Self::SILENCE {
            Self::Hold(first)
        } else if overtaken {
            Self::Overtaken(floor)
        } else {
            Self::After(first)
        }
    }
}

/// The result of [`Retransmit::expire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The timer has not expired yet. There is nothing to do.
    Early,
    /// Set the timer again, and send nothing.
    Later,
    /// Send the request again.
    Resend,
    /// Give the request up.
    GiveUp,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Kind of the request: REQ, REP, DREQ or SIDR_REQ.
    pub message: Attribute,
    /// Time of the first send.
    pub since: Instant,
    /// Set if the request was sent early, and nothing shows that this was needless: the answer may
    /// then be to any of the sends.
    pub ambiguous: bool,
    /// Number of early sends.
    pub early: u8,
}

/// Returns a duration in half the space: in microseconds, at most 71 minutes.
fn short(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Returns the duration that [`short`] has converted.
const fn long(micros: u32) -> Duration {
    Duration::from_micros(micros as u64)
}

/// Value for no early send.
const NEVER: u32 = u32::MAX;

/// Limit of the total time of a request, even if there are retries left. Takes half the space of a
/// [`Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TotalTimeout(u32);

impl TotalTimeout {
    /// No limit other than the retries.
    pub const NONE: Self = Self(NEVER);
    /// The longest limit, 71 minutes.
    pub const LONGEST: Duration = Duration::from_micros(NEVER as u64 - 1);
}

impl From<Duration> for TotalTimeout {
    /// Converts a duration. [`Duration::MAX`] means no limit. Any other that is too long becomes
    /// [`LONGEST`](TotalTimeout::LONGEST), which is still a limit.
    fn from(span: Duration) -> Self {
        match span {
            Duration::MAX => Self::NONE,
            span => Self(short(span.min(Self::LONGEST))),
        }
    }
}

/// The retransmission of one request that was sent and not answered yet.
///
/// The schedule is the same in all calls. Durations are in the form of [`short`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmit {
    sent: Instant,
    /// Time of the next classic send, or of the end if there are no retries left.
    classic: Instant,
    /// Limit of the time after `sent`, even if there are retries left or the peer asks for more
    /// time.
    total: TotalTimeout,
    /// Time that the MRA for an early send has asked for. It begins with the next classic send,
    /// which would have been answered with an MRA without early sends.
    deferred: u32,
    /// Time of the next early send, after `sent`, or [`NEVER`].
    early: u32,
    /// Time from the next early send to the one after it.
    gap: u32,
    /// Time after `sent` before which there is no early send unless later requests are answered,
    /// because the peer is known to have the request. 0 if it is not known.
    resumes_after: u32,
    /// State of the generator that makes the gaps of requests differ which were sent at the same
    /// time.
    seed: u32,
    retries_left: u8,
    early_left: u8,
    sent_early: bool,
    /// Set if the peer has asked for more time since the last classic send.
    extended: bool,
}

impl Retransmit {
    /// Shortest time between two early sends, or between two checks whether to send early.
    const LEAST: Duration = Duration::from_millis(1);
    /// Time until the first check whether a request was overtaken, and shortest time between such
    /// checks.
    const LOOK: Duration = Duration::from_millis(100);

    /// Creates the retransmission of a request that is sent for the first time at `now`.
    pub fn start(schedule: Schedule, now: Instant) -> Self {
        Self {
            sent: now,
            classic: now + schedule.interval,
            total: TotalTimeout::NONE,
            deferred: 0,
            early: NEVER,
            gap: 0,
            resumes_after: 0,
            seed: 0,
            retries_left: schedule.retries,
            early_left: EARLY_SENDS,
            sent_early: false,
            extended: false,
        }
    }

    /// Returns the retransmission with a limit: the request is given up `total` after the first
    /// send, even if there are retries left or the peer asks for more time.
    pub fn within(self, total: impl Into<TotalTimeout>) -> Self {
        Self {
            total: total.into(),
            ..self
        }
    }

    /// Returns the retransmission with early sends by `policy`. The gaps depend on `seed`.
    pub fn with_policy(mut self, policy: RetryPolicy, seed: u32) -> Self {
        self.seed = seed;
        if let RetryPolicy::After(first)
        | RetryPolicy::Overtaken(first)
        | RetryPolicy::Hold(first) = policy
        {
            let first = first.min(Self::LOOK).max(Self::LEAST);
            self.plan(self.sent, first, first.saturating_mul(2));
        }
        self
    }

    /// Returns the time at which [`expire`](Self::expire) has something to do.
    pub fn deadline(&self) -> Instant {
        self.classic.min(self.end()).min(self.after(self.early))
    }

    /// Returns the request, for statistics. `known` is set if the peer is known to have it.
    pub const fn waiting(&self, message: Attribute, known: bool) -> Waiting {
        Waiting {
            message,
            since: self.sent,
            ambiguous: self.sent_early && !known,
            early: EARLY_SENDS.saturating_sub(self.early_left),
        }
    }

    fn after(&self, span: u32) -> Instant {
        match span {
            NEVER => Instant::MAX,
            span => self.sent + long(span),
        }
    }

    fn end(&self) -> Instant {
        self.after(self.total.0)
    }

    /// Schedules the next early send `gap` after `now`, up to a quarter of the gap later, and the
    /// one after it `next` later.
    fn plan(&mut self, now: Instant, gap: Duration, next: Duration) {
        let share = self.random_share();
        let at = now + gap + gap.saturating_mul(share).divided_by(1024);
        self.plan_at(at, next);
    }

    /// Schedules the next early send after an early send at `now`: 0.5 to 1.5 times the gap later,
    /// but `first` at least.
    ///
    /// The times of requests that were sent together and lost together, because they were too many,
    /// become so different that a receiver has no pause between one group of them and the next.
    fn plan_apart(&mut self, now: Instant, first: Duration) {
        let gap = long(self.gap);
        let share = self.random_share();
        let least = gap.divided_by(2).max(first);
        let at = now + least + gap.saturating_mul(share).divided_by(256);
        self.plan_at(at, gap.saturating_mul(2));
    }

    /// Returns a random number of 0 to 255.
    fn random_share(&mut self) -> u64 {
        // The step of a linear congruential generator. Its upper bits are random enough.
        self.seed = self
            .seed
            .wrapping_mul(0x9e37_79b9)
            .wrapping_add(0x7f4a_7c15);
        u64::from(self.seed.wrapping_shr(24))
    }

    /// Schedules the next early send at the time `at`, and the one after it `next` later, unless
    /// the classic send is near.
    fn plan_at(&mut self, at: Instant, next: Duration) {
        self.gap = short(next);
        self.early = match self.early_left > 0 && self.is_before_classic(at) {
            true => short(at.saturating_duration_since(self.sent)),
            false => NEVER,
        };
    }

    /// Returns whether an early send at the time `at` is worthwhile: the classic send is not near.
    fn is_before_classic(&self, at: Instant) -> bool {
        at + long(self.gap).divided_by(2) <= self.classic
    }

    /// Handles the expiry of the timer at `now`, with the current `policy`.
    ///
    /// If the timer expires late, the next classic interval starts at `now` nevertheless, so that
    /// classic sends are never closer to each other than the interval.
    pub fn expire(&mut self, schedule: Schedule, policy: RetryPolicy, now: Instant) -> Expiry {
        if now < self.deadline() {
            return Expiry::Early;
        }
        if self.total != TotalTimeout::NONE && now >= self.end() {
            return Expiry::GiveUp;
        }
        if now < self.classic {
            return self.expire_early(policy, now);
        }
        match self.retries_left.checked_sub(1) {
            Some(left) => {
                self.retries_left = left;
                self.classic = now + schedule.interval.max(long(self.deferred));
                self.deferred = 0;
                self.early = NEVER;
                self.extended = false;
                Expiry::Resend
            }
            None => Expiry::GiveUp,
        }
    }

    fn expire_early(&mut self, policy: RetryPolicy, now: Instant) -> Expiry {
        let gap = long(self.gap);
        let waited = now.saturating_duration_since(self.sent);
        match policy {
            RetryPolicy::Classic => {
                self.early = NEVER;
                Expiry::Later
            }
            RetryPolicy::Hold(_) => {
                self.plan(now, gap, gap.saturating_mul(2));
                Expiry::Later
            }
            // Answers take longer than when the request was sent, or the peer is known to have the
            // request.
            RetryPolicy::After(first) if self.sent + first.max(long(self.resumes_after)) > now => {
                let look = now + Self::LOOK.max(waited.divided_by(2));
                let due = self.sent + first.max(long(self.resumes_after));
                self.plan_at(look.min(due), gap.max(first));
                Expiry::Later
            }
            RetryPolicy::Overtaken(first) if self.sent + first > now => {
                self.plan_at(self.sent + first, gap.max(first));
                Expiry::Later
            }
            // The timer was late, and the classic send follows soon.
            RetryPolicy::After(_) | RetryPolicy::Overtaken(_) if !self.is_before_classic(now) => {
                self.early = NEVER;
                Expiry::Later
            }
            RetryPolicy::After(first) | RetryPolicy::Overtaken(first) => {
                self.early_left = self.early_left.saturating_sub(1);
                self.sent_early = true;
                if self.resumes_after != 0 {
                    self.resumes_after = short(waited.saturating_mul(2));
                }
                self.plan_apart(now, first);
                Expiry::Resend
            }
        }
    }

    /// Extends the time before the next send, because the peer has asked at `now` for `wait` by an
    /// MRA. Returns false if nothing changes, because the peer has asked before since the last
    /// classic send.
    ///
    /// One extension for each classic send is effective, so that a request that is always answered
    /// with an MRA takes as many waits as it has sends. An extension never makes a send earlier,
    /// and never moves the limit of [`within`](Self::within). No early sends follow.
    pub fn extend(&mut self, schedule: Schedule, wait: Duration, now: Instant) -> bool {
        if self.extended {
            return false;
        }
        self.extended = true;
        self.early = NEVER;
        // Without early sends, the next classic send would have been answered with this MRA. If
        // there is no retry left, the current wait is the last one and is extended.
        let is_answer_to_early = self.sent_early && now < self.sent + schedule.interval;
        if is_answer_to_early && self.retries_left > 0 {
            self.deferred = short(wait);
        } else {
            self.classic = self.classic.max(now + wait);
        }
        true
    }

    /// Starts early sends again after an extension at `now`, because the peer does not report the
    /// loss of its next message. The first one is after an eighth of the interval, unless later
    /// requests are answered.
    pub fn resume_early(&mut self, schedule: Schedule, now: Instant) {
        let until = now + schedule.interval.divided_by(8);
        self.resumes_after = short(until.saturating_duration_since(self.sent));
        self.plan(now, Self::LOOK, Self::LOOK.saturating_mul(2));
    }
}
