// SPDX-License-Identifier: GPL-2.0

//! Conversion of SA records between this module's types and those of C, which are not the wire
//! format.

use super::{McMember, ServiceQuery, ServiceRecord};
use crate::bindings;
use cmproto::{addr::Gid, ucma::path::PathRecord};

/// Converts a path of InfiniBand to its C form.
pub(crate) fn path_to_raw(path: &PathRecord) -> bindings::sa_path_rec {
    let ib = bindings::sa_path_rec_ib {
        dlid: path.dlid.to_be(),
        slid: path.slid.to_be(),
        raw_traffic: path.raw_traffic.into(),
    };
    let mut raw = bindings::sa_path_rec {
        dgid: bindings::ib_gid { raw: path.dgid.0 },
        sgid: bindings::ib_gid { raw: path.sgid.0 },
        service_id: path.service_id.to_be(),
        flow_label: path.flow_label.to_be(),
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        reversible: path.reversible.into(),
        numb_path: path.numb_path,
        pkey: path.pkey.to_be(),
        qos_class: path.qos_class.to_be(),
        sl: path.sl,
        mtu_selector: path.mtu_selector,
        mtu: path.mtu,
        rate_selector: path.rate_selector,
        rate: path.rate,
        packet_life_time_selector: path.packet_life_time_selector,
        packet_life_time: path.packet_life_time,
        preference: path.preference,
        rec_type: bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB,
        ..pin_init::zeroed()
    };
    raw.__bindgen_anon_1.ib = ib;
    raw
}

/// Converts a path of C; the LIDs are 0 if it is no path of InfiniBand.
pub(crate) fn path_from_raw(raw: &bindings::sa_path_rec) -> PathRecord {
    let ib = if raw.rec_type == bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB {
        // SAFETY: The record type tells that this is the valid field of the union.
        unsafe { raw.__bindgen_anon_1.ib }
    } else {
        bindings::sa_path_rec_ib::default()
    };
    // SAFETY: Any bytes are a GID.
    let (dgid, sgid) = unsafe { (raw.dgid.raw, raw.sgid.raw) };
    PathRecord {
        service_id: u64::from_be(raw.service_id),
        dgid: Gid(dgid),
        sgid: Gid(sgid),
        dlid: u16::from_be(ib.dlid),
        slid: u16::from_be(ib.slid),
        raw_traffic: ib.raw_traffic != 0,
        flow_label: u32::from_be(raw.flow_label),
        hop_limit: raw.hop_limit,
        traffic_class: raw.traffic_class,
        reversible: raw.reversible != 0,
        numb_path: raw.numb_path,
        pkey: u16::from_be(raw.pkey),
        qos_class: u16::from_be(raw.qos_class),
        sl: raw.sl,
        mtu_selector: raw.mtu_selector,
        mtu: raw.mtu,
        rate_selector: raw.rate_selector,
        rate: raw.rate,
        packet_life_time_selector: raw.packet_life_time_selector,
        packet_life_time: raw.packet_life_time,
        preference: raw.preference,
    }
}

/// Converts a query for services to its C form.
pub(super) fn service_to_raw(query: &ServiceQuery) -> bindings::sa_service_rec {
    let mut raw: bindings::sa_service_rec = pin_init::zeroed();
    if let Some(id) = query.id {
        raw.id = id.to_be();
    }
    if let Some(name) = query.name {
        raw.name = name;
    }
    raw
}

/// Converts a service record of C.
///
/// # Safety
///
/// `raw` must point to a record that is initialised except for reserved fields.
pub(super) unsafe fn service_from_raw(raw: *const bindings::sa_service_rec) -> ServiceRecord {
    // SAFETY: By the safety requirements. No reference to the whole record is created, because
    // parts of it may be uninitialised.
    unsafe {
        ServiceRecord {
            id: u64::from_be((*raw).id).into(),
            gid: (*raw).gid,
            pkey: u16::from_be((*raw).pkey).into(),
            reserved: [0; 2],
            lease: u32::from_be((*raw).lease).into(),
            key: (*raw).key,
            name: (*raw).name,
            data_8: (*raw).data_8,
            data_16: (*raw).data_16.map(|data| u16::from_be(data).into()),
            data_32: (*raw).data_32.map(|data| u32::from_be(data).into()),
            data_64: (*raw).data_64.map(|data| u64::from_be(data).into()),
        }
    }
}

/// Converts a service record to its C form.
pub(crate) fn found_to_raw(found: &ServiceRecord) -> bindings::sa_service_rec {
    bindings::sa_service_rec {
        id: found.id.get().to_be(),
        gid: found.gid,
        pkey: found.pkey.get().to_be(),
        lease: found.lease.get().to_be(),
        key: found.key,
        name: found.name,
        data_8: found.data_8,
        data_16: found.data_16.map(|data| data.get().to_be()),
        data_32: found.data_32.map(|data| data.get().to_be()),
        data_64: found.data_64.map(|data| data.get().to_be()),
        ..pin_init::zeroed()
    }
}

/// Converts a multicast member record to its C form.
pub(super) fn member_to_raw(member: &McMember) -> bindings::ib_sa_mcmember_rec {
    bindings::ib_sa_mcmember_rec {
        mgid: bindings::ib_gid { raw: member.mgid.0 },
        port_gid: bindings::ib_gid {
            raw: member.port_gid.0,
        },
        qkey: member.qkey.to_be(),
        mlid: member.mlid.to_be(),
        mtu_selector: member.mtu_selector,
        mtu: member.mtu,
        traffic_class: member.traffic_class,
        pkey: member.pkey.to_be(),
        rate_selector: member.rate_selector,
        rate: member.rate,
        packet_life_time_selector: member.packet_life_time_selector,
        packet_life_time: member.packet_life_time,
        sl: member.sl,
        flow_label: member.flow_label.to_be(),
        hop_limit: member.hop_limit,
        scope: member.scope,
        join_state: member.join_state,
        proxy_join: member.proxy_join,
    }
}

/// Converts a multicast member record of C.
pub(super) fn member_from_raw(raw: &bindings::ib_sa_mcmember_rec) -> McMember {
    // SAFETY: Any bytes are a GID.
    let (mgid, port_gid) = unsafe { (raw.mgid.raw, raw.port_gid.raw) };
    McMember {
        mgid: Gid(mgid),
        port_gid: Gid(port_gid),
        qkey: u32::from_be(raw.qkey),
        mlid: u16::from_be(raw.mlid),
        mtu_selector: raw.mtu_selector,
        mtu: raw.mtu,
        traffic_class: raw.traffic_class,
        pkey: u16::from_be(raw.pkey),
        rate_selector: raw.rate_selector,
        rate: raw.rate,
        packet_life_time_selector: raw.packet_life_time_selector,
        packet_life_time: raw.packet_life_time,
        sl: raw.sl,
        flow_label: u32::from_be(raw.flow_label),
        hop_limit: raw.hop_limit,
        scope: raw.scope,
        join_state: raw.join_state,
        proxy_join: raw.proxy_join,
    }
}
