// SPDX-License-Identifier: GPL-2.0

//! The link-layer addresses and multicast groups of IP over InfiniBand (RFC 4391, RFC 4392).

use crate::{
    addr::{Gid, SockAddr},
    bytes::fill,
    service_id::PortSpace,
    wire::field::{Bytes, Field},
};

/// Length of a link-layer address, in bytes: flags and QPN (4), and a GID (16) (RFC 4391, 9.1.1).
pub const HW_ADDR_LEN: usize = 20;

/// A link-layer address, in network byte order.
pub type HwAddr = [u8; HW_ADDR_LEN];

/// The hardware type of an IPoIB interface (`ARPHRD_INFINIBAND`).
pub const ARPHRD_INFINIBAND: u16 = 32;

type AddrGid = Bytes<4, 16>;
/// The P_Key in the GID of the broadcast group.
type BroadcastPkey = Field<u16, 8, 0, 16>;

/// The link-layer addresses of both ends of a link, and the broadcast address.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The address of the interface at this end.
    pub own: HwAddr,
    /// The address of the peer; zeros if it is not known.
    pub peer: HwAddr,
    /// The broadcast address, which has the GID of the broadcast group.
    pub broadcast: HwAddr,
}

/// Returns the GID in a link-layer address.
fn gid_of(addr: &HwAddr) -> Gid {
    Gid(*AddrGid::get(addr))
}

impl Link {
    /// Creates a link of which only the GIDs of both ends and the P_Key are known.
    pub fn between(own: Gid, peer: Gid, pkey: u16) -> Self {
        let mut link = Self::default();
        AddrGid::set(&mut link.own, &own.0);
        BroadcastPkey::set(&mut link.broadcast, pkey);
        link.to_gid(peer)
    }

    /// Returns the last six bytes of this end's address, which are part of the port's GUID.
    pub const fn own_guid_tail(&self) -> [u8; 6] {
        let [.., a, b, c, d, e, f] = self.own;
        [a, b, c, d, e, f]
    }

    /// Returns the GID of this end's port.
    pub fn own_gid(&self) -> Gid {
        gid_of(&self.own)
    }

    /// Returns the GID of the peer's port; zero if it is not known.
    pub fn peer_gid(&self) -> Gid {
        gid_of(&self.peer)
    }

    /// Returns the GID of the broadcast group.
    pub fn broadcast_gid(&self) -> Gid {
        gid_of(&self.broadcast)
    }

    /// Returns the P_Key of the interface.
    pub fn pkey(&self) -> u16 {
        BroadcastPkey::get(&self.broadcast)
    }

    /// Returns the same link with another GID of the peer.
    #[must_use]
    pub fn to_gid(mut self, gid: Gid) -> Self {
        AddrGid::set(&mut self.peer, &gid.0);
        self
    }

    /// Returns the GID of the multicast group of `addr` for an endpoint of the port space `ps` at
    /// this interface; zero if the subnet administrator is to choose one.
    ///
    /// An IPv6 address that is the GID of a group of the subnet administrator (`ff1x:a01b::`), and
    /// a native address, are taken as they are. Other addresses are mapped as IP over InfiniBand
    /// maps them (RFC 4391, 4), but with another signature in the port space of datagrams.
    pub fn group(&self, ps: PortSpace, addr: &SockAddr) -> Gid {
        /// The third and fourth byte of a GID: the signatures of IPv4 and IPv6, and the fourth byte
        /// for datagrams of the RDMA CM.
        const SIGNATURE_V4: [u8; 2] = [0x40, 0x1b];
        const SIGNATURE_V6: [u8; 2] = [0x60, 0x1b];
        const SIGNATURE_CM: u8 = 0x01;
        if addr.is_any_or_loopback() {
            return Gid::ZERO;
        }
        let ([a, b], tail) = match addr {
            SockAddr::Unspec => return Gid::ZERO,
            SockAddr::Ib { gid, .. } => return *gid,
            SockAddr::V6 { addr, .. } => match *addr {
                [0xff, scope, 0xa0, 0x1b, ..] if scope & 0xf0 == 0x10 => return Gid(*addr),
                [_, _, _, _, _, _, tail @ ..] => (SIGNATURE_V6, tail),
            },
            SockAddr::V4 { addr, .. } => {
                let [a, b, c, d] = *addr;
                // IPv4 groups differ in the low 28 bits.
                (SIGNATURE_V4, [0, 0, 0, 0, 0, 0, a & 0x0f, b, c, d])
            }
        };
        let b = if ps == PortSpace::Udp {
            SIGNATURE_CM
        } else {
            b
        };
        let Gid([_, scope, ..]) = self.broadcast_gid();
        let [p0, p1] = self.pkey().to_be_bytes();
        let mut group = Gid::ZERO;
        fill(&mut group.0, &[0xff, 0x10 | (scope & 0x0f), a, b, p0, p1]);
        Bytes::<6, 10>::set(&mut group.0, &tail);
        group
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_ipoib))]
mod tests {
    use super::*;

    fn link() -> Link {
        let mut link = Link {
            own: [0x50; HW_ADDR_LEN],
            peer: [0xd0; HW_ADDR_LEN],
            broadcast: [0; HW_ADDR_LEN],
        };
        // As the kernel makes it: scope 2 (link-local), P_Key 0x8001.
        link.broadcast = [
            0, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
            0xff, 0xff,
        ];
        link
    }

    #[test]
    fn what_is_in_addresses() {
        assert_eq!(link().own_gid(), Gid([0x50; 16]));
        assert_eq!(link().peer_gid(), Gid([0xd0; 16]));
        assert_eq!(link().pkey(), 0x8001);
        assert_eq!(link().broadcast_gid().0[..4], [0xff, 0x12, 0x40, 0x1b]);
        assert_eq!(Link::default().peer_gid(), Gid::ZERO);
        let other = link().to_gid(Gid([7; 16]));
        assert_eq!(other.peer_gid(), Gid([7; 16]));
        assert_eq!(other.peer[..4], [0xd0; 4]);
        assert_eq!(other.own, link().own);
    }

    #[test]
    fn links_of_which_only_the_gids_are_known() {
        let link = Link::between(Gid([3; 16]), Gid([4; 16]), 0x8765);
        assert_eq!(link.own_gid(), Gid([3; 16]));
        assert_eq!(link.peer_gid(), Gid([4; 16]));
        assert_eq!(link.pkey(), 0x8765);
        assert_eq!(link.own_guid_tail(), [3; 6]);
        let mut link = link;
        link.own[14..].copy_from_slice(&[9, 8, 7, 6, 5, 4]);
        assert_eq!(link.own_guid_tail(), [9, 8, 7, 6, 5, 4]);
    }

    #[test]
    fn groups_of_ipv4() {
        let addr = SockAddr::v4([239, 1, 2, 3], 9);
        let ipoib = [
            0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0x0f, 1, 2, 3,
        ];
        assert_eq!(link().group(PortSpace::Ipoib, &addr).0, ipoib);
        let udp = link().group(PortSpace::Udp, &addr);
        assert_eq!((udp.0[2], udp.0[3], udp.0[15]), (0x40, 0x01, 3));
        // The scope is the one of the broadcast group, with all four bits.
        for scope in 0..=0xf {
            let mut link = link();
            link.broadcast[5] = 0x10 | scope;
            let group = link.group(PortSpace::Ipoib, &addr);
            assert_eq!(group.0[1], 0x10 | scope);
        }
    }

    #[test]
    fn groups_of_ipv6() {
        let mut addr = [0xaa; 16];
        addr[0] = 0xff;
        addr[1] = 0x0e;
        let v6 = |addr| SockAddr::v6(addr, 0);
        let group = link().group(PortSpace::Ipoib, &v6(addr));
        assert_eq!(group.0[..6], [0xff, 0x12, 0x60, 0x1b, 0x80, 0x01]);
        assert_eq!(group.0[6..], [0xaa; 10]);
        assert_eq!(link().group(PortSpace::Udp, &v6(addr)).0[3], 0x01);
        // A group that the subnet administrator has made.
        for scope in [0x10, 0x12, 0x1f] {
            let mut made = addr;
            made[1] = scope;
            made[2] = 0xa0;
            made[3] = 0x1b;
            assert_eq!(link().group(PortSpace::Udp, &v6(made)), Gid(made));
        }
        // One with this signature that is well-known, and so none that was made.
        for flags in [0x02, 0x22, 0x32] {
            let mut known = addr;
            known[1] = flags;
            known[2] = 0xa0;
            known[3] = 0x1b;
            let group = link().group(PortSpace::Ipoib, &v6(known));
            assert_eq!(group.0[..6], [0xff, 0x12, 0x60, 0x1b, 0x80, 0x01]);
            assert_eq!(group.0[6..], [0xaa; 10]);
        }
    }

    #[test]
    fn groups_that_need_no_map() {
        let native = SockAddr::Ib {
            pkey: 0,
            flowinfo: 0,
            gid: Gid([0xff; 16]),
            sid: 0,
            sid_mask: 0,
            scope_id: 0,
        };
        assert_eq!(link().group(PortSpace::Udp, &native), Gid([0xff; 16]));
        for any in [native.wildcard(), SockAddr::Unspec] {
            assert_eq!(link().group(PortSpace::Udp, &any), Gid::ZERO);
        }
    }
}
