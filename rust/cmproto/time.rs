// SPDX-License-Identifier: GPL-2.0

//! Points in time, spans of time and the time codes of InfiniBand.
//!
//! Arithmetic saturates: a peer can name spans up to 2.4 hours, and no sum of those may wrap
//! into the past.

use core::ops::{Add, AddAssign, Sub};

/// A point in time, in microseconds since an arbitrary origin, on a clock that never goes back.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A span of time, in microseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The last instant; as a deadline, never.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `us` microseconds after the origin.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is the later one.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// The span in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span in milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The span `n` times over.
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// An `n`-th of the span, rounded down; the span itself for `n` = 0.
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

/// A span of 4.096 µs · 2^code, as 5-bit fields of MADs and queue pair attributes hold it
/// (IBTA 9.7.6.1.3, 12.7).
///
/// # Invariants
///
/// The code is at most [`TimeCode::MAX`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeCode(u8);

impl TimeCode {
    /// The longest span that fits, about 2.4 hours.
    pub const MAX: Self = Self(31);

    /// The span with this code; a greater code than 31 means 31.
    pub const fn new(code: u8) -> Self {
        // INVARIANT: Clamped here.
        if code > Self::MAX.0 {
            Self::MAX
        } else {
            Self(code)
        }
    }

    /// The code, 0 to 31.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The span in milliseconds as Linux approximates it: 1 << max(code - 8, 0), 1 to 2^23.
    ///
    /// From code 8 on that is 4.6 % less than the exact value, and below 8 more than it; every
    /// Linux peer uses it.
    pub const fn to_ms(self) -> u32 {
        1u32.wrapping_shl(self.0.saturating_sub(8) as u32)
    }

    /// [`TimeCode::to_ms`] as a span.
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.to_ms() as u64)
    }

    /// The exact span in nanoseconds.
    pub const fn to_nanos(self) -> u64 {
        4096u64.wrapping_shl(self.0 as u32)
    }

    /// The timeout of a packet's acknowledgement, from the delay in the channel adapter that
    /// acknowledges and the life time of a packet on the path.
    ///
    /// Twice the life time plus the delay, rounded to a code so that the greater of the two
    /// rules and the smaller adds one step if it is no more than one step less (IBTA 12.7.34).
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
        assert_eq!(Duration::from_secs(2).as_millis(), 2000);
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
            let code = TimeCode::new(code);
            let (approximate, exact) = (u64::from(code.to_ms()) * 1_000_000, code.to_nanos());
            match code.get() {
                0..8 => assert!(approximate >= exact),
                _ => assert_eq!(approximate * 1_048_576, exact * 1_000_000),
            }
        }
        assert_eq!(TimeCode::new(0).to_nanos(), 4096);
        assert_eq!(TimeCode::new(31).to_nanos(), 4096 << 31);
    }

    /// The rule of kernel-cm as plain integers, over every input.
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
        // RoCE's default life time 16 with rxe's delay 15.
        assert_eq!(TimeCode::ack_timeout(15, 16).get(), 17);
    }
}
