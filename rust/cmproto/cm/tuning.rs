// SPDX-License-Identifier: GPL-2.0

//! Tuning of times, retries, parking, shared ports, dead links and keepalive, for a port or for one
//! id.

use super::{
    params::{ConnectParams, Limits},
    retransmit::TotalTimeout,
};
use crate::{
    errno::Errno,
    numbered::{from_number, numbered},
    time::{Duration, TimeCode},
};

numbered! {
    /// A value that can be tuned, with the number of the option of an id.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum Tunable {
        /// Response timeout of a peer, a time code (0 to 31).
        ResponseTimeout = 0,
        /// Maximum number of retries of a request (0 to 15).
        MaxRetries = 1,
        /// Longest time from the first send of a request until its user is told that there is no
        /// answer, in milliseconds (up to an hour), whatever the peer asks for. 0 for no limit
        /// other than the retries.
        Deadline = 2,
        /// Longest time wait, a time code (0 to 31).
        Timewait = 3,
        /// Shortest time after which a request is sent early, in milliseconds (up to 10 s). 0 for
        /// no early sends, as in C.
        EarlyRetry = 4,
        /// Maximum number of connection requests that are parked when the backlog of a listener is
        /// full (up to 2,048). 0 to drop them without an answer, as in C.
        Parking = 5,
        /// 1 if ids of one user may bind and listen at the same address and port, which share the
        /// requests ([`PortGroup`](crate::reuseport::PortGroup)). 0 if not, as in C.
        ReusePort = 6,
        /// Time for which the own link may be down until a connection over it is given up, in
        /// milliseconds (up to a minute). 0 to give none up, as in C.
        DeadLink = 7,
        /// Longest time between two questions to the peer of an established connection whether it
        /// still has the connection, in seconds (up to 2 hours). 0 not to ask, as in C.
        Keepalive = 8,
    }
}

from_number!(Tunable, Errno::ENOSYS);

// A longer deadline would be cut.
const _: () = assert!(
    Duration::from_millis(Tunable::Deadline.max() as u64).as_micros()
        <= TotalTimeout::LONGEST.as_micros()
);

impl Tunable {
    /// Returns the largest value. The smallest one is 0.
    pub const fn max(self) -> u32 {
        match self {
            Self::ResponseTimeout | Self::Timewait => 31,
            Self::MaxRetries => 15,
            Self::Deadline => 3_600_000,
            Self::EarlyRetry => 10_000,
            Self::Parking => 2_048,
            Self::ReusePort => 1,
            Self::DeadLink => 60_000,
            Self::Keepalive => 7_200,
        }
    }

    /// Returns the default value.
    pub const fn default_value(self) -> u32 {
        match self {
            Self::ResponseTimeout => ConnectParams::RESPONSE_TIMEOUT as u32,
            Self::MaxRetries => ConnectParams::MAX_RETRIES as u32,
            Self::Deadline => 0,
            Self::Timewait => Limits::DEFAULT.timewait.get() as u32,
            Self::EarlyRetry => 20,
            Self::Parking => 1_024,
            Self::ReusePort => 0,
            Self::DeadLink => 0,
            Self::Keepalive => 0,
        }
    }

    /// Returns the bit of the value in a set of them.
    pub const fn bit(self) -> u32 {
        1_u32.wrapping_shl(self as u32)
    }

    /// Checks a value, and returns it.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if the value is too large.
    pub const fn check(self, value: u32) -> Result<u32, Errno> {
        if value > self.max() {
            return Err(Errno::EINVAL);
        }
        Ok(value)
    }
}

/// Values of the tunables, as far as they are set.
///
/// # Invariants
///
/// Each value is one that [`Tunable::check`] accepts, or the largest number of its type, which
/// means that it is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    deadline: u32,
    early_retry: u16,
    parking: u16,
    dead_link: u16,
    keepalive: u16,
    response_timeout: u8,
    max_retries: u8,
    timewait: u8,
    reuseport: u8,
}

// Every endpoint has a tuning, which is why its size is limited.
const _: () = assert!(size_of::<Tuning>() == 16);

impl Tuning {
    /// A tuning in which nothing is set.
    pub const NONE: Self = Self {
        deadline: u32::MAX,
        early_retry: u16::MAX,
        parking: u16::MAX,
        dead_link: u16::MAX,
        keepalive: u16::MAX,
        response_timeout: u8::MAX,
        max_retries: u8::MAX,
        timewait: u8::MAX,
        reuseport: u8::MAX,
    };

    /// Sets a value.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if the value is too large. Nothing has changed then.
    pub fn set(&mut self, tunable: Tunable, value: u32) -> Result<(), Errno> {
        let value = tunable.check(value)?;
        // INVARIANT: the value was checked, so that it is valid and fits.
        match tunable {
            Tunable::ResponseTimeout => self.response_timeout = value as u8,
            Tunable::MaxRetries => self.max_retries = value as u8,
            Tunable::Deadline => self.deadline = value,
            Tunable::Timewait => self.timewait = value as u8,
            Tunable::EarlyRetry => self.early_retry = value as u16,
            Tunable::Parking => self.parking = value as u16,
            Tunable::ReusePort => self.reuseport = value as u8,
            Tunable::DeadLink => self.dead_link = value as u16,
            Tunable::Keepalive => self.keepalive = value as u16,
        }
        Ok(())
    }

    /// Returns a value, or its default if it is not set.
    pub fn get(&self, tunable: Tunable) -> u32 {
        self.own(tunable).unwrap_or(tunable.default_value())
    }

    /// Returns a value if it is set.
    pub fn own(&self, tunable: Tunable) -> Option<u32> {
        let code = |value: u8| (value != u8::MAX).then_some(u32::from(value));
        let number = |value: u16| (value != u16::MAX).then_some(u32::from(value));
        match tunable {
            Tunable::ResponseTimeout => code(self.response_timeout),
            Tunable::MaxRetries => code(self.max_retries),
            Tunable::Deadline => (self.deadline != u32::MAX).then_some(self.deadline),
            Tunable::Timewait => code(self.timewait),
            Tunable::EarlyRetry => number(self.early_retry),
            Tunable::Parking => number(self.parking),
            Tunable::ReusePort => code(self.reuseport),
            Tunable::DeadLink => number(self.dead_link),
            Tunable::Keepalive => number(self.keepalive),
        }
    }

    /// Returns the [bits](Tunable::bit) of the values that are set.
    pub fn own_bits(&self) -> u32 {
        let own = Tunable::ALL.into_iter();
        let own = own.filter(|tunable| self.own(*tunable).is_some());
        own.fold(0, |bits, tunable| bits | tunable.bit())
    }

    /// Returns the tuning with the values of `base` for those that are not set.
    pub fn over(&self, base: &Self) -> Self {
        fn or<T: PartialEq>(value: T, unset: T, base: T) -> T {
            match value == unset {
                true => base,
                false => value,
            }
        }
        Self {
            deadline: or(self.deadline, u32::MAX, base.deadline),
            early_retry: or(self.early_retry, u16::MAX, base.early_retry),
            parking: or(self.parking, u16::MAX, base.parking),
            dead_link: or(self.dead_link, u16::MAX, base.dead_link),
            keepalive: or(self.keepalive, u16::MAX, base.keepalive),
            response_timeout: or(self.response_timeout, u8::MAX, base.response_timeout),
            max_retries: or(self.max_retries, u8::MAX, base.max_retries),
            timewait: or(self.timewait, u8::MAX, base.timewait),
            reuseport: or(self.reuseport, u8::MAX, base.reuseport),
        }
    }

    fn code(&self, tunable: Tunable) -> u8 {
        u8::try_from(self.get(tunable)).unwrap_or(u8::MAX)
    }

    fn millis(&self, tunable: Tunable) -> Duration {
        Duration::from_millis(u64::from(self.get(tunable)))
    }

    /// Returns the response timeout of a peer.
    pub fn response_timeout(&self) -> TimeCode {
        TimeCode::new(self.code(Tunable::ResponseTimeout))
    }

    /// Returns the maximum number of retries.
    pub fn max_retries(&self) -> u8 {
        self.code(Tunable::MaxRetries)
    }

    /// Returns the shortest time after which a request is sent early. `None` for no early sends.
    pub fn early_retry(&self) -> Option<Duration> {
        let span = self.millis(Tunable::EarlyRetry);
        (!span.is_zero()).then_some(span)
    }

    /// Returns the maximum number of parked connection requests.
    pub fn parking(&self) -> u32 {
        self.get(Tunable::Parking)
    }

    /// Returns the limits of a connection.
    pub fn limits(&self) -> Limits {
        Limits::tuned(|tunable| self.get(tunable))
    }
}

impl Limits {
    /// Returns the limits of a connection, where `value` returns the values of tunables.
    #[inline]
    pub fn tuned(value: impl Fn(Tunable) -> u32) -> Self {
        let timewait = u8::try_from(value(Tunable::Timewait)).unwrap_or(u8::MAX);
        let total = u64::from(value(Tunable::Deadline));
        let keepalive = u64::from(value(Tunable::Keepalive));
        Self {
            timewait: TimeCode::new(timewait),
            total: match total {
                0 => Duration::MAX,
                _ => Duration::from_millis(total),
            },
            keepalive: (keepalive != 0).then_some(Duration::from_secs(keepalive)),
            ..Self::DEFAULT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_c() {
        assert_eq!(Tuning::NONE.limits(), Limits::DEFAULT);
        assert_eq!(Tuning::NONE.response_timeout().get(), 20);
        assert_eq!(Tuning::NONE.max_retries(), 15);
        for (number, tunable) in Tunable::ALL.into_iter().enumerate() {
            assert_eq!(tunable as usize, number);
            assert_eq!(Tunable::try_from(number as u32), Ok(tunable));
            let default = tunable.default_value();
            assert_eq!(tunable.check(default), Ok(default));
        }
        for number in [9, 10, u32::MAX] {
            assert_eq!(Tunable::try_from(number), Err(Errno::ENOSYS));
        }
    }

    #[test]
    fn what_is_too_large_changes_nothing() {
        for tunable in Tunable::ALL {
            let mut tuning = Tuning::NONE;
            for value in [tunable.max() + 1, 0x8000_0000, u32::MAX] {
                assert_eq!(tuning.set(tunable, value), Err(Errno::EINVAL));
                assert_eq!(tuning, Tuning::NONE);
            }
            for value in [0, 1, tunable.max()] {
                assert_eq!(tuning.set(tunable, value), Ok(()));
                assert_eq!(tuning.get(tunable), value);
            }
        }
    }

    #[test]
    fn an_id_overrides_its_port() {
        let (mut id, mut port) = (Tuning::NONE, Tuning::NONE);
        port.set(Tunable::MaxRetries, 3).unwrap();
        port.set(Tunable::EarlyRetry, 0).unwrap();
        id.set(Tunable::MaxRetries, 0).unwrap();
        id.set(Tunable::Deadline, 7).unwrap();
        let both = id.over(&port);
        assert_eq!(both.max_retries(), 0);
        assert_eq!(both.early_retry(), None);
        assert_eq!(both.limits().total, Duration::from_millis(7));
        assert_eq!(both.parking(), 1_024);
        let bits = |tunables: &[Tunable]| tunables.iter().map(|one| one.bit()).sum::<u32>();
        assert_eq!(
            id.own_bits(),
            bits(&[Tunable::MaxRetries, Tunable::Deadline])
        );
        assert_eq!(Tuning::NONE.own_bits(), 0);
        assert_eq!(Tuning::NONE.early_retry(), Some(Duration::from_millis(20)));
    }
}
