// SPDX-License-Identifier: GPL-2.0

//! The number of events that administrators are told of by netlink.

use crate::{
    bucket::TokenBucket,
    time::{Duration, Instant},
};

/// The events of one source, and those that were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Budget<K> {
    source: K,
    bucket: TokenBucket,
    lost: u64,
}

/// Number of sources that use some of their limit at a time.
const PLACES: usize = 64;

/// The limit of events.
///
/// A flood of refused requests must not cause a flood of messages. Each source, which is a port or
/// a user in a network namespace, or a GID that requests come to, has a limit of its own, for as
/// long as it has used any of it. Events of more sources at a time than there are places are lost,
/// and not counted.
#[derive(Clone, Debug)]
pub struct Budgets<K> {
    places: [Option<Budget<K>>; PLACES],
}

impl<K> Budgets<K> {
    /// Number of events at once.
    pub const BURST: u64 = 100;
    /// Time from one event to the next after that.
    pub const INTERVAL: Duration = Duration::from_millis(20);

    /// Creates the limit before the first event.
    pub const fn new() -> Self {
        Self {
            places: [const { None }; PLACES],
        }
    }

    /// Returns whether no source has used any of its limit.
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    /// Returns whether an event of a source may be sent at `now`. If not, it is counted as lost.
    pub fn take(&mut self, source: K, now: Instant) -> bool
    where
        K: PartialEq,
    {
        let place = self.places.iter().position(|place| {
            let budget = place.as_ref();
            budget.is_some_and(|budget| budget.source == source)
        });
        let place = place.or_else(|| self.places.iter().position(Option::is_none));
        let Some(place) = place.and_then(|at| self.places.get_mut(at)) else {
            return false;
        };
        let budget = place.get_or_insert(Budget {
            source,
            bucket: TokenBucket::new(Self::INTERVAL, Self::BURST),
            lost: 0,
        });
        let may = budget.bucket.take(now);
        budget.lost = budget.lost.saturating_add(u64::from(!may));
        may
    }

    /// Returns whether a source has nothing left of its limit at `now`, or has no place. An event
    /// of it is then lost, and is counted if the source has a place.
    pub fn is_spent(&mut self, is_source: impl Fn(&K) -> bool, now: Instant) -> bool {
        let mut budgets = self.places.iter_mut().flatten();
        match budgets.find(|budget| is_source(&budget.source)) {
            Some(budget) => {
                let is_spent = {
                    let mut bucket = budget.bucket;
                    !bucket.take(now)
                };
                budget.lost = budget.lost.saturating_add(u64::from(is_spent));
                is_spent
            }
            None => self.places.iter().all(Option::is_some),
        }
    }

    /// Returns a source that has lost events, and their number, which counts from 0 again.
    pub fn take_lost(&mut self) -> Option<(K, u64)>
    where
        K: Clone,
    {
        let mut budgets = self.places.iter_mut().flatten();
        let budget = budgets.find(|budget| budget.lost != 0)?;
        let lost = core::mem::take(&mut budget.lost);
        Some((budget.source.clone(), lost))
    }

    /// Forgets the sources that have all of their limit again at `now`, and have lost nothing.
    pub fn forget(&mut self, now: Instant) {
        for place in &mut self.places {
            if place
                .as_ref()
                .is_some_and(|budget| budget.lost == 0 && budget.bucket.is_full(now))
            {
                *place = None;
            }
        }
    }
}

impl<K> Default for Budgets<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_event_budgets)
)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(7_000_000);

    fn count(budgets: &mut Budgets<u32>, source: u32, now: Instant) -> usize {
        (0..1000).filter(|_| budgets.take(source, now)).count()
    }

    #[test]
    fn a_flood_takes_nothing_from_others() {
        let mut budgets = Budgets::new();
        assert!(budgets.is_empty());
        assert_eq!(count(&mut budgets, 1, NOW), 100);
        assert!(budgets.take(2, NOW));
        assert_eq!(count(&mut budgets, 1, NOW + Duration::from_millis(200)), 10);
        // The flood loses the others, and each is counted once.
        assert_eq!(budgets.take_lost(), Some((1, 900 + 990)));
        assert_eq!(budgets.take_lost(), None);
    }

    #[test]
    fn a_flood_is_known_before_its_events_are_made() {
        let mut budgets = Budgets::new();
        assert!(!budgets.is_spent(|_| true, NOW));
        assert!(budgets.is_empty());
        assert_eq!(count(&mut budgets, 1, NOW), 100);
        assert!(budgets.is_spent(|source| *source == 1, NOW));
        assert!(!budgets.is_spent(|source| *source == 2, NOW));
        // To ask takes nothing, and what is refused is counted.
        let later = NOW + Duration::from_millis(20);
        assert!(!budgets.is_spent(|source| *source == 1, later));
        assert!(budgets.take(1, later));
        assert_eq!(budgets.take_lost(), Some((1, 900 + 1)));
        for source in 2..65 {
            assert!(budgets.take(source, NOW));
        }
        assert!(budgets.is_spent(|source| *source == 65, NOW));
    }

    #[test]
    fn a_source_is_forgotten_when_it_is_quiet() {
        let mut budgets = Budgets::new();
        assert_eq!(count(&mut budgets, 1, NOW), 100);
        let later = NOW + Duration::from_millis(2_000);
        budgets.forget(later);
        // Lost events have to be told of before.
        assert!(!budgets.is_empty());
        assert_eq!(budgets.take_lost(), Some((1, 900)));
        budgets.forget(NOW + Duration::from_millis(1_999));
        assert!(!budgets.is_empty());
        budgets.forget(later);
        assert!(budgets.is_empty());
    }

    #[test]
    fn there_are_places_for_some_sources() {
        let mut budgets = Budgets::new();
        for source in 0..64 {
            assert!(budgets.take(source, NOW));
        }
        assert!(!budgets.take(64, NOW));
        assert!(budgets.take(63, NOW));
        budgets.forget(NOW + Duration::from_millis(40));
        assert!(budgets.take(64, NOW));
    }
}
