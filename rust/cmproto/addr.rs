// SPDX-License-Identifier: GPL-2.0

//! The socket addresses of an endpoint: IPv4, IPv6 and native InfiniBand addresses. For GIDs, see
//! [`crate::gid`].

use crate::bytes::fill;
use crate::errno::Errno;
pub use crate::gid::Gid;
use crate::wire::field::{Bytes, Field};

/// The address family `AF_UNSPEC`: no address.
pub const AF_UNSPEC: u16 = 0;
/// The address family `AF_INET`.
pub const AF_INET: u16 = 2;
/// The address family `AF_INET6`.
pub const AF_INET6: u16 = 10;
/// The address family `AF_IB`.
pub const AF_IB: u16 = 27;

/// Size of `struct sockaddr_storage`, in bytes.
pub const STORAGE_LEN: usize = 128;

/// A socket address, as `struct sockaddr_storage` carries it.
///
/// Ports, keys and service ids are in host byte order, addresses in network byte order.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum SockAddr {
    /// The address is unspecified (`AF_UNSPEC`).
    #[default]
    Unspec,
    /// IPv4 (`struct sockaddr_in`).
    V4 {
        /// The address.
        addr: [u8; 4],
        /// The port.
        port: u16,
    },
    /// IPv6 (`struct sockaddr_in6`).
    V6 {
        /// The address.
        addr: [u8; 16],
        /// The port.
        port: u16,
        /// Traffic class (bits 27 to 20) and flow label (bits 19 to 0).
        flowinfo: u32,
        /// Index of the interface that a link-local address belongs to; 0 if none is given.
        scope_id: u32,
    },
    /// InfiniBand (`struct sockaddr_ib`).
    Ib {
        /// P_Key.
        pkey: u16,
        /// Traffic class and flow label, as for IPv6.
        flowinfo: u32,
        /// The GID.
        gid: Gid,
        /// Service id.
        sid: u64,
        /// The bits of `sid` that are significant.
        sid_mask: u64,
        /// Scope, not interpreted.
        scope_id: u64,
    },
}

/// Size of the words of [`SockAddr::to_words`], in bytes.
const WORD_LEN: usize = size_of::<u64>();

/// Returns the two native-endian words that hold the bytes of an IPv6 address or a GID.
#[inline]
fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let [b0, b1, b2, b3, b4, b5, b6, b7, low @ ..] = bytes;
    [
        u64::from_ne_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        u64::from_ne_bytes(low),
    ]
}

impl SockAddr {
    /// Creates an IPv4 address.
    pub const fn v4(addr: [u8; 4], port: u16) -> Self {
        Self::V4 { addr, port }
    }

    /// Creates an IPv6 address without flow label and scope.
    pub const fn v6(addr: [u8; 16], port: u16) -> Self {
        Self::V6 {
            addr,
            port,
            flowinfo: 0,
            scope_id: 0,
        }
    }

    /// Creates a native address without flow information, scope and mask of the service id.
    pub const fn ib(pkey: u16, gid: Gid, sid: u64) -> Self {
        Self::Ib {
            pkey,
            flowinfo: 0,
            gid,
            sid,
            sid_mask: 0,
            scope_id: 0,
        }
    }

    /// The size of the largest socket address, 48 bytes.
    pub const MAX_LEN: usize = Self::len_of_family(AF_IB);
    /// The size of the largest socket address, in words.
    pub const MAX_WORDS: usize = Self::MAX_LEN / WORD_LEN;

    /// Returns the size of a socket address of `family` in bytes: 16, 28 or 48, or 0 for any other
    /// family (C's `rdma_addr_size()`).
    pub const fn len_of_family(family: u16) -> usize {
        match family {
            AF_INET => 16,
            AF_INET6 => 28,
            AF_IB => 48,
            _ => 0,
        }
    }

    /// Returns the address family: 0, 2, 10 or 27.
    pub const fn family(&self) -> u16 {
        match self {
            Self::Unspec => AF_UNSPEC,
            Self::V4 { .. } => AF_INET,
            Self::V6 { .. } => AF_INET6,
            Self::Ib { .. } => AF_IB,
        }
    }

    /// Returns the size of the socket address in bytes, 0 for no address.
    #[allow(clippy::len_without_is_empty)] // The size of a C struct, not of a collection.
    pub const fn len(&self) -> usize {
        Self::len_of_family(self.family())
    }

    /// Returns whether there is no address at all, not even a wildcard.
    pub const fn is_unspec(&self) -> bool {
        matches!(self, Self::Unspec)
    }

    /// Reads a socket address in C's layout. Bytes behind it are ignored.
    ///
    /// # Errors
    ///
    /// [`Errno::EAFNOSUPPORT`] for an unknown family, [`Errno::EINVAL`] if `bytes` is too short.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Errno> {
        let (family, _) = bytes.split_first_chunk().ok_or(Errno::EINVAL)?;
        match u16::from_ne_bytes(*family) {
            AF_UNSPEC => Ok(Self::Unspec),
            AF_INET => bytes.first_chunk().map(Self::from_in).ok_or(Errno::EINVAL),
            AF_INET6 => bytes.first_chunk().map(Self::from_in6).ok_or(Errno::EINVAL),
            AF_IB => bytes.first_chunk().map(Self::from_ib).ok_or(Errno::EINVAL),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }

    fn from_in(bytes: &[u8; 16]) -> Self {
        let [_, _, p0, p1, a, b, c, d, ..] = *bytes;
        Self::v4([a, b, c, d], u16::from_be_bytes([p0, p1]))
    }

    fn from_in6(bytes: &[u8; 28]) -> Self {
        let [_, _, p0, p1, f0, f1, f2, f3, addr @ .., s0, s1, s2, s3] = *bytes;
        Self::V6 {
            addr,
            port: u16::from_be_bytes([p0, p1]),
            flowinfo: u32::from_be_bytes([f0, f1, f2, f3]),
            scope_id: u32::from_ne_bytes([s0, s1, s2, s3]),
        }
    }

    fn from_ib(bytes: &[u8; 48]) -> Self {
        let [.., s0, s1, s2, s3, s4, s5, s6, s7] = *bytes;
        Self::Ib {
            pkey: Field::<u16, 2, 0, 16>::get(bytes),
            flowinfo: Field::<u32, 4, 0, 32>::get(bytes),
            gid: Gid(*Bytes::<8, 16>::get(bytes)),
            sid: Field::<u64, 24, 0, 64>::get(bytes),
            sid_mask: Field::<u64, 32, 0, 64>::get(bytes),
            scope_id: u64::from_ne_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
        }
    }

    /// Returns the address in C's layout, followed by zeros. The rest of a [`STORAGE_LEN`] is zero
    /// for every address.
    pub fn to_bytes(&self) -> [u8; Self::MAX_LEN] {
        let mut bytes = [0; Self::MAX_LEN];
        for (to, word) in bytes.chunks_exact_mut(WORD_LEN).zip(self.to_words()) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Returns the address like [`to_bytes`](Self::to_bytes), as native-endian words, to which C
    /// aligns a structure with an address. See [`StoredAddr`](crate::stored_addr::StoredAddr).
    #[inline]
    pub fn to_words(&self) -> [u64; Self::MAX_WORDS] {
        let word = u64::from_ne_bytes;
        let [f0, f1] = self.family().to_ne_bytes();
        match *self {
            Self::Unspec => [word([f0, f1, 0, 0, 0, 0, 0, 0]), 0, 0, 0, 0, 0],
            Self::V4 { addr, port } => {
                let ([p0, p1], [a, b, c, d]) = (port.to_be_bytes(), addr);
                [word([f0, f1, p0, p1, a, b, c, d]), 0, 0, 0, 0, 0]
            }
            Self::V6 {
                addr,
                port,
                flowinfo,
                scope_id,
            } => {
                let ([p0, p1], [l0, l1, l2, l3]) = (port.to_be_bytes(), flowinfo.to_be_bytes());
                let ([high, low], [s0, s1, s2, s3]) = (halves(addr), scope_id.to_ne_bytes());
                let scope = word([s0, s1, s2, s3, 0, 0, 0, 0]);
                let first = word([f0, f1, p0, p1, l0, l1, l2, l3]);
                [first, high, low, scope, 0, 0]
            }
            Self::Ib {
                pkey,
                flowinfo,
                gid,
                sid,
                sid_mask,
                scope_id,
            } => {
                let ([p0, p1], [l0, l1, l2, l3]) = (pkey.to_be_bytes(), flowinfo.to_be_bytes());
                let first = word([f0, f1, p0, p1, l0, l1, l2, l3]);
                let [high, low] = halves(gid.0);
                [first, high, low, sid.to_be(), sid_mask.to_be(), scope_id]
            }
        }
    }

    /// Returns the address in C's layout, followed by zeros up to the size of a `struct
    /// sockaddr_storage`.
    pub fn to_storage(&self) -> [u8; STORAGE_LEN] {
        let mut storage = [0; STORAGE_LEN];
        fill(&mut storage, &self.to_bytes());
        storage
    }

    /// Returns whether this is a wildcard: `0.0.0.0`, `::` or the zero GID.
    /// [`Unspec`](Self::Unspec) is not.
    pub const fn is_any(&self) -> bool {
        match self {
            Self::Unspec => false,
            Self::V4 { addr, .. } => u32::from_be_bytes(*addr) == 0,
            Self::V6 { addr, .. } => u128::from_be_bytes(*addr) == 0,
            Self::Ib { gid, .. } => gid.is_zero(),
        }
    }

    /// Returns whether this is a loopback address: `127.0.0.0/8`, `::1` or the GID `::1`.
    pub const fn is_loopback(&self) -> bool {
        match self {
            Self::Unspec => false,
            Self::V4 { addr: [a, ..], .. } => *a == 127,
            Self::V6 { addr, .. } => u128::from_be_bytes(*addr) == 1,
            Self::Ib { gid, .. } => u128::from_be_bytes(gid.0) == 1,
        }
    }

    /// Returns whether the address counts as a wildcard when binding and matching, as a loopback
    /// address does, too (C's `cma_any_addr()`).
    pub const fn is_any_or_loopback(&self) -> bool {
        self.is_any() || self.is_loopback()
    }

    /// Returns whether this is an IPv6 address that needs a scope: a link-local one (`fe80::/10`),
    /// or a multicast group of link-local scope (`ff02::`, `ff12::` and the like).
    pub const fn is_link_local_v6(&self) -> bool {
        match self {
            Self::V6 { addr, .. } => {
                let gid = Gid(*addr);
                gid.is_link_local() || matches!(gid.multicast_scope(), Some(2))
            }
            _ => false,
        }
    }

    /// Returns the interface index in the scope of an IPv6 address whose meaning may differ between
    /// interfaces: a link-local address, or a multicast group of link-local or interface-local
    /// (`ff01::`) scope. Returns 0 if no interface is given, and for other addresses.
    pub const fn interface(&self) -> u32 {
        match self {
            Self::V6 { addr, scope_id, .. }
                if self.is_link_local_v6() || matches!(Gid(*addr).multicast_scope(), Some(1)) =>
            {
                *scope_id
            }
            _ => 0,
        }
    }

    /// Returns whether both are the same address, whatever the port: family and bytes are equal,
    /// and for IPv6 link-local addresses the scope, too.
    pub fn same_address(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unspec, Self::Unspec) => true,
            (Self::V4 { addr: a, .. }, Self::V4 { addr: b, .. }) => a == b,
            (
                Self::V6 {
                    addr: a,
                    scope_id: sa,
                    ..
                },
                Self::V6 {
                    addr: b,
                    scope_id: sb,
                    ..
                },
            ) => a == b && (!other.is_link_local_v6() || sa == sb),
            (Self::Ib { gid: a, .. }, Self::Ib { gid: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Returns the wildcard of the same family, with port 0.
    pub const fn wildcard(&self) -> Self {
        match self {
            Self::Unspec => Self::Unspec,
            Self::V4 { .. } => Self::v4([0; 4], 0),
            Self::V6 { .. } => Self::v6([0; 16], 0),
            Self::Ib { .. } => Self::ib(0, Gid::ZERO, 0),
        }
    }

    /// Returns the port, in host order. The port of an InfiniBand address is the low 16 bits of the
    /// service id under its mask.
    pub const fn port(&self) -> u16 {
        match self {
            Self::Unspec => 0,
            Self::V4 { port, .. } | Self::V6 { port, .. } => *port,
            Self::Ib { sid, sid_mask, .. } => {
                let [.., high, low] = (*sid & *sid_mask).to_be_bytes();
                u16::from_be_bytes([high, low])
            }
        }
    }

    /// Returns the address with another port. In an InfiniBand address, the port is added to the
    /// significant bits of the service id, all of which are significant then, as when C binds.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        let mut new = *self;
        match &mut new {
            Self::Unspec => (),
            Self::V4 { port: p, .. } | Self::V6 { port: p, .. } => *p = port,
            Self::Ib { sid, sid_mask, .. } => {
                *sid = (*sid & *sid_mask) | u64::from(port);
                *sid_mask = u64::MAX;
            }
        }
        new
    }

    /// Returns the GID of the address on RoCE; zero for no address.
    pub const fn to_gid(&self) -> Gid {
        match self {
            Self::Unspec => Gid::ZERO,
            Self::V4 { addr, .. } => Gid::from_v4(*addr),
            Self::V6 { addr, .. } => Gid(*addr),
            Self::Ib { gid, .. } => *gid,
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_addr))]
mod tests {
    use super::*;
    use crate::testing::text;

    const V4: SockAddr = SockAddr::v4([10, 1, 2, 3], 0x1234);
    const V6: SockAddr = v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], 3);
    const IB: SockAddr = SockAddr::Ib {
        pkey: 0x8001,
        flowinfo: 0x0fa1_b2c3,
        gid: Gid([7; 16]),
        sid: 0x0000_0000_0106_1234,
        sid_mask: u64::MAX,
        scope_id: 0x0102_0304_0506_0708,
    };

    const fn v6(addr: [u8; 16], scope_id: u32) -> SockAddr {
        SockAddr::V6 {
            addr,
            port: 0x1234,
            flowinfo: 0x0123_4567,
            scope_id,
        }
    }

    fn v4(addr: [u8; 4]) -> SockAddr {
        SockAddr::v4(addr, 0)
    }

    fn low_v6(last: u8) -> SockAddr {
        let mut addr = [0; 16];
        addr[15] = last;
        v6(addr, 0)
    }

    fn link_local(scope_id: u32) -> SockAddr {
        let mut addr = [1; 16];
        (addr[0], addr[1]) = (0xfe, 0x80);
        v6(addr, scope_id)
    }

    fn gid(last: u8) -> SockAddr {
        let mut bytes = [0; 16];
        bytes[15] = last;
        SockAddr::ib(0, Gid(bytes), 0)
    }

    #[test]
    fn layout_is_that_of_c() {
        let s = V4.to_storage();
        assert_eq!(s[..2], 2u16.to_ne_bytes());
        assert_eq!(s[2..8], [0x12, 0x34, 10, 1, 2, 3]);
        assert!(s[8..].iter().all(|b| *b == 0));

        let s = V6.to_storage();
        assert_eq!(s[..2], 10u16.to_ne_bytes());
        assert_eq!(s[2..8], [0x12, 0x34, 1, 0x23, 0x45, 0x67]);
        assert_eq!((s[8], s[23]), (0x20, 9));
        assert_eq!(s[24..28], 3u32.to_ne_bytes());
        assert!(s[28..].iter().all(|b| *b == 0));

        let s = IB.to_storage();
        assert_eq!(s[..2], 27u16.to_ne_bytes());
        assert_eq!(s[2..8], [0x80, 1, 0x0f, 0xa1, 0xb2, 0xc3]);
        assert_eq!(s[8..24], [7; 16]);
        assert_eq!(s[24..32], [0, 0, 0, 0, 1, 6, 0x12, 0x34]);
        assert_eq!(s[32..40], [0xff; 8]);
        assert_eq!(s[40..48], 0x0102_0304_0506_0708u64.to_ne_bytes());
        assert!(s[48..].iter().all(|b| *b == 0));
    }

    #[test]
    fn bytes_round_trip_at_every_length() {
        for a in [SockAddr::Unspec, V4, V6, IB] {
            let s = a.to_storage();
            assert_eq!(SockAddr::from_bytes(&s), Ok(a));
            assert_eq!(SockAddr::from_bytes(&s[..a.len().max(2)]), Ok(a));
            for len in 0..a.len() {
                assert_eq!(SockAddr::from_bytes(&s[..len]), Err(Errno::EINVAL));
            }
        }
        let family = 1u16.to_ne_bytes();
        assert_eq!(SockAddr::from_bytes(&family), Err(Errno::EAFNOSUPPORT));
        assert_eq!([V4.len(), V6.len(), IB.len()], [16, 28, 48]);
        assert_eq!(SockAddr::Unspec.len(), 0);
    }

    #[test]
    fn wildcards() {
        for a in [v4([0, 0, 0, 0]), low_v6(0), gid(0)] {
            assert!(a.is_any() && !a.is_loopback() && a.is_any_or_loopback());
        }
        for a in [v4([127, 0, 0, 1]), v4([127, 9, 9, 9]), low_v6(1), gid(1)] {
            assert!(!a.is_any() && a.is_loopback() && a.is_any_or_loopback());
        }
        for a in [
            V4,
            V6,
            IB,
            v4([0, 0, 0, 1]),
            v4([0, 9, 9, 9]),
            low_v6(2),
            gid(2),
        ] {
            assert!(!a.is_any_or_loopback());
        }
        assert!(!SockAddr::Unspec.is_any_or_loopback());
    }

    #[test]
    fn comparison_ignores_ports_and_minds_scopes() {
        assert!(V4.same_address(&V4.with_port(1)));
        assert!(!V4.same_address(&v4([10, 1, 2, 4])));
        assert!(!V4.same_address(&V6) && !V6.same_address(&IB));
        assert!(link_local(1).same_address(&link_local(1)));
        assert!(!link_local(1).same_address(&link_local(2)));
        assert!(low_v6(5).same_address(&low_v6(5).with_port(9)));
        let SockAddr::V6 { addr, .. } = V6 else {
            unreachable!()
        };
        assert!(V6.same_address(&v6(addr, 99)));
        assert!(SockAddr::Unspec.same_address(&SockAddr::Unspec));
        assert!(link_local(0).is_link_local_v6() && !V6.is_link_local_v6());
    }

    #[test]
    fn what_needs_a_scope() {
        let with = |first: [u8; 2]| {
            let mut addr = [7; 16];
            (addr[0], addr[1]) = (first[0], first[1]);
            let named = v6(addr, 3);
            (named.is_link_local_v6(), named.interface())
        };
        for link in [0x80, 0x81, 0xbf] {
            assert_eq!(with([0xfe, link]), (true, 3));
        }
        for other in [
            [0xfe, 0x7f],
            [0xfe, 0xc0],
            [0xfd, 0x80],
            [0x20, 0x02],
            [0, 0],
        ] {
            assert_eq!(with(other), (false, 0));
        }
        for flags in 0..16 {
            for scope in 0..16 {
                let expected = match scope {
                    1 => (false, 3),
                    2 => (true, 3),
                    _ => (false, 0),
                };
                assert_eq!(with([0xff, flags << 4 | scope]), expected);
            }
        }
        assert_eq!(V4.interface(), 0);
        assert_eq!(IB.interface(), 0);
        assert_eq!(link_local(0).interface(), 0);
    }

    #[test]
    fn ports() {
        assert_eq!([V4.port(), V6.port(), IB.port()], [0x1234; 3]);
        assert_eq!(SockAddr::Unspec.with_port(7).port(), 0);
        let partial = SockAddr::Ib {
            pkey: 0,
            flowinfo: 0,
            gid: Gid::ZERO,
            sid: 0x0106_ffff,
            sid_mask: 0xffff_0000,
            scope_id: 0,
        };
        assert_eq!(partial.port(), 0);
        let SockAddr::Ib { sid, sid_mask, .. } = partial.with_port(0x22) else {
            unreachable!()
        };
        assert_eq!((sid, sid_mask), (0x0106_0022, u64::MAX));
    }

    #[test]
    fn gids() {
        assert_eq!(*text(V4.to_gid()), *"::ffff:10.1.2.3");
        assert_eq!(V4.to_gid().to_v4(), Some([10, 1, 2, 3]));
        assert_eq!(*text(V6.to_gid()), *"2001:db8::9");
        assert_eq!(V6.to_gid().to_v4(), None);
        assert!(SockAddr::Unspec.to_gid().is_zero());
        assert_eq!(IB.to_gid(), Gid([7; 16]));
    }
}
