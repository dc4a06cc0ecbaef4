// SPDX-License-Identifier: GPL-2.0

//! Communication ids that nobody else can guess.
//!
//! A host that knows a communication id can try to end the connection. So the ids on the wire are a
//! counter's values under a permutation with a secret key: an id is used again only after all
//! others, and the ids that were seen tell nothing about the next one.

use crate::siphash;

/// The secret key of a permutation of the 32-bit numbers.
///
/// The permutation is a Feistel network of four rounds over 16-bit halves, with SipHash-1-3 as its
/// round function. With four rounds it is pseudorandom even to an attacker who may choose both ids
/// and numbers (Luby and Rackoff, 1988), within the birthday bound of its size.
#[derive(Copy, Clone)]
pub struct CommIdKey {
    key: [u64; 2],
}

const ROUNDS: [u64; 4] = [0, 1, 2, 3];

impl CommIdKey {
    /// Creates a permutation with a key of 128 random bits.
    pub const fn new(key: [u64; 2]) -> Self {
        Self { key }
    }

    /// Returns the id of a number.
    pub fn permute(&self, number: u32) -> u32 {
        let (mut left, mut right) = halves(number);
        for round in ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        join(left, right)
    }

    fn round(&self, round: u64, half: u16) -> u16 {
        let [.., a, b] = siphash13(&self.key, round << 16 | u64::from(half)).to_be_bytes();
        u16::from_be_bytes([a, b])
    }
}

fn halves(number: u32) -> (u16, u16) {
    let [a, b, c, d] = number.to_be_bytes();
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

fn join(left: u16, right: u16) -> u32 {
    u32::from(left) << 16 | u32::from(right)
}

/// Returns the [`siphash13`](siphash::siphash13) of the low three bytes of `word`, as a
/// little-endian message.
fn siphash13(key: &[u64; 2], word: u64) -> u64 {
    siphash::siphash13(key, &[], 3 << 56 | word & 0x00ff_ffff)
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_ids))]
mod tests {
    use super::*;

    const KEY: CommIdKey = CommIdKey::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);

    #[test]
    #[cfg(test)]
    fn round_function_is_that_of_the_standard_library() {
        use std::hash::{DefaultHasher, Hasher};

        for word in [0_u64, 1, 0x02_0100, 0xff_ffff] {
            // The SipHash-1-3 with the key 0.
            let mut reference = DefaultHasher::new();
            reference.write(&word.to_le_bytes()[..3]);
            assert_eq!(siphash13(&[0, 0], word), reference.finish());
        }
    }

    #[test]
    fn round_function_is_siphash() {
        // The value of another implementation, which has the vectors of the paper for SipHash-2-4.
        assert_eq!(siphash13(&KEY.key, 0x02_0100), 0x8bf8_0ab8_e7dd_f7fb);
    }

    /// Vectors of another implementation of the permutation and of the round function: the round
    /// function takes both the round and the half.
    #[test]
    fn ids_of_numbers() {
        for (number, id) in [
            (0x0000_0000, 0x5486_c9c1),
            (0x0000_0001, 0xfd8a_a96e),
            (0x0000_0002, 0x315e_c24c),
            (0x0001_0000, 0xff47_fc45),
            (0xdead_beef, 0x4e37_2973),
            (0xffff_ffff, 0xa1d2_13a8),
        ] {
            assert_eq!((number, KEY.permute(number)), (number, id));
        }
    }

    /// Returns the number of an id.
    fn number_of(key: &CommIdKey, id: u32) -> u32 {
        let (mut left, mut right) = halves(id);
        for round in ROUNDS.into_iter().rev() {
            (left, right) = (right ^ key.round(round, left), left);
        }
        join(left, right)
    }

    #[test]
    fn permutation_inverts() {
        for number in (0..100_000).chain(u32::MAX - 1000..=u32::MAX) {
            assert_eq!(number_of(&KEY, KEY.permute(number)), number);
        }
    }

    #[test]
    fn half_of_the_bits_change() {
        let other = CommIdKey::new([KEY.key[0] ^ 1, KEY.key[1]]);
        let count = 10_000;
        let (mut next, mut keyed) = (0, 0);
        for number in 0..count {
            let id = KEY.permute(number);
            next += (id ^ KEY.permute(number + 1)).count_ones();
            keyed += (id ^ other.permute(number)).count_ones();
        }
        for changed in [next, keyed] {
            let tenths = changed * 10 / count;
            assert!(tenths.abs_diff(160) <= 1);
        }
    }

    /// Number of ids that somebody has seen, and keys that they are tested with.
    #[cfg(test)]
    const SEEN: u32 = 100_000;
    #[cfg(test)]
    const KEYS: [[u64; 2]; 2] = [[0, 0], [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]];

    /// Tests that about half of `SEEN` trials have come out well: 50 +- 0.8 %, which is 5 standard
    /// deviations of as many tosses of a coin.
    #[cfg(test)]
    fn is_even(what: &str, well: u32) {
        let share = f64::from(well) / f64::from(SEEN);
        assert!((share - 0.5).abs() <= 0.008, "{what}: {share}");
    }

    /// A bit of each of `SEEN` words.
    #[cfg(test)]
    struct Column(Vec<u64>);

    #[cfg(test)]
    #[cfg(test)]
    impl Column {
        /// Returns the columns of the 32 bits of `words`.
        fn of(words: impl Iterator<Item = u32>) -> Vec<Self> {
            let mut columns: Vec<_> = (0..32).map(|_| Column(Vec::new())).collect();
            for (n, word) in words.enumerate() {
                for (bit, column) in columns.iter_mut().enumerate() {
                    if n % 64 == 0 {
                        column.0.push(0);
                    }
                    *column.0.last_mut().unwrap() |= u64::from(word >> bit & 1) << (n % 64);
                }
            }
            columns
        }

        fn ones(&self) -> u32 {
            self.0.iter().map(|word| word.count_ones()).sum()
        }

        /// Returns the number of words in which the bit differs from that of `other`.
        fn changes(&self, other: &Self) -> u32 {
            let pairs = self.0.iter().zip(&other.0);
            pairs.map(|(a, b)| (a ^ b).count_ones()).sum()
        }
    }

    /// Tests that each bit, and each two bits together, are even in `words`.
    #[cfg(test)]
    fn bits_are_even(what: &str, words: &[u32]) {
        let columns = Column::of(words.iter().copied());
        for (bit, column) in columns.iter().enumerate() {
            is_even(&format!("{what}: bit {bit}"), column.ones());
            for (of, other) in columns[..bit].iter().enumerate() {
                is_even(&format!("{what}: bits {bit}, {of}"), column.changes(other));
            }
        }
    }

    /// Tests that ids that were seen do not help to guess another one.
    #[test]
    #[cfg(test)]
    fn ids_that_were_seen_do_not_help() {
        for key in KEYS {
            let key = CommIdKey::new(key);
            // The ids of one counter, from its start and around the end of its half.
            for first in [0, 0x8000_0000 - SEEN / 2] {
                let id = |n: u32| key.permute(first.wrapping_add(n));
                let ids: Vec<u32> = (0..=SEEN).map(id).collect();
                let neighbours = || ids.windows(2).map(|pair| (pair[0], pair[1]));
                bits_are_even("ids", &ids[1..]);
                let changes: Vec<u32> = neighbours().map(|(a, b)| a ^ b).collect();
                bits_are_even("changes", &changes);
                let steps: Vec<u32> = neighbours().map(|(a, b)| b.wrapping_sub(a)).collect();
                bits_are_even("steps", &steps);
                // No bit of the id is one of the number, of which the lower ones differ.
                let numbers = Column::of((1..=SEEN).map(|n| first.wrapping_add(n)));
                for (bit, column) in Column::of(ids[1..].iter().copied()).iter().enumerate() {
                    for (of, number) in numbers[..16].iter().enumerate() {
                        let changes = column.changes(number);
                        is_even(&format!("bit {bit} of an id, {of} of its number"), changes);
                    }
                }
                // The next id is greater as often as not, also after one that was.
                let rises = neighbours().map(|(a, b)| a < b).collect::<Vec<_>>();
                is_even("order", rises.iter().filter(|rise| **rise).count() as u32);
                // In a third of all orders of three numbers, the second is between the other two.
                let turns = rises.windows(2).filter(|pair| pair[0] != pair[1]).count();
                let share = turns as f64 / f64::from(SEEN);
                assert!((share - 2.0 / 3.0).abs() <= 0.008, "turns: {share}");
                // As few steps come twice as of random numbers, of which it is 1.2 pairs.
                for mut words in [steps, changes] {
                    words.sort_unstable();
                    let twice = words.windows(2).filter(|pair| pair[0] == pair[1]).count();
                    assert!(twice <= 10, "{twice} steps come twice");
                }
                // No id comes twice.
                let mut sorted = ids;
                sorted.sort_unstable();
                assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
