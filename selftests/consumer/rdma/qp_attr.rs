// SPDX-License-Identifier: GPL-2.0

//! The attributes of queue pairs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    gid::{Gid, Mac},
    number::numbers,
};
use crate::bindings;
use kernel::{error::to_result, prelude::*};

numbers! {
    /// A type of queue pairs.
    QpType {
        RC = ib_qp_type_IB_QPT_RC,
        UD = ib_qp_type_IB_QPT_UD,
    }
    /// A state of a queue pair.
    QpState {
        INIT = ib_qp_state_IB_QPS_INIT,
        RTR = ib_qp_state_IB_QPS_RTR,
        RTS = ib_qp_state_IB_QPS_RTS,
        ERR = ib_qp_state_IB_QPS_ERR,
    }
    /// The attributes that are set, one bit each.
    QpMask {
        STATE = ib_qp_attr_mask_IB_QP_STATE,
        ACCESS_FLAGS = ib_qp_attr_mask_IB_QP_ACCESS_FLAGS,
        PKEY_INDEX = ib_qp_attr_mask_IB_QP_PKEY_INDEX,
        PORT = ib_qp_attr_mask_IB_QP_PORT,
        AV = ib_qp_attr_mask_IB_QP_AV,
        PATH_MTU = ib_qp_attr_mask_IB_QP_PATH_MTU,
        DEST_QPN = ib_qp_attr_mask_IB_QP_DEST_QPN,
        RQ_PSN = ib_qp_attr_mask_IB_QP_RQ_PSN,
        MAX_DEST_RD_ATOMIC = ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC,
        MIN_RNR_TIMER = ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER,
        SQ_PSN = ib_qp_attr_mask_IB_QP_SQ_PSN,
        RETRY_CNT = ib_qp_attr_mask_IB_QP_RETRY_CNT,
        RNR_RETRY = ib_qp_attr_mask_IB_QP_RNR_RETRY,
        MAX_QP_RD_ATOMIC = ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC,
        TIMEOUT = ib_qp_attr_mask_IB_QP_TIMEOUT,
        ALT_PATH = ib_qp_attr_mask_IB_QP_ALT_PATH,
        PATH_MIG_STATE = ib_qp_attr_mask_IB_QP_PATH_MIG_STATE,
    }
}

impl core::ops::BitOr for QpMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The part of `struct ib_qp_attr` that a connection manager sets. Attributes that are not in the
/// mask are zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct QpAttr {
    pub(crate) mask: QpMask,
    pub(crate) port: u32,
    pub(crate) remote_may_read: bool,
    pub(crate) remote_may_write: bool,
    pub(crate) dest_qpn: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) path_mtu: u32,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_count: u8,
    /// The address of the peer.
    pub(crate) address: Option<Address>,
    pub(crate) path_mig_state: u32,
    /// The alternate path.
    pub(crate) alternate: Alternate,
}

/// `IB_MIG_REARM`: the queue pair is to load its alternate path.
pub(crate) const MIG_REARM: u32 = bindings::ib_mig_state_IB_MIG_REARM;

/// The attributes of an alternate path.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Alternate {
    pub(crate) port: u32,
    pub(crate) pkey_index: u16,
    pub(crate) timeout: u8,
    /// The address of the peer.
    pub(crate) address: Option<Address>,
}

/// The address of a peer on its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeerLink {
    /// RoCE.
    Mac(Mac),
    /// InfiniBand, or Omni-Path.
    Lid {
        dlid: u32,
        /// The bits that choose one of the LIDs of the own port.
        path_bits: u8,
    },
}

/// The address of a peer (`struct rdma_ah_attr`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) link: PeerLink,
    /// The address beyond the link, if there is one.
    pub(crate) global: Option<Global>,
}

/// The address of a peer that is everybody's (`struct ib_global_route`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Global {
    pub(crate) sgid_index: u8,
    pub(crate) dgid: Gid,
    pub(crate) traffic_class: u8,
}

impl QpAttr {
    /// Returns true if `fill` leaves the attributes alone that are not `named`.
    fn keeps_others(
        state: QpState,
        named: QpMask,
        fill: impl FnOnce(&mut bindings::ib_qp_attr, &mut c_int) -> c_int,
    ) -> Result<bool> {
        const MINE: u8 = 77;
        let mut raw = bindings::ib_qp_attr {
            qp_state: state.0,
            qp_access_flags: MINE.into(),
            qkey: MINE.into(),
            sq_psn: MINE.into(),
            dest_qp_num: MINE.into(),
            max_rd_atomic: MINE,
            timeout: MINE,
            alt_timeout: MINE,
            ..Default::default()
        };
        raw.cap.max_send_wr = MINE.into();
        let mut mask = 0;
        to_result(fill(&mut raw, &mut mask))?;
        let others = [
            (QpMask::ACCESS_FLAGS, raw.qp_access_flags == MINE.into()),
            (QpMask::SQ_PSN, raw.sq_psn == MINE.into()),
            (QpMask::DEST_QPN, raw.dest_qp_num == MINE.into()),
            (QpMask::MAX_QP_RD_ATOMIC, raw.max_rd_atomic == MINE),
            (QpMask::TIMEOUT, raw.timeout == MINE),
            (QpMask::ALT_PATH, raw.alt_timeout == MINE),
            (QpMask(0), raw.cap.max_send_wr == MINE.into()),
        ];
        let is_kept = |&(bit, is_mine): &(QpMask, bool)| is_mine || named.0 & bit.0 != 0;
        Ok(others.iter().all(is_kept))
    }

    /// Asks `fill` for the attributes that take a queue pair to this state. Fails with [`EINVAL`]
    /// if it changes others.
    pub(super) fn ask(
        state: QpState,
        mut fill: impl FnMut(&mut bindings::ib_qp_attr, &mut c_int) -> c_int,
    ) -> Result<Self> {
        let mut raw = bindings::ib_qp_attr {
            qp_state: state.0,
            ..Default::default()
        };
        let mut mask = 0;
        to_result(fill(&mut raw, &mut mask))?;
        let named = QpMask(u32::try_from(mask).map_err(|_| ERANGE)?);
        if !Self::keeps_others(state, named, fill)? {
            return Err(EINVAL);
        }
        let may = |flag: bindings::ib_access_flags| {
            u32::try_from(raw.qp_access_flags).is_ok_and(|flags| flags & flag != 0)
        };
        Ok(Self {
            mask: named,
            port: raw.port_num,
            remote_may_read: may(bindings::ib_access_flags_IB_ACCESS_REMOTE_READ),
            remote_may_write: may(bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE),
            dest_qpn: raw.dest_qp_num,
            rq_psn: raw.rq_psn,
            sq_psn: raw.sq_psn,
            path_mtu: raw.path_mtu,
            max_rd_atomic: raw.max_rd_atomic,
            max_dest_rd_atomic: raw.max_dest_rd_atomic,
            min_rnr_timer: raw.min_rnr_timer,
            timeout: raw.timeout,
            retry_count: raw.retry_cnt,
            address: Address::from_raw(&raw.ah_attr),
            path_mig_state: raw.path_mig_state,
            alternate: Alternate::from_raw(&raw),
        })
    }
}

impl Alternate {
    pub(super) fn from_raw(raw: &bindings::ib_qp_attr) -> Self {
        Self {
            port: raw.alt_port_num,
            pkey_index: raw.alt_pkey_index,
            timeout: raw.alt_timeout,
            address: Address::from_raw(&raw.alt_ah_attr),
        }
    }
}

impl Address {
    fn from_raw(raw: &bindings::rdma_ah_attr) -> Option<Self> {
        // SAFETY: These are the parts of the union that go with the types.
        let link = unsafe {
            match raw.type_ {
                bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE => {
                    PeerLink::Mac(raw.__bindgen_anon_1.roce.dmac)
                }
                bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB => {
                    let ib = raw.__bindgen_anon_1.ib;
                    PeerLink::Lid {
                        dlid: ib.dlid.into(),
                        path_bits: ib.src_path_bits,
                    }
                }
                bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA => {
                    let opa = raw.__bindgen_anon_1.opa;
                    PeerLink::Lid {
                        dlid: opa.dlid,
                        path_bits: opa.src_path_bits,
                    }
                }
                _ => return None,
            }
        };
        let has_grh = u32::from(raw.ah_flags) & bindings::ib_ah_flags_IB_AH_GRH != 0;
        Some(Self {
            link,
            global: has_grh.then(|| Global {
                sgid_index: raw.grh.sgid_index,
                dgid: Gid::from_raw(&raw.grh.dgid),
                traffic_class: raw.grh.traffic_class,
            }),
        })
    }
}
