// SPDX-License-Identifier: GPL-2.0

//! Paths: how to get from one port to another.
//!
//! C header: [`include/rdma/ib_sa.h`](srctree/include/rdma/ib_sa.h)

use super::{
    gid::{Gid, Mac},
    qp_attr::PeerLink,
};
use crate::bindings;

/// `IB_MTU_1024`, in paths and of queue pairs.
pub(crate) const MTU_1024: u32 = bindings::ib_mtu_IB_MTU_1024;

/// The link of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// RoCE v2, by a route that is known, to this address.
    Roce(Mac),
    /// InfiniBand, from a LID to a LID.
    Ib { slid: u16, dlid: u16 },
    /// Omni-Path, likewise.
    Opa { slid: u32, dlid: u32 },
}

impl Default for Link {
    fn default() -> Self {
        Link::Roce(Mac::default())
    }
}

/// A path (`struct sa_path_rec`), which goes both ways.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) sgid: Gid,
    pub(crate) dgid: Gid,
    pub(crate) link: Link,
    pub(crate) pkey: u16,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) mtu: u8,
    /// A time code of the IBTA's.
    pub(crate) packet_life_time: u8,
    /// The number of the service; paths that are asked for leave it open.
    pub(crate) service_id: u64,
}

/// `IB_SA_EQ`: neither more nor less.
const EQUAL: u8 = bindings::ib_sa_selector_IB_SA_EQ as u8;

impl Link {
    fn from_raw(raw: &bindings::sa_path_rec) -> Option<Self> {
        match raw.rec_type {
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2 => {
                // SAFETY: This is the part of the union that paths of RoCE have.
                Some(Link::Roce(unsafe { raw.__bindgen_anon_1.roce.dmac }))
            }
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB => {
                // SAFETY: This is the part of the union that paths of InfiniBand have.
                let ib = unsafe { raw.__bindgen_anon_1.ib };
                Some(Link::Ib {
                    slid: u16::from_be(ib.slid),
                    dlid: u16::from_be(ib.dlid),
                })
            }
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA => {
                // SAFETY: This is the part of the union that paths of Omni-Path have.
                let opa = unsafe { raw.__bindgen_anon_1.opa };
                Some(Link::Opa {
                    slid: u32::from_be(opa.slid),
                    dlid: u32::from_be(opa.dlid),
                })
            }
            _ => None,
        }
    }

    /// The link from a port to itself: of Omni-Path if it has a long LID.
    pub(crate) fn to_itself(lid: u32) -> Self {
        match u16::try_from(lid) {
            Ok(lid) => Link::Ib {
                slid: lid,
                dlid: lid,
            },
            Err(_) => Link::Opa {
                slid: lid,
                dlid: lid,
            },
        }
    }

    /// The address of the peer on the link, from the first LID of the own port.
    pub(crate) fn peer(self) -> PeerLink {
        let (dlid, path_bits) = match self {
            Link::Roce(mac) => return PeerLink::Mac(mac),
            Link::Ib { dlid, .. } => (dlid.into(), 0),
            Link::Opa { dlid, .. } => (dlid, 0),
        };
        PeerLink::Lid { dlid, path_bits }
    }

    /// Returns true if it is InfiniBand, or Omni-Path.
    pub(crate) fn is_ib(self) -> bool {
        !matches!(self, Link::Roce(_))
    }
}

impl Path {
    /// The path, if it is one of RoCE v2 or of InfiniBand.
    pub(super) fn from_raw(raw: &bindings::sa_path_rec) -> Option<Self> {
        let link = Link::from_raw(raw)?;
        Some(Self {
            sgid: Gid::from_raw(&raw.sgid),
            dgid: Gid::from_raw(&raw.dgid),
            link,
            pkey: u16::from_be(raw.pkey),
            hop_limit: raw.hop_limit,
            traffic_class: raw.traffic_class,
            mtu: raw.mtu,
            packet_life_time: raw.packet_life_time,
            service_id: u64::from_be(raw.service_id),
        })
    }

    pub(super) fn to_raw(self) -> bindings::sa_path_rec {
        let (rec_type, link) = match self.link {
            Link::Roce(dmac) => (
                bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2,
                bindings::sa_path_rec__bindgen_ty_1 {
                    roce: bindings::sa_path_rec_roce {
                        route_resolved: true,
                        dmac,
                    },
                },
            ),
            Link::Ib { slid, dlid } => (
                bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB,
                bindings::sa_path_rec__bindgen_ty_1 {
                    ib: bindings::sa_path_rec_ib {
                        slid: slid.to_be(),
                        dlid: dlid.to_be(),
                        raw_traffic: 0,
                    },
                },
            ),
            Link::Opa { slid, dlid } => (
                bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA,
                bindings::sa_path_rec__bindgen_ty_1 {
                    opa: bindings::sa_path_rec_opa {
                        slid: slid.to_be(),
                        dlid: dlid.to_be(),
                        ..Default::default()
                    },
                },
            ),
        };
        bindings::sa_path_rec {
            rec_type,
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
            __bindgen_anon_1: link,
            ..Default::default()
        }
    }
}
