// SPDX-License-Identifier: GPL-2.0

//! The LIDs of Omni-Path, which have 32 bits, and their form where there is room for 16.
//!
//! A LID below 0xc000 is written as on InfiniBand. If one end of a path has another, the LIDs of
//! both ends are in their GIDs: the interface id is made from the LID ([`Gid::with_opa_lid`]), and
//! the field of the LID is zero. A REQ has its paths in this form, and so have the path records and
//! address vectors that programs see. LIDs are in host byte order here, and in network byte order
//! in a GID and in a message.
//!
//! C header: [`include/rdma/opa_addr.h`](srctree/include/rdma/opa_addr.h)

use crate::{
    gid::Gid,
    ucma_abi::{FromZeros, UverbsAhAttr, UverbsGlobalRoute},
};

/// The first LID of InfiniBand that is not that of one port (IBTA 4.1.3).
pub const MULTICAST_LID: u32 = 0xc000;

/// The LIDs of a path over Omni-Path, and what else a record of it has.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct OpaPath {
    /// LID of this end.
    pub slid: u32,
    /// LID of the peer.
    pub dlid: u32,
    /// The formats of packets that the path takes: 8B, 10B, 9B and 16B, non-zero for those it does.
    pub formats: [u8; 4],
    /// The type of the quality of service.
    pub qos_type: u8,
    /// The priority of the path.
    pub qos_priority: u8,
}

/// Returns whether the LIDs of a path have no place in the fields of InfiniBand (C's
/// `opa_is_extended_lid()`).
pub const fn is_extended(slid: u32, dlid: u32) -> bool {
    slid >= MULTICAST_LID || dlid >= MULTICAST_LID
}

/// Returns the lower half of a LID, which is all of it on InfiniBand.
pub const fn short_lid(lid: u32) -> u16 {
    let [.., high, low] = lid.to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// Returns the GIDs that are made from the LIDs of both ends, with the subnet prefixes of their
/// GIDs.
pub const fn gids(own: (&Gid, u32), peer: (&Gid, u32)) -> (Gid, Gid) {
    (own.0.with_opa_lid(own.1), peer.0.with_opa_lid(peer.1))
}

impl UverbsAhAttr {
    /// Changes an address vector of Omni-Path to that which a program gets: if `dlid` has more than
    /// 16 bits, there is a global route with the LID in its GID. `own` is a GID of this port.
    ///
    /// As in C, a LID of 16 bits stays what it is, although a LID from 0xc000 on has no place in
    /// the field.
    pub fn show_opa_lid(&mut self, dlid: u32, own: &Gid) {
        if dlid <= u32::from(u16::MAX) {
            return;
        }
        self.is_global = 1;
        self.grh = UverbsGlobalRoute {
            dgid: own.with_opa_lid(dlid).0,
            hop_limit: 1,
            ..FromZeros::new_zeroed()
        };
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_opa))]
mod tests {
    use super::*;
    use crate::{
        origin::{IbPort, Origin},
        path::{
            testing::{req, turned, FROM, PATH},
            FromLink, Path,
        },
        wire::ReqPath,
    };

    /// A path over Omni-Path.
    const OPA: Path = Path {
        slid: 0x0001_0011,
        dlid: 0x0001_0022,
        is_opa: true,
        ..PATH
    };

    /// The link of a message over Omni-Path.
    const LINK: FromLink = FromLink {
        lid: 0x0001_0011,
        is_opa: true,
        ..FROM
    };

    /// Returns the primary path of a REQ for `path`, with its ack timeout.
    fn named(path: Path) -> ReqPath {
        ReqPath {
            local_ack_timeout: path.packet_life_time + 1,
            ..path.to_req()
        }
    }

    #[test]
    fn long_lids_are_in_the_gids_of_a_request() {
        let primary = named(OPA);
        assert_eq!((primary.local_lid, primary.remote_lid), (0, 0));
        assert_eq!(primary.local_gid, OPA.sgid.with_opa_lid(0x0001_0011));
        assert_eq!(primary.remote_gid, OPA.dgid.with_opa_lid(0x0001_0022));
        assert!(primary.subnet_local);
        // The alternate path of another REQ would not be empty.
        assert!(!primary.is_empty());
        let seen = Path::from_req_over(&req(primary), &LINK);
        let want = Path {
            sgid: primary.remote_gid,
            dgid: primary.local_gid,
            ..turned(OPA)
        };
        assert_eq!(seen, want);
        assert_eq!(Path::data_lid(&req(primary), &LINK), 0);
    }

    #[test]
    fn a_long_lid_of_one_end_puts_both_into_the_gids() {
        let primary = named(Path { slid: 0x11, ..OPA });
        assert_eq!((primary.local_lid, primary.remote_lid), (0, 0));
        assert_eq!(primary.local_gid.opa_lid(), 0x11);
        let seen = Path::from_req_over(&req(primary), &LINK);
        assert_eq!((seen.slid, seen.dlid), (0x0001_0022, 0x11));
    }

    #[test]
    fn a_routed_request_has_long_lids_and_permissive_ones() {
        let far = Path {
            hop_limit: 64,
            ..OPA
        };
        let primary = named(far);
        assert_eq!((primary.local_lid, primary.remote_lid), (0xffff, 0xffff));
        assert_eq!(primary.local_gid.opa_lid(), 0x0001_0011);
        let seen = Path::from_req_over(&req(primary), &LINK);
        // The service level is that of the link, as on InfiniBand, and the LIDs are those named.
        assert_eq!(
            (seen.slid, seen.dlid, seen.sl),
            (OPA.dlid, OPA.slid, LINK.sl)
        );
    }

    #[test]
    fn short_lids_make_a_request_of_infiniband() {
        let short = Path {
            slid: 0x11,
            dlid: 0xbfff,
            ..OPA
        };
        let primary = named(short);
        let as_ib = Path {
            is_opa: false,
            ..short
        };
        assert_eq!(primary, named(as_ib));
        let link = FromLink { lid: 0x11, ..LINK };
        let seen = Path::from_req_over(&req(primary), &link);
        assert_eq!(seen, turned(as_ib));
        // There is no other LID for the data, even if the request names one.
        let link = FromLink { lid: 0x12, ..LINK };
        assert_eq!(Path::data_lid(&req(primary), &link), 0);
    }

    #[test]
    fn infiniband_takes_no_lid_from_a_gid() {
        let mut primary = PATH.to_req();
        primary.local_gid = primary.local_gid.with_opa_lid(0x0001_0011);
        let link = FromLink { lid: 0x11, ..FROM };
        let seen = Path::from_req_over(&req(primary), &link);
        assert!(!seen.is_opa);
        assert_eq!((seen.slid, seen.dlid), (PATH.dlid, 0x11));
        // Nor does a path of Omni-Path's ports whose record is one of InfiniBand write one there.
        let odd = Path {
            is_opa: false,
            ..OPA
        };
        assert_eq!(odd.to_req().local_gid, OPA.sgid);
    }

    #[test]
    fn an_alternate_path_has_the_form_of_the_primary_one() {
        let other = Path {
            slid: 0x0001_0033,
            dlid: 0x0001_0044,
            ..OPA
        };
        let named = named(other);
        let seen = Path::alternate(&named, &turned(OPA), &LINK);
        assert_eq!((seen.slid, seen.dlid), (other.dlid, other.slid));
        assert!(seen.is_opa);
        let seen = Path::alternate(&named, &turned(PATH), &LINK);
        assert_eq!((seen.slid, seen.dlid), (0, 0));
    }

    #[test]
    fn records_of_omni_path_and_back() {
        let record = OPA.to_record();
        assert_eq!(record.lids(), (OPA.slid, OPA.dlid));
        assert_eq!((record.sa.slid, record.sa.dlid), (0, 0));
        assert_eq!((record.sa.sgid, record.sa.dgid), (OPA.sgid, OPA.dgid));
        assert_eq!(Path::from_record(&record, true), OPA);
        let roce = Path::from_record(&record, false);
        assert!(!roce.is_opa);
        assert_eq!((roce.slid, roce.dlid), (0, 0));
        assert_eq!(OPA.slid_bits(0x7f), 0x11);
    }

    #[test]
    fn a_peer_is_known_by_its_long_lid() {
        let port = IbPort { device: 1, port: 1 };
        assert_eq!(OPA.origin_at(port), Origin::of_lid(port, 0x0001_0022));
        assert!(OPA.origin_at(port) != Origin::of_lid(port, 0x22));
    }

    #[test]
    fn lids_from_the_multicast_ones_on_are_extended() {
        for (slid, dlid, extended) in [
            (1, 2, false),
            (0xbfff, 0xbfff, false),
            (0xc000, 1, true),
            (1, 0xc000, true),
            (0x0001_0001, 1, true),
            (1, 0xffff_fffe, true),
        ] {
            let found = is_extended(slid, dlid);
            assert_eq!((slid, dlid, found), (slid, dlid, extended));
        }
        assert_eq!(short_lid(0x0012_3456), 0x3456);
    }

    #[test]
    fn gids_keep_the_prefixes_of_their_ends() {
        let (own, peer) = (Gid([0x50; 16]), Gid([0xd0; 16]));
        let (made_own, made_peer) = gids((&own, 0x0001_0002), (&peer, 3));
        assert_eq!(made_own.prefix(), own.prefix());
        assert_eq!(made_peer.prefix(), peer.prefix());
        assert_eq!((made_own.opa_lid(), made_peer.opa_lid()), (0x0001_0002, 3));
        assert!(made_own.is_opa() && made_peer.is_opa());
    }

    #[test]
    fn programs_get_a_long_lid_in_a_gid() {
        let own = Gid([0xfe; 16]);
        let plain = UverbsAhAttr {
            dlid: 0xffff,
            sl: 3,
            src_path_bits: 1,
            port_num: 1,
            ..FromZeros::new_zeroed()
        };
        let mut vector = plain;
        vector.show_opa_lid(0xffff, &own);
        assert_eq!(vector, plain);
        let mut vector = UverbsAhAttr { dlid: 2, ..plain };
        vector.grh.hop_limit = 64;
        vector.show_opa_lid(0x0001_0002, &own);
        let grh = UverbsGlobalRoute {
            dgid: own.with_opa_lid(0x0001_0002).0,
            hop_limit: 1,
            ..FromZeros::new_zeroed()
        };
        let want = UverbsAhAttr {
            grh,
            dlid: 2,
            is_global: 1,
            ..plain
        };
        assert_eq!(vector, want);
    }
}
