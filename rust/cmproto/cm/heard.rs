// SPDX-License-Identifier: GPL-2.0

//! The requests of this node that a peer has answered.

use super::retransmit::Waiting;
use crate::{time::Instant, wire::Attribute};

/// The news of a request that a message of the peer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The request is answered.
    Answered(Waiting),
    /// The peer has the request, which still waits for its answer: its early retries were needless.
    Acknowledged(Waiting),
}

impl Heard {
    /// Returns the news that a message brings. `before` and `after` it, this request waits for its
    /// answer, if there is one.
    pub fn of(before: Option<Waiting>, after: Option<Waiting>) -> Option<Self> {
        match (before, after) {
            (Some(waited), None) => Some(Self::Answered(waited)),
            (Some(before), Some(after)) if before.ambiguous && !after.ambiguous => {
                Some(Self::Acknowledged(after))
            }
            _ => None,
        }
    }
}

/// The time when the latest request of a kind was sent, of those that a peer has answered.
///
/// A peer has one for each kind of request. The size allows one atomic variable to hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatestAnswered(Instant);

impl LatestAnswered {
    /// Number of kinds of requests.
    pub const KINDS: usize = 4;

    /// Returns the place of a kind of request among all kinds.
    pub const fn place(message: Attribute) -> Option<usize> {
        match message {
            Attribute::Req => Some(0),
            Attribute::Rep => Some(1),
            Attribute::Dreq => Some(2),
            Attribute::SidrReq => Some(3),
            Attribute::Mra
            | Attribute::Rej
            | Attribute::Rtu
            | Attribute::Drep
            | Attribute::SidrRep
            | Attribute::Lap
            | Attribute::Apr => None,
        }
    }

    /// Returns the time after the answer to a request.
    pub fn answered(self, waited: Waiting) -> Self {
        Self(self.0.max(waited.since))
    }

    /// Returns whether a request has overtaken the one that is `waiting`: it was sent later, and is
    /// answered.
    pub fn has_overtaken(self, waiting: Waiting) -> bool {
        self.0 > waiting.since
    }
}

impl From<u64> for LatestAnswered {
    fn from(bits: u64) -> Self {
        Self(Instant::from_micros(bits))
    }
}

impl From<LatestAnswered> for u64 {
    fn from(latest: LatestAnswered) -> Self {
        latest.0.as_micros()
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cm_heard)
)]
mod tests {
    use super::*;

    fn sent(us: u64, ambiguous: bool) -> Waiting {
        Waiting {
            message: Attribute::Req,
            since: Instant::from_micros(us),
            ambiguous,
            early: u8::from(ambiguous),
        }
    }

    #[test]
    fn a_request_is_answered_when_it_waits_no_more() {
        for ambiguous in [false, true] {
            let waited = sent(5, ambiguous);
            assert_eq!(Heard::of(Some(waited), None), Some(Heard::Answered(waited)));
            assert_eq!(Heard::of(Some(waited), Some(waited)), None);
            assert_eq!(Heard::of(None, Some(waited)), None);
        }
        assert_eq!(Heard::of(None, None), None);
    }

    #[test]
    fn a_request_is_acknowledged_when_its_answer_is_no_more_ambiguous() {
        let (before, after) = (sent(5, true), sent(5, false));
        let heard = Heard::of(Some(before), Some(after));
        assert_eq!(heard, Some(Heard::Acknowledged(after)));
        assert_eq!(Heard::of(Some(after), Some(before)), None);
    }

    #[test]
    fn a_request_is_overtaken_by_later_ones_alone() {
        let mut latest = LatestAnswered::default();
        assert!(!latest.has_overtaken(sent(0, false)));
        for (answered, expected) in [(7, 7), (3, 7), (9, 9), (9, 9)] {
            latest = latest.answered(sent(answered, false));
            assert_eq!(u64::from(latest), expected);
            assert_eq!(LatestAnswered::from(expected), latest);
            for since in 0..12 {
                let is_overtaken = latest.has_overtaken(sent(since, false));
                assert_eq!(is_overtaken, since < expected);
            }
        }
    }

    #[test]
    fn each_kind_of_request_has_a_place() {
        let kinds = [
            Attribute::Req,
            Attribute::Rep,
            Attribute::Dreq,
            Attribute::SidrReq,
        ];
        for (place, kind) in (0..LatestAnswered::KINDS).zip(kinds) {
            assert_eq!(LatestAnswered::place(kind), Some(place));
        }
        for kind in [
            Attribute::Mra,
            Attribute::Rtu,
            Attribute::Drep,
            Attribute::Rej,
        ] {
            assert_eq!(LatestAnswered::place(kind), None);
        }
    }
}
