// SPDX-License-Identifier: GPL-2.0

//! Copying of bytes.

/// Copies as much of `from` as fits to the start of `to`. Returns the number of bytes copied.
pub fn fill(to: &mut [u8], from: &[u8]) -> usize {
    let len = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        // Both have the length `len`, so that this does not panic.
        to.copy_from_slice(from);
    }
    len
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_bytes))]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_one_counts() {
        let mut to = [9; 4];
        assert_eq!(fill(&mut to, &[1, 2]), 2);
        assert_eq!(to, [1, 2, 9, 9]);
        assert_eq!(fill(&mut to, &[3, 4, 5, 6, 7]), 4);
        assert_eq!(to, [3, 4, 5, 6]);
        assert_eq!(fill(&mut to, &[]), 0);
        assert_eq!(fill(&mut [], &[1]), 0);
        assert_eq!(to, [3, 4, 5, 6]);
    }
}
