// SPDX-License-Identifier: GPL-2.0

//! The events of an identifier of the IB CM.
//!
//! C header: [`include/rdma/ib_cm.h`](srctree/include/rdma/ib_cm.h)

use super::{
    gid::GidIdentity,
    ib_cm_id::Identity,
    number::numbers,
    path::Path,
    refusal::{RejectReason, SidrStatus},
};
use crate::bindings;
use core::{ptr, slice};
use kernel::prelude::*;

numbers! {
    /// The kind of an event.
    EventType {
        REQ_ERROR = ib_cm_event_type_IB_CM_REQ_ERROR,
        REQ_RECEIVED = ib_cm_event_type_IB_CM_REQ_RECEIVED,
        REP_ERROR = ib_cm_event_type_IB_CM_REP_ERROR,
        REP_RECEIVED = ib_cm_event_type_IB_CM_REP_RECEIVED,
        RTU_RECEIVED = ib_cm_event_type_IB_CM_RTU_RECEIVED,
        USER_ESTABLISHED = ib_cm_event_type_IB_CM_USER_ESTABLISHED,
        DREQ_ERROR = ib_cm_event_type_IB_CM_DREQ_ERROR,
        DREQ_RECEIVED = ib_cm_event_type_IB_CM_DREQ_RECEIVED,
        DREP_RECEIVED = ib_cm_event_type_IB_CM_DREP_RECEIVED,
        TIMEWAIT_EXIT = ib_cm_event_type_IB_CM_TIMEWAIT_EXIT,
        REJ_RECEIVED = ib_cm_event_type_IB_CM_REJ_RECEIVED,
        LAP_RECEIVED = ib_cm_event_type_IB_CM_LAP_RECEIVED,
        SIDR_REQ_ERROR = ib_cm_event_type_IB_CM_SIDR_REQ_ERROR,
        SIDR_REQ_RECEIVED = ib_cm_event_type_IB_CM_SIDR_REQ_RECEIVED,
        SIDR_REP_RECEIVED = ib_cm_event_type_IB_CM_SIDR_REP_RECEIVED,
    }
    /// Why a message was not sent, or not answered.
    SendStatus {
        RESP_TIMEOUT_ERR = ib_wc_status_IB_WC_RESP_TIMEOUT_ERR,
    }
}

/// The most data that each message has for its consumers.
pub(crate) const REQ_DATA: usize = bindings::ib_cm_data_size_IB_CM_REQ_PRIVATE_DATA_SIZE as usize;
pub(crate) const REP_DATA: usize = bindings::ib_cm_data_size_IB_CM_REP_PRIVATE_DATA_SIZE as usize;
pub(crate) const RTU_DATA: usize = bindings::ib_cm_data_size_IB_CM_RTU_PRIVATE_DATA_SIZE as usize;
pub(crate) const DREQ_DATA: usize = bindings::ib_cm_data_size_IB_CM_DREQ_PRIVATE_DATA_SIZE as usize;
pub(crate) const DREP_DATA: usize = bindings::ib_cm_data_size_IB_CM_DREP_PRIVATE_DATA_SIZE as usize;
pub(crate) const REJ_DATA: usize = bindings::ib_cm_data_size_IB_CM_REJ_PRIVATE_DATA_SIZE as usize;
pub(crate) const LAP_DATA: usize = bindings::ib_cm_data_size_IB_CM_LAP_PRIVATE_DATA_SIZE as usize;
pub(crate) const SIDR_REQ_DATA: usize =
    bindings::ib_cm_data_size_IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE as usize;
const SIDR_REP_DATA: usize = bindings::ib_cm_data_size_IB_CM_SIDR_REP_PRIVATE_DATA_SIZE as usize;

/// The most that a refusal says beyond its reason, and as much as an answer to a question has.
pub(crate) const ARI_LENGTH: usize = bindings::ib_cm_data_size_IB_CM_REJ_ARI_LENGTH as usize;
const _: () = assert!(ARI_LENGTH == bindings::ib_cm_data_size_IB_CM_SIDR_REP_INFO_LENGTH as usize);

/// Somebody asks for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Req {
    pub(crate) listener: Identity,
    pub(crate) bth_pkey: u16,
    pub(crate) port: u8,
    pub(crate) path: Option<Path>,
    pub(crate) alternate: Option<Path>,
    pub(crate) sgid: GidIdentity,
    /// In network byte order.
    pub(crate) remote_ca_guid: u64,
    pub(crate) remote_qpn: u32,
    pub(crate) is_rc: bool,
    pub(crate) psn: u32,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) local_cm_response_timeout: u8,
    pub(crate) remote_cm_response_timeout: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: u8,
}

/// The peer has a connection for us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rep {
    /// In network byte order.
    pub(crate) remote_ca_guid: u64,
    pub(crate) remote_qpn: u32,
    pub(crate) psn: u32,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) rnr_retry_count: u32,
    pub(crate) failover_accepted: u32,
}

/// The peer refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rej {
    pub(crate) reason: RejectReason,
    /// The additional information of a rejection, and its length.
    pub(crate) ari: [u8; ARI_LENGTH],
    pub(crate) ari_length: u8,
}

/// Somebody asks a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SidrReq {
    pub(crate) listener: Identity,
    pub(crate) service_id: u64,
    pub(crate) sgid: GidIdentity,
    pub(crate) port: u8,
    pub(crate) pkey: u16,
}

/// A service answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SidrRep {
    pub(crate) status: SidrStatus,
    pub(crate) qkey: u32,
    pub(crate) qpn: u32,
    pub(crate) info: [u8; ARI_LENGTH],
    pub(crate) sgid: GidIdentity,
}

/// An event. A copy, that may be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Req(Req),
    Rep(Rep),
    Rej(Rej),
    /// The peer proposes an alternate path.
    Lap(Option<Path>),
    SidrReq(SidrReq),
    SidrRep(SidrRep),
    /// Nobody has answered.
    Error(EventType, SendStatus),
    /// Any that has no more to tell.
    Other(EventType),
}

impl Event {
    /// Returns the kind of the event.
    pub(crate) fn kind(&self) -> EventType {
        match self {
            Event::Req(_) => EventType::REQ_RECEIVED,
            Event::Rep(_) => EventType::REP_RECEIVED,
            Event::Rej(_) => EventType::REJ_RECEIVED,
            Event::Lap(_) => EventType::LAP_RECEIVED,
            Event::SidrReq(_) => EventType::SIDR_REQ_RECEIVED,
            Event::SidrRep(_) => EventType::SIDR_REP_RECEIVED,
            Event::Error(kind, _) | Event::Other(kind) => *kind,
        }
    }

    /// Reads an event, and the data that came with it.
    ///
    /// # Safety
    ///
    /// `raw` must be an event as the IB CM tells it, for as long as the data are used.
    pub(super) unsafe fn from_raw<'a>(raw: *const bindings::ib_cm_event) -> (Self, &'a [u8]) {
        // SAFETY: The event is valid.
        let raw = unsafe { &*raw };
        let kind = EventType(raw.event);
        let param = &raw.param;
        // SAFETY: Each is the part of the union that goes with the event, and what it points to is
        // in the message, or beside it, with the size that the header says.
        let event = unsafe {
            match kind {
                EventType::REQ_RECEIVED => Event::Req(Req::from_raw(&param.req_rcvd)),
                EventType::REP_RECEIVED => Event::Rep(Rep::from_raw(&param.rep_rcvd)),
                EventType::REJ_RECEIVED => Event::Rej(Rej {
                    reason: RejectReason(param.rej_rcvd.reason),
                    ari: info(param.rej_rcvd.ari),
                    ari_length: param.rej_rcvd.ari_length,
                }),
                EventType::LAP_RECEIVED => {
                    let path = param.lap_rcvd.alternate_path.as_ref();
                    Event::Lap(path.and_then(Path::from_raw))
                }
                EventType::SIDR_REQ_RECEIVED => Event::SidrReq(SidrReq {
                    listener: Identity::new(param.sidr_req_rcvd.listen_id),
                    service_id: u64::from_be(param.sidr_req_rcvd.service_id),
                    sgid: GidIdentity::new(param.sidr_req_rcvd.sgid_attr),
                    port: param.sidr_req_rcvd.port,
                    pkey: param.sidr_req_rcvd.pkey,
                }),
                EventType::SIDR_REP_RECEIVED => Event::SidrRep(SidrRep {
                    status: SidrStatus(param.sidr_rep_rcvd.status),
                    qkey: param.sidr_rep_rcvd.qkey,
                    qpn: param.sidr_rep_rcvd.qpn,
                    info: info(param.sidr_rep_rcvd.info),
                    sgid: GidIdentity::new(param.sidr_rep_rcvd.sgid_attr),
                }),
                EventType::REQ_ERROR
                | EventType::REP_ERROR
                | EventType::DREQ_ERROR
                | EventType::SIDR_REQ_ERROR => Event::Error(kind, SendStatus(param.send_status)),
                _ => Event::Other(kind),
            }
        };
        let data = match data_len(kind) {
            0 => &[],
            // SAFETY: Messages of this kind have as much.
            len => unsafe { slice::from_raw_parts(raw.private_data.cast(), len) },
        };
        (event, data)
    }
}

/// Returns the amount of data in an event.
fn data_len(kind: EventType) -> usize {
    match kind {
        EventType::REQ_RECEIVED => REQ_DATA,
        EventType::REP_RECEIVED => REP_DATA,
        EventType::RTU_RECEIVED => RTU_DATA,
        EventType::DREQ_RECEIVED => DREQ_DATA,
        EventType::DREP_RECEIVED => DREP_DATA,
        EventType::REJ_RECEIVED => REJ_DATA,
        EventType::LAP_RECEIVED => LAP_DATA,
        EventType::SIDR_REQ_RECEIVED => SIDR_REQ_DATA,
        EventType::SIDR_REP_RECEIVED => SIDR_REP_DATA,
        _ => 0,
    }
}

/// Returns the whole information of a refusal or an answer.
///
/// # Safety
///
/// There must be [`ARI_LENGTH`] bytes.
unsafe fn info(at: *mut c_void) -> [u8; ARI_LENGTH] {
    // SAFETY: By the safety requirements.
    unsafe { ptr::read(at.cast()) }
}

impl Req {
    /// Copies the parameters of a REQ.
    ///
    /// # Safety
    ///
    /// The paths that there are must be valid.
    unsafe fn from_raw(raw: &bindings::ib_cm_req_event_param) -> Self {
        // SAFETY: It is only read.
        let bits = unsafe { bindings::rust_test_req_bits(raw) };
        Self {
            listener: Identity::new(raw.listen_id),
            bth_pkey: raw.bth_pkey,
            port: raw.port,
            // SAFETY: By the safety requirements.
            path: unsafe { raw.primary_path.as_ref() }.and_then(Path::from_raw),
            // SAFETY: By the safety requirements.
            alternate: unsafe { raw.alternate_path.as_ref() }.and_then(Path::from_raw),
            sgid: GidIdentity::new(raw.ppath_sgid_attr),
            remote_ca_guid: raw.remote_ca_guid,
            remote_qpn: raw.remote_qpn,
            is_rc: raw.qp_type == bindings::ib_qp_type_IB_QPT_RC,
            psn: raw.starting_psn,
            responder_resources: raw.responder_resources,
            initiator_depth: raw.initiator_depth,
            local_cm_response_timeout: bits.local_cm_response_timeout,
            remote_cm_response_timeout: bits.remote_cm_response_timeout,
            retry_count: bits.retry_count,
            rnr_retry_count: bits.rnr_retry_count,
            srq: bits.srq,
        }
    }
}

impl Rep {
    fn from_raw(raw: &bindings::ib_cm_rep_event_param) -> Self {
        Self {
            remote_ca_guid: raw.remote_ca_guid,
            remote_qpn: raw.remote_qpn,
            psn: raw.starting_psn,
            responder_resources: raw.responder_resources,
            initiator_depth: raw.initiator_depth,
            rnr_retry_count: raw.rnr_retry_count(),
            failover_accepted: raw.failover_accepted(),
        }
    }
}
