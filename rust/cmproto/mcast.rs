// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: what an address stands for on RoCE, and what kind of member to be.

use crate::addr::{Gid, SockAddr};
use crate::errno::Errno;
use crate::ucma_abi;

/// The QP that stands for all members of a group (IBTA 3.5.10).
pub const MULTICAST_QPN: u32 = 0x00ff_ffff;

/// How many routers a packet to a RoCE v2 group may pass (`IPV6_DEFAULT_HOPLIMIT`).
const ROUTED_HOP_LIMIT: u8 = 64;

/// The same where packets stay on the link.
const LINK_HOP_LIMIT: u8 = 1;

/// What a member does in its group (IBTA 15.2.5.17, `JoinState`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// It sends and receives.
    Full,
    /// It sends, and its packets go to the full members.
    SendOnly,
}

impl Member {
    /// The kind of member that `flags` of [`JoinMcast`](ucma_abi::JoinMcast) ask for.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] for any other value.
    pub const fn from_flags(flags: u16) -> Result<Self, Errno> {
        match flags {
            ucma_abi::JOIN_FULLMEMBER => Ok(Self::Full),
            ucma_abi::JOIN_SENDONLY_FULLMEMBER => Ok(Self::SendOnly),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// How a port puts packets on Ethernet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// RoCE v1: the GRH right above Ethernet.
    Grh,
    /// RoCE v2: UDP over IP (IBTA annex A17).
    Udp,
}

/// A group on RoCE.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RoceGroup {
    /// The GID of the group.
    pub mgid: Gid,
    /// Hop limit of packets to it.
    pub hop_limit: u8,
    /// The IPv4 group that the interface has to be a member of for packets to arrive (IGMP).
    pub igmp: Option<[u8; 4]>,
}

impl RoceGroup {
    /// Whether `addr` can stand for a group at all.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] for a wildcard.
    pub const fn check(addr: &SockAddr) -> Result<(), Errno> {
        if addr.is_any() {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// The group that `addr` stands for. An address that is not multicast is taken as it is, as C
    /// does, but no interface becomes a member of such a group.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] for a wildcard, [`Errno::ENOTSUPP`] for anything but IPv4 on RoCE v2.
    pub const fn new(
        addr: &SockAddr,
        encapsulation: Encapsulation,
        member: Member,
    ) -> Result<Self, Errno> {
        if let Err(error) = Self::check(addr) {
            return Err(error);
        }
        let mgid = match (addr, encapsulation) {
            (SockAddr::V4 { .. }, _) if addr.is_loopback() => Gid::ZERO,
            (SockAddr::V4 { addr, .. }, Encapsulation::Udp) => Gid::from_v4(*addr),
            (SockAddr::V4 { addr, .. }, Encapsulation::Grh) => global_scope(*addr),
            (_, Encapsulation::Udp) => return Err(Errno::ENOTSUPP),
            (_, Encapsulation::Grh) if addr.is_loopback() => Gid::ZERO,
            (_, Encapsulation::Grh) => addr.to_gid(),
        };
        let igmp = match (addr, encapsulation, member) {
            (
                SockAddr::V4 {
                    addr: group @ [224..=239, ..],
                    ..
                },
                Encapsulation::Udp,
                Member::Full,
            ) => Some(*group),
            _ => None,
        };
        Ok(Self {
            mgid,
            hop_limit: match encapsulation {
                Encapsulation::Udp => ROUTED_HOP_LIMIT,
                Encapsulation::Grh => LINK_HOP_LIMIT,
            },
            igmp,
        })
    }
}

/// The RoCE v1 group of an IPv4 one: `ff0e::ffff:a.b.c.d`, of global scope.
const fn global_scope(addr: [u8; 4]) -> Gid {
    let [a, b, c, d] = addr;
    Gid([0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_mcast))]
mod tests {
    use super::*;
    use Encapsulation::{Grh, Udp};

    const ALL: [(Encapsulation, Member); 4] = [
        (Grh, Member::Full),
        (Grh, Member::SendOnly),
        (Udp, Member::Full),
        (Udp, Member::SendOnly),
    ];

    fn v4(addr: [u8; 4]) -> SockAddr {
        SockAddr::V4 { addr, port: 7 }
    }

    fn v6(first: u8, last: u8) -> SockAddr {
        let mut addr = [0; 16];
        (addr[0], addr[15]) = (first, last);
        SockAddr::V6 {
            addr,
            port: 7,
            flowinfo: 0,
            scope_id: 0,
        }
    }

    fn ib(first: u8, last: u8) -> SockAddr {
        SockAddr::Ib {
            pkey: 0xffff,
            flowinfo: 0xefff_ffff,
            gid: v6(first, last).to_gid(),
            sid: 0,
            sid_mask: 0,
            scope_id: 0,
        }
    }

    #[test]
    fn flags() {
        for flags in 0..=u16::MAX {
            let want = match flags {
                0 => Ok(Member::Full),
                1 => Ok(Member::SendOnly),
                _ => Err(Errno::EINVAL),
            };
            assert_eq!(Member::from_flags(flags), want);
        }
    }

    #[test]
    fn wildcards_are_no_groups() {
        let wildcards = [v4([0; 4]), v6(0, 0), ib(0, 0)];
        for (encapsulation, member) in ALL {
            for addr in &wildcards {
                assert_eq!(RoceGroup::check(addr), Err(Errno::EINVAL));
                let group = RoceGroup::new(addr, encapsulation, member);
                assert_eq!(group, Err(Errno::EINVAL));
            }
        }
    }

    #[test]
    fn ipv4_over_udp() {
        for member in [Member::Full, Member::SendOnly] {
            for addr in [[224, 0, 0, 1], [239, 1, 2, 3], [239, 255, 255, 255]] {
                let group = RoceGroup::new(&v4(addr), Udp, member).unwrap();
                assert_eq!(group.mgid, Gid::from_v4(addr));
                assert_eq!(group.hop_limit, 64);
                assert_eq!(group.igmp, (member == Member::Full).then_some(addr));
            }
            // Taken, but for the interface.
            for addr in [
                [0, 0, 0, 1],
                [10, 0, 0, 1],
                [223, 255, 255, 255],
                [240, 0, 0, 0],
                [255; 4],
            ] {
                let group = RoceGroup::new(&v4(addr), Udp, member).unwrap();
                assert_eq!((group.mgid, group.igmp), (Gid::from_v4(addr), None));
            }
            let group = RoceGroup::new(&v4([127, 0, 0, 1]), Udp, member).unwrap();
            assert_eq!((group.mgid, group.igmp), (Gid::ZERO, None));
        }
    }

    #[test]
    fn nothing_else_over_udp() {
        for member in [Member::Full, Member::SendOnly] {
            for addr in [v6(0xff, 1), v6(0xfd, 1), v6(0, 1), ib(0xff, 1)] {
                let group = RoceGroup::new(&addr, Udp, member);
                assert_eq!(group, Err(Errno::ENOTSUPP));
            }
        }
    }

    #[test]
    fn all_over_the_link() {
        for member in [Member::Full, Member::SendOnly] {
            let group = RoceGroup::new(&v4([239, 1, 2, 3]), Grh, member).unwrap();
            let mut mgid = Gid::from_v4([239, 1, 2, 3]);
            (mgid.0[0], mgid.0[1]) = (0xff, 0x0e);
            assert_eq!(group.mgid, mgid);
            assert_eq!((group.hop_limit, group.igmp), (1, None));
            for addr in [v6(0xff, 1), v6(0xfd, 1), ib(0xff, 9)] {
                let group = RoceGroup::new(&addr, Grh, member).unwrap();
                assert_eq!(group.mgid, addr.to_gid());
                assert_eq!((group.hop_limit, group.igmp), (1, None));
            }
            for addr in [v4([127, 0, 0, 1]), v6(0, 1)] {
                let group = RoceGroup::new(&addr, Grh, member).unwrap();
                assert_eq!(group.mgid, Gid::ZERO);
            }
        }
    }
}
