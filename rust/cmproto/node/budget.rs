// SPDX-License-Identifier: GPL-2.0

//! The limit of the answers that a node sends without a connection.

use crate::{
    bucket::TokenBucket,
    origin::Origin,
    reject::Reason,
    time::{Duration, Instant},
    wire::{Attribute, Rej},
};

/// A node that is about to ask whether a connection still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    from: Origin,
    until: Instant,
    left: u8,
}

/// The limit of the answers that a port sends without a connection.
///
/// A flood of messages for nobody must not cause a flood of answers. One answer gets through
/// nevertheless: a node whose connection is rejected as stale is about to be
/// [challenged](crate::cm::Connection::stale_peer) about the old one, and can connect again when it
/// has confirmed that it has lost that. A REJ names a communication id of this node, so that few
/// can pretend to be about to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerBudget {
    bucket: TokenBucket,
    /// The latest nodes that are expected to ask.
    expected: [Option<Expected>; Self::EXPECTED],
    /// The place of the next one.
    next: usize,
}

impl AnswerBudget {
    /// Number of answers at once.
    pub const BURST: u64 = 1000;
    /// Time from one answer to the next after that.
    pub const INTERVAL: Duration = Duration::from_millis(1);
    /// Number of nodes that are expected to ask.
    const EXPECTED: usize = 32;
    /// Number of answers to one of them, and the time in which it asks.
    const CONFIRMATIONS: u8 = 8;
    const PATIENCE: Duration = Duration::from_millis(10_000);

    /// Creates the limit of a port that has sent nothing yet.
    pub const fn new() -> Self {
        Self {
            bucket: TokenBucket::new(Self::INTERVAL, Self::BURST),
            expected: [None; Self::EXPECTED],
            next: 0,
        }
    }

    /// Takes note of a REJ from `from` that a connection has accepted.
    pub fn note_rej(&mut self, rej: &Rej<'_>, from: Origin, now: Instant) {
        if Reason(rej.reason) != Reason::STALE_CONN {
            return;
        }
        let known = self.find(from);
        let place = known.unwrap_or(self.next);
        if known.is_none() {
            self.next = self.next.wrapping_add(1) % Self::EXPECTED;
        }
        if let Some(place) = self.expected.get_mut(place) {
            *place = Some(Expected {
                from,
                until: now + Self::PATIENCE,
                left: Self::CONFIRMATIONS,
            });
        }
    }

    /// Returns whether an answer with this attribute may be sent to `to`.
    pub fn may_answer(&mut self, attribute: Attribute, to: Origin, now: Instant) -> bool {
        self.bucket.take(now) || (attribute == Attribute::Drep && self.is_expected(to, now))
    }

    fn is_expected(&mut self, to: Origin, now: Instant) -> bool {
        let place = self.find(to).and_then(|place| self.expected.get_mut(place));
        let Some(Some(expected)) = place else {
            return false;
        };
        let is_expected = now < expected.until && expected.left > 0;
        expected.left = expected.left.saturating_sub(1);
        is_expected
    }

    fn find(&self, from: Origin) -> Option<usize> {
        let is_from = |place: &Option<Expected>| place.is_some_and(|e| e.from == from);
        self.expected.iter().position(is_from)
    }
}

impl Default for AnswerBudget {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{addr::Gid, wire::RejMessage};

    const CHALLENGER: Origin = origin(1);

    const fn origin(n: u8) -> Origin {
        Origin::of_gid(Gid([n; 16]))
    }

    fn at(ms: u64) -> Instant {
        Instant(5_000_000) + Duration::from_millis(ms)
    }

    fn rej(reason: Reason) -> Rej<'static> {
        Rej {
            local_comm_id: 0,
            remote_comm_id: 7,
            message: RejMessage::Req,
            ari_len: 0,
            reason: reason.0,
            ari: &[0; 72],
            private_data: &[],
        }
    }

    /// Returns a budget of which nothing is left at `now`.
    fn used_up(mut budget: AnswerBudget, now: Instant) -> AnswerBudget {
        while budget.may_answer(Attribute::Rej, origin(99), now) {}
        budget
    }

    #[test]
    fn a_flood_is_answered_within_the_limit() {
        for attribute in [Attribute::Rej, Attribute::Drep, Attribute::SidrRep] {
            let mut budget = AnswerBudget::new();
            let mut answered = |ms| {
                let answers = (0..5_000).filter(|n| {
                    let flooder = origin((n % 251) as u8);
                    budget.may_answer(attribute, flooder, at(ms))
                });
                answers.count()
            };
            assert_eq!([0, 0, 1, 101].map(&mut answered), [1_000, 0, 1, 100]);
        }
    }

    #[test]
    fn who_was_told_of_a_stale_connection_can_confirm_that_it_is_lost() {
        let mut budget = used_up(AnswerBudget::new(), at(0));
        assert!(!budget.may_answer(Attribute::Drep, CHALLENGER, at(0)));
        budget.note_rej(&rej(Reason::CONSUMER_DEFINED), CHALLENGER, at(0));
        assert!(!budget.may_answer(Attribute::Drep, CHALLENGER, at(0)));
        budget.note_rej(&rej(Reason::STALE_CONN), CHALLENGER, at(0));
        // This is so for a DREP to that node only.
        assert!(!budget.may_answer(Attribute::Drep, origin(2), at(0)));
        assert!(!budget.may_answer(Attribute::Rej, CHALLENGER, at(0)));
        let confirmed = |budget: &mut AnswerBudget, ms| {
            let drep = |_: &u32| budget.may_answer(Attribute::Drep, CHALLENGER, at(ms));
            (0..300).filter(drep).count()
        };
        assert_eq!(confirmed(&mut budget, 0), 8);
        assert_eq!(confirmed(&mut budget, 0), 0);
        // The next REJ is for the next connection.
        budget.note_rej(&rej(Reason::STALE_CONN), CHALLENGER, at(0));
        assert_eq!(confirmed(&mut budget.clone(), 0), 8);
        let mut late = used_up(budget, at(10_000));
        assert_eq!(confirmed(&mut late, 10_000), 0);
    }

    #[test]
    fn the_reserve_is_bounded() {
        let mut budget = AnswerBudget::new();
        for n in 0..=200 {
            budget.note_rej(&rej(Reason::STALE_CONN), origin(n), at(0));
            budget.note_rej(&rej(Reason::STALE_CONN), origin(n), at(0));
        }
        let mut budget = used_up(budget, at(0));
        let mut from = 0..=250;
        let answers = from
            .by_ref()
            .flat_map(|n| [origin(n); 20])
            .filter(|to| budget.may_answer(Attribute::Drep, *to, at(0)));
        assert_eq!(answers.count(), 32 * 8);
    }
}
