// SPDX-License-Identifier: GPL-2.0

//! The priority of a request to a listener whose backlog is full.
//!
//! A flood of requests from addresses that are not the sender's is not to keep clients out. It can
//! neither confirm a request nor, at a high rate, repeat each one as clients do. So requests of
//! sources that have confirmed one come first, and then those that are repeated.

use super::{
    offer::{Admission, Declined},
    source::Confirmation,
};
use crate::time::Instant;

/// The priority of a request. A higher one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Nothing is known of the request and its source.
    New,
    /// The request came before, and was not taken.
    Repeated,
    /// The source has confirmed a request of late.
    Confirmed,
}

/// The sender of a request that may be parked beside a full backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The priority of the request.
    pub priority: Priority,
    /// The most requests that may be parked at the listener.
    pub parking: u32,
}

impl Asker {
    /// Asks `node` for the admission that a request would get at a listener that may have `parking`
    /// parked requests. Returns the sender, unless the request may not be parked, and what comes
    /// with the admission.
    ///
    /// The priority is looked up only if the backlog is full: a request seldom needs one, and is
    /// remembered by it.
    pub fn ask<N, T>(
        node: &mut N,
        parking: u32,
        admission: impl Fn(&mut N, Option<Self>) -> Result<(Admission, T), Declined>,
        priority: impl FnOnce(&mut N) -> Priority,
    ) -> Result<(Option<Self>, T), Declined> {
        let asker = (parking != 0).then_some(Self {
            priority: Priority::New,
            parking,
        });
        match (admission(node, asker), asker) {
            (Ok((Admission::Queued, with)), _) => Ok((asker, with)),
            (other, None) => Ok((None, other?.1)),
            (other, Some(asker)) => {
                drop(other);
                let priority = priority(node);
                let asker = Some(Self { priority, ..asker });
                Ok((asker, admission(node, asker)?.1))
            }
        }
    }
}

/// The request that was the last one of a slot to be asked about. It fits into an atomic variable.
///
/// The slot of a request is given by its source and its communication id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenRequest(u32);

impl SeenRequest {
    /// Number of slots of a table.
    pub const SLOTS: usize = 1 << Self::SLOT_BITS;
    const SLOT_BITS: u32 = 14;
    /// The lowest bits are the time in seconds, and the others a part of the hash.
    const TIME_BITS: u32 = 10;
    const TIME_MASK: u32 = (1 << Self::TIME_BITS) - 1;
    /// Time after which a request that comes again counts as a new one, in seconds. It is longer
    /// than three times the classic interval of a request.
    const VALID: u32 = 16;

    /// Returns the request with this communication id of the source with this hash, which comes at
    /// `now`, and its slot.
    pub fn new(source: u64, comm_id: u32, now: Instant) -> (usize, Self) {
        // Only somebody who knows the key of the hash can find two requests with the same value.
        let hash = source.rotate_left(29) ^ u64::from(comm_id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seconds = (now.as_micros() / 1_000_000) as u32;
        let request = hash as u32 & !Self::TIME_MASK | seconds & Self::TIME_MASK;
        let slot = hash >> (u64::BITS - Self::SLOT_BITS);
        (slot as usize, Self(request))
    }

    /// Returns whether the request is the one that was seen as `before`, not long ago.
    const fn repeats(self, before: Self) -> bool {
        let since = self.0.wrapping_sub(before.0) & Self::TIME_MASK;
        self.0 & !Self::TIME_MASK == before.0 & !Self::TIME_MASK && since < Self::VALID
    }

    /// Returns the priority of the request. `before` is the last one of its slot, and
    /// `confirmation` that of the slot of its source, which has the hash `source`.
    pub fn priority(
        self,
        before: Self,
        confirmation: Confirmation,
        source: u64,
        now: Instant,
    ) -> Priority {
        if confirmation.is_by(source, now) {
            Priority::Confirmed
        } else if self.repeats(before) {
            Priority::Repeated
        } else {
            Priority::New
        }
    }
}

impl From<u32> for SeenRequest {
    fn from(bits: u32) -> Self {
        Self(bits)
    }
}

impl From<SeenRequest> for u32 {
    fn from(request: SeenRequest) -> Self {
        request.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{addr::Gid, origin::Origin, time::Duration};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn hash(n: u32) -> u64 {
        Origin::of_gid(Gid::from_v4(n.to_be_bytes()))
            .hash([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344])
    }

    #[test]
    fn a_priority_is_looked_up_only_beside_a_full_backlog() {
        use super::{Admission::*, Declined::NoRoom, Priority::*};
        use crate::node::Offer;
        let asked = |parking, first: Offer, second: Offer| {
            let mut seen = std::vec::Vec::new();
            let answer = Asker::ask(
                &mut seen,
                parking,
                |seen, asker| {
                    match seen.is_empty() {
                        true => first,
                        false => second,
                    }
                    .map(|admission| (admission, asker.map(|asker| asker.priority)))
                },
                |seen| {
                    seen.push(());
                    Repeated
                },
            );
            (answer, seen.len())
        };
        let asker = |priority| {
            Some(Asker {
                priority,
                parking: 9,
            })
        };
        let queued = (asker(New), Some(New));
        let parked = (asker(Repeated), Some(Repeated));
        assert_eq!(asked(9, Ok(Queued), Err(NoRoom)), (Ok(queued), 0));
        assert_eq!(asked(9, Ok(Parked), Ok(Parked)), (Ok(parked), 1));
        assert_eq!(asked(9, Err(NoRoom), Ok(Replaces)), (Ok(parked), 1));
        assert_eq!(asked(9, Err(NoRoom), Err(NoRoom)), (Err(NoRoom), 1));
        assert_eq!(asked(0, Ok(Queued), Err(NoRoom)), (Ok((None, None)), 0));
        assert_eq!(asked(0, Err(NoRoom), Ok(Parked)), (Err(NoRoom), 0));
    }

    #[test]
    fn a_request_is_repeated_by_its_source_within_a_time() {
        let (slot, first) = SeenRequest::new(hash(1), 7, at(500));
        let priority = |source, comm_id, ms| {
            let (other, next) = SeenRequest::new(hash(source), comm_id, at(ms));
            let before = match other == slot {
                true => first,
                false => SeenRequest::default(),
            };
            next.priority(before, Confirmation::default(), hash(source), at(ms))
        };
        assert_eq!(SeenRequest::from(u32::from(first)), first);
        for ms in [500, 501, 5_000, 15_999] {
            assert_eq!(priority(1, 7, ms), Priority::Repeated, "{ms}");
        }
        for (source, comm_id, ms) in [(1, 7, 16_500), (1, 7, 300_000), (1, 8, 501), (2, 7, 501)] {
            assert_eq!(
                priority(source, comm_id, ms),
                Priority::New,
                "{source} {comm_id} {ms}"
            );
        }
    }

    #[test]
    fn a_source_that_has_confirmed_a_request_comes_first() {
        let confirmation = Confirmation::new(hash(1), at(0));
        for (source, expected) in [(1, Priority::Confirmed), (2, Priority::New)] {
            let (_, request) = SeenRequest::new(hash(source), 7, at(1));
            let before = SeenRequest::default();
            let found = request.priority(before, confirmation, hash(source), at(1));
            assert_eq!(found, expected);
        }
        assert!(Priority::Confirmed > Priority::Repeated && Priority::Repeated > Priority::New);
    }

    /// Tests that of those who ask at 1,000 a second, once each, few are taken for others.
    #[test]
    fn a_flood_is_not_taken_for_repeated_requests() {
        let mut slots = vec![SeenRequest::default(); SeenRequest::SLOTS];
        let mut ask = |source: u32, ms: u64| {
            let (slot, request) = SeenRequest::new(hash(source), source ^ 0x5555, at(ms));
            let before = core::mem::replace(&mut slots[slot], request);
            request.priority(before, Confirmation::default(), hash(source), at(ms))
        };
        let mut repeated = 0;
        let mut clients = 0;
        for n in 0..60_000 {
            let ms = u64::from(n);
            repeated += u32::from(ask(n, ms) == Priority::Repeated);
            if n % 100 == 0 {
                // It asks again after 4.6 s, as C does.
                ask(100_000 + n, ms);
            }
            if n % 100 == 0 && n >= 4_600 {
                clients += u32::from(ask(100_000 + n - 4_600, ms) == Priority::Repeated);
            }
        }
        assert!(repeated <= 1, "{repeated}");
        assert!(clients >= 554 * 7 / 10, "{clients} of 554");
    }
}
