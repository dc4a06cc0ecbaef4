// SPDX-License-Identifier: GPL-2.0

//! Attributes of the queue pair of a connection.

use super::{
    alternate::Alternate, connection::Connection, retransmit_buffer::RetransmitMemory, state::State,
};
use crate::{
    errno::Errno,
    numbered::{from_number, numbered},
    qp::QpType,
    ucma_abi::{FromZeros, UverbsQpAttr},
};

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

/// Bits of the mask of queue pair attributes (`enum ib_qp_attr_mask`).
pub mod qp_attr_mask {
    /// State.
    pub const STATE: u32 = 1;
    /// Remote access flags.
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    /// P_Key index, which the caller provides.
    pub const PKEY_INDEX: u32 = 1 << 4;
    /// Port, which the caller provides.
    pub const PORT: u32 = 1 << 5;
    /// Q_Key for datagrams, which the caller provides.
    pub const QKEY: u32 = 1 << 6;
    /// Address vector of the peer, which the caller provides.
    pub const AV: u32 = 1 << 7;
    /// Path MTU.
    pub const PATH_MTU: u32 = 1 << 8;
    /// Local ack timeout.
    pub const TIMEOUT: u32 = 1 << 9;
    /// Retry count.
    pub const RETRY_CNT: u32 = 1 << 10;
    /// RNR retry count.
    pub const RNR_RETRY: u32 = 1 << 11;
    /// First PSN to receive.
    pub const RQ_PSN: u32 = 1 << 12;
    /// Number of outstanding RDMA reads and atomics.
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    /// Alternate path. The caller provides all of it but the timeout.
    pub const ALT_PATH: u32 = 1 << 14;
    /// Minimum RNR NAK timer.
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    /// First PSN to send.
    pub const SQ_PSN: u32 = 1 << 16;
    /// Number of RDMA reads and atomics to handle at a time.
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    /// State of path migration.
    pub const PATH_MIG_STATE: u32 = 1 << 18;
    /// QPN of the peer.
    pub const DEST_QPN: u32 = 1 << 20;
}

/// Bits of the remote access (`enum ib_access_flags`).
pub mod access {
    /// Remote write access.
    pub const REMOTE_WRITE: u32 = 1 << 1;
    /// Remote read access.
    pub const REMOTE_READ: u32 = 1 << 2;
    /// Remote atomic access.
    pub const REMOTE_ATOMIC: u32 = 1 << 3;
}

/// The state of path migration "rearm" (`IB_MIG_REARM`).
const MIG_REARM: u32 = 1;

impl<B: RetransmitMemory> Connection<B> {
    /// Returns the attributes for the transition of the queue pair to the state `target`, as far as
    /// the connection knows them. Attributes that are not in the mask, or that the caller provides,
    /// are zero.
    ///
    /// After a change of the paths, the attributes for `Rts` are those that load the alternate path
    /// into a queue pair that is ready to send.
    ///
    /// If reads are allowed, a device that supports flushing allows the two kinds of flush, too.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `target` is none of `Init`, `Rtr` and `Rts`, or if the connection does not know
    /// the attributes yet or any more. `Init` requires a REQ, the others also a peer.
    pub fn qp_attr(&self, target: QpState) -> Result<UverbsQpAttr, Errno> {
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
        let mut attr = UverbsQpAttr {
            qp_attr_mask: qp_attr_mask::STATE,
            qp_state: target as u32,
            ..FromZeros::new_zeroed()
        };
        match target {
            QpState::Init => self.init_attr(&mut attr),
            QpState::Rtr if peer_known => self.rtr_attr(&mut attr),
            QpState::Rts if peer_known => self.rts_attr(&mut attr),
            _ => return Err(Errno::EINVAL),
        }
        Ok(attr)
    }

    fn init_attr(&self, attr: &mut UverbsQpAttr) {
        attr.qp_attr_mask |=
            qp_attr_mask::ACCESS_FLAGS | qp_attr_mask::PKEY_INDEX | qp_attr_mask::PORT;
        attr.qp_access_flags = access::REMOTE_WRITE;
        if self.responder_resources > 0 {
            attr.qp_access_flags |= access::REMOTE_READ | access::REMOTE_ATOMIC;
        }
    }

    fn rtr_attr(&self, attr: &mut UverbsQpAttr) {
        attr.qp_attr_mask |= qp_attr_mask::AV
            | qp_attr_mask::PATH_MTU
            | qp_attr_mask::DEST_QPN
            | qp_attr_mask::RQ_PSN;
        attr.path_mtu = self.path_mtu.into();
        attr.dest_qp_num = self.remote_qpn;
        attr.rq_psn = self.rq_psn;
        if matches!(self.qp_type, QpType::RC | QpType::XRC_TGT) {
            attr.qp_attr_mask |= qp_attr_mask::MAX_DEST_RD_ATOMIC | qp_attr_mask::MIN_RNR_TIMER;
            attr.max_dest_rd_atomic = self.responder_resources;
        }
        self.alternate_attr(attr);
    }

    /// Adds the alternate path, if there is one.
    fn alternate_attr(&self, attr: &mut UverbsQpAttr) {
        if let Alternate::Usable(timeout) = self.alternate {
            attr.qp_attr_mask |= qp_attr_mask::ALT_PATH;
            attr.alt_timeout = timeout.get();
        }
    }

    fn rts_attr(&self, attr: &mut UverbsQpAttr) {
        if self.is_path_changed {
            // The queue pair has the other attributes already.
            attr.qp_attr_mask = qp_attr_mask::PATH_MIG_STATE;
            attr.path_mig_state = MIG_REARM;
            return self.alternate_attr(attr);
        }
        attr.qp_attr_mask |= qp_attr_mask::SQ_PSN;
        attr.sq_psn = self.sq_psn;
        if matches!(self.qp_type, QpType::RC | QpType::XRC_INI | QpType::XRC_TGT) {
            attr.qp_attr_mask |= qp_attr_mask::TIMEOUT;
            attr.timeout = self.ack_timeout.get();
        }
        if matches!(self.qp_type, QpType::RC | QpType::XRC_INI) {
            attr.qp_attr_mask |=
                qp_attr_mask::RETRY_CNT | qp_attr_mask::RNR_RETRY | qp_attr_mask::MAX_QP_RD_ATOMIC;
            attr.retry_cnt = self.retry_count;
            attr.rnr_retry = self.rnr_retry_count;
            attr.max_rd_atomic = self.initiator_depth;
        }
        if self.has_alternate() {
            attr.qp_attr_mask |= qp_attr_mask::PATH_MIG_STATE;
            attr.path_mig_state = MIG_REARM;
        }
    }
}
