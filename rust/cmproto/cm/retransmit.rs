// SPDX-License-Identifier: GPL-2.0

//! When a request is sent again, and when it is given up.
//!
//! The policy is the classic one: a fixed number of sends at fixed intervals. Everything the
//! state machine needs of a policy is the interface of [`Retransmit`], so that another one can
//! take its place.

use super::params::Limits;
use crate::time::{Duration, Instant, TimeCode};

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
        Self {
            interval: round_trip + remote_cm_response_timeout.to_duration(),
            retries: retries.min(15),
        }
    }

    /// The schedule of the side that received the REQ, with what the REQ says about its sender,
    /// as far as `limits` believe it.
    pub fn passive(local_cm_response_timeout: TimeCode, retries: u8, limits: &Limits) -> Self {
        Self {
            interval: local_cm_response_timeout
                .to_duration()
                .min(limits.passive_interval),
            retries: retries.min(limits.passive_retries),
        }
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

/// What to do when the timer of a request runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It has not: nothing.
    Early,
    /// Send the request again.
    Resend,
    /// Give the request up.
    GiveUp,
}

/// The retransmission of one request that was sent and has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmit {
    interval: Duration,
    retries_left: u8,
    extension_left: Duration,
    deadline: Instant,
}

impl Retransmit {
    /// A request sent for the first time at `now`; the peer can extend all waits together by at
    /// most `extension`.
    pub fn start(schedule: Schedule, extension: Duration, now: Instant) -> Self {
        Self {
            interval: schedule.interval,
            retries_left: schedule.retries,
            extension_left: extension,
            deadline: now + schedule.interval,
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Time has come to `now`. Whether it is late does not matter: the next interval starts at
    /// `now`, so that sends are never closer to each other than the interval.
    pub fn expire(&mut self, now: Instant) -> Expiry {
        if now < self.deadline {
            return Expiry::Early;
        }
        match self.retries_left.checked_sub(1) {
            Some(left) => {
                self.retries_left = left;
                self.deadline = now + self.interval;
                Expiry::Resend
            }
            None => Expiry::GiveUp,
        }
    }

    /// The peer asked at `now` to wait for `wait` before the next send. It never brings that send
    /// forward, and the waits granted to one request are bounded.
    pub fn extend(&mut self, wait: Duration, now: Instant) {
        let granted = wait.min(self.extension_left);
        self.extension_left = self.extension_left - granted;
        self.deadline = self.deadline.max(now + granted);
    }
}
