// SPDX-License-Identifier: GPL-2.0

//! Attributes of the queue pair of a connection.

use core::ops::{BitOr, BitOrAssign};

use super::{connection::Connection, state::State};
use crate::errno::Errno;
use crate::numbered::{from_number, numbered};
use crate::qp::QpType;

numbered! {
    /// State of a queue pair, with the numbers of the kernel's `enum ib_qp_state`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum QpState {
        /// Unused.
        Reset = 0,
        /// Initialized.
        Init = 1,
        /// Ready to receive.
        Rtr = 2,
        /// Ready to send.
        Rts = 3,
        /// Send queue drained.
        Sqd = 4,
        /// Send queue error.
        Sqe = 5,
        /// Error.
        Err = 6,
    }
}

from_number!(QpState, Errno::EINVAL);

/// Mask of queue pair attributes, with the bits of `enum ib_qp_attr_mask`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpAttrMask(pub u32);

impl QpAttrMask {
    /// State.
    pub const STATE: Self = Self(1);
    /// Remote access flags.
    pub const ACCESS_FLAGS: Self = Self(1 << 3);
    /// P_Key index, which the caller provides.
    pub const PKEY_INDEX: Self = Self(1 << 4);
    /// Port, which the caller provides.
    pub const PORT: Self = Self(1 << 5);
    /// Q_Key for datagrams, which the caller provides.
    pub const QKEY: Self = Self(1 << 6);
    /// Address vector of the peer, which the caller provides.
    pub const AV: Self = Self(1 << 7);
    /// Path MTU.
    pub const PATH_MTU: Self = Self(1 << 8);
    /// Local ack timeout.
    pub const TIMEOUT: Self = Self(1 << 9);
    /// Retry count.
    pub const RETRY_CNT: Self = Self(1 << 10);
    /// RNR retry count.
    pub const RNR_RETRY: Self = Self(1 << 11);
    /// First PSN to receive.
    pub const RQ_PSN: Self = Self(1 << 12);
    /// Number of outstanding RDMA reads and atomics.
    pub const MAX_QP_RD_ATOMIC: Self = Self(1 << 13);
    /// Alternate path. The caller provides all of it but the timeout.
    pub const ALT_PATH: Self = Self(1 << 14);
    /// Minimum RNR NAK timer.
    pub const MIN_RNR_TIMER: Self = Self(1 << 15);
    /// First PSN to send.
    pub const SQ_PSN: Self = Self(1 << 16);
    /// Number of RDMA reads and atomics to handle at a time.
    pub const MAX_DEST_RD_ATOMIC: Self = Self(1 << 17);
    /// State of path migration.
    pub const PATH_MIG_STATE: Self = Self(1 << 18);
    /// QPN of the peer.
    pub const DEST_QPN: Self = Self(1 << 20);

    /// Returns whether all bits of `other` are in the mask.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for QpAttrMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for QpAttrMask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Queue pair attributes for one state, as far as the connection knows them. Fields that are not in
/// the mask are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpAttr {
    /// Mask of the attributes to set.
    pub mask: QpAttrMask,
    /// Remote access, as bits of `enum ib_access_flags`. If reads are allowed, a device that
    /// supports flushing allows the two kinds of flush, too.
    pub access_flags: u32,
    /// Path MTU, an IBA code.
    pub path_mtu: u8,
    /// QPN of the peer, 24 bits.
    pub dest_qpn: u32,
    /// First PSN to receive, 24 bits.
    pub rq_psn: u32,
    /// First PSN to send, 24 bits.
    pub sq_psn: u32,
    /// Number of RDMA reads and atomics to handle at a time.
    pub max_dest_rd_atomic: u8,
    /// Number of outstanding RDMA reads and atomics.
    pub max_rd_atomic: u8,
    /// Minimum RNR NAK timer, a 5-bit RNR code.
    pub min_rnr_timer: u8,
    /// Retry count, 0 to 7.
    pub retry_cnt: u8,
    /// RNR retry count, 0 to 7, where 7 means no limit.
    pub rnr_retry: u8,
    /// Local ack timeout, a time code.
    pub timeout: u8,
    /// Local ack timeout of the alternate path, a time code.
    pub alt_timeout: u8,
    /// Path migration state, as number of `enum ib_mig_state`.
    pub path_mig_state: u8,
}

impl QpAttr {
    /// Remote write access (`IB_ACCESS_REMOTE_WRITE`).
    pub const REMOTE_WRITE: u32 = 1 << 1;
    /// Remote read access (`IB_ACCESS_REMOTE_READ`).
    pub const REMOTE_READ: u32 = 1 << 2;
    /// Remote atomic access (`IB_ACCESS_REMOTE_ATOMIC`).
    pub const REMOTE_ATOMIC: u32 = 1 << 3;
    /// Path migration state "rearm" (`IB_MIG_REARM`).
    pub const MIG_REARM: u8 = 1;
}

impl Connection {
    /// Returns the attributes for the transition of the queue pair to the state `target`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `target` is none of `Init`, `Rtr` and `Rts`, or if the connection does not know
    /// the attributes yet or any more. `Init` requires a REQ, the others also a peer.
    pub fn qp_attr(&self, target: QpState) -> Result<QpAttr, Errno> {
        let peer_known = match self.state {
            State::ReqRcvd
            | State::MraReqSent
            | State::RepRcvd
            | State::MraRepSent
            | State::RepSent
            | State::MraRepRcvd
            | State::Established => true,
            State::ReqSent | State::MraReqRcvd => false,
            _ => return Err(Errno::EINVAL),
        };
        match target {
            QpState::Init => Ok(self.init_attr()),
            QpState::Rtr if peer_known => Ok(self.rtr_attr()),
            QpState::Rts if peer_known => Ok(self.rts_attr()),
            QpState::Reset
            | QpState::Rtr
            | QpState::Rts
            | QpState::Sqd
            | QpState::Sqe
            | QpState::Err => Err(Errno::EINVAL),
        }
    }

    fn init_attr(&self) -> QpAttr {
        let mut access_flags = QpAttr::REMOTE_WRITE;
        if self.responder_resources > 0 {
            access_flags |= QpAttr::REMOTE_READ | QpAttr::REMOTE_ATOMIC;
        }
        QpAttr {
            mask: QpAttrMask::STATE
                | QpAttrMask::ACCESS_FLAGS
                | QpAttrMask::PKEY_INDEX
                | QpAttrMask::PORT,
            access_flags,
            ..QpAttr::default()
        }
    }

    fn rtr_attr(&self) -> QpAttr {
        let mut attr = QpAttr {
            mask: QpAttrMask::STATE
                | QpAttrMask::AV
                | QpAttrMask::PATH_MTU
                | QpAttrMask::DEST_QPN
                | QpAttrMask::RQ_PSN,
            path_mtu: self.path_mtu,
            dest_qpn: self.remote_qpn,
            rq_psn: self.rq_psn,
            ..QpAttr::default()
        };
        if matches!(self.qp_type, QpType::RC | QpType::XRC_TGT) {
            attr.mask |= QpAttrMask::MAX_DEST_RD_ATOMIC | QpAttrMask::MIN_RNR_TIMER;
            attr.max_dest_rd_atomic = self.responder_resources;
        }
        if let Some(timeout) = self.alternate_ack_timeout {
            attr.mask |= QpAttrMask::ALT_PATH;
            attr.alt_timeout = timeout.get();
        }
        attr
    }

    fn rts_attr(&self) -> QpAttr {
        let mut attr = QpAttr {
            mask: QpAttrMask::STATE | QpAttrMask::SQ_PSN,
            sq_psn: self.sq_psn,
            ..QpAttr::default()
        };
        match self.qp_type {
            QpType::RC | QpType::XRC_INI => {
                attr.mask |= QpAttrMask::RETRY_CNT
                    | QpAttrMask::RNR_RETRY
                    | QpAttrMask::MAX_QP_RD_ATOMIC
                    | QpAttrMask::TIMEOUT;
                attr.retry_cnt = self.retry_count;
                attr.rnr_retry = self.rnr_retry_count;
                attr.max_rd_atomic = self.initiator_depth;
                attr.timeout = self.ack_timeout.get();
            }
            QpType::XRC_TGT => {
                attr.mask |= QpAttrMask::TIMEOUT;
                attr.timeout = self.ack_timeout.get();
            }
            _ => {}
        }
        if self.alternate_ack_timeout.is_some() {
            attr.mask |= QpAttrMask::PATH_MIG_STATE;
            attr.path_mig_state = QpAttr::MIG_REARM;
        }
        attr
    }
}
