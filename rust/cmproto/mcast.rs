// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: the GID of a group on RoCE, the kinds of members, and the records of the
//! InfiniBand subnet administrator.

use crate::addr::{Gid, SockAddr};
use crate::errno::Errno;
use crate::ucma_abi::{self, UverbsAhAttr, UverbsGlobalRoute};
use core::net::IpAddr;

/// The QPN of the members of a multicast group (IBTA 3.5.10).
pub const MULTICAST_QPN: u32 = 0x00ff_ffff;

/// The hop limit of packets to a RoCE v2 group (`IPV6_DEFAULT_HOPLIMIT`).
const ROUTED_HOP_LIMIT: u8 = 64;

/// The hop limit of packets to a RoCE v1 group, which stay on the link.
const LINK_HOP_LIMIT: u8 = 1;

/// The role of a member in its group (IBTA 15.2.5.17, `JoinState`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// A member that sends and receives.
    Full,
    /// A member that only sends, to the full members.
    SendOnly,
}

impl Member {
    /// Returns the role that `flags` of [`JoinMcast`](ucma_abi::JoinMcast) ask for.
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

    /// Returns the bit of the role in [`McMember::join_state`].
    pub const fn join_state(self) -> u8 {
        match self {
            Self::Full => 1 << 0,
            Self::SendOnly => 1 << 3,
        }
    }
}

/// The encapsulation of packets on Ethernet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// RoCE v1: the GRH right above Ethernet.
    Grh,
    /// RoCE v2: UDP over IP (IBTA annex A17).
    Udp,
}

/// A multicast group on RoCE.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RoceGroup {
    /// The GID of the group.
    pub mgid: Gid,
    /// Hop limit of packets to the group.
    pub hop_limit: u8,
    /// The group that the interface has to join (IGMP, MLD) for packets to arrive.
    pub ip_group: Option<IpAddr>,
}

impl RoceGroup {
    /// Checks whether `addr` can be a multicast group at all.
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

    /// Returns the group of `addr`. As in C, an IPv4 address that is not a multicast one is taken
    /// as it is, but the interface does not join such a group.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] for a wildcard. [`Errno::ENOTSUPP`] on RoCE v2 for anything but IPv4 and
    /// IPv6 groups whose packets leave the host (RFC 4291, 2.7: scope 2 and more).
    pub fn new(
        addr: &SockAddr,
        encapsulation: Encapsulation,
        member: Member,
    ) -> Result<Self, Errno> {
        Self::check(addr)?;
        let mgid = match (addr, encapsulation) {
            (SockAddr::V4 { .. }, _) if addr.is_loopback() => Gid::ZERO,
            (SockAddr::V4 { addr, .. }, Encapsulation::Udp) => Gid::from_v4(*addr),
            (SockAddr::V4 { addr, .. }, Encapsulation::Grh) => global_scope(*addr),
            (SockAddr::V6 { addr, .. }, Encapsulation::Udp)
                if matches!(Gid(*addr).multicast_scope(), Some(2..)) =>
            {
                Gid(*addr)
            }
            (_, Encapsulation::Udp) => return Err(Errno::ENOTSUPP),
            (_, Encapsulation::Grh) if addr.is_loopback() => Gid::ZERO,
            (_, Encapsulation::Grh) => addr.to_gid(),
        };
        let ip = match addr {
            SockAddr::V4 { addr, .. } => Some(IpAddr::from(*addr)),
            SockAddr::V6 { addr, .. } => Some(IpAddr::from(*addr)),
            SockAddr::Unspec | SockAddr::Ib { .. } => None,
        };
        let ip_group = ip.filter(|ip| {
            ip.is_multicast() && encapsulation == Encapsulation::Udp && member == Member::Full
        });
        Ok(Self {
            mgid,
            hop_limit: match encapsulation {
                Encapsulation::Udp => ROUTED_HOP_LIMIT,
                Encapsulation::Grh => LINK_HOP_LIMIT,
            },
            ip_group,
        })
    }
}

/// Returns the RoCE v1 GID of an IPv4 group: `ff0e::ffff:a.b.c.d`, which has global scope.
const fn global_scope(addr: [u8; 4]) -> Gid {
    let [a, b, c, d] = addr;
    Gid([0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
}

/// A multicast group on InfiniBand and one of its members, as in the record of the subnet
/// administrator (IBTA 15.2.5.17). All values are in host byte order.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct McMember {
    /// The GID of the group.
    pub mgid: Gid,
    /// The GID of the member's port.
    pub port_gid: Gid,
    /// The Q_Key of the group.
    pub qkey: u32,
    /// The LID of the group.
    pub mlid: u16,
    /// Comparison with `mtu`, 2 bits: 0 greater, 1 less, 2 exactly, 3 largest.
    pub mtu_selector: u8,
    /// MTU, a 6-bit code (`enum ib_mtu`).
    pub mtu: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// P_Key.
    pub pkey: u16,
    /// Comparison with `rate`, 2 bits, as for the MTU.
    pub rate_selector: u8,
    /// Static rate, a 6-bit code (`enum ib_rate`).
    pub rate: u8,
    /// Comparison with `packet_life_time`, 2 bits, as for the MTU.
    pub packet_life_time_selector: u8,
    /// Packet life time, a 6-bit IBTA time code.
    pub packet_life_time: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Scope, 4 bits.
    pub scope: u8,
    /// Role of the member, 4 bits: see [`Member::join_state`].
    pub join_state: u8,
    /// Set if another port has joined on behalf of the member, 1 bit.
    pub proxy_join: u8,
}

impl McMember {
    /// Returns the address vector of the group for the member's port, whose number is `port_num`.
    /// `sgid_index` is the index of the member's GID in the port's GID table.
    pub const fn address_vector(&self, port_num: u8, sgid_index: u8) -> UverbsAhAttr {
        UverbsAhAttr {
            grh: UverbsGlobalRoute {
                dgid: self.mgid.0,
                flow_label: self.flow_label,
                sgid_index,
                hop_limit: self.hop_limit,
                traffic_class: self.traffic_class,
                reserved: 0,
            },
            dlid: self.mlid,
            sl: self.sl,
            src_path_bits: 0,
            static_rate: self.rate,
            is_global: 1,
            port_num,
            reserved: 0,
        }
    }
}

/// A request to make a port a member of a multicast group on InfiniBand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct McRequest {
    /// The GID of the group; zero lets the subnet administrator choose one.
    pub mgid: Gid,
    /// The GID of the port.
    pub port_gid: Gid,
    /// P_Key.
    pub pkey: u16,
    /// The Q_Key of the group.
    pub qkey: u32,
    /// Role of the member.
    pub member: Member,
    /// The record of the IPoIB broadcast group, whose properties a new group shares.
    pub template: McMember,
    /// Set if a new group shares the rate, MTU and hop limit of the template, as groups of IP over
    /// InfiniBand do, besides its service level, flow label and traffic class.
    pub is_ipoib: bool,
}

/// Bits of the component mask of a member record (IBTA 15.2.5.17).
mod component {
    pub(super) const MGID: u64 = 1 << 0;
    pub(super) const PORT_GID: u64 = 1 << 1;
    pub(super) const QKEY: u64 = 1 << 2;
    pub(super) const MTU_SELECTOR: u64 = 1 << 4;
    pub(super) const MTU: u64 = 1 << 5;
    pub(super) const TRAFFIC_CLASS: u64 = 1 << 6;
    pub(super) const PKEY: u64 = 1 << 7;
    pub(super) const RATE_SELECTOR: u64 = 1 << 8;
    pub(super) const RATE: u64 = 1 << 9;
    pub(super) const SL: u64 = 1 << 12;
    pub(super) const FLOW_LABEL: u64 = 1 << 13;
    pub(super) const HOP_LIMIT: u64 = 1 << 14;
    pub(super) const JOIN_STATE: u64 = 1 << 16;
}

impl McRequest {
    /// Returns the record of the request.
    pub const fn record(&self) -> McMember {
        McMember {
            mgid: self.mgid,
            port_gid: self.port_gid,
            qkey: self.qkey,
            pkey: self.pkey,
            join_state: self.member.join_state(),
            ..self.template
        }
    }

    /// Returns the component mask: the components of the record that count in the request. Bit 0
    /// stands for the first component.
    pub const fn mask(&self) -> u64 {
        let all = component::MGID
            | component::PORT_GID
            | component::QKEY
            | component::PKEY
            | component::JOIN_STATE
            | component::SL
            | component::FLOW_LABEL
            | component::TRAFFIC_CLASS;
        let ipoib = component::RATE
            | component::RATE_SELECTOR
            | component::MTU
            | component::MTU_SELECTOR
            | component::HOP_LIMIT;
        if self.is_ipoib {
            all | ipoib
        } else {
            all
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_mcast))]
mod tests {
    use super::*;
    use crate::ucma_abi::{FromZeros, IntoBytes};
    use Encapsulation::{Grh, Udp};

    const ALL: [(Encapsulation, Member); 4] = [
        (Grh, Member::Full),
        (Grh, Member::SendOnly),
        (Udp, Member::Full),
        (Udp, Member::SendOnly),
    ];

    fn v4(addr: [u8; 4]) -> SockAddr {
        SockAddr::v4(addr, 7)
    }

    fn v6(first: u8, last: u8) -> SockAddr {
        let mut addr = [0; 16];
        (addr[0], addr[15]) = (first, last);
        SockAddr::v6(addr, 7)
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
                let joined = (member == Member::Full).then_some(IpAddr::from(addr));
                assert_eq!(group.ip_group, joined);
            }
            // The group is taken, but the interface does not join it.
            for addr in [
                [0, 0, 0, 1],
                [10, 0, 0, 1],
                [223, 255, 255, 255],
                [240, 0, 0, 0],
                [255; 4],
            ] {
                let group = RoceGroup::new(&v4(addr), Udp, member).unwrap();
                assert_eq!((group.mgid, group.ip_group), (Gid::from_v4(addr), None));
            }
            let group = RoceGroup::new(&v4([127, 0, 0, 1]), Udp, member).unwrap();
            assert_eq!((group.mgid, group.ip_group), (Gid::ZERO, None));
        }
    }

    #[test]
    fn ipv6_over_udp() {
        for member in [Member::Full, Member::SendOnly] {
            for scope in 0..16 {
                let mut addr = [0; 16];
                (addr[0], addr[1], addr[15]) = (0xff, 0x10 | scope, 7);
                let group = RoceGroup::new(&SockAddr::v6(addr, 7), Udp, member);
                let joined = (member == Member::Full).then_some(IpAddr::from(addr));
                let want = RoceGroup {
                    mgid: Gid(addr),
                    hop_limit: 64,
                    ip_group: joined,
                };
                assert_eq!(
                    group,
                    if scope < 2 {
                        Err(Errno::ENOTSUPP)
                    } else {
                        Ok(want)
                    }
                );
            }
        }
    }

    #[test]
    fn nothing_else_over_udp() {
        let mapped = SockAddr::v6(Gid::from_v4([239, 1, 2, 3]).0, 7);
        for member in [Member::Full, Member::SendOnly] {
            for addr in [v6(0xfe, 1), v6(0xfd, 1), v6(0, 1), mapped, ib(0xff, 1)] {
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
            assert_eq!((group.hop_limit, group.ip_group), (1, None));
            for addr in [v6(0xff, 1), v6(0xfd, 1), ib(0xff, 9)] {
                let group = RoceGroup::new(&addr, Grh, member).unwrap();
                assert_eq!(group.mgid, addr.to_gid());
                assert_eq!((group.hop_limit, group.ip_group), (1, None));
            }
            for addr in [v4([127, 0, 0, 1]), v6(0, 1)] {
                let group = RoceGroup::new(&addr, Grh, member).unwrap();
                assert_eq!(group.mgid, Gid::ZERO);
            }
        }
    }

    /// Returns the record of an IPoIB broadcast group.
    fn broadcast() -> McMember {
        McMember {
            mgid: v6(0xff, 0xff).to_gid(),
            port_gid: v6(0xfe, 1).to_gid(),
            qkey: 0x0b1b,
            mlid: 0xc000,
            mtu_selector: 2,
            mtu: 4,
            traffic_class: 0x21,
            pkey: 0xffff,
            rate_selector: 2,
            rate: 3,
            packet_life_time_selector: 2,
            packet_life_time: 18,
            sl: 5,
            flow_label: 0x000a_bcde,
            hop_limit: 7,
            scope: 2,
            join_state: 1,
            proxy_join: 0,
        }
    }

    #[test]
    fn join_states() {
        assert_eq!(Member::Full.join_state(), 1);
        assert_eq!(Member::SendOnly.join_state(), 8);
    }

    #[test]
    fn way_to_a_group() {
        let group = broadcast();
        let way = group.address_vector(2, 9);
        assert_eq!(way.grh.dgid, group.mgid.0);
        let bytes = way.as_bytes();
        assert_eq!(bytes[16..20], 0x000a_bcde_u32.to_ne_bytes());
        assert_eq!(bytes[20..24], [9, 7, 0x21, 0]);
        assert_eq!(bytes[24..26], 0xc000_u16.to_ne_bytes());
        assert_eq!(bytes[26..], [5, 0, 3, 1, 2, 0]);

        let nothing = UverbsAhAttr {
            is_global: 1,
            ..FromZeros::new_zeroed()
        };
        assert_eq!(McMember::default().address_vector(0, 0), nothing);
    }

    #[test]
    fn what_is_asked_for() {
        let mut request = McRequest {
            mgid: v6(0xff, 2).to_gid(),
            port_gid: v6(0xfe, 3).to_gid(),
            pkey: 0x8001,
            qkey: 0x0123_4567,
            member: Member::SendOnly,
            template: broadcast(),
            is_ipoib: false,
        };
        let want = McMember {
            mgid: v6(0xff, 2).to_gid(),
            port_gid: v6(0xfe, 3).to_gid(),
            qkey: 0x0123_4567,
            pkey: 0x8001,
            join_state: 8,
            ..broadcast()
        };
        assert_eq!((request.record(), request.mask()), (want, 0x1_30c7));
        request.is_ipoib = true;
        assert_eq!((request.record(), request.mask()), (want, 0x1_73f7));
    }
}
