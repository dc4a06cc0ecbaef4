// SPDX-License-Identifier: GPL-2.0

//! Points in time, durations, and the time codes of InfiniBand.
//!
//! Arithmetic saturates: a peer can name durations of up to 2.4 hours, and no sum of these may wrap
//! into the past.

use core::ops::{Add, AddAssign, Sub};

/// A point in time, in microseconds since an arbitrary origin, of a clock that never goes back.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// The time at which a timer was found to be due.
///
/// Until its owner is locked the owner may have set another deadline, which is looked at again.
#[derive(Copy, Clone, Debug)]
pub struct Due(Instant);

impl Due {
    /// Creates the time of timers whose deadlines are not after `now`.
    pub const fn at(now: Instant) -> Self {
        Self(now)
    }

    /// Returns whether a timer with `deadline` was due.
    pub fn includes(self, deadline: Instant) -> bool {
        deadline <= self.0
    }
}

/// A duration, in microseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The last point in time; as a deadline, it means never.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the point in time `us` microseconds after the origin.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Returns the microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the duration from `earlier` to `self`, zero if `earlier` is the later one.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// The duration zero.
    pub const ZERO: Self = Self(0);
    /// The longest duration.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a duration of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Returns a duration of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// Returns a duration of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// Returns the duration in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns whether the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the duration multiplied by `n`.
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// Returns the duration divided by `n`, rounded down; the duration itself for `n` = 0.
    pub const fn divided_by(self, n: u64) -> Self {
        match self.0.checked_div(n) {
            Some(us) => Self(us),
            None => self,
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        self.0 = self.0.saturating_add(span.0);
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

impl Add for Duration {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sub for Duration {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A duration of 4.096 µs · 2^code, as it is in 5-bit fields of MADs and queue pair attributes
/// (IBTA 9.7.6.1.3, 12.7).
///
/// # Invariants
///
/// The code is at most [`TimeCode::MAX`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeCode(u8);

impl TimeCode {
    /// The longest duration that can be coded, about 2.4 hours.
    pub const MAX: Self = Self(31);

    /// Creates a time code. A code greater than 31 becomes 31.
    pub const fn new(code: u8) -> Self {
        // INVARIANT: The code is clamped here.
        if code > Self::MAX.0 {
            Self::MAX
        } else {
            Self(code)
        }
    }

    /// Returns the code, 0 to 31.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the duration in milliseconds, approximated as Linux does: 1 << max(code - 8, 0), 1
    /// to 2^23.
    ///
    /// From code 8 on this is 4.6 % less than the exact value, and below 8 it is more. Every Linux
    /// peer uses it.
    pub const fn to_ms(self) -> u32 {
        1u32.wrapping_shl(self.0.saturating_sub(8) as u32)
    }

    /// Returns the duration of [`TimeCode::to_ms`].
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.to_ms() as u64)
    }

    /// Returns the local ack timeout, from the ack delay of the channel adapter that acknowledges
    /// and the packet life time of the path.
    ///
    /// It is twice the packet life time plus the ack delay, rounded to a code: the code of the
    /// greater of the two, plus one if the code of the smaller one is at most one less (IBTA
    /// 12.7.34).
    pub fn ack_timeout(ca_ack_delay: u8, packet_life_time: u8) -> Self {
        let round_trip = packet_life_time.saturating_add(1);
        let (major, minor) = if round_trip >= ca_ack_delay {
            (round_trip, ca_ack_delay)
        } else {
            (ca_ack_delay, round_trip)
        };
        let step = u8::from(minor >= major.saturating_sub(1));
        Self::new(major.saturating_add(step))
    }
}

impl From<TimeCode> for u8 {
    fn from(code: TimeCode) -> u8 {
        code.0
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_time))]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_was_set_anew_is_not_due() {
        let due = Due::at(Instant(1_000));
        assert!(due.includes(Instant(999)));
        assert!(due.includes(Instant(1_000)));
        assert!(!due.includes(Instant(1_001)));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::MAX + Duration(1), Instant::MAX);
        assert_eq!(Instant(5) - Duration(9), Instant::ZERO);
        assert_eq!(Instant(5) - Instant(9), Duration::ZERO);
        assert_eq!(Instant(9) - Instant(5), Duration(4));
        assert_eq!(Duration::from_millis(u64::MAX), Duration::MAX);
        assert_eq!(Duration::MAX + Duration(1), Duration::MAX);
        assert_eq!(Duration(3).saturating_mul(4), Duration(12));
        assert_eq!(Duration(9).divided_by(2), Duration(4));
        assert_eq!(Duration(9).divided_by(0), Duration(9));
        assert_eq!(Duration::from_secs(2), Duration::from_millis(2000));
    }

    #[test]
    fn codes() {
        let table = [(0, 1), (8, 1), (9, 2), (16, 256), (20, 4096), (24, 65536)];
        for (code, ms) in table {
            assert_eq!(TimeCode::new(code).to_ms(), ms);
        }
        assert_eq!(TimeCode::new(31).to_ms(), 1 << 23);
        assert_eq!(TimeCode::new(255), TimeCode::MAX);
        for code in 0..=31 {
            // In nanoseconds.
            let approximate = u64::from(TimeCode::new(code).to_ms()) * 1_000_000;
            let exact = 4096 << code;
            match code {
                0..8 => assert!(approximate >= exact),
                _ => assert_eq!(approximate * 1_048_576, exact * 1_000_000),
            }
        }
    }

    /// Compares with the rule of the C module in plain integers, for every input.
    #[test]
    fn ack_timeout_is_that_of_linux() {
        for delay in 0..=255i32 {
            for life in 0..=255i32 {
                let mut a = life + 1;
                if a >= delay {
                    a += i32::from(delay >= a - 1);
                } else {
                    a = delay + i32::from(a >= delay - 1);
                }
                let got = TimeCode::ack_timeout(delay as u8, life as u8);
                assert_eq!(
                    (delay, life, i32::from(got.get())),
                    (delay, life, a.min(31))
                );
            }
        }
        // The default packet life time of RoCE, 16, with the ack delay of rxe, 15.
        assert_eq!(TimeCode::ack_timeout(15, 16).get(), 17);
    }
}
