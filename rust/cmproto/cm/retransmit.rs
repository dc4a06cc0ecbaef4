// SPDX-License-Identifier: GPL-2.0

//! When a request is sent again, and when it is given up.
//!
//! Underneath is the classic schedule: a fixed number of sends at fixed intervals. Before the first
//! of those a request may be sent again early: once after about a round trip, and then at gaps that
//! double, up to [`EARLY_SENDS`] times. The classic sends stay where they are, to the microsecond, so
//! that whatever gets through with them gets through with the early ones, too, and a request is given
//! up at the same time.

use super::{params::Limits, round_trip::RoundTrip};
use crate::{
    time::{Duration, Instant, TimeCode},
    wire::Attribute,
};

/// The most times that a request is sent early.
pub const EARLY_SENDS: u8 = 7;

/// Interval and number of the retransmissions of every request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    interval: Duration,
    retries: u8,
}

impl Schedule {
    /// A schedule that neither side has a say in, as service id resolution has it.
    pub const fn fixed(interval: Duration, retries: u8) -> Self {
        Self { interval, retries }
    }

    /// The schedule of the side that sends the REQ: twice the way of a packet, and the time that
    /// the peer takes to answer (IBTA volume 1, 12.7.20), sent again `retries` times (0 to 15).
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

    /// The schedule of the side that received the REQ, with what the REQ says about its sender,
    /// as far as `limits` believe it.
    pub fn passive(local_cm_response_timeout: TimeCode, retries: u8, limits: &Limits) -> Self {
        Self::fixed(
            local_cm_response_timeout
                .to_duration()
                .min(limits.passive_interval),
            retries.min(limits.passive_retries),
        )
    }

    /// Time between two sends.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Number of sends after the first one.
    pub const fn retries(&self) -> u8 {
        self.retries
    }
}

/// Whether a request may be sent early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Never.
    #[default]
    Classic,
    /// For the first time when it has waited that long, a few round trips.
    After(Duration),
    /// The same; and a later request of its kind has been answered. It is probably lost, however long
    /// answers take.
    Overtaken(Duration),
    /// Not now: its peer has been silent, and enough others ask it. Perhaps later; the first look is
    /// when it has waited that long.
    Hold(Duration),
}

/// A [`Pace`] in half the space, with a span of up to 71 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptPace {
    kind: u8,
    first: u32,
}

impl KeptPace {
    /// The pace.
    pub(super) const fn pace(self) -> Pace {
        let first = Duration::from_micros(self.first as u64);
        match self.kind {
            1 => Pace::After(first),
            2 => Pace::Hold(first),
            3 => Pace::Overtaken(first),
            _ => Pace::Classic,
        }
    }
}

impl Pace {
    /// The pace, to be kept.
    pub(super) fn kept(self) -> KeptPace {
        let (kind, first) = match self {
            Self::Classic => (0, Duration::ZERO),
            Self::After(first) => (1, first),
            Self::Hold(first) => (2, first),
            Self::Overtaken(first) => (3, first),
        };
        let first = u32::try_from(first.as_micros()).unwrap_or(u32::MAX);
        KeptPace { kind, first }
    }

    /// The most unanswered requests to a silent peer that are sent early.
    pub const WINDOW: u32 = 32;
    /// How long a peer that said something is not silent.
    pub const SILENCE: Duration = Duration::from_millis(1_000);

    /// The pace of a request to a peer that `unanswered` requests wait for, that said something
    /// `silent` ago, and whose answers take `trip`; not faster than `floor`. The request is `overtaken`
    /// if a later one of its kind has been answered.
    pub fn of(
        unanswered: u32,
        silent: Duration,
        trip: RoundTrip,
        floor: Duration,
        overtaken: bool,
    ) -> Self {
        let first = trip.patience(floor);
        if unanswered > Self::WINDOW && silent > Self::SILENCE {
            Self::Hold(first)
        } else if overtaken {
            Self::Overtaken(floor)
        } else {
            Self::After(first)
        }
    }
}

/// What to do when the timer of a request runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It has not: nothing.
    Early,
    /// Nothing is sent, and the timer is set anew.
    Later,
    /// Send the request again.
    Resend,
    /// Give the request up.
    GiveUp,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What kind of request: REQ, REP, DREQ or SIDR_REQ.
    pub message: Attribute,
    /// When it was sent for the first time.
    pub since: Instant,
    /// It was sent early, and nothing has come that says that this was needless: nobody knows which
    /// time the answer answers.
    pub hurried: bool,
}

/// A span in half the space, in microseconds, at most 71 minutes.
fn short(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// The span that [`short`] has made short.
const fn long(micros: u32) -> Duration {
    Duration::from_micros(micros as u64)
}

/// No early send.
const NEVER: u32 = u32::MAX;

/// The longest time that a request may take, whatever retries are left, or none. It takes half the
/// space of a [`Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total(u32);

impl Total {
    /// No end but that of the retries.
    pub const NONE: Self = Self(NEVER);
    /// The longest there is, 71 minutes.
    pub const LONGEST: Duration = Duration::from_micros(NEVER as u64 - 1);
}

impl From<Duration> for Total {
    /// [`Duration::MAX`] stands for none. Anything else that is too long is cut to
    /// [`LONGEST`](Total::LONGEST): it is an end all the same.
    fn from(span: Duration) -> Self {
        match span {
            Duration::MAX => Self::NONE,
            span => Self(short(span.min(Self::LONGEST))),
        }
    }
}

/// The retransmission of one request that was sent and has not been answered. Its schedule is the same
/// in all calls. Spans are [`short`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmit {
    sent: Instant,
    /// The next classic send, or the end if no retries are left.
    classic: Instant,
    /// The end after `sent`, whatever retries are left and whatever the peer asks for.
    total: Total,
    /// What the answer to an early send has asked for: granted after the next classic send, where
    /// without early sends it would have been asked for.
    deferred: u32,
    /// The next early send after `sent`, or [`NEVER`].
    early: u32,
    /// The time from that send to the next early one.
    gap: u32,
    /// The peer has it: no early send before that after `sent`, unless others overtake it.
    lingers: u32,
    /// Makes gaps of requests that were sent together differ.
    seed: u32,
    retries_left: u8,
    early_left: u8,
    hurried: bool,
    /// The peer has asked for patience since the last classic send.
    extended: bool,
}

impl Retransmit {
    /// The shortest time between two early sends, or looks whether to send early.
    const LEAST: Duration = Duration::from_millis(1);
    /// How soon to look whether a request has been overtaken, and how often at most.
    const LOOK: Duration = Duration::from_millis(100);

    /// A request sent for the first time at `now`.
    pub fn start(schedule: Schedule, now: Instant) -> Self {
        Self {
            sent: now,
            classic: now + schedule.interval,
            total: Total::NONE,
            deferred: 0,
            early: NEVER,
            gap: 0,
            lingers: 0,
            seed: 0,
            retries_left: schedule.retries,
            early_left: EARLY_SENDS,
            hurried: false,
            extended: false,
        }
    }

    /// The same, given up `total` after the first send, whatever retries are left and however long
    /// the peer asks to wait.
    pub fn within(self, total: impl Into<Total>) -> Self {
        Self {
            total: total.into(),
            ..self
        }
    }

    /// The same, to be sent early as `pace` says. Gaps depend on `seed`.
    pub fn paced(mut self, pace: Pace, seed: u32) -> Self {
        self.seed = seed;
        if let Pace::After(first) | Pace::Overtaken(first) | Pace::Hold(first) = pace {
            let first = first.min(Self::LOOK).max(Self::LEAST);
            self.plan(self.sent, first, first.saturating_mul(2));
        }
        self
    }

    /// When [`expire`](Self::expire) has something to do.
    pub fn deadline(&self) -> Instant {
        self.classic.min(self.end()).min(self.after(self.early))
    }

    /// The request as one that waits; `known` if its peer has said that it has it.
    pub const fn waiting(&self, message: Attribute, known: bool) -> Waiting {
        Waiting {
            message,
            since: self.sent,
            hurried: self.hurried && !known,
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

    /// Plans to send early `gap` from `now`, up to a quarter of it later, and then after `next`.
    fn plan(&mut self, now: Instant, gap: Duration, next: Duration) {
        // A linear congruential step; the upper bits are random enough.
        self.seed = self
            .seed
            .wrapping_mul(0x9e37_79b9)
            .wrapping_add(0x7f4a_7c15);
        let share = u64::from(self.seed.wrapping_shr(24));
        let at = now + gap + gap.saturating_mul(share).divided_by(1024);
        self.plan_at(at, next);
    }

    /// Plans to send early then, and again after `next`, unless the classic send is near.
    fn plan_at(&mut self, at: Instant, next: Duration) {
        let fits = self.early_left > 0 && at + next.divided_by(2) <= self.classic;
        self.gap = short(next);
        self.early = match fits {
            true => short(at.saturating_duration_since(self.sent)),
            false => NEVER,
        };
    }

    /// Time has come to `now`. Whether it is late does not matter: the next classic interval starts at
    /// `now`, so that classic sends are never closer to each other than the interval. `pace` is that
    /// of now.
    pub fn expire(&mut self, schedule: Schedule, pace: Pace, now: Instant) -> Expiry {
        if now < self.deadline() {
            return Expiry::Early;
        }
        if self.total != Total::NONE && now >= self.end() {
            return Expiry::GiveUp;
        }
        if now < self.classic {
            return self.expire_early(pace, now);
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

    fn expire_early(&mut self, pace: Pace, now: Instant) -> Expiry {
        let gap = long(self.gap);
        let waited = now.saturating_duration_since(self.sent);
        match pace {
            Pace::Classic => {
                self.early = NEVER;
                Expiry::Later
            }
            Pace::Hold(_) => {
                self.plan(now, gap, gap.saturating_mul(2));
                Expiry::Later
            }
            // Answers take longer than they did when it was sent, or it is known to have come.
            Pace::After(first) if self.sent + first.max(long(self.lingers)) > now => {
                let look = now + Self::LOOK.max(waited.divided_by(2));
                let due = self.sent + first.max(long(self.lingers));
                self.plan_at(look.min(due), gap.max(first));
                Expiry::Later
            }
            Pace::Overtaken(first) if self.sent + first > now => {
                self.plan_at(self.sent + first, gap.max(first));
                Expiry::Later
            }
            Pace::After(_) | Pace::Overtaken(_) => {
                self.early_left = self.early_left.saturating_sub(1);
                self.hurried = true;
                if self.lingers != 0 {
                    self.lingers = short(waited.saturating_mul(2));
                }
                self.plan(now, gap, gap.saturating_mul(2));
                Expiry::Resend
            }
        }
    }

    /// The peer asked at `now` to wait for `wait` before the next send; false if that changes
    /// nothing, because it has asked before since the last classic send. So a request that is
    /// answered in this way each time takes as many waits as it has sends, and no more.
    ///
    /// It never brings a send forward, nor the end that [`within`](Self::within) has set later. No
    /// early sends follow.
    pub fn extend(&mut self, schedule: Schedule, wait: Duration, now: Instant) -> bool {
        if self.extended {
            return false;
        }
        self.extended = true;
        self.early = NEVER;
        // Without early sends the next classic one would have been answered like this. If there is
        // none, the wait that is under way is the last.
        let is_answer_to_early = self.hurried && now < self.sent + schedule.interval;
        if is_answer_to_early && self.retries_left > 0 {
            self.deferred = short(wait);
        } else {
            self.classic = self.classic.max(now + wait);
        }
        true
    }

    /// The peer asked at `now` for patience, and cannot say by itself that its next message was lost:
    /// asks again early, at first after an eighth of the interval, unless others overtake it.
    pub fn linger(&mut self, schedule: Schedule, now: Instant) {
        let until = now + schedule.interval.divided_by(8);
        self.lingers = short(until.saturating_duration_since(self.sent));
        self.plan(now, Self::LOOK, Self::LOOK.saturating_mul(2));
    }
}
