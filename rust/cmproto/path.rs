// SPDX-License-Identifier: GPL-2.0

//! The path of a connection.

use crate::{
    addr::{Gid, SockAddr},
    opa,
    origin::{IbPort, Origin},
    service_id::ServiceId,
    ucma::path::PathRecord,
    ucma_abi::SaPathRecord,
    wire::{Req, ReqPath},
};

/// The P_Key on RoCE, which has no partitions: the default one.
pub const ROCE_PKEY: u16 = 0xffff;

/// The packet life time that is assumed on RoCE, an IBTA time code.
pub const ROCE_PACKET_LIFE_TIME: u8 = 16;

/// The largest time code (IBTA 9.9.2.1.1). It has five bits, while the field of a path record has
/// six.
const MAX_TIME_CODE: u8 = 31;

/// The permissive LID (IBTA 3.5.11).
const PERMISSIVE_LID: u16 = 0xffff;

/// The link-layer information of a message that was received over InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromLink {
    /// The LID of the sender, or of the router that has forwarded the message.
    pub lid: u32,
    /// The low bits of the destination LID.
    pub path_bits: u8,
    /// The service level of the message.
    pub sl: u8,
    /// Set if the message had a global route header (GRH).
    pub has_grh: bool,
    /// Set if the port has the LIDs of Omni-Path.
    pub is_opa: bool,
}

/// A path between two ports.
///
/// Numbers are in host byte order, GIDs in network byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The service id that the path was asked for; 0 if none.
    pub service_id: u64,
    /// GID of this end.
    pub sgid: Gid,
    /// GID of the peer.
    pub dgid: Gid,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// LID of this end; 0 on RoCE, which has none. Only Omni-Path has more than 16 bits.
    pub slid: u32,
    /// LID of the peer, or of the router that leads to it; 0 on RoCE.
    pub dlid: u32,
    /// The hop limit of packets.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// P_Key.
    pub pkey: u16,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Path MTU, `enum ib_mtu`.
    pub mtu: u8,
    /// Static rate, `enum ib_rate`.
    pub rate: u8,
    /// Packet life time, a 5-bit IBTA time code.
    pub packet_life_time: u8,
    /// Set if the record of the path is one of Omni-Path. Others are used there, too.
    pub is_opa: bool,
}

/// Each endpoint has one.
const _: () = assert!(core::mem::size_of::<Option<Path>>() == 64);

impl Path {
    /// Returns the path over RoCE that a REQ describes, as seen from the end that received the REQ.
    ///
    /// The hop limit is not the one of the REQ; it is set once the sender's address is resolved.
    pub fn from_req(req: &Req<'_>) -> Self {
        Path {
            service_id: req.service_id,
            sgid: req.primary.remote_gid,
            dgid: req.primary.local_gid,
            flow_label: req.primary.flow_label,
            slid: 0,
            dlid: 0,
            hop_limit: 0,
            traffic_class: req.primary.traffic_class,
            pkey: req.pkey,
            sl: req.primary.sl,
            mtu: req.path_mtu,
            rate: req.primary.packet_rate,
            packet_life_time: req.primary.local_ack_timeout.saturating_sub(1),
            is_opa: false,
        }
    }

    /// Returns the path over InfiniBand for the messages of a connection whose REQ was received
    /// `from`. The fields that the sender of a routed REQ cannot know are taken from the link (IBTA
    /// 12.7.11 and following).
    ///
    /// At a port of Omni-Path, a REQ whose sender's GID is made from its LID has a path of
    /// Omni-Path: the LIDs of both ends are in their GIDs.
    pub fn from_req_over(req: &Req<'_>, from: &FromLink) -> Self {
        let primary = &req.primary;
        let is_routed = !primary.subnet_local;
        let is_opa = from.is_opa && primary.local_gid.is_opa();
        Path {
            is_opa,
            slid: Self::named_slid(primary, from, is_opa),
            dlid: if is_opa {
                primary.local_gid.opa_lid()
            } else {
                from.lid
            },
            hop_limit: if from.has_grh { u8::MAX } else { 0 },
            sl: match primary.local_lid {
                PERMISSIVE_LID if is_routed => from.sl,
                _ => primary.sl,
            },
            ..Self::from_req(req)
        }
    }

    /// Returns the alternate path that the peer has `named` in a message received `from`, as seen
    /// from this end, of a connection along `primary`.
    pub fn alternate(named: &ReqPath, primary: &Self, from: &FromLink) -> Self {
        let is_routed = !named.subnet_local;
        let (dlid, sl) = match named.local_lid {
            PERMISSIVE_LID if is_routed => (from.lid, from.sl),
            lid => (u32::from(lid), named.sl),
        };
        let dlid = if primary.is_opa {
            named.local_gid.opa_lid()
        } else {
            dlid
        };
        Path {
            sgid: named.remote_gid,
            dgid: named.local_gid,
            flow_label: named.flow_label,
            slid: Self::named_slid(named, from, primary.is_opa),
            dlid,
            hop_limit: named.hop_limit,
            traffic_class: named.traffic_class,
            sl,
            rate: named.packet_rate,
            packet_life_time: named.local_ack_timeout.saturating_sub(1),
            ..*primary
        }
    }

    /// Returns the LID of this end that the peer has `named` in a message received `from`, for a
    /// path of Omni-Path if `is_opa` is set.
    #[inline]
    fn named_slid(named: &ReqPath, from: &FromLink, is_opa: bool) -> u32 {
        match named.remote_lid {
            _ if is_opa => named.remote_gid.opa_lid(),
            PERMISSIVE_LID if !named.subnet_local => u32::from(from.path_bits),
            lid => u32::from(lid),
        }
    }

    /// Returns the LID for the data of a connection whose REQ was received `from`, or 0 if it is
    /// the LID for the messages: the sender may want another path for the data. On Omni-Path there
    /// is no other.
    pub fn data_lid(req: &Req<'_>, from: &FromLink) -> u16 {
        match req.primary.local_lid {
            PERMISSIVE_LID => 0,
            lid if from.is_opa || u32::from(lid) == from.lid => 0,
            lid => lid,
        }
    }

    /// Returns the path of a record that a user has given. LIDs are used only if the link
    /// `has_lids`.
    pub fn from_record(record: &PathRecord, has_lids: bool) -> Self {
        let (slid, dlid) = if has_lids { record.lids() } else { (0, 0) };
        let is_opa = has_lids && record.opa.is_some();
        let record = &record.sa;
        Path {
            service_id: record.service_id,
            sgid: record.sgid,
            dgid: record.dgid,
            flow_label: record.flow_label,
            slid,
            dlid,
            hop_limit: record.hop_limit,
            traffic_class: record.traffic_class,
            pkey: record.pkey,
            sl: record.sl,
            mtu: record.mtu,
            rate: record.rate,
            packet_life_time: record.packet_life_time.min(MAX_TIME_CODE),
            is_opa,
        }
    }

    /// Returns the bits of this end's LID that select a path, at a port whose mask of path bits is
    /// `mask`.
    pub const fn slid_bits(&self, mask: u8) -> u8 {
        let [.., low] = self.slid.to_be_bytes();
        low & mask
    }

    /// Returns whether packets over InfiniBand have a global route header (GRH).
    pub const fn has_grh(&self) -> bool {
        self.hop_limit > 0
    }

    /// Returns the source of the peer's messages over InfiniBand, as seen from the port where the
    /// path starts.
    pub fn origin_at(&self, port: IbPort) -> Origin {
        let gids = self.has_grh().then_some((self.sgid, self.dgid));
        Origin::on_link(port, self.dlid, gids)
    }

    /// Returns the primary path of a REQ for this path (IBTA 12.7.10 and following).
    ///
    /// If a LID has no place in a REQ, as on Omni-Path, both are in the GIDs, and the fields of the
    /// LIDs are zero as far as the path stays in the subnet. The state machine fills the ack
    /// timeout in.
    pub fn to_req(self) -> ReqPath {
        let subnet_local = self.hop_limit <= 1;
        let is_extended = self.is_opa && opa::is_extended(self.slid, self.dlid);
        let lid = |lid| match (subnet_local, is_extended) {
            (false, _) => PERMISSIVE_LID,
            (true, false) => opa::short_lid(lid),
            (true, true) => 0,
        };
        let mut named = ReqPath {
            local_lid: lid(self.slid),
            remote_lid: lid(self.dlid),
            local_gid: self.sgid,
            remote_gid: self.dgid,
            flow_label: self.flow_label,
            packet_rate: self.rate,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            sl: self.sl,
            subnet_local,
            local_ack_timeout: 0,
        };
        if is_extended {
            let (own, peer) = ((&self.sgid, self.slid), (&self.dgid, self.dlid));
            (named.local_gid, named.remote_gid) = opa::gids(own, peer);
        }
        named
    }

    /// Returns the path as a path record of the subnet administrator (IBTA 15.2.5.16).
    pub fn to_record(self) -> PathRecord {
        if self.is_opa {
            return PathRecord::of_opa(self.to_sa_record(), self.slid, self.dlid);
        }
        self.to_sa_record().into()
    }

    /// Returns the path as a record with the lower halves of its LIDs.
    #[inline]
    pub(crate) fn to_sa_record(self) -> SaPathRecord {
        SaPathRecord {
            service_id: self.service_id,
            dgid: self.dgid,
            sgid: self.sgid,
            slid: opa::short_lid(self.slid),
            dlid: opa::short_lid(self.dlid),
            flow_label: self.flow_label,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            reversible: true,
            pkey: self.pkey,
            sl: self.sl,
            mtu_selector: SaPathRecord::EXACTLY,
            mtu: self.mtu,
            rate_selector: SaPathRecord::EXACTLY,
            rate: self.rate,
            packet_life_time_selector: SaPathRecord::EXACTLY,
            packet_life_time: self.packet_life_time,
            ..SaPathRecord::default()
        }
    }

    /// Returns the native addresses of both ends, that of this end first, for a request for the
    /// service id of the path.
    pub fn native_addresses(&self) -> (SockAddr, SockAddr) {
        let end = |gid, sid, sid_mask| SockAddr::Ib {
            pkey: self.pkey,
            flowinfo: self.flow_label,
            gid,
            sid,
            sid_mask,
            scope_id: 0,
        };
        (
            end(self.sgid, ServiceId(self.service_id).0, u64::MAX),
            end(self.dgid, 0, 0),
        )
    }
}

/// Returns the record of a path that a user has given, as queries report it. On RoCE it has no
/// LIDs.
pub fn shown(record: &PathRecord, has_lids: bool) -> PathRecord {
    if has_lids {
        return *record;
    }
    PathRecord::from(SaPathRecord {
        dlid: 0,
        slid: 0,
        raw_traffic: false,
        ..record.sa
    })
}

/// Objects that tests share.
#[cfg(any(test, CONFIG_KUNIT))]
pub(crate) mod testing {
    use super::*;
    use crate::wire::Transport;

    /// The link of a message without a global route header.
    pub(crate) const FROM: FromLink = FromLink {
        lid: 7,
        path_bits: 3,
        sl: 5,
        has_grh: false,
        is_opa: false,
    };

    /// A path in one subnet.
    pub(crate) const PATH: Path = Path {
        service_id: 0x0106_1234,
        sgid: Gid([0x50; 16]),
        dgid: Gid([0xd0; 16]),
        flow_label: 0x12345,
        slid: 0x11,
        dlid: 0x22,
        hop_limit: 0,
        traffic_class: 9,
        pkey: 0x8001,
        sl: 2,
        mtu: 4,
        rate: 3,
        packet_life_time: 14,
        is_opa: false,
    };

    /// Returns a REQ along the path, with this primary path.
    pub(crate) fn req(primary: ReqPath) -> Req<'static> {
        Req {
            local_comm_id: 1,
            vendor_id: 0,
            service_id: PATH.service_id,
            local_ca_guid: 2,
            local_qkey: 0,
            local_qpn: 3,
            responder_resources: 0,
            local_eecn: 0,
            initiator_depth: 0,
            remote_eecn: 0,
            remote_cm_response_timeout: 20,
            transport: Transport::Rc,
            flow_control: false,
            starting_psn: 0,
            local_cm_response_timeout: 20,
            retry_count: 7,
            pkey: PATH.pkey,
            path_mtu: PATH.mtu,
            rdc_exists: false,
            rnr_retry_count: 7,
            max_cm_retries: 15,
            srq: false,
            primary,
            alternate: ReqPath::default(),
            sap: false,
            private_data: &[],
        }
    }

    /// Returns the path as seen from the other end.
    pub(crate) fn turned(path: Path) -> Path {
        Path {
            sgid: path.dgid,
            dgid: path.sgid,
            slid: path.dlid,
            dlid: path.slid,
            ..path
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_path_data)
)]
mod tests {
    use super::{
        testing::{req, turned, FROM, PATH},
        *,
    };

    #[test]
    fn what_is_assumed_of_roce() {
        // The value of C's `CMA_IBOE_PACKET_LIFETIME`: 0.27 s.
        assert_eq!(ROCE_PACKET_LIFE_TIME, 16);
        assert_eq!(ROCE_PKEY, 0xffff);
    }

    #[test]
    fn both_ends_see_one_path() {
        let mut primary = PATH.to_req();
        assert_eq!((primary.local_lid, primary.remote_lid), (0x11, 0x22));
        assert!(primary.subnet_local);
        primary.local_ack_timeout = PATH.packet_life_time + 1;
        let req = req(primary);
        let from = FromLink { lid: 0x11, ..FROM };
        assert_eq!(Path::from_req_over(&req, &from), turned(PATH));
        assert_eq!(Path::data_lid(&req, &from), 0);
        let by_roce = Path {
            slid: 0,
            dlid: 0,
            ..turned(PATH)
        };
        assert_eq!(Path::from_req(&req), by_roce);
    }

    #[test]
    fn a_header_is_answered_with_one() {
        let req = req(PATH.to_req());
        let path = Path::from_req_over(
            &req,
            &FromLink {
                has_grh: true,
                ..FROM
            },
        );
        assert!(path.has_grh());
        assert_eq!((path.hop_limit, path.dlid), (255, 7));
        assert!(!Path::from_req_over(&req, &FROM).has_grh());
    }

    #[test]
    fn what_a_routed_request_does_not_know_is_taken_from_the_link() {
        let far = Path {
            hop_limit: 64,
            ..PATH
        };
        let primary = far.to_req();
        assert_eq!((primary.local_lid, primary.remote_lid), (0xffff, 0xffff));
        assert!(!primary.subnet_local);
        let req = req(primary);
        let path = Path::from_req_over(&req, &FROM);
        assert_eq!((path.slid, path.dlid, path.sl), (3, 7, 5));
        assert_eq!(Path::data_lid(&req, &FROM), 0);
        // Only the path of a routed REQ takes them from the link.
        let mut odd = req.primary;
        odd.subnet_local = true;
        let path = Path::from_req_over(&super::testing::req(odd), &FROM);
        assert_eq!((path.slid, path.sl), (0xffff, PATH.sl));
    }

    #[test]
    fn an_alternate_path_is_seen_from_both_ends() {
        let other = Path {
            sgid: Gid([0x51; 16]),
            dgid: Gid([0xd1; 16]),
            hop_limit: 1,
            slid: 0x13,
            dlid: 0x24,
            sl: 7,
            rate: 5,
            packet_life_time: 15,
            ..PATH
        };
        let named = ReqPath {
            local_ack_timeout: other.packet_life_time + 1,
            ..other.to_req()
        };
        let primary = turned(PATH);
        assert_eq!(Path::alternate(&named, &primary, &FROM), turned(other));
        // A routed request does not know the LIDs, which are taken from the link.
        let far = Path {
            hop_limit: 64,
            ..other
        };
        let path = Path::alternate(&far.to_req(), &primary, &FROM);
        assert_eq!((path.slid, path.dlid, path.sl), (3, 7, 5));
        assert_eq!((path.hop_limit, path.packet_life_time), (64, 0));
    }

    #[test]
    fn data_may_go_to_another_lid() {
        let mut primary = PATH.to_req();
        primary.local_lid = 0x15;
        let req = req(primary);
        assert_eq!(Path::data_lid(&req, &FROM), 0x15);
        assert_eq!(Path::from_req_over(&req, &FROM).dlid, 7);
    }

    #[test]
    fn records_and_back() {
        assert_eq!(Path::from_record(&PATH.to_record(), true), PATH);
        let without = Path {
            slid: 0,
            dlid: 0,
            ..PATH
        };
        assert_eq!(Path::from_record(&PATH.to_record(), false), without);
        let record = PathRecord::from(SaPathRecord {
            raw_traffic: true,
            packet_life_time: 63,
            ..PATH.to_record().sa
        });
        assert_eq!(shown(&record, true), record);
        let on_roce = shown(&record, false).sa;
        assert_eq!(
            (on_roce.dlid, on_roce.slid, on_roce.raw_traffic),
            (0, 0, false)
        );
        assert_eq!(Path::from_record(&record, true).packet_life_time, 31);
    }

    #[test]
    fn the_peer_is_known_by_lid_or_gid() {
        let port = IbPort { device: 1, port: 1 };
        assert_eq!(PATH.origin_at(port), Origin::of_lid(port, 0x22));
        let far = Path {
            hop_limit: 64,
            ..PATH
        };
        assert_eq!(far.origin_at(port), Origin::of_gid(PATH.dgid));
    }

    #[test]
    fn native_addresses() {
        let (own, peer) = PATH.native_addresses();
        assert_eq!((own.to_gid(), peer.to_gid()), (PATH.sgid, PATH.dgid));
        assert_eq!((own.port(), peer.port()), (0x1234, 0));
    }
}
