// SPDX-License-Identifier: GPL-2.0

//! A hash that nobody can foresee without its key.

/// Returns the SipHash-2-4 (Aumasson and Bernstein, 2012) of a message of whole words and of the
/// word that ends it, which has the length of the message in its upper byte.
#[inline]
pub(crate) fn siphash24(key: &[u64; 2], words: &[u64], end: u64) -> u64 {
    let [k0, k1] = *key;
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    for word in words {
        state = compress(state, *word);
    }
    state = compress(state, end);
    let [_, _, v2, _] = &mut state;
    *v2 ^= 0xff;
    let [v0, v1, v2, v3] = sip_round(sip_round(sip_round(sip_round(state))));
    v0 ^ v1 ^ v2 ^ v3
}

fn compress(mut state: [u64; 4], word: u64) -> [u64; 4] {
    let [_, _, _, v3] = &mut state;
    *v3 ^= word;
    state = sip_round(sip_round(state));
    let [v0, ..] = &mut state;
    *v0 ^= word;
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

    #[test]
    #[allow(deprecated)]
    fn as_the_standard_library_does() {
        use std::hash::{Hasher, SipHasher};

        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let words = [1_u64, u64::MAX, 0x0123_4567_89ab_cdef];
        for count in 0..=words.len() {
            let mut reference = SipHasher::new_with_keys(key[0], key[1]);
            for word in &words[..count] {
                reference.write(&word.to_le_bytes());
            }
            let end = (8 * count as u64) << 56;
            assert_eq!(siphash24(&key, &words[..count], end), reference.finish());
        }
    }
}
