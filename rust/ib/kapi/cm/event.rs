// SPDX-License-Identifier: GPL-2.0

//! Calling a consumer's handler.

use super::{super::PathRec, head::CmHead};
use crate::{bindings, ib::gid::GidAttr, kernel_api::Turn};
use cmproto::{
    ibcm::EventType,
    wire::{self, Header, Message, Rej, Rep, Req, SidrRep, SidrReq, Transport, MAD_LEN},
};
use core::ptr;
use kernel::prelude::*;

/// Where a request came in.
pub(crate) struct Asked<'a> {
    /// The listener.
    pub(crate) listener: &'a CmHead,
    /// The port.
    pub(crate) port: u8,
    /// The P_Key that it carried; 0 if that is not known any more.
    pub(crate) pkey: u16,
    /// The GID that it was for, if it said so.
    pub(crate) gid: Option<&'a GidAttr>,
    /// The path to the sender.
    pub(crate) path: &'a PathRec,
}

/// What a consumer is told.
pub(crate) struct Told<'a> {
    /// What has happened.
    pub(crate) event: EventType,
    /// The message that has arrived, if one has.
    pub(crate) mad: Option<&'a [u8; MAD_LEN]>,
    /// Where it came in, of a request.
    pub(crate) asked: Option<Asked<'a>>,
    /// The GID that the identifier speaks from, if it has one.
    pub(crate) gid: Option<&'a GidAttr>,
    /// The peer's QP, of a connection that knows it.
    pub(crate) peer_qpn: Option<u32>,
}

/// The type of the QP that can serve a REQ.
fn qp_type(transport: Transport) -> u32 {
    match transport {
        Transport::Rc => bindings::ib_qp_type_IB_QPT_RC,
        Transport::Uc => bindings::ib_qp_type_IB_QPT_UC,
        Transport::Xrc => bindings::ib_qp_type_IB_QPT_XRC_TGT,
        Transport::Other(..) => 0,
    }
}

fn ece(header: &Header, vendor_id: u32) -> bindings::rdma_ucm_ece {
    bindings::rdma_ucm_ece {
        vendor_id,
        attr_mod: header.attr_mod,
    }
}

/// What comes with a REQ, with the resources as this end sees them.
fn req_param(asked: &Asked<'_>, header: &Header, req: &Req<'_>) -> bindings::ib_cm_req_event_param {
    let mut param = bindings::ib_cm_req_event_param {
        listen_id: asked.listener.as_id(),
        bth_pkey: asked.pkey,
        port: asked.port,
        primary_path: asked.path.as_raw(),
        ppath_sgid_attr: asked.gid.map_or(ptr::null(), GidAttr::as_raw),
        remote_ca_guid: req.local_ca_guid.to_be(),
        remote_qkey: req.local_qkey,
        remote_qpn: req.local_qpn,
        qp_type: qp_type(req.transport),
        starting_psn: req.starting_psn,
        responder_resources: req.initiator_depth,
        initiator_depth: req.responder_resources,
        ece: ece(header, req.vendor_id),
        ..pin_init::zeroed()
    };
    let bits = bindings::rust_ib_cm_bits {
        local_cm_response_timeout: req.remote_cm_response_timeout,
        remote_cm_response_timeout: req.local_cm_response_timeout,
        flow_control: req.flow_control.into(),
        retry_count: req.retry_count,
        rnr_retry_count: req.rnr_retry_count,
        srq: req.srq.into(),
        ..pin_init::zeroed()
    };
    // SAFETY: Both are valid.
    unsafe { bindings::rust_ib_cm_req_bits(&raw mut param, &raw const bits) };
    param
}

fn rep_param(header: &Header, rep: &Rep<'_>, qpn: u32) -> bindings::ib_cm_rep_event_param {
    let mut param = bindings::ib_cm_rep_event_param {
        remote_ca_guid: rep.local_ca_guid.to_be(),
        remote_qkey: rep.local_qkey,
        remote_qpn: qpn,
        starting_psn: rep.starting_psn,
        responder_resources: rep.initiator_depth,
        initiator_depth: rep.responder_resources,
        ece: ece(header, rep.vendor_id),
        ..pin_init::zeroed()
    };
    let bits = bindings::rust_ib_cm_bits {
        target_ack_delay: rep.target_ack_delay,
        failover_accepted: rep.failover_accepted,
        flow_control: rep.flow_control.into(),
        rnr_retry_count: rep.rnr_retry_count,
        srq: rep.srq.into(),
        ..pin_init::zeroed()
    };
    // SAFETY: Both are valid.
    unsafe { bindings::rust_ib_cm_rep_bits(&raw mut param, &raw const bits) };
    param
}

fn rej_param(rej: &Rej<'_>) -> bindings::ib_cm_rej_event_param {
    bindings::ib_cm_rej_event_param {
        reason: rej.reason.into(),
        ari: rej.ari.as_ptr().cast_mut().cast(),
        ari_length: rej.ari_len,
    }
}

fn sidr_req_param(asked: &Asked<'_>, req: &SidrReq<'_>) -> bindings::ib_cm_sidr_req_event_param {
    bindings::ib_cm_sidr_req_event_param {
        listen_id: asked.listener.as_id(),
        service_id: req.service_id.to_be(),
        sgid_attr: asked.gid.map_or(ptr::null(), GidAttr::as_raw),
        bth_pkey: asked.pkey,
        port: asked.port,
        pkey: req.pkey,
    }
}

fn sidr_rep_param(
    gid: Option<&GidAttr>,
    rep: &SidrRep<'_>,
) -> bindings::ib_cm_sidr_rep_event_param {
    bindings::ib_cm_sidr_rep_event_param {
        status: rep.status.into(),
        qkey: rep.qkey,
        qpn: rep.qpn,
        info: rep.info.as_ptr().cast_mut().cast(),
        sgid_attr: gid.map_or(ptr::null(), GidAttr::as_raw),
        info_len: rep.info_len,
    }
}

impl CmHead {
    /// Calls the consumer's handler and returns what that returns: 0, or anything else if the
    /// identifier is to be destroyed. Without a handler nothing happens.
    ///
    /// `_turn` is that of the consumer, by this identifier or by the listener that a request came
    /// to.
    pub(crate) fn tell(&self, _turn: &Turn<'_>, told: &Told<'_>) -> c_int {
        let Some(handler) = self.handler() else {
            return 0;
        };
        let mut event = bindings::ib_cm_event {
            event: told.event as u32,
            ..pin_init::zeroed()
        };
        if told.event.is_send_error() {
            event.param.send_status = bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR;
        }
        // What has arrived was decoded before.
        if let Some((header, message)) = told.mad.and_then(|mad| wire::decode(mad).ok()) {
            match (&message, &told.asked) {
                (Message::Req(req), Some(asked)) => {
                    event.param.req_rcvd = req_param(asked, &header, req);
                }
                (Message::SidrReq(req), Some(asked)) => {
                    event.param.sidr_req_rcvd = sidr_req_param(asked, req);
                }
                (Message::Rep(rep), _) => {
                    event.param.rep_rcvd =
                        rep_param(&header, rep, told.peer_qpn.unwrap_or(rep.local_qpn));
                }
                (Message::Rej(rej), _) => event.param.rej_rcvd = rej_param(rej),
                (Message::Mra(mra), _) => {
                    event.param.mra_rcvd.service_timeout = mra.service_timeout;
                }
                (Message::SidrRep(rep), _) => {
                    event.param.sidr_rep_rcvd = sidr_rep_param(told.gid, rep);
                }
                _ => {}
            }
            event.private_data = message.private_data().as_ptr().cast_mut().cast();
        }
        // SAFETY: It is the consumer's turn, so that its handler can be called. The event and what
        // it borrows live until it returns.
        unsafe { handler(self.as_id(), &raw const event) }
    }
}
