// SPDX-License-Identifier: GPL-2.0

//! Estimation of the round-trip time of a peer.

use super::heard::Heard;
use crate::time::{Duration, Instant};

/// The mean of a peer's answer times and their mean deviation, in microseconds (Jacobson's
/// estimator, as in RFC 6298). The size allows one atomic variable to hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    mean: u32,
    deviation: u32,
}

impl RoundTrip {
    /// No estimate yet.
    pub const UNKNOWN: Self = Self {
        mean: 0,
        deviation: 0,
    };
    /// Upper limit of an answer time. A longer one depends more on a user than on the network.
    const LONGEST: Duration = Duration::from_millis(1_000);
    /// Upper limit of an answer time if the request was sent more than once, as it is not known
    /// which send was answered. If a quarter more than the mean is greater, that is the limit, so
    /// that a peer that has become slow is recognized after some answers. Losses of a third of the
    /// requests make the mean about a sixth too large.
    const AMBIGUOUS: Duration = Duration::from_millis(100);

    /// Returns the estimate after a message of the peer at `now`, which brings news of a request.
    pub fn heard(self, heard: Heard, now: Instant) -> Self {
        let since = |sent| now.saturating_duration_since(sent);
        match heard {
            Heard::Answered(waited) => self.answered(since(waited.since), waited.ambiguous),
            Heard::Acknowledged(waiting) => self.acknowledged(since(waiting.since)),
        }
    }

    /// Returns the estimate after an answer `after` the first send of a request. `ambiguous` is set
    /// if the request was sent early.
    pub fn answered(self, after: Duration, ambiguous: bool) -> Self {
        let longest = match ambiguous {
            true => Duration::from_micros(u64::from(self.mean.saturating_add(self.mean / 4)))
                .max(Self::AMBIGUOUS)
                .min(Self::LONGEST),
            false => Self::LONGEST,
        };
        let took = u32::try_from(after.min(longest).as_micros()).unwrap_or(u32::MAX);
        // The value 0 means no estimate.
        let took = took.max(1);
        if self == Self::UNKNOWN {
            return Self {
                mean: took,
                deviation: took / 2,
            };
        }
        let off = self.mean.abs_diff(took);
        Self {
            mean: self
                .mean
                .saturating_sub(self.mean / 8)
                .saturating_add(took / 8)
                .max(1),
            deviation: self
                .deviation
                .saturating_sub(self.deviation / 4)
                .saturating_add(off / 4),
        }
    }

    /// Returns the estimate after an acknowledgement without an answer, `after` the first send of a
    /// request: from now on the peer is given about twice that time.
    pub fn acknowledged(self, after: Duration) -> Self {
        let least = u32::try_from(after.min(Self::LONGEST).as_micros()).unwrap_or(u32::MAX);
        Self {
            mean: self.mean.max(least),
            deviation: self.deviation.max(least / 4),
        }
    }

    /// Returns the mean of the answer times and their mean deviation, if an answer has come.
    pub fn estimate(self) -> Option<(Duration, Duration)> {
        let micros = |n: u32| Duration::from_micros(u64::from(n));
        (self != Self::UNKNOWN).then(|| (micros(self.mean), micros(self.deviation)))
    }

    /// Returns the time after which a request without an answer is probably lost, at least `floor`.
    pub fn retry_timeout(self, floor: Duration) -> Duration {
        let margin = self.deviation.saturating_mul(4).max(self.mean / 2);
        Duration::from_micros(u64::from(self.mean.saturating_add(margin))).max(floor)
    }
}

impl From<u64> for RoundTrip {
    fn from(bits: u64) -> Self {
        Self {
            mean: (bits >> 32) as u32,
            deviation: bits as u32,
        }
    }
}

impl From<RoundTrip> for u64 {
    fn from(trip: RoundTrip) -> Self {
        u64::from(trip.mean) << 32 | u64::from(trip.deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_millis(20);

    fn after(times: impl IntoIterator<Item = u64>) -> RoundTrip {
        times.into_iter().fold(RoundTrip::UNKNOWN, |trip, us| {
            trip.answered(Duration::from_micros(us), false)
        })
    }

    #[test]
    fn a_fast_peer_is_waited_for_the_shortest_time() {
        assert_eq!(RoundTrip::UNKNOWN.retry_timeout(FLOOR), FLOOR);
        assert_eq!(after([100; 9]).retry_timeout(FLOOR), FLOOR);
        assert_eq!(after([0; 9]).retry_timeout(Duration::ZERO), Duration(1));
    }

    #[test]
    fn a_slow_peer_is_waited_for() {
        for us in [30_000, 300_000, 1_000_000, u64::MAX] {
            let timeout = after([us; 60]).retry_timeout(FLOOR).as_micros();
            let us = us.min(1_000_000);
            assert!((us * 11 / 8..us * 13 / 8).contains(&timeout), "{us}");
        }
        // The timeout grows like the queue of the peer.
        for n in 20..300 {
            let times = (0..n).map(|i| i * 1_000);
            assert!(after(times).retry_timeout(FLOOR).as_micros() > n * 1_000);
        }
    }

    #[test]
    fn repeated_requests_say_little() {
        for ms in [1, 30, 100, 300] {
            let usual = Duration::from_millis(ms);
            // A third of the requests or of the answers is lost.
            let slow = Duration::from_millis(5_000);
            let mut most = Duration::ZERO;
            let trip = (0..1_000).fold(RoundTrip::UNKNOWN, |trip, n| {
                most = most.max(trip.retry_timeout(FLOOR));
                match n % 3 {
                    1 => trip.answered(slow, true),
                    _ => trip.answered(usual, false),
                }
            });
            // The first answer of all sets the timeout to three times its time.
            let bound = usual.saturating_mul(3).max(Duration::from_millis(300));
            assert!(most <= bound, "{ms}: {most:?}");
            // From now on, nothing is lost.
            let again = (0..60).fold(trip, |trip, _| trip.answered(usual, false));
            assert!(
                again.retry_timeout(FLOOR) < usual.saturating_mul(2).max(Duration::from_millis(21))
            );
        }
    }

    #[test]
    fn a_peer_that_becomes_slow_is_known() {
        for ms in [50, 150, 600, 1_000, 5_000] {
            let slow = Duration::from_millis(ms);
            let mut trip = after([100; 9]);
            let mut early = 0;
            for _ in 0..1_000 {
                let ambiguous = trip.retry_timeout(FLOOR) < slow.min(RoundTrip::LONGEST);
                early += u32::from(ambiguous);
                trip = trip.answered(slow, ambiguous);
            }
            assert!(early < 80, "{ms}: {early}");
            assert!(trip.retry_timeout(FLOOR) > slow.min(RoundTrip::LONGEST));
        }
    }

    #[test]
    fn a_user_who_takes_long_is_waited_for() {
        let mut trip = after([100; 9]);
        // Each request that was needlessly sent again doubles the timeout.
        for n in 1..6 {
            trip = trip.acknowledged(trip.retry_timeout(FLOOR));
            let timeout = trip.retry_timeout(FLOOR);
            assert!(timeout >= FLOOR.saturating_mul(1 << n), "{n} {timeout:?}");
            assert!(timeout <= FLOOR.saturating_mul(1 << n).saturating_mul(2));
        }
        assert_eq!(trip.acknowledged(Duration(5)), trip);
        let longest = trip
            .acknowledged(Duration::from_millis(60_000))
            .retry_timeout(FLOOR);
        assert_eq!(longest, Duration::from_millis(2_000));
        // The timeout becomes short again.
        let again = (0..60).fold(trip, |trip, _| trip.answered(Duration(100), false));
        assert_eq!(again.retry_timeout(FLOOR), FLOOR);
    }

    #[test]
    fn as_one_number() {
        let trip = after([100, 70_000, 3]);
        assert_eq!(RoundTrip::from(u64::from(trip)), trip);
        assert_eq!(u64::from(RoundTrip::UNKNOWN), 0);
    }

    #[test]
    fn known_from_the_first_answer_on() {
        assert_eq!(RoundTrip::UNKNOWN.estimate(), None);
        assert_eq!(after([100]).estimate(), Some((Duration(100), Duration(50))));
        assert_eq!(after([0]).estimate(), Some((Duration(1), Duration(0))));
    }
}
