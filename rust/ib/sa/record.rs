// SPDX-License-Identifier: GPL-2.0

//! Conversion of SA records between this module's types and those of C, which are not the wire
//! format.

use super::{McMember, ServiceQuery, ServiceRecord};
use crate::bindings;
use cmproto::{addr::Gid, opa::OpaPath, ucma::path::PathRecord, ucma_abi::SaPathRecord};

/// Defines the conversions of a record to its C form and back, of the fields that both have: GIDs,
/// numbers that C has in network byte order, and fields that are the same. All others are zero.
macro_rules! conversions {
    ($vis:vis $to:ident, $from:ident: $record:ident, $raw:ident {
        gids: $($gid:ident)+,
        big_endian: $($number:ident)+,
        same: $($field:ident)+,
    }) => {
        $vis fn $to(record: &$record) -> bindings::$raw {
            let mut raw: bindings::$raw = pin_init::zeroed();
            $(raw.$gid.raw = record.$gid.0;)+
            $(raw.$number = record.$number.to_be();)+
            $(raw.$field = record.$field;)+
            raw
        }

        $vis fn $from(raw: &bindings::$raw) -> $record {
            let mut record = $record::default();
            // SAFETY: Any bytes are a GID.
            $(record.$gid = Gid(unsafe { raw.$gid.raw });)+
            // This also converts from big endian.
            $(record.$number = raw.$number.to_be();)+
            $(record.$field = raw.$field;)+
            record
        }
    };
}

conversions! {
    common_to_raw, common_from_raw: SaPathRecord, sa_path_rec {
        gids: dgid sgid,
        big_endian: service_id flow_label pkey qos_class,
        same: hop_limit traffic_class numb_path sl mtu_selector mtu rate_selector rate
            packet_life_time_selector packet_life_time preference,
    }
}

/// Converts a path of InfiniBand or Omni-Path to its C form.
pub(crate) fn path_to_raw(path: &PathRecord) -> bindings::sa_path_rec {
    let PathRecord { sa, opa } = path;
    let mut raw = common_to_raw(sa);
    raw.reversible = sa.reversible.into();
    match opa {
        None => {
            raw.rec_type = bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB;
            raw.__bindgen_anon_1.ib = bindings::sa_path_rec_ib {
                dlid: sa.dlid.to_be(),
                slid: sa.slid.to_be(),
                raw_traffic: sa.raw_traffic.into(),
            };
        }
        Some(opa) => {
            let [of_8, of_10, of_9, of_16] = opa.formats;
            raw.rec_type = bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA;
            raw.__bindgen_anon_1.opa = bindings::sa_path_rec_opa {
                dlid: opa.dlid.to_be(),
                slid: opa.slid.to_be(),
                raw_traffic: sa.raw_traffic.into(),
                l2_8B: of_8,
                l2_10B: of_10,
                l2_9B: of_9,
                l2_16B: of_16,
                qos_type: opa.qos_type,
                qos_priority: opa.qos_priority,
            };
        }
    }
    raw
}

/// Converts a path of C; the LIDs are 0 if it is one of RoCE.
pub(crate) fn path_from_raw(raw: &bindings::sa_path_rec) -> PathRecord {
    let sa = SaPathRecord {
        reversible: raw.reversible != 0,
        ..common_from_raw(raw)
    };
    match raw.rec_type {
        bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB => {
            // SAFETY: The record type tells that this is the valid field of the union.
            let ib = unsafe { raw.__bindgen_anon_1.ib };
            PathRecord::from(SaPathRecord {
                dlid: u16::from_be(ib.dlid),
                slid: u16::from_be(ib.slid),
                raw_traffic: ib.raw_traffic != 0,
                ..sa
            })
        }
        bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA => {
            // SAFETY: The record type tells that this is the valid field of the union.
            let opa = unsafe { raw.__bindgen_anon_1.opa };
            PathRecord {
                sa: SaPathRecord {
                    raw_traffic: opa.raw_traffic != 0,
                    ..sa
                },
                opa: Some(OpaPath {
                    dlid: u32::from_be(opa.dlid),
                    slid: u32::from_be(opa.slid),
                    formats: [opa.l2_8B, opa.l2_10B, opa.l2_9B, opa.l2_16B],
                    qos_type: opa.qos_type,
                    qos_priority: opa.qos_priority,
                }),
            }
        }
        _ => PathRecord::from(sa),
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

conversions! {
    pub(super) member_to_raw, member_from_raw: McMember, ib_sa_mcmember_rec {
        gids: mgid port_gid,
        big_endian: qkey mlid pkey flow_label,
        same: mtu_selector mtu traffic_class rate_selector rate packet_life_time_selector
            packet_life_time sl hop_limit scope join_state proxy_join,
    }
}
