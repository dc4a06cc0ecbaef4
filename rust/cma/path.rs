// SPDX-License-Identifier: GPL-2.0

//! The path of a connection, as data.

use cmproto::{
    addr::Gid,
    ucma::path::PathRecord,
    wire::{Req, ReqPath},
};

/// P_Key of RoCE: there are no partitions, and the default one stands for that.
pub(crate) const ROCE_PKEY: u16 = 0xffff;

/// Life time of a packet that is assumed for RoCE, an IBA time code.
pub(crate) const ROCE_PACKET_LIFE_TIME: u8 = 16;

/// Selector of a path record: the value itself, not a bound (IBTA 15.2.5.16).
const EXACTLY: u8 = 2;

/// The largest time code (IBTA 9.9.2.1.1), in five bits where a path record has six.
const MAX_TIME_CODE: u8 = 31;

/// LID that stands for "whichever" (IBTA 3.5.11).
const PERMISSIVE_LID: u16 = 0xffff;

/// A path between two ports.
///
/// LIDs are absent: RoCE has none. All values are in host order.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    /// The service that the path was asked for; 0 if none.
    pub(crate) service_id: u64,
    /// GID of this end.
    pub(crate) sgid: Gid,
    /// GID of the peer.
    pub(crate) dgid: Gid,
    /// Flow label, 20 bits.
    pub(crate) flow_label: u32,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) pkey: u16,
    /// Service level, 4 bits.
    pub(crate) sl: u8,
    /// Payload size, `enum ib_mtu`.
    pub(crate) mtu: u8,
    /// Static rate, `enum ib_rate`.
    pub(crate) rate: u8,
    /// Life time of a packet, an IBA time code.
    pub(crate) packet_life_time: u8,
}

impl Path {
    /// The path that a REQ names, as the end that received it sees it.
    ///
    /// The hop limit is not what the REQ says, but is known once its sender has been found.
    pub(crate) fn from_req(req: &Req<'_>) -> Self {
        Path {
            service_id: req.service_id,
            sgid: req.primary.remote_gid,
            dgid: req.primary.local_gid,
            flow_label: req.primary.flow_label,
            hop_limit: 0,
            traffic_class: req.primary.traffic_class,
            pkey: req.pkey,
            sl: req.primary.sl,
            mtu: req.path_mtu,
            rate: req.primary.packet_rate,
            packet_life_time: req.primary.local_ack_timeout.saturating_sub(1),
        }
    }

    /// The path that a user has found by itself. LIDs mean nothing on RoCE.
    pub(crate) fn from_record(record: &PathRecord) -> Self {
        Path {
            service_id: record.service_id,
            sgid: record.sgid,
            dgid: record.dgid,
            flow_label: record.flow_label,
            hop_limit: record.hop_limit,
            traffic_class: record.traffic_class,
            pkey: record.pkey,
            sl: record.sl,
            mtu: record.mtu,
            rate: record.rate,
            packet_life_time: record.packet_life_time.min(MAX_TIME_CODE),
        }
    }

    /// The primary path of a REQ for this path (IBTA 12.7.10 and following).
    ///
    /// Its ack timeout is for the state machine to fill in.
    pub(crate) fn to_req(self) -> ReqPath {
        let subnet_local = self.hop_limit <= 1;
        let lid = if subnet_local { 0 } else { PERMISSIVE_LID };
        ReqPath {
            local_lid: lid,
            remote_lid: lid,
            local_gid: self.sgid,
            remote_gid: self.dgid,
            flow_label: self.flow_label,
            packet_rate: self.rate,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            sl: self.sl,
            subnet_local,
            local_ack_timeout: 0,
        }
    }

    /// The path as an SA path record (IBTA 15.2.5.16).
    pub(crate) fn to_record(self) -> PathRecord {
        PathRecord {
            service_id: self.service_id,
            dgid: self.dgid,
            sgid: self.sgid,
            flow_label: self.flow_label,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            reversible: true,
            pkey: self.pkey,
            sl: self.sl,
            mtu_selector: EXACTLY,
            mtu: self.mtu,
            rate_selector: EXACTLY,
            rate: self.rate,
            packet_life_time_selector: EXACTLY,
            packet_life_time: self.packet_life_time,
            ..PathRecord::default()
        }
    }
}

/// The record of a path that a user has found by itself, as it is shown.
pub(crate) fn shown(record: &PathRecord) -> PathRecord {
    PathRecord {
        dlid: 0,
        slid: 0,
        raw_traffic: false,
        ..*record
    }
}
