// SPDX-License-Identifier: GPL-2.0

//! The messages that a source has not asked for.
//!
//! A REQ may carry the address of somebody who knows nothing of it. Until its sender has confirmed
//! it, each message from there is answered by at most one. More than that, a REP that is repeated
//! by the timer for instance, is [sent](crate::cm::Action::SendUnasked) to a source that has
//! confirmed a request of late, and few times to any other.
//!
//! A node has a table of slots with a [`Confirmation`] and an [`Unasked`] each. The slot of a
//! source is given by its hash ([`Origin::hash`](crate::origin::Origin::hash)). Each of the two
//! fits into an atomic variable.

use crate::time::{Duration, Instant};

/// The proof that a source receives what it is sent: it has confirmed a request.
///
/// It is of the source of a slot that was the last to do so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// A part of the hash of the source.
    source: u32,
    /// The time of the confirmation, in seconds.
    at: u32,
}

impl Confirmation {
    /// Number of slots of a table.
    pub const SLOTS: usize = 1 << Self::SLOT_BITS;
    const SLOT_BITS: u32 = 12;
    /// Time for which a confirmation holds, in seconds.
    const VALID: u32 = 600;

    /// Returns the slot of the source with this hash.
    pub const fn slot(hash: u64) -> usize {
        (hash >> (u64::BITS - Self::SLOT_BITS)) as usize
    }

    /// Creates the confirmation by the source with this hash at `now`.
    pub fn new(hash: u64, now: Instant) -> Self {
        Self {
            source: (hash >> (u32::BITS - Self::SLOT_BITS)) as u32,
            at: u32::try_from(now.as_micros() / 1_000_000).unwrap_or(u32::MAX),
        }
    }

    /// Returns whether the source with this hash has confirmed a request, and not long before
    /// `now`.
    pub(super) fn is_by(self, hash: u64, now: Instant) -> bool {
        let one_now = Self::new(hash, now);
        self.source == one_now.source && one_now.at.saturating_sub(self.at) < Self::VALID
    }
}

impl From<u64> for Confirmation {
    fn from(bits: u64) -> Self {
        Self {
            source: (bits >> 32) as u32,
            at: bits as u32,
        }
    }
}

impl From<Confirmation> for u64 {
    fn from(confirmation: Confirmation) -> Self {
        u64::from(confirmation.source) << 32 | u64::from(confirmation.at)
    }
}

/// The messages that sources were sent which have neither asked for them nor confirmed a request.
///
/// All sources of a slot share them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unasked {
    count: u8,
    last: Instant,
}

impl Unasked {
    /// Time from each message to the next one. The first repeats are for a message that was lost,
    /// the last one for a network that was down.
    const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(2_000)];
    /// Time after the last message until others may follow. A REP is repeated for a shorter time,
    /// which makes four of it in all.
    const REST: Duration = Duration::from_millis(150_000);

    /// Adds a message at `now` to the source with this hash. `confirmation` is that of its slot. A
    /// message to a source that has confirmed a request is not counted, and `self` is returned.
    ///
    /// Returns `None` if the message must not be sent.
    pub fn add(self, confirmation: Confirmation, hash: u64, now: Instant) -> Option<Self> {
        match confirmation.is_by(hash, now) {
            true => Some(self),
            false => self.one_more(now),
        }
    }

    /// Adds a message at `now` to a source that has confirmed nothing.
    fn one_more(self, now: Instant) -> Option<Self> {
        let since = now.saturating_duration_since(self.last);
        let pause = match usize::from(self.count).checked_sub(1) {
            Some(sent) => Self::PAUSES.get(sent).copied().unwrap_or(Self::REST),
            None => Duration::ZERO,
        };
        let count = match since >= Self::REST {
            true => 1,
            false => self.count.saturating_add(1),
        };
        (since >= pause).then_some(Self { count, last: now })
    }
}

impl From<u64> for Unasked {
    fn from(bits: u64) -> Self {
        Self {
            count: bits as u8 & 3,
            last: Instant::from_micros(bits >> 2),
        }
    }
}

impl From<Unasked> for u64 {
    fn from(unasked: Unasked) -> Self {
        unasked.last.as_micros() << 2 | u64::from(unasked.count & 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{addr::Gid, cm::Limits, origin::Origin};

    const KEY: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn hash(n: u32) -> u64 {
        Origin::of_gid(Gid::from_v4(n.to_be_bytes())).hash(KEY)
    }

    /// Returns the times of the messages that are sent if one is offered each millisecond.
    fn sent(from: u64, to: u64) -> Vec<u64> {
        let mut bits = 0;
        let offered = (from..to).filter(|ms| match Unasked::from(bits).one_more(at(*ms)) {
            Some(next) => {
                bits = u64::from(next);
                assert_eq!(Unasked::from(bits), next);
                true
            }
            None => false,
        });
        offered.collect()
    }

    #[test]
    fn few_are_sent_and_far_apart() {
        let expected = [7, 257, 2_257, 152_257, 152_507, 154_507];
        assert_eq!(sent(7, 200_000), expected);
    }

    #[test]
    fn a_rep_is_sent_four_times() {
        let Limits {
            passive_retries,
            passive_interval,
            ..
        } = Limits::DEFAULT;
        let longest = passive_interval.saturating_mul(u64::from(passive_retries) + 1);
        assert_eq!(sent(0, longest.as_micros() / 1_000).len(), 3);
    }

    #[test]
    fn a_confirmation_is_of_one_source_and_holds_for_a_time() {
        let both = |n, ms| {
            let confirmation = Confirmation::new(hash(n), at(ms));
            assert_eq!(Confirmation::from(u64::from(confirmation)), confirmation);
            confirmation
        };
        let confirmation = both(1, 5_000);
        for ms in [4_000, 5_000, 604_999] {
            assert!(confirmation.is_by(hash(1), at(ms)));
        }
        assert!(!confirmation.is_by(hash(1), at(605_000)));
        // Nobody else is taken for it, be it in its slot or not.
        let by = |n: &u32| confirmation.is_by(hash(*n), at(5_000));
        assert_eq!((0..1_000_000).filter(by).collect::<Vec<_>>(), [1]);
        // At the start nobody has confirmed anything.
        let none = |n: &u32| !Confirmation::default().is_by(hash(*n), at(0));
        assert!((0..1_000_000).all(|n| none(&n)));
    }

    #[test]
    fn a_message_to_a_source_that_has_confirmed_is_not_counted() {
        let confirmation = Confirmation::new(hash(1), at(0));
        let first = Unasked::default().one_more(at(1)).unwrap();
        for n in 1..=2 {
            let next = first.add(confirmation, hash(n), at(2));
            assert_eq!(next, (n == 1).then_some(first));
        }
        let later = first.add(confirmation, hash(2), at(600)).unwrap();
        assert_eq!(Some(later), first.one_more(at(600)));
        assert_ne!(later, first);
    }

    #[test]
    fn slots_are_filled_evenly() {
        let mut filled = [0u16; Confirmation::SLOTS];
        for n in 0..16 * 4096 {
            filled[Confirmation::slot(hash(n))] += 1;
        }
        assert!(filled.iter().all(|n| *n < 4 * 16));
    }
}
