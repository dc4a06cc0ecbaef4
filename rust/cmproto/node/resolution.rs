// SPDX-License-Identifier: GPL-2.0

//! The limits of the resolutions of senders' addresses.

use crate::{
    bucket::TokenBucket,
    time::{Duration, Instant},
};
use core::mem;

/// The places of the resolutions that run at a time, each for a request or an answer that waits for
/// its sender's address.
///
/// Most senders that cannot be reached are never heard of again, but each keeps its place until it
/// is given up. So when there are more senders than places, a new one replaces another one, chosen
/// at random. A neighbour that is there answers so soon that it mostly keeps its place until then,
/// and else does so when it has repeated its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolutionPlaces {
    /// The senders ([`Origin::bucket`](crate::origin::Origin::bucket)) that have places.
    senders: [Option<u8>; Self::NUMBER],
    asked: TokenBucket,
}

impl ResolutionPlaces {
    /// Number of places. A neighbour of IPv6 that is asked makes two entries in its host's table.
    pub const NUMBER: usize = 32;
    /// Number of places for one sender, who then replaces only itself.
    const SHARE: usize = Self::NUMBER / 4;
    /// Time from one neighbour that is asked to the next, after the first ones, as each is asked by
    /// a message to all hosts of the link.
    const INTERVAL: Duration = Duration::from_micros(250);

    /// Creates places that are all free.
    pub const fn new() -> Self {
        Self {
            senders: [None; Self::NUMBER],
            asked: TokenBucket::new(Self::INTERVAL, Self::NUMBER as u64),
        }
    }

    /// Takes a place for `sender`, of which `random` chooses one if none is free. A resolution that
    /// has the place is given up.
    ///
    /// Returns `None` if too many neighbours have been asked of late.
    pub fn take(&mut self, sender: u8, random: u32, now: Instant) -> Option<usize> {
        let own = Some(sender);
        let number = self.number_of(sender);
        if number >= Self::SHARE {
            return self.any(random, number, |place| place == own);
        }
        if !self.asked.take(now) {
            return None;
        }
        let free = self.senders.iter().position(Option::is_none);
        let place = free.or_else(|| self.any(random, Self::NUMBER, |_| true))?;
        *self.senders.get_mut(place)? = own;
        Some(place)
    }

    /// Frees a place.
    pub fn leave(&mut self, place: usize) {
        if let Some(sender) = self.senders.get_mut(place) {
            *sender = None;
        }
    }

    /// Returns the number of places that `sender` has.
    fn number_of(&self, sender: u8) -> usize {
        let senders = self.senders.iter();
        senders.fold(0, |number, place| {
            number.saturating_add((*place == Some(sender)).into())
        })
    }

    /// Returns one of the `number` places that are `eligible`.
    fn any(
        &self,
        random: u32,
        number: usize,
        eligible: impl Fn(Option<u8>) -> bool,
    ) -> Option<usize> {
        let nth = (random as usize).checked_rem(number)?;
        let mut places = (0..Self::NUMBER)
            .zip(self.senders)
            .filter(|(_, place)| eligible(*place));
        Some(places.nth(nth)?.0)
    }
}

impl Default for ResolutionPlaces {
    fn default() -> Self {
        Self::new()
    }
}

/// The progress of the resolution of a sender's address.
///
/// The resolution has a query `Q` in progress, and ends when that ends or when another sender gets
/// its place. Either may happen before the query is known here: the resolution is over once, and
/// keeps no query after that.
#[derive(Debug, PartialEq, Eq)]
pub enum ResolutionProgress<Q> {
    /// The query is being started.
    Starting,
    /// The query is in progress.
    Running(Q),
    /// The resolution is over.
    Over,
}

impl<Q> ResolutionProgress<Q> {
    /// Keeps the query that was started until the resolution is over.
    ///
    /// Returns the query if the resolution is over already: the caller must cancel it.
    #[must_use]
    pub fn started(&mut self, query: Q) -> Option<Q> {
        match self {
            Self::Starting => {
                *self = Self::Running(query);
                None
            }
            Self::Running(_) | Self::Over => Some(query),
        }
    }

    /// Ends the resolution. Returns the query that is to be cancelled, if there is one; or `None`
    /// if the resolution was over before.
    pub fn end(&mut self) -> Option<Option<Q>> {
        match mem::replace(self, Self::Over) {
            Self::Starting => Some(None),
            Self::Running(query) => Some(Some(query)),
            Self::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: usize = ResolutionPlaces::NUMBER;
    const SHARE: usize = ResolutionPlaces::SHARE;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn a_resolution_is_over_once_and_returns_its_query() {
        let mut progress = ResolutionProgress::Starting;
        assert_eq!(progress.started(7), None);
        assert_eq!(progress.end(), Some(Some(7)));
        assert_eq!(progress.end(), None);
    }

    #[test]
    fn a_resolution_that_was_over_at_once_keeps_no_query() {
        let mut progress = ResolutionProgress::Starting;
        assert_eq!(progress.end(), Some(None));
        assert_eq!(progress.started(7), Some(7));
        assert_eq!(progress, ResolutionProgress::Over);
    }

    #[test]
    fn free_places_come_first() {
        let mut places = ResolutionPlaces::new();
        for n in 0..NUMBER {
            assert_eq!(places.take(n as u8, 5, at(0)), Some(n));
        }
        places.leave(7);
        assert_eq!(places.take(100, 5, at(1_000)), Some(7));
        assert_eq!(places.take(101, 5, at(1_000)), Some(5));
    }

    #[test]
    fn a_sender_with_its_share_replaces_itself() {
        let mut places = ResolutionPlaces::new();
        let neighbour = places.take(1, 0, at(0)).unwrap();
        for n in 0..10_000 {
            let place = places.take(2, n, at(0)).unwrap();
            assert_ne!(place, neighbour);
            assert!(places.number_of(2) <= SHARE);
        }
        assert_eq!(places.number_of(2), SHARE);
        // It has asked for few addresses only, so that others still can.
        for n in 0..NUMBER - SHARE - 1 {
            assert!(places.take(3 + n as u8, 0, at(0)).is_some());
        }
        assert_eq!(places.take(200, 0, at(0)), None);
    }

    #[test]
    fn few_neighbours_are_asked_in_a_second() {
        let mut places = ResolutionPlaces::new();
        let flood = (0..1_000_000).step_by(20);
        let asked = flood.filter(|us| {
            places
                .take((us / 20) as u8, *us, at(u64::from(*us)))
                .is_some()
        });
        assert_eq!(asked.count(), 4_000 + NUMBER - 1);
    }

    #[test]
    fn a_neighbour_that_answers_has_a_place_beside_a_flood() {
        let mut places = ResolutionPlaces::new();
        let mut random: u32 = 1;
        let mut kept = 0;
        let mut now = 0;
        for _ in 0..1_000 {
            let own = places.take(255, random, at(now));
            let mut is_mine = own.is_some();
            // It answers within 2 ms.
            for _ in 0..8 {
                now += 250;
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let taken = places.take((random >> 24) as u8 & 0x7f, random >> 8, at(now));
                is_mine &= taken != own;
            }
            kept += u32::from(is_mine);
            if let Some(place) = own.filter(|_| is_mine) {
                places.leave(place);
            }
            now += 250;
        }
        assert!(kept > 700, "{kept} of 1000");
    }
}
