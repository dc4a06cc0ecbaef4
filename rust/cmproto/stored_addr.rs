// SPDX-License-Identifier: GPL-2.0

//! Socket addresses that are kept in C's layout. A reader reads only those words of one that it
//! needs.

use crate::{
    addr::{Gid, SockAddr, AF_IB, AF_INET, AF_INET6},
    service_id::{PortSpace, ServiceId},
};

/// Returns the bytes of an IPv6 address or a GID, whose native-endian words these are.
#[inline]
fn join([high, low]: [u64; 2]) -> [u8; 16] {
    // The compiler makes two moves of this, and sixteen of single bytes.
    let [high, low] = [high, low].map(|word| u128::from(u64::from_be(word)));
    (high << 64 | low).to_be_bytes()
}

/// A socket address as [`SockAddr::to_words`] returns it.
pub trait StoredAddr {
    /// Returns a word of the address; `index` is less than [`SockAddr::MAX_WORDS`].
    fn word(&self, index: usize) -> u64;

    /// Returns the address family.
    #[inline]
    fn family(&self) -> u16 {
        let [f0, f1, ..] = self.word(0).to_ne_bytes();
        u16::from_ne_bytes([f0, f1])
    }

    /// Returns the GID of the address on RoCE, like [`SockAddr::to_gid`].
    #[inline]
    fn to_gid(&self) -> Gid {
        match self.family() {
            AF_INET => {
                let [_, _, _, _, addr @ ..] = self.word(0).to_ne_bytes();
                Gid::from_v4(addr)
            }
            AF_INET6 | AF_IB => Gid(join([self.word(1), self.word(2)])),
            _ => Gid::ZERO,
        }
    }

    /// Returns the service id of the address, like [`ServiceId::of_address`].
    #[inline]
    fn service_id(&self, ps: PortSpace) -> ServiceId {
        if self.family() == AF_IB {
            return ServiceId(u64::from_be(self.word(3)));
        }
        // No address is all zeros.
        let [_, _, p0, p1, ..] = self.word(0).to_ne_bytes();
        ServiceId::from_ip(ps, u16::from_be_bytes([p0, p1]))
    }

    /// Returns the address. One of an unknown family is no address.
    fn read(&self) -> SockAddr {
        let [f0, f1, p0, p1, rest @ ..] = self.word(0).to_ne_bytes();
        let port = u16::from_be_bytes([p0, p1]);
        match u16::from_ne_bytes([f0, f1]) {
            AF_INET => SockAddr::v4(rest, port),
            AF_INET6 => {
                let [s0, s1, s2, s3, ..] = self.word(3).to_ne_bytes();
                SockAddr::V6 {
                    addr: join([self.word(1), self.word(2)]),
                    port,
                    flowinfo: u32::from_be_bytes(rest),
                    scope_id: u32::from_ne_bytes([s0, s1, s2, s3]),
                }
            }
            AF_IB => SockAddr::Ib {
                pkey: port,
                flowinfo: u32::from_be_bytes(rest),
                gid: Gid(join([self.word(1), self.word(2)])),
                sid: u64::from_be(self.word(3)),
                sid_mask: u64::from_be(self.word(4)),
                scope_id: self.word(5),
            },
            _ => SockAddr::Unspec,
        }
    }
}

impl StoredAddr for [u64; SockAddr::MAX_WORDS] {
    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.get(index).copied().unwrap_or(0)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_stored_addr)
)]
mod tests {
    use super::*;

    const EACH: [SockAddr; 4] = [
        SockAddr::Unspec,
        SockAddr::v4([10, 1, 2, 3], 0x1234),
        SockAddr::V6 {
            addr: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
            port: 0x1234,
            flowinfo: 0x0102_0304,
            scope_id: 0x0506_0708,
        },
        SockAddr::Ib {
            pkey: 0x8001,
            flowinfo: 0x0102_0304,
            gid: Gid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
            sid: 0x0102_0304_0506_0708,
            sid_mask: 0x1112_1314_1516_1718,
            scope_id: 0x2122_2324_2526_2728,
        },
    ];

    #[test]
    fn what_is_read_is_what_was_stored() {
        for addr in EACH {
            let stored = addr.to_words();
            assert_eq!(stored.read(), addr);
            assert_eq!(stored.family(), addr.family());
            assert_eq!(stored.to_gid(), addr.to_gid());
            for ps in [PortSpace::Tcp, PortSpace::Udp, PortSpace::Ib] {
                assert_eq!(stored.service_id(ps), ServiceId::of_address(ps, &addr));
            }
        }
    }

    #[test]
    fn unknown_family_is_no_address() {
        let stored = [u64::MAX; SockAddr::MAX_WORDS];
        assert_eq!(stored.read(), SockAddr::Unspec);
        assert_eq!(stored.to_gid(), Gid::ZERO);
    }

    #[test]
    fn word_behind_the_address_is_zero() {
        assert_eq!([u64::MAX; SockAddr::MAX_WORDS].word(SockAddr::MAX_WORDS), 0);
    }
}
