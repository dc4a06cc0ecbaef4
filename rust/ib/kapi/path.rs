// SPDX-License-Identifier: GPL-2.0

//! Path records, as C has them.

use crate::bindings;
use cmproto::{addr::Gid, ucma::path::PathRecord};
use kernel::types::Opaque;

/// The record of the path of a connection, for the consumer.
pub(crate) struct PathRec(Opaque<bindings::sa_path_rec>);

// SAFETY: Written by one task at a time, as `IdHead::set_path` demands; read by any.
unsafe impl Send for PathRec {}

// SAFETY: As above.
unsafe impl Sync for PathRec {}

impl PathRec {
    /// A record that says nothing.
    pub(crate) fn new() -> Self {
        Self(Opaque::new(pin_init::zeroed()))
    }

    pub(super) fn as_raw(&self) -> *mut bindings::sa_path_rec {
        self.0.get()
    }
}

/// The record of a path over RoCE, v2 or v1, to a peer that is at `dmac` on the link.
pub(super) fn to_raw(path: &PathRecord, is_v2: bool, dmac: [u8; 6]) -> bindings::sa_path_rec {
    let mut record = bindings::sa_path_rec {
        dgid: bindings::ib_gid { raw: path.dgid.0 },
        sgid: bindings::ib_gid { raw: path.sgid.0 },
        service_id: path.service_id.to_be(),
        flow_label: path.flow_label.to_be(),
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        reversible: u8::from(path.reversible),
        numb_path: 1,
        pkey: path.pkey.to_be(),
        sl: path.sl,
        mtu_selector: path.mtu_selector,
        mtu: path.mtu,
        rate_selector: path.rate_selector,
        rate: path.rate,
        packet_life_time_selector: path.packet_life_time_selector,
        packet_life_time: path.packet_life_time,
        rec_type: if is_v2 {
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2
        } else {
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1
        },
        ..pin_init::zeroed()
    };
    record.__bindgen_anon_1.roce = bindings::sa_path_rec_roce {
        route_resolved: true,
        dmac,
    };
    record
}

/// Reads a path record.
pub(super) fn path_record(path: &bindings::sa_path_rec) -> PathRecord {
    // SAFETY: All of a GID are bytes.
    let (dgid, sgid) = unsafe { (path.dgid.raw, path.sgid.raw) };
    PathRecord {
        service_id: u64::from_be(path.service_id),
        dgid: Gid(dgid),
        sgid: Gid(sgid),
        flow_label: u32::from_be(path.flow_label),
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        reversible: path.reversible != 0,
        numb_path: path.numb_path,
        pkey: u16::from_be(path.pkey),
        sl: path.sl,
        mtu_selector: path.mtu_selector,
        mtu: path.mtu,
        rate_selector: path.rate_selector,
        rate: path.rate,
        packet_life_time_selector: path.packet_life_time_selector,
        packet_life_time: path.packet_life_time,
        preference: path.preference,
        ..PathRecord::default()
    }
}
