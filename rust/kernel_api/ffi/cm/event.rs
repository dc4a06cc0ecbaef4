// SPDX-License-Identifier: GPL-2.0

//! Calls of a consumer's handler (`ib_cm_handler`).

use super::{
    super::{path::to_raw, PathLink, PathRec},
    ib_cm_id::IbCmId,
};
use crate::{bindings, ib::gid::GidAttr, kernel_api::HandlerGuard};
use cmproto::{
    ibcm::EventType,
    qp::QpType,
    ucma::path::PathRecord,
    wire::{self, Header, Message, Rej, Rep, Req, SidrRep, SidrReq, MAD_LEN},
};
use core::ptr;
use kernel::prelude::*;

/// The origin of a request that a listener has received.
pub(crate) struct ReceivedRequest<'a> {
    /// The listener that has received the request.
    pub(crate) listener: &'a IbCmId,
    /// The port that has received the request.
    pub(crate) port: u8,
    /// The P_Key of the request; 0 if it is not known any more.
    pub(crate) pkey: u16,
    /// The destination GID of the request, if it has one.
    pub(crate) gid: Option<&'a GidAttr>,
    /// The path to the sender.
    pub(crate) path: &'a PathRec,
}

/// An event for a consumer.
pub(crate) struct CmNotification<'a> {
    /// The type of the event.
    pub(crate) event: EventType,
    /// The message that was received, if the event is about one.
    pub(crate) mad: Option<&'a [u8; MAD_LEN]>,
    /// The origin of the message, if it is a request.
    pub(crate) request: Option<ReceivedRequest<'a>>,
    /// The alternate path of the connection, if there is one.
    pub(crate) alternate: Option<PathRecord>,
    /// The source GID of the identifier, if it has one.
    pub(crate) gid: Option<&'a GidAttr>,
    /// The QP number of the peer, if the event is about a connection that knows it.
    pub(crate) peer_qpn: Option<u32>,
}

fn ece(header: &Header, vendor_id: u32) -> bindings::rdma_ucm_ece {
    bindings::rdma_ucm_ece {
        vendor_id,
        attr_mod: header.attr_mod,
    }
}

/// Converts a REQ to event parameters.
///
/// The resources of the sender are swapped, so that they are from the point of view of this end.
/// `alternate` is the alternate path or null.
fn req_param(
    request: &ReceivedRequest<'_>,
    alternate: *mut bindings::sa_path_rec,
    header: &Header,
    req: &Req<'_>,
) -> bindings::ib_cm_req_event_param {
    let mut param = bindings::ib_cm_req_event_param {
        listen_id: request.listener.as_id(),
        bth_pkey: request.pkey,
        port: request.port,
        primary_path: request.path.as_raw(),
        alternate_path: alternate,
        ppath_sgid_attr: request.gid.map_or(ptr::null(), GidAttr::as_raw),
        remote_ca_guid: req.local_ca_guid.to_be(),
        remote_qkey: req.local_qkey,
        remote_qpn: req.local_qpn,
        qp_type: QpType::of_receiver(req.transport).map_or(0, |qp_type| u32::from(qp_type.0)),
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

fn sidr_req_param(
    request: &ReceivedRequest<'_>,
    req: &SidrReq<'_>,
) -> bindings::ib_cm_sidr_req_event_param {
    bindings::ib_cm_sidr_req_event_param {
        listen_id: request.listener.as_id(),
        service_id: req.service_id.to_be(),
        sgid_attr: request.gid.map_or(ptr::null(), GidAttr::as_raw),
        bth_pkey: request.pkey,
        port: request.port,
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

impl IbCmId {
    /// Calls the consumer's handler and returns its result.
    ///
    /// A result other than 0 means that the identifier is to be destroyed. Without a handler
    /// nothing happens, and the result is 0.
    ///
    /// `_guard` is that of the handler, locked for this identifier or for a request's listener.
    pub(crate) fn deliver(
        &self,
        _guard: &HandlerGuard<'_>,
        notification: &CmNotification<'_>,
    ) -> c_int {
        let Some(handler) = self.handler() else {
            return 0;
        };
        let mut event = bindings::ib_cm_event {
            event: notification.event as u32,
            ..pin_init::zeroed()
        };
        if notification.event.is_send_error() {
            event.param.send_status = bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR;
        }
        let alternate = notification.alternate.as_ref();
        let mut alternate = alternate.map(|path| to_raw(path, PathLink::Ib));
        let alternate = alternate.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        // The message was decoded before, so this does not fail.
        if let Some((header, message)) = notification.mad.and_then(|mad| wire::decode(mad).ok()) {
            match (&message, &notification.request) {
                (Message::Req(req), Some(request)) => {
                    event.param.req_rcvd = req_param(request, alternate, &header, req);
                }
                (Message::SidrReq(req), Some(request)) => {
                    event.param.sidr_req_rcvd = sidr_req_param(request, req);
                }
                (Message::Rep(rep), _) => {
                    event.param.rep_rcvd =
                        rep_param(&header, rep, notification.peer_qpn.unwrap_or(rep.local_qpn));
                }
                (Message::Rej(rej), _) => event.param.rej_rcvd = rej_param(rej),
                (Message::Mra(mra), _) => {
                    event.param.mra_rcvd.service_timeout = mra.service_timeout;
                }
                (Message::Lap(_), _) => event.param.lap_rcvd.alternate_path = alternate,
                (Message::SidrRep(rep), _) => {
                    event.param.sidr_rep_rcvd = sidr_rep_param(notification.gid, rep);
                }
                _ => {}
            }
            event.private_data = message.private_data().as_ptr().cast_mut().cast();
        }
        // SAFETY: The guard shows that the handler can be called. The event and the
        // data that it borrows live until the handler returns.
        unsafe { handler(self.as_id(), &raw const event) }
    }
}
