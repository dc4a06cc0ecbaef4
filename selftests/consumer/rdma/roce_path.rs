// SPDX-License-Identifier: GPL-2.0

//! Paths: how to get from one port to another.
//!
//! C header: [`include/rdma/ib_sa.h`](srctree/include/rdma/ib_sa.h)

use super::gid::{Gid, Mac};
use crate::bindings;

/// `IB_MTU_1024`, in paths and of queue pairs.
pub(crate) const MTU_1024: u32 = bindings::ib_mtu_IB_MTU_1024;

/// A path of RoCE v2 (`struct sa_path_rec`), which goes both ways, by a route that is known.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RocePath {
    pub(crate) sgid: Gid,
    pub(crate) dgid: Gid,
    pub(crate) dmac: Mac,
    pub(crate) pkey: u16,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) mtu: u8,
    /// A time code of the IBTA's.
    pub(crate) packet_life_time: u8,
    /// What is known of the service; paths that are asked for leave it open.
    pub(crate) service_id: u64,
}

/// `IB_SA_EQ`: neither more nor less.
const EQUAL: u8 = bindings::ib_sa_selector_IB_SA_EQ as u8;

impl RocePath {
    /// The path, if it is one of RoCE v2.
    pub(super) fn from_raw(raw: &bindings::sa_path_rec) -> Option<Self> {
        if raw.rec_type != bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2 {
            return None;
        }
        Some(Self {
            sgid: Gid::from_raw(&raw.sgid),
            dgid: Gid::from_raw(&raw.dgid),
            // SAFETY: This is the part of the union that paths of RoCE have.
            dmac: unsafe { raw.__bindgen_anon_1.roce.dmac },
            pkey: u16::from_be(raw.pkey),
            hop_limit: raw.hop_limit,
            traffic_class: raw.traffic_class,
            mtu: raw.mtu,
            packet_life_time: raw.packet_life_time,
            service_id: u64::from_be(raw.service_id),
        })
    }

    pub(super) fn to_raw(self) -> bindings::sa_path_rec {
        bindings::sa_path_rec {
            rec_type: bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2,
            sgid: self.sgid.to_raw(),
            dgid: self.dgid.to_raw(),
            pkey: self.pkey.to_be(),
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            reversible: 1,
            numb_path: 1,
            mtu_selector: EQUAL,
            mtu: self.mtu,
            packet_life_time_selector: EQUAL,
            packet_life_time: self.packet_life_time,
            service_id: self.service_id.to_be(),
            __bindgen_anon_1: bindings::sa_path_rec__bindgen_ty_1 {
                roce: bindings::sa_path_rec_roce {
                    route_resolved: true,
                    dmac: self.dmac,
                },
            },
            ..Default::default()
        }
    }
}
