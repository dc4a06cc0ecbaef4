// SPDX-License-Identifier: GPL-2.0

//! Global identifiers (GIDs).

use core::fmt;
use core::net::Ipv6Addr;

/// A global identifier (IBTA 4.1.1), or an IPv6 address, in network byte order.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The zero GID, which is not assigned.
    pub const ZERO: Self = Self([0; 16]);

    /// Returns the GID of an IPv4 address: `::ffff:a.b.c.d` (IBTA annex A17.4.5.1).
    pub const fn from_v4(addr: [u8; 4]) -> Self {
        let [a, b, c, d] = addr;
        Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// Returns the subnet prefix, the upper half of the GID.
    pub const fn prefix(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }

    /// Returns the hash of the GID, of which the upper bits are the best.
    ///
    /// `key` is two random numbers of 64 bits; with small ones the upper bits of neighbours are
    /// equal. As long as nobody else knows them, two GIDs share the upper bits as often as two
    /// random ones do, even if an attacker chose the GIDs: the hash is a sum of products with odd
    /// numbers.
    pub const fn hash(&self, key: [u64; 2]) -> u64 {
        let bits = u128::from_be_bytes(self.0);
        let [upper, lower] = key;
        ((bits >> 64) as u64)
            .wrapping_mul(upper | 1)
            .wrapping_add((bits as u64).wrapping_mul(lower | 1))
    }

    /// Returns the upper byte of the [hash](Self::hash), one of 256 buckets.
    pub const fn bucket(&self, key: [u64; 2]) -> u8 {
        (self.hash(key) >> 56) as u8
    }

    /// Returns whether all bytes are zero.
    pub const fn is_zero(&self) -> bool {
        u128::from_be_bytes(self.0) == 0
    }

    /// Returns whether the GID is an IPv4-mapped one.
    pub const fn is_v4_mapped(&self) -> bool {
        u128::from_be_bytes(self.0) >> 32 == 0xffff
    }

    /// Returns the IPv4 address of an IPv4-mapped GID.
    pub const fn to_v4(&self) -> Option<[u8; 4]> {
        let [.., a, b, c, d] = self.0;
        if self.is_v4_mapped() {
            Some([a, b, c, d])
        } else {
            None
        }
    }

    /// Returns whether the GID is made from an Omni-Path LID: its interface id starts with the OUI
    /// 00:06:6a (C's `ib_is_opa_gid()`).
    pub const fn is_opa(&self) -> bool {
        matches!(self.0, [_, _, _, _, _, _, _, _, 0x00, 0x06, 0x6a, ..])
    }

    /// Returns the GID that Omni-Path makes from `lid`, with the subnet prefix of this GID. The
    /// interface id is the OUI 00:06:6a, a zero, and the LID, the high byte first (C's
    /// `OPA_MAKE_ID()`).
    pub const fn with_opa_lid(&self, lid: u32) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        let [l0, l1, l2, l3] = lid.to_be_bytes();
        Self([a, b, c, d, e, f, g, h, 0x00, 0x06, 0x6a, 0, l0, l1, l2, l3])
    }

    /// Returns the last four bytes as a number, the high byte first: the LID, if the GID [is made
    /// from one](Self::is_opa) (C's `opa_get_lid_from_gid()`).
    pub const fn opa_lid(&self) -> u32 {
        let [.., l0, l1, l2, l3] = self.0;
        u32::from_be_bytes([l0, l1, l2, l3])
    }

    /// Returns whether the GID is a link-local one: `fe80::/10`.
    pub const fn is_link_local(&self) -> bool {
        let [a, b, ..] = self.0;
        a == 0xfe && b & 0xc0 == 0x80
    }

    /// Returns whether the GID is a multicast one: `ff00::/8`.
    pub const fn is_multicast(&self) -> bool {
        self.multicast_scope().is_some()
    }

    /// Returns the scope of a multicast GID, 4 bits: 1 is interface-local, 2 link-local. Returns
    /// `None` for a unicast GID.
    pub const fn multicast_scope(&self) -> Option<u8> {
        match self.0 {
            [0xff, flags_and_scope, ..] => Some(flags_and_scope & 0x0f),
            _ => None,
        }
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Ipv6Addr::from(self.0), f)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_gid))]
mod tests {
    use super::*;

    const KEYS: [[u64; 2]; 2] = [
        [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344],
        [0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89],
    ];

    /// Families of GIDs that differ in the upper half, in the lower half, or in both in the same
    /// way.
    fn families() -> [fn(u64) -> Gid; 3] {
        fn gid(upper: u64, lower: u64) -> Gid {
            Gid(((u128::from(upper) << 64) | u128::from(lower)).to_be_bytes())
        }
        [|n| gid(n, 7), |n| gid(7, n), |n| gid(n, n)]
    }

    #[test]
    fn buckets_are_filled_evenly() {
        for family in families() {
            for key in KEYS {
                let mut filled = [0u16; 256];
                for n in 0..4096 {
                    filled[usize::from(family(n).bucket(key))] += 1;
                }
                assert!(filled.iter().all(|n| *n < 4 * 16));
            }
        }
    }

    #[test]
    fn a_bucket_is_the_upper_byte_of_a_sum() {
        let gid = |upper: u64, lower: u64| {
            Gid((u128::from(upper) << 64 | u128::from(lower)).to_be_bytes())
        };
        // Even keys become odd ones, and odd keys stay what they are.
        for key in [[2, 4], [3, 5]] {
            assert_eq!(gid(1 << 56, 0).bucket(key), 3);
            assert_eq!(gid(0, 1 << 56).bucket(key), 5);
            assert_eq!(gid(1 << 56, 1 << 56).bucket(key), 8);
            assert_eq!(gid(0x40 << 56, 0x40 << 56).bucket(key), 0);
        }
    }

    #[test]
    fn what_shares_a_bucket_depends_on_the_key() {
        for family in families() {
            let [one, two] = KEYS;
            let first = family(0);
            let together = |n: &u64| family(*n).bucket(one) == first.bucket(one);
            let apart = |n: u64| family(n).bucket(two) != first.bucket(two);
            assert!((1..4096).filter(together).count() > 4);
            assert!((1..4096).filter(together).any(apart));
        }
    }

    #[test]
    fn subnets() {
        let gid = Gid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(gid.prefix(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn ten_bits_are_link_local() {
        for (start, link_local) in [
            (0xfe7f_u16, false),
            (0xfe80, true),
            (0xfebf, true),
            (0xfec0, false),
            (0xff80, false),
            (0x7e80, false),
        ] {
            let gid = Gid((u128::from(start) << 112 | 1).to_be_bytes());
            assert_eq!((start, gid.is_link_local()), (start, link_local));
        }
    }

    #[test]
    fn omni_path_gids_have_a_lid() {
        let gid = Gid([0xfe; 16]);
        assert!(!gid.is_opa());
        let made = gid.with_opa_lid(0x0012_3456);
        assert_eq!(made.prefix(), gid.prefix());
        // OPA_SPECIAL_OUI << 40 | LID, as the bytes lie in memory.
        assert_eq!(
            made.0[8..],
            (0x0000_066a_u64 << 40 | 0x0012_3456).to_be_bytes()
        );
        assert!(made.is_opa());
        assert_eq!(made.opa_lid(), 0x0012_3456);
        assert_eq!(gid.with_opa_lid(u32::MAX).opa_lid(), u32::MAX);
        // Only the first three bytes of the interface id say it.
        let mut other = made;
        other.0[11] = 0xff;
        assert!(other.is_opa());
        assert_eq!(other.opa_lid(), 0x0012_3456);
        other.0[10] = 0x6b;
        assert!(!other.is_opa());
    }

    #[test]
    fn groups_begin_with_ones() {
        assert!(Gid([0xff; 16]).is_multicast() && !Gid([0xfe; 16]).is_multicast());
    }
}
