// SPDX-License-Identifier: GPL-2.0

//! The order in which a listener's unread requests are read, and which of them give way to others.

use crate::node::Priority;

/// The turn of a request among those of its listener that are unread.
///
/// Requests that were within the backlog come first, then those that were parked beside it, by
/// priority. Among equals, the order is that of the arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(u64);

impl Turn {
    /// The highest bits are the class, and the others the position among all events.
    const POSITION_BITS: u32 = 62;
    const POSITION_MASK: u64 = (1 << Self::POSITION_BITS) - 1;

    /// Returns the turn of a request at a position in the queue of events, with its priority if it
    /// is parked.
    #[inline]
    pub const fn new(parked: Option<Priority>, position: u64) -> Self {
        let class: u64 = match parked {
            None => 0,
            Some(Priority::Confirmed) => 1,
            Some(Priority::Repeated) => 2,
            Some(Priority::New) => 3,
        };
        Self(class << Self::POSITION_BITS | position)
    }

    /// Returns the position of the request in the queue of events.
    #[inline]
    pub const fn position(self) -> u64 {
        self.0 & Self::POSITION_MASK
    }

    /// Returns whether the request gives way to others: it is parked, and its source has confirmed
    /// nothing. If the last request does not, none does.
    pub const fn gives_way(self) -> bool {
        self.0 >> Self::POSITION_BITS >= 2
    }

    /// Returns the turn of the request that gives way to another one, if one does. The random
    /// number decides which of those with the lowest priority it is.
    ///
    /// `last` is the turn of the last request, and `next` returns the first turn of a request that
    /// is not before one.
    pub fn replaced(
        last: Option<Self>,
        random: u64,
        next: impl Fn(Self) -> Option<Self>,
    ) -> Option<Self> {
        let last = last.filter(|last| last.gives_way())?;
        next(next(last.first_of_class())?.random_until(last, random))
    }

    /// Returns the first possible turn of the same class.
    const fn first_of_class(self) -> Self {
        Self(self.0 & !Self::POSITION_MASK)
    }

    /// Returns a turn between this one and `last`, by a random number. The request that has it, or
    /// else the next one, gives way.
    ///
    /// So an old request, beside which many have given way already, is more likely to be the next
    /// one than a new request. All have the same chance to be read in the end.
    fn random_until(self, last: Self, random: u64) -> Self {
        let turns = last.0.saturating_sub(self.0).saturating_add(1);
        // There is at least this turn.
        let ahead = random.checked_rem(turns).unwrap_or_default();
        Self(self.0.wrapping_add(ahead))
    }
}

impl From<u64> for Turn {
    #[inline]
    fn from(key: u64) -> Self {
        Self(key)
    }
}

impl From<Turn> for u64 {
    #[inline]
    fn from(turn: Turn) -> Self {
        turn.0
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_turn))]
mod tests {
    use super::*;

    const PARKED: [Priority; 3] = [Priority::Confirmed, Priority::Repeated, Priority::New];

    #[test]
    fn queued_first_then_by_priority_then_by_arrival() {
        let classes = [None, Some(PARKED[0]), Some(PARKED[1]), Some(PARKED[2])];
        let mut before = None;
        for class in classes {
            for position in [0, 1, 1 << 40] {
                let turn = Turn::new(class, position);
                assert!(before < Some(turn));
                assert_eq!(turn.position(), position);
                assert_eq!(turn.first_of_class(), Turn::new(class, 0));
                assert_eq!(Turn::from(u64::from(turn)), turn);
                before = Some(turn);
            }
        }
    }

    #[test]
    fn a_confirmed_or_queued_request_gives_way_to_nobody() {
        let gives_way = |class| Turn::new(class, 5).gives_way();
        assert_eq!(
            PARKED.map(|priority| gives_way(Some(priority))),
            [false, true, true]
        );
        assert!(!gives_way(None));
    }

    #[test]
    fn a_random_turn_is_one_of_the_class() {
        let new = |position| Turn::new(Some(Priority::New), position);
        let (first, last) = (new(10), new(12));
        for (random, position) in [(0, 10), (1, 11), (2, 12), (3, 10), (u64::MAX, 10)] {
            assert_eq!(first.random_until(last, random), new(position));
        }
        assert_eq!(first.random_until(first, u64::MAX), first);
    }
}

/// A model of a listener whose owner reads requests at a constant rate, with a tree of the standard
/// library.
#[cfg(test)]
mod model {
    use super::Turn;
    use crate::{
        node::{Admission, Asker, Priority},
        ucma::backlog::Backlog,
    };
    use proptest::prelude::*;
    use std::{
        collections::{BTreeMap, BTreeSet},
        vec::Vec,
    };

    /// A listener with the requests that its owner has not read.
    struct Listener {
        backlog: Backlog,
        parking: u32,
        unread: BTreeMap<Turn, u32>,
        /// The names in `unread`.
        names: BTreeSet<u32>,
        position: u64,
        random: u64,
        replaced: Vec<u32>,
    }

    impl Listener {
        fn new(limit: u32, parking: u32) -> Self {
            let mut backlog = Backlog::new();
            backlog.set(limit);
            Self {
                backlog,
                parking,
                unread: BTreeMap::new(),
                names: BTreeSet::new(),
                position: 0,
                random: 0x9e37_79b9_7f4a_7c15,
                replaced: Vec::new(),
            }
        }

        fn random(&mut self) -> u64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.random
        }

        /// Lets one request give way, if one does.
        fn replace(&mut self) -> bool {
            let random = self.random();
            let unread = &self.unread;
            let last = unread.last_key_value().map(|(turn, _)| *turn);
            let next = |turn| Some(*unread.range(turn..).next()?.0);
            let Some(turn) = Turn::replaced(last, random, next) else {
                return false;
            };
            let name = self.unread.remove(&turn).unwrap();
            self.names.remove(&name);
            self.replaced.push(name);
            true
        }

        fn ask(&mut self, name: u32, priority: Priority) -> bool {
            let parking = self.parking;
            let mut backlog = self.backlog.clone();
            let admitted = backlog.admit(Some(Asker { priority, parking }), || self.replace());
            self.backlog = backlog;
            let Ok(admission) = admitted else {
                return false;
            };
            let parked = (admission != Admission::Queued).then_some(priority);
            self.unread.insert(Turn::new(parked, self.position), name);
            self.names.insert(name);
            self.position += 1;
            true
        }

        fn read(&mut self) -> Option<u32> {
            let (_, name) = self.unread.pop_first()?;
            self.names.remove(&name);
            self.backlog.release();
            Some(name)
        }
    }

    /// The first name of a client: those before are forgers.
    const CLIENTS: u32 = 1_000_000;

    /// The outcome of a flood.
    #[derive(Debug, Default)]
    struct Outcome {
        /// The time in milliseconds that each client has waited, if it was served.
        waited: Vec<Option<u64>>,
        /// The number of requests of clients that were parked.
        entries: u32,
        /// The numbers of all requests that were parked and that were read.
        offered: u32,
        accepted: u32,
    }

    /// A listener with a backlog of 128 whose owner reads 100 requests a second, under a flood of
    /// 1,000 a second, each millisecond one. For a minute a client comes in each `interval`, and
    /// asks as `again` says until it is served.
    fn flood(forged: Priority, interval: u64, again: &[(u64, Priority)]) -> Outcome {
        let mut listener = Listener::new(128, 1024);
        let (start, clients) = (5_000, 60_000 / interval);
        let mut outcome = Outcome {
            waited: (0..clients).map(|_| None).collect(),
            ..Outcome::default()
        };
        for ms in 0..80_000u64 {
            let is_on = u32::from(ms >= start);
            listener.ask(ms as u32, Priority::New);
            if forged != Priority::New {
                outcome.offered += is_on * u32::from(listener.ask(ms as u32, forged));
            }
            for (after, priority) in again {
                let since = ms
                    .checked_sub(start + after)
                    .filter(|since| since % interval == 0);
                let Some(client) = since.map(|since| since / interval).filter(|n| *n < clients)
                else {
                    continue;
                };
                let name = CLIENTS + client as u32;
                let is_new = !listener.names.contains(&name);
                if outcome.waited[client as usize].is_none() && is_new {
                    outcome.entries += u32::from(listener.ask(name, *priority));
                }
            }
            if ms % 10 == 0 {
                let read = listener.read();
                outcome.accepted += is_on * u32::from(read.is_some());
                if let Some(client) = read.and_then(|name| name.checked_sub(CLIENTS)) {
                    let begun = start + u64::from(client) * interval;
                    outcome.waited[client as usize].get_or_insert(ms - begun);
                }
            }
            assert!(listener.unread.len() <= 128 + 1024);
            assert_eq!(listener.unread.len() as u32, listener.backlog.waiting());
        }
        outcome.offered += outcome.entries;
        assert!(listener
            .replaced
            .iter()
            .all(|name| *name < CLIENTS || forged != Priority::New));
        outcome
    }

    #[test]
    fn a_confirmed_source_gets_in_at_once() {
        for forged in [Priority::New, Priority::Repeated] {
            let Outcome { waited, .. } = flood(forged, 1_000, &[(0, Priority::Confirmed)]);
            assert!(
                waited.iter().all(|ms| ms.is_some_and(|ms| ms <= 20)),
                "{waited:?}"
            );
        }
    }

    #[test]
    fn a_client_that_repeats_its_request_gets_in() {
        for again in [25, 4_600] {
            let again = [(0, Priority::New), (again, Priority::Repeated)];
            let Outcome { waited, .. } = flood(Priority::New, 1_000, &again);
            // The first request of some is parked, behind others.
            assert!(
                waited.iter().all(|ms| ms.is_some_and(|ms| ms < 10_000)),
                "{waited:?}"
            );
        }
    }

    /// Tests that beside a flood that repeats its requests as clients do, each request that is
    /// parked has the same chance to be read, which is the share of those that are read. A client
    /// asks once, or 50 times within ten seconds while it is not parked, so that its chance is a
    /// multiple of that.
    #[test]
    fn a_client_has_the_same_chance_as_a_forger_that_repeats() {
        for (times, most) in [(1, 1.0), (50, 10.0)] {
            let again: Vec<_> = (0..times).map(|n| (n * 200, Priority::Repeated)).collect();
            let outcome = flood(Priority::Repeated, 100, &again);
            let served = outcome.waited.iter().flatten().count() as f64;
            let share = f64::from(outcome.accepted) / f64::from(outcome.offered);
            let entries = f64::from(outcome.entries);
            assert!(share < 0.1 && entries <= most * 600.0, "{share} {entries}");
            // The number that are served of so many has a binomial distribution.
            let deviation = (entries * share * (1.0 - share)).sqrt();
            let excess = (served - entries * share) / deviation;
            assert!(
                excess.abs() < 3.0,
                "{served} of {entries}, {excess} deviations"
            );
        }
    }

    /// Tests that a flood that nobody reads is bounded, and keeps what came before it.
    #[test]
    fn what_came_before_a_flood_is_read_first() {
        let mut listener = Listener::new(4, 8);
        for name in 0..4 {
            assert!(listener.ask(CLIENTS + name, Priority::New));
        }
        for name in 0..1_000 {
            listener.ask(name, [Priority::New, Priority::Repeated][name as usize % 2]);
            assert!(listener.unread.len() <= 4 + 8);
        }
        assert!(listener.replaced.iter().all(|name| *name < CLIENTS));
        for name in 0..4 {
            assert_eq!(listener.read(), Some(CLIENTS + name));
        }
    }

    proptest! {
        /// Checks that the bounds hold and that no confirmed request gives way, whatever is asked
        /// and read.
        #[test]
        fn confirmed_requests_are_kept_and_in_order(
            limit in 1u32..5,
            parking in 0u32..6,
            steps in prop::collection::vec(0u8..4, 0..200),
        ) {
            let mut listener = Listener::new(limit, parking);
            let (mut asked, mut read) = (Vec::new(), Vec::new());
            for (name, step) in (0u32..).zip(steps) {
                let priority = [Priority::New, Priority::Repeated, Priority::Confirmed];
                match priority.get(usize::from(step)) {
                    Some(Priority::Confirmed) if listener.ask(name, Priority::Confirmed) => {
                        asked.push(name);
                    }
                    Some(priority) => {
                        listener.ask(name, *priority);
                    }
                    None => read.extend(listener.read()),
                }
                prop_assert!(listener.unread.len() as u32 <= limit + parking);
            }
            while let Some(name) = listener.read() {
                read.push(name);
            }
            prop_assert!(asked.iter().all(|name| !listener.replaced.contains(name)));
            read.retain(|name| asked.contains(name));
            prop_assert_eq!(read, asked);
        }
    }
}
