// SPDX-License-Identifier: GPL-2.0

//! A rate limit.

use crate::time::{Duration, Instant};

/// A token bucket: allows `burst` actions at once, and then one per `interval`.
///
/// # Invariants
///
/// At `full_at` the bucket is full: the actions before do not count any more.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    interval: Duration,
    burst: Duration,
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub const fn new(interval: Duration, burst: u64) -> Self {
        Self {
            interval,
            burst: interval.saturating_mul(burst),
            full_at: Instant::ZERO,
        }
    }

    /// Takes a token at time `now`. Returns whether there was one.
    pub fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        if full_at - now > self.burst {
            return false;
        }
        // INVARIANT: The token that was taken makes the bucket full one interval later.
        self.full_at = full_at;
        true
    }

    /// Returns whether the bucket is full at time `now`.
    pub fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_bucket))]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(5_000_000) + Duration::from_millis(ms)
    }

    fn count(bucket: &mut TokenBucket, now: Instant) -> usize {
        (0..100).filter(|_| bucket.take(now)).count()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut bucket = TokenBucket::new(Duration::from_millis(10), 5);
        assert_eq!(count(&mut bucket, at(0)), 5);
        assert_eq!(count(&mut bucket, at(9)), 0);
        assert_eq!(count(&mut bucket, at(10)), 1);
        assert_eq!(count(&mut bucket, at(40)), 3);
        // A burst does not grow with the time without actions.
        assert_eq!(count(&mut bucket, at(1_000_000)), 5);
        assert!(!bucket.is_full(at(1_000_049)) && bucket.is_full(at(1_000_050)));
        // A clock that goes back adds no tokens.
        assert_eq!(count(&mut bucket, at(0)), 0);
    }

    #[test]
    fn the_end_of_time() {
        let mut bucket = TokenBucket::new(Duration::from_millis(10), 5);
        assert!(bucket.take(Instant::MAX));
        assert!(bucket.take(Instant::MAX));
    }
}
