// SPDX-License-Identifier: GPL-2.0

//! A hash that nobody can foresee without its key.

/// Returns the SipHash-1-3 of a message of whole words and of the word that ends it, which has the
/// length of the message in its upper byte.
///
/// It is the variant of SipHash (Aumasson and Bernstein, 2012) with the fewest rounds for which no
/// attack is known. The kernel's `hsiphash()` is the same on 64-bit machines. It suffices where
/// only a part of the hash, or only a choice that depends on it, is ever seen.
#[inline]
pub(crate) fn siphash13(key: &[u64; 2], words: &[u64], end: u64) -> u64 {
    siphash::<1, 3>(key, words, end)
}

/// Returns the SipHash with `C` rounds for each word of the message, and `D` rounds at the end.
#[inline]
fn siphash<const C: usize, const D: usize>(key: &[u64; 2], words: &[u64], end: u64) -> u64 {
    let [k0, k1] = *key;
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    for word in words {
        state = compress::<C>(state, *word);
    }
    state = compress::<C>(state, end);
    let [_, _, v2, _] = &mut state;
    *v2 ^= 0xff;
    let [v0, v1, v2, v3] = sip_rounds::<D>(state);
    v0 ^ v1 ^ v2 ^ v3
}

fn compress<const C: usize>(mut state: [u64; 4], word: u64) -> [u64; 4] {
    let [_, _, _, v3] = &mut state;
    *v3 ^= word;
    state = sip_rounds::<C>(state);
    let [v0, ..] = &mut state;
    *v0 ^= word;
    state
}

fn sip_rounds<const N: usize>(mut state: [u64; 4]) -> [u64; 4] {
    for _ in 0..N {
        state = sip_round(state);
    }
    state
}

fn sip_round([mut v0, mut v1, mut v2, mut v3]: [u64; 4]) -> [u64; 4] {
    v0 = v0.wrapping_add(v1);
    v1 = v1.rotate_left(13) ^ v0;
    v0 = v0.rotate_left(32);
    v2 = v2.wrapping_add(v3);
    v3 = v3.rotate_left(16) ^ v2;
    v0 = v0.wrapping_add(v3);
    v3 = v3.rotate_left(21) ^ v0;
    v2 = v2.wrapping_add(v1);
    v1 = v1.rotate_left(17) ^ v2;
    v2 = v2.rotate_left(32);
    [v0, v1, v2, v3]
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::hash::{DefaultHasher, Hasher};

    const WORDS: [u64; 3] = [1, u64::MAX, 0x0123_4567_89ab_cdef];

    /// Compares hashes of messages of up to three words.
    fn is_that_of(
        mut reference: impl FnMut() -> Box<dyn Hasher>,
        hash: impl Fn(&[u64], u64) -> u64,
    ) {
        for count in 0..=WORDS.len() {
            let mut reference = reference();
            for word in &WORDS[..count] {
                reference.write(&word.to_le_bytes());
            }
            let end = (8 * count as u64) << 56;
            assert_eq!(hash(&WORDS[..count], end), reference.finish());
        }
    }

    /// The standard library has SipHash-2-4 with any key, and SipHash-1-3 with the key 0.
    #[test]
    #[allow(deprecated)]
    fn as_the_standard_library_does() {
        use std::hash::SipHasher;

        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        is_that_of(
            || Box::new(SipHasher::new_with_keys(key[0], key[1])),
            |words, end| siphash::<2, 4>(&key, words, end),
        );
        is_that_of(
            || Box::new(DefaultHasher::new()),
            |words, end| siphash13(&[0, 0], words, end),
        );
    }
}
