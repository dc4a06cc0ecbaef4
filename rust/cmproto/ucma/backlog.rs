// SPDX-License-Identifier: GPL-2.0

//! The backlog of a listener: the connection requests that its owner has not read.

use crate::node::{Admission, Asker, Declined, Offer, Priority};

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
    /// Number of requests for which there was no room.
    refused: u32,
    /// Set once the listener listens with `limit`.
    set: bool,
    /// Set from the time that a request is parked until none waits, so that requests which arrive
    /// meanwhile are not read before those that are parked.
    crowded: bool,
}

impl Backlog {
    /// Creates the backlog of a context that does not listen: no request may wait.
    pub const fn new() -> Self {
        Backlog {
            waiting: 0,
            limit: 0,
            refused: 0,
            set: false,
            crowded: false,
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

    /// Admits and counts a request, as [`next_admission`](Self::next_admission) says. If it
    /// [replaces](Admission::Replaces) another one, `replace` removes that, and returns whether
    /// there was one that gives way.
    ///
    /// # Errors
    ///
    /// - The errors of [`next_admission`](Self::next_admission).
    /// - [`Declined::NoRoom`] if no request gives way.
    pub fn admit(&mut self, asker: Option<Asker>, replace: impl FnOnce() -> bool) -> Offer {
        let admission = self.next_admission(asker)?;
        match admission {
            Admission::Replaces if !replace() => return Err(Declined::NoRoom),
            // The number of requests is still the same.
            Admission::Replaces => {}
            Admission::Queued | Admission::Parked => self.waiting = self.waiting.saturating_add(1),
        }
        self.crowded |= admission != Admission::Queued;
        Ok(admission)
    }

    /// Uncounts a request that was read, or could not be queued after all.
    pub fn release(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.crowded &= self.waiting != 0;
    }

    /// Returns the admission that a request from `asker` would get. `None` means that it is not
    /// parked.
    ///
    /// Half of the parking, which requests of sources of which nothing is known may use, is small
    /// enough that they are read in time. The rest is a reserve for those that have confirmed a
    /// request and for those that ask again.
    ///
    /// # Errors
    ///
    /// [`Declined::NoRoom`] if the backlog is full and the request is not parked.
    pub fn next_admission(&self, asker: Option<Asker>) -> Offer {
        let within_limit = self.waiting < self.limit;
        // Without a listener no requests are parked.
        let asker = match asker.filter(|_| self.limit != 0) {
            None if within_limit => return Ok(Admission::Queued),
            None => return Err(Declined::NoRoom),
            Some(_) if within_limit && !self.crowded => return Ok(Admission::Queued),
            Some(asker) => asker,
        };
        let parking = match asker.priority {
            Priority::New => asker.parking.div_ceil(2),
            Priority::Repeated | Priority::Confirmed => asker.parking,
        };
        if self.waiting < self.limit.saturating_add(parking) {
            Ok(Admission::Parked)
        } else if asker.priority == Priority::New {
            Err(Declined::NoRoom)
        } else {
            Ok(Admission::Replaces)
        }
    }

    /// Returns whether there is no room but for requests that are parked.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.waiting >= self.limit
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns the most requests that may wait, but for those that are parked.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the number of requests that wait beside a full backlog.
    pub fn parked(&self) -> u32 {
        self.waiting.saturating_sub(self.limit)
    }

    /// Counts a request for which there was no room.
    pub fn refuse(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// Returns the number of requests for which there was no room.
    pub fn refused(&self) -> u32 {
        self.refused
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

    /// Returns the sender of a request with this priority, to a listener that parks `parking`.
    fn asker(priority: Priority, parking: u32) -> Option<Asker> {
        Some(Asker { priority, parking })
    }

    /// Admits a request that is not parked.
    fn admit(backlog: &mut Backlog) -> Offer {
        backlog.admit(None, || unreachable!())
    }

    #[test]
    fn nothing_waits_for_what_does_not_listen() {
        let backlog = Backlog::new();
        for asker in [None, asker(Priority::New, 9), asker(Priority::Confirmed, 9)] {
            assert_eq!(backlog.next_admission(asker), Err(Declined::NoRoom));
        }
    }

    #[test]
    fn parked_beyond_the_limit_until_all_are_read() {
        let mut backlog = Backlog::new();
        backlog.set(1);
        let asker = asker(Priority::Confirmed, 2);
        let ask = |backlog: &mut Backlog| backlog.admit(asker, || false);
        assert_eq!(ask(&mut backlog), Ok(Admission::Queued));
        assert_eq!(ask(&mut backlog), Ok(Admission::Parked));
        assert_eq!(ask(&mut backlog), Ok(Admission::Parked));
        assert_eq!(ask(&mut backlog), Err(Declined::NoRoom));
        assert_eq!(admit(&mut backlog), Err(Declined::NoRoom));
        assert_eq!((backlog.waiting(), backlog.parked()), (3, 2));
        // The request that was parked first has moved up, so that there is room behind the others.
        backlog.release();
        assert_eq!(ask(&mut backlog), Ok(Admission::Parked));
        // A request within the limit is still behind those that were parked before.
        let mut backlog = Backlog::new();
        backlog.set(2);
        for _ in 0..3 {
            ask(&mut backlog).unwrap();
        }
        backlog.release();
        backlog.release();
        assert_eq!(backlog.next_admission(asker), Ok(Admission::Parked));
        backlog.release();
        assert_eq!(ask(&mut backlog), Ok(Admission::Queued));
        // The largest numbers do not overflow.
        let mut backlog = Backlog::new();
        backlog.set(u32::MAX);
        let largest = Some(Asker {
            priority: Priority::Confirmed,
            parking: u32::MAX,
        });
        assert_eq!(backlog.admit(largest, || false), Ok(Admission::Queued));
    }

    #[test]
    fn half_of_the_parking_is_a_reserve() {
        use Admission::{Parked, Replaces};
        for (parking, new) in [(0, 0), (1, 1), (4, 2), (5, 3)] {
            let mut backlog = Backlog::new();
            backlog.set(1);
            admit(&mut backlog).unwrap();
            let mut ask =
                |priority, gives_way| backlog.admit(asker(priority, parking), || gives_way);
            for _ in 0..new {
                assert_eq!(ask(Priority::New, false), Ok(Parked));
            }
            assert_eq!(ask(Priority::New, true), Err(Declined::NoRoom));
            for n in new..parking {
                let priority = [Priority::Repeated, Priority::Confirmed][n as usize % 2];
                assert_eq!(ask(priority, false), Ok(Parked));
            }
            for priority in [Priority::Repeated, Priority::Confirmed] {
                assert_eq!(ask(priority, false), Err(Declined::NoRoom));
                assert_eq!(ask(priority, true), Ok(Replaces));
            }
            assert_eq!(ask(Priority::New, true), Err(Declined::NoRoom));
            assert_eq!(backlog.waiting(), 1 + parking);
        }
    }

    #[test]
    fn full_until_read() {
        let mut backlog = Backlog::new();
        backlog.propose(2);
        backlog.set(2);
        assert_eq!(admit(&mut backlog), Ok(Admission::Queued));
        assert_eq!(admit(&mut backlog), Ok(Admission::Queued));
        assert_eq!(admit(&mut backlog), Err(Declined::NoRoom));
        assert_eq!(backlog.waiting(), 2);
        assert!(backlog.is_full());
        backlog.release();
        assert!(!backlog.is_full());
        assert_eq!(admit(&mut backlog), Ok(Admission::Queued));
        assert_eq!(admit(&mut backlog), Err(Declined::NoRoom));
    }

    #[test]
    fn a_failed_listen_changes_nothing() {
        let mut backlog = Backlog::new();
        backlog.propose(3);
        backlog.set(3);
        admit(&mut backlog).unwrap();
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
        assert_eq!(admit(&mut backlog), Ok(Admission::Queued));
        assert_eq!(admit(&mut backlog), Err(Declined::NoRoom));
    }

    #[test]
    fn requests_that_came_early_count() {
        let mut backlog = Backlog::new();
        backlog.propose(2);
        admit(&mut backlog).unwrap();
        backlog.set(2);
        assert_eq!(admit(&mut backlog), Ok(Admission::Queued));
        assert_eq!(admit(&mut backlog), Err(Declined::NoRoom));
        backlog.release();
        backlog.release();
        backlog.release();
        assert_eq!(backlog.waiting(), 0);
    }
}
