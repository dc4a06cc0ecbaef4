// SPDX-License-Identifier: GPL-2.0

//! The messages of one end of a conversation.

use super::inbox::Inbox;
use crate::rdma::{
    ib_cm_event::{REP_DATA, REQ_DATA},
    ib_cm_id::{IbCmIdRef, QpEvent},
    ib_cm_param::{PrivateData, RepParam, ReqParam, SidrRepParam, SidrReqParam},
    qp_attr::QpState,
    qp_attr::QpType,
    refusal::{RejectReason, SidrStatus},
};
use kernel::prelude::*;

/// The data of a request and of its answer.
const REQ: [u8; REQ_DATA] = [0xa1; REQ_DATA];
const REP: [u8; REP_DATA] = [0xa2; REP_DATA];

impl Inbox {
    /// A request for what this end listens to, or for its listener.
    pub(crate) fn request(&self) -> ReqParam<'_> {
        ReqParam {
            path: Some(self.world.path()),
            alternate: None,
            sgid: Some(&self.world.gid),
            service_id: self.service,
            qpn: self.qpn,
            qp_type: QpType::RC,
            psn: self.psn,
            private_data: PrivateData::Of(&REQ),
            responder_resources: 3,
            initiator_depth: 5,
            remote_cm_response_timeout: 18,
            local_cm_response_timeout: 18,
            retry_count: 6,
            rnr_retry_count: 7,
            max_cm_retries: 4,
        }
    }

    pub(crate) fn send_req(&self, id: &IbCmIdRef) -> Result {
        id.send_req(&self.request())
    }

    pub(crate) fn send_rep(&self, id: &IbCmIdRef) -> Result {
        id.send_rep(&RepParam {
            qpn: self.qpn,
            psn: self.psn,
            private_data: PrivateData::Of(&REP),
            responder_resources: 4,
            initiator_depth: 2,
            rnr_retry_count: 6,
        })
    }

    /// A question to the same service.
    pub(crate) fn question(&self) -> SidrReqParam<'_> {
        SidrReqParam {
            path: self.world.path(),
            sgid: &self.world.gid,
            service_id: self.service,
            timeout_ms: 1000,
            private_data: PrivateData::Of(b"question"),
            max_cm_retries: 3,
        }
    }

    pub(crate) fn send_sidr_req(&self, id: &IbCmIdRef) -> Result {
        id.send_sidr_req(&self.question())
    }

    pub(crate) fn send_sidr_rep(&self, id: &IbCmIdRef) -> Result {
        id.send_sidr_rep(&SidrRepParam {
            qpn: self.qpn,
            qkey: 0x123_4567,
            status: SidrStatus::SUCCESS,
            info: PrivateData::Of(b"info"),
            private_data: PrivateData::Of(b"answer"),
        })
    }

    pub(crate) fn send_rtu(&self, id: &IbCmIdRef) -> Result {
        id.send_rtu(PrivateData::Of(b"rtu"))
    }

    pub(crate) fn send_dreq(&self, id: &IbCmIdRef) -> Result {
        id.send_dreq(PrivateData::Of(b"dreq"))
    }

    pub(crate) fn send_drep(&self, id: &IbCmIdRef) -> Result {
        id.send_drep(PrivateData::Of(b"drep"))
    }

    pub(crate) fn send_rej(&self, id: &IbCmIdRef) -> Result {
        id.send_rej(
            RejectReason::UNSUPPORTED,
            PrivateData::Of(b"ari"),
            PrivateData::Of(b"rej"),
        )
    }

    pub(crate) fn prepare_mra(&self, id: &IbCmIdRef) -> Result {
        id.prepare_mra()
    }

    pub(crate) fn established(&self, id: &IbCmIdRef) -> Result {
        id.notify(QpEvent::COMM_EST)
    }

    pub(crate) fn migrated(&self, id: &IbCmIdRef) -> Result {
        id.notify(QpEvent::PATH_MIG)
    }

    /// Listens to another service than that of the pair.
    pub(crate) fn listen(&self, id: &IbCmIdRef) -> Result {
        id.listen(self.service.wrapping_add(0x1_0000))
    }

    pub(crate) fn init_attr(&self, id: &IbCmIdRef) -> Result {
        id.init_qp_attr(QpState::INIT).map(|_| ())
    }

    pub(crate) fn rtr_attr(&self, id: &IbCmIdRef) -> Result {
        id.init_qp_attr(QpState::RTR).map(|_| ())
    }
}
