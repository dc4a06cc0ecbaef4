// SPDX-License-Identifier: GPL-2.0

//! The choice of an ephemeral port.
//!
//! A port that nobody owns is chosen if there is one; it is found by counting, and not by a walk
//! over the owned ones. If there is none, a port is shared with owners whose connections can be
//! told apart ([`crate::bind::is_unique`]). These ports differ from owner to owner, so that some
//! are tried at random.

/// The most ports that are tried for one to share.
const TRIES: u32 = 32;

/// The range of ephemeral ports (`net.ipv4.ip_local_port_range`).
///
/// # Invariants
///
/// `low` is not greater than `high`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EphemeralRange {
    low: u16,
    high: u16,
}

impl EphemeralRange {
    /// Creates the range from `low` to `high`, both included. Returns `None` if it is empty.
    pub const fn new(low: u16, high: u16) -> Option<Self> {
        if low > high {
            return None;
        }
        // INVARIANT: This was just checked.
        Some(Self { low, high })
    }

    /// Returns the number of ports, up to 2^16.
    fn count(self) -> u32 {
        u32::from(self.high.abs_diff(self.low)).saturating_add(1)
    }

    /// Returns the port that is `skip` ports behind `port`. The first port follows the last one.
    fn skip(self, port: u16, skip: u32) -> u16 {
        let at = u32::from(port.saturating_sub(self.low)).saturating_add(skip);
        // The remainder is below 2^16, so that the conversion cannot fail.
        let at = at
            .checked_rem(self.count())
            .and_then(|at| u16::try_from(at).ok());
        self.low.saturating_add(at.unwrap_or(0))
    }

    /// Returns the port that the random number `random` chooses.
    fn choose(self, random: u32) -> u16 {
        // Scales the number to the range from 0 to the count.
        let skip = u64::from(random).wrapping_mul(u64::from(self.count())) >> 32;
        self.skip(self.low, u32::try_from(skip).unwrap_or(0))
    }

    /// Returns a port that nobody owns: the first one upwards from the port that the random number
    /// `random` chooses, where the first port follows the last one. The port `last_used` comes
    /// last.
    ///
    /// `is_owned` returns whether a port has an owner, and `owned` returns the number of owned
    /// ports from one to before another one. Each is called a few times if the chosen port is
    /// owned; if it is not, only `is_owned` is called, once.
    pub fn free(
        self,
        random: u32,
        last_used: Option<u16>,
        is_owned: impl Fn(u16) -> bool,
        owned: impl Fn(u32, u32) -> usize,
    ) -> Option<u16> {
        let free_from = |start: u16| {
            if !is_owned(start) {
                return Some(start);
            }
            first_free(start, self.high, &owned).or_else(|| {
                let before = start.checked_sub(1).filter(|before| *before >= self.low)?;
                first_free(self.low, before, &owned)
            })
        };
        let found = free_from(self.choose(random))?;
        if Some(found) != last_used {
            return Some(found);
        }
        free_from(self.skip(found, 1))
    }

    /// Returns the ports to try for one that can be shared, if each has an owner: all if they are
    /// few, else some that the random number `random` chooses.
    pub fn tries(self, random: u32) -> impl Iterator<Item = u16> {
        let mut state = random;
        (0..self.count().min(TRIES)).map(move |n| {
            if self.count() <= TRIES {
                return self.skip(self.low, n);
            }
            // A linear congruential generator, of which the high bits are used.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            self.choose(state)
        })
    }
}

/// Returns the first port from `first` to `last` that nobody owns.
fn first_free(first: u16, last: u16, owned: &impl Fn(u32, u32) -> usize) -> Option<u16> {
    let start = u32::from(first);
    // Returns whether each port from the first one to before `end` has an owner.
    let are_owned = |end: u32| {
        let count = u32::try_from(owned(start, end));
        count.is_ok_and(|count| count == end.saturating_sub(start))
    };
    let (mut low, mut high) = (start, u32::from(last).saturating_add(1));
    if are_owned(high) {
        return None;
    }
    // All before `low` have an owner, but one of those before `high` has none.
    while high.saturating_sub(low) > 1 {
        let middle = low.midpoint(high);
        if are_owned(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    u16::try_from(low).ok()
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ephemeral)
)]
mod tests {
    use super::*;

    fn range(low: u16, high: u16) -> EphemeralRange {
        EphemeralRange::new(low, high).unwrap()
    }

    #[test]
    fn an_empty_range_is_none() {
        assert_eq!(EphemeralRange::new(5, 4), None);
        assert!(EphemeralRange::new(5, 5).is_some());
    }

    #[test]
    fn the_random_number_chooses_the_port() {
        for (low, high) in [(32768, 60999), (1, 1), (0, 65535), (65530, 65535)] {
            let range = range(low, high);
            let free = |random| range.free(random, None, |_| false, |_, _| 0);
            assert_eq!((free(0), free(u32::MAX)), (Some(low), Some(high)));
            let middle = free(0x8000_0000).unwrap();
            assert_eq!(u32::from(middle - low), (u32::from(high - low) + 1) / 2);
        }
    }

    #[test]
    fn the_last_port_comes_last() {
        let range = range(10, 12);
        let free = |random, last, is_free: fn(u16) -> bool| {
            let is_owned = |port| !is_free(port);
            let owned = |from: u32, to: u32| {
                let ports = from as u16..to as u16;
                ports.filter(|port| is_owned(*port)).count()
            };
            range.free(random, Some(last), is_owned, owned)
        };
        assert_eq!(free(0, 10, |_| true), Some(11));
        assert_eq!(free(u32::MAX, 12, |_| true), Some(10));
        assert_eq!(free(0, 12, |port| port == 12), Some(12));
        assert_eq!(free(u32::MAX, 12, |port| port == 12), Some(12));
        assert_eq!(free(0, 12, |_| false), None);
    }
}

#[cfg(test)]
mod search {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    /// The simple rule: each port is looked at, one after the other.
    fn simple(
        range: EphemeralRange,
        random: u32,
        last_used: Option<u16>,
        owned: &BTreeSet<u16>,
    ) -> Option<u16> {
        let count = u64::from(range.high - range.low) + 1;
        let start = range.low + u16::try_from((u64::from(random) * count) >> 32).unwrap();
        let ports = || (start..=range.high).chain(range.low..start);
        let mut free = ports().filter(|port| !owned.contains(port));
        let other = free.find(|port| Some(*port) != last_used);
        other.or_else(|| ports().find(|port| !owned.contains(port)))
    }

    proptest! {
        #[test]
        fn finds_what_a_walk_finds(
            low in 0..60_000_u16,
            length in 0..40_u16,
            random in any::<u32>(),
            last_used in prop::option::of(0..42_u16),
            owned in prop::collection::btree_set(0..42_u16, 0..42),
        ) {
            // The owned ports include some on either side of the range.
            let low = low + 1;
            let range = EphemeralRange::new(low, low + length).unwrap();
            let last_used = last_used.map(|port| low - 1 + port);
            let owned: BTreeSet<_> = owned.into_iter().map(|port| low - 1 + port).collect();
            let is_owned = |port| owned.contains(&port);
            let count = |from, to| {
                let ports = owned.iter().map(|port| u32::from(*port));
                ports.filter(|port| (from..to).contains(port)).count()
            };
            let found = range.free(random, last_used, is_owned, count);
            prop_assert_eq!(found, simple(range, random, last_used, &owned));
        }

        #[test]
        fn tries_all_of_few_ports(
            low in any::<u16>(),
            length in 0..64_u16,
            random in any::<u32>(),
        ) {
            let high = low.saturating_add(length);
            let range = EphemeralRange::new(low, high).unwrap();
            let tried: Vec<_> = range.tries(random).collect();
            prop_assert!(tried.iter().all(|port| (low..=high).contains(port)));
            if range.count() <= TRIES {
                prop_assert!(tried.into_iter().eq(low..=high));
            } else {
                prop_assert_eq!(tried.len(), TRIES as usize);
            }
        }
    }

    /// The number of looks at the table is that of the property: few, however many ports there
    /// are.
    #[test]
    fn looks_are_few() {
        use core::cell::Cell;
        let range = EphemeralRange::new(0, 65535).unwrap();
        for random in [0, 1 << 20, u32::MAX] {
            for free in [0, 1, 777, 65535, 65536] {
                let looks = Cell::new(0);
                let look = || looks.set(looks.get() + 1);
                let is_owned = |port| {
                    look();
                    u32::from(port) != free
                };
                let owned = |from, to: u32| {
                    look();
                    (to - from - u32::from((from..to).contains(&free))) as usize
                };
                let found = range.free(random, None, is_owned, owned);
                assert_eq!(found, u16::try_from(free).ok());
                assert!(looks.get() <= 40, "{}", looks.get());
            }
        }
    }
}
