// SPDX-License-Identifier: GPL-2.0

//! The backlog of a listener: the connection requests that its owner has not read.

use crate::node::{Admission, Declined, Offer};

/// Returns the backlog of a listener whose owner asks for `wanted`.
///
/// Zero, and every value above `max`, means `max`, the limit of the administrator.
pub fn clamp(wanted: u32, max: u32) -> u32 {
    if wanted == 0 {
        max
    } else {
        wanted.min(max)
    }
}

/// The backlog of a listener.
///
/// A request counts from the time that it is queued until it is read. An attempt to listen that
/// fails changes nothing, because its limit is only [proposed](Self::propose).
///
/// # Invariants
///
/// A limit that was [set](Self::set) does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of requests that wait to be read.
    waiting: u32,
    /// The most requests that may wait.
    limit: u32,
    /// Set once the listener listens with `limit`.
    set: bool,
}

impl Backlog {
    /// Creates the backlog of a context that does not listen: no request may wait.
    pub const fn new() -> Self {
        Backlog {
            waiting: 0,
            limit: 0,
            set: false,
        }
    }

    /// Proposes the limit that holds if the attempt to listen succeeds.
    ///
    /// Requests may arrive before the attempt has returned; the proposed limit holds for them.
    pub fn propose(&mut self, limit: u32) {
        if !self.set {
            self.limit = limit;
        }
    }

    /// Sets the limit of a listener that listens now.
    pub fn set(&mut self, limit: u32) {
        if !self.set {
            self.limit = limit;
            self.set = true;
        }
    }

    /// Admits and counts a request, as [`next_admission`](Self::next_admission) says.
    ///
    /// # Errors
    ///
    /// The errors of [`room`](Self::room).
    pub fn admit(&mut self, parking: u32) -> Offer {
        let admission = self.next_admission(parking)?;
        self.waiting = self.waiting.saturating_add(1);
        Ok(admission)
    }

    /// Uncounts a request that was read, or could not be queued after all.
    pub fn release(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Returns the admission that another request would get. Up to `parking` requests may wait
    /// beyond the limit.
    ///
    /// # Errors
    ///
    /// - [`Declined::NoRoom`] if the backlog is full and requests are not parked;
    /// - [`Declined::ParkingFull`] if the backlog is full and `parking` requests are parked
    ///   already.
    pub fn next_admission(&self, parking: u32) -> Offer {
        if self.waiting < self.limit {
            return Ok(Admission::Queued);
        }
        // Without a listener no requests are parked.
        if parking == 0 || self.limit == 0 {
            return Err(Declined::NoRoom);
        }
        if self.waiting < self.limit.saturating_add(parking) {
            return Ok(Admission::Parked);
        }
        Err(Declined::ParkingFull)
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_backlog))]
mod tests {
    use super::*;

    #[test]
    fn clamped_to_the_limit_of_the_administrator() {
        for (wanted, max, got) in [
            (0, 1024, 1024),
            (1, 1024, 1),
            (1024, 1024, 1024),
            (1025, 1024, 1024),
            (u32::MAX, 1024, 1024),
            (0x8000_0000, 0x7fff_ffff, 0x7fff_ffff),
            (0, 0, 0),
            (5, 0, 0),
        ] {
            assert_eq!((wanted, max, clamp(wanted, max)), (wanted, max, got));
        }
    }

    #[test]
    fn nothing_waits_for_what_does_not_listen() {
        assert_eq!(Backlog::new().admit(0), Err(Declined::NoRoom));
    }

    #[test]
    fn parked_beyond_the_limit_and_in_order() {
        let mut backlog = Backlog::new();
        assert_eq!(backlog.admit(9), Err(Declined::NoRoom));
        backlog.set(1);
        assert_eq!(backlog.next_admission(2), Ok(Admission::Queued));
        assert_eq!(backlog.admit(2), Ok(Admission::Queued));
        assert_eq!(backlog.admit(2), Ok(Admission::Parked));
        assert_eq!(backlog.admit(2), Ok(Admission::Parked));
        assert_eq!(backlog.admit(2), Err(Declined::ParkingFull));
        assert_eq!(backlog.admit(0), Err(Declined::NoRoom));
        assert_eq!(backlog.waiting(), 3);
        // The request that was parked first has moved up, so that there is room behind the others.
        backlog.release();
        assert_eq!(backlog.admit(2), Ok(Admission::Parked));
        backlog.release();
        backlog.release();
        backlog.release();
        assert_eq!(backlog.admit(2), Ok(Admission::Queued));
        // The largest numbers do not overflow.
        let mut backlog = Backlog::new();
        backlog.set(u32::MAX);
        assert_eq!(backlog.admit(u32::MAX), Ok(Admission::Queued));
    }

    #[test]
    fn full_until_read() {
        let mut backlog = Backlog::new();
        backlog.propose(2);
        backlog.set(2);
        assert_eq!(backlog.admit(0), Ok(Admission::Queued));
        assert_eq!(backlog.admit(0), Ok(Admission::Queued));
        assert_eq!(backlog.admit(0), Err(Declined::NoRoom));
        assert_eq!(backlog.waiting(), 2);
        backlog.release();
        assert_eq!(backlog.admit(0), Ok(Admission::Queued));
        assert_eq!(backlog.admit(0), Err(Declined::NoRoom));
    }

    #[test]
    fn a_failed_listen_changes_nothing() {
        let mut backlog = Backlog::new();
        backlog.propose(3);
        backlog.set(3);
        backlog.admit(0).unwrap();
        let before = backlog.clone();
        backlog.propose(100);
        assert_eq!(backlog, before);
        backlog.set(100);
        assert_eq!(backlog, before);
    }

    #[test]
    fn a_proposal_that_failed_is_replaced() {
        let mut backlog = Backlog::new();
        backlog.propose(9);
        backlog.propose(1);
        backlog.set(1);
        assert_eq!(backlog.admit(0), Ok(Admission::Queued));
        assert_eq!(backlog.admit(0), Err(Declined::NoRoom));
    }

    #[test]
    fn requests_that_came_early_count() {
        let mut backlog = Backlog::new();
        backlog.propose(2);
        backlog.admit(0).unwrap();
        backlog.set(2);
        assert_eq!(backlog.admit(0), Ok(Admission::Queued));
        assert_eq!(backlog.admit(0), Err(Declined::NoRoom));
        backlog.release();
        backlog.release();
        backlog.release();
        assert_eq!(backlog.waiting(), 0);
    }
}
