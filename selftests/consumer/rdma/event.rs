// SPDX-License-Identifier: GPL-2.0

//! The events of an identifier of the RDMA CM.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use super::{cm_id::QpType, number::numbers};
use crate::bindings;
use core::{mem, ptr, slice};
use kernel::prelude::*;

numbers! {
    /// The kind of an event.
    EventType {
        ADDR_RESOLVED = rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED,
        ADDR_ERROR = rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR,
        ROUTE_RESOLVED = rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED,
        CONNECT_REQUEST = rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST,
        CONNECT_RESPONSE = rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_RESPONSE,
        CONNECT_ERROR = rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR,
        UNREACHABLE = rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE,
        REJECTED = rdma_cm_event_type_RDMA_CM_EVENT_REJECTED,
        ESTABLISHED = rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED,
        DISCONNECTED = rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED,
        DEVICE_REMOVAL = rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL,
        MULTICAST_JOIN = rdma_cm_event_type_RDMA_CM_EVENT_MULTICAST_JOIN,
        MULTICAST_ERROR = rdma_cm_event_type_RDMA_CM_EVENT_MULTICAST_ERROR,
        TIMEWAIT_EXIT = rdma_cm_event_type_RDMA_CM_EVENT_TIMEWAIT_EXIT,
        ADDRINFO_RESOLVED = rdma_cm_event_type_RDMA_CM_EVENT_ADDRINFO_RESOLVED,
        ADDRINFO_ERROR = rdma_cm_event_type_RDMA_CM_EVENT_ADDRINFO_ERROR,
    }
    /// The kind of an address handle.
    AhType {
        IB = rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB,
        OPA = rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA,
        ROCE = rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE,
    }
}

impl EventType {
    /// Returns C's name for it.
    pub(crate) fn message(self) -> &'static CStr {
        // SAFETY: Any number will do, and the text is constant.
        unsafe { CStr::from_char_ptr(bindings::rdma_event_msg(self.0)) }
    }
}

/// The parameters that a consumer gives when it connects or accepts, or that it gets from the other
/// end.
#[derive(Clone, Copy, Default)]
pub(crate) struct ConnParam<'a> {
    /// Data of the consumer's. None of those of an [`Event`], which has them itself.
    pub(crate) private_data: Option<&'a [u8]>,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    /// This, and what follows, is of no effect where the identifier has a queue pair.
    pub(crate) srq: u8,
    pub(crate) qp_num: u32,
    pub(crate) qkey: u32,
}

/// Data as C takes them.
pub(super) fn raw_data(data: Option<&[u8]>) -> Result<(*const c_void, u8)> {
    let Some(data) = data else {
        return Ok((ptr::null(), 0));
    };
    // More than can be said.
    let len = data.len().try_into().map_err(|_| EINVAL)?;
    Ok((data.as_ptr().cast(), len))
}

impl ConnParam<'_> {
    /// As C has it; valid as long as the data are.
    pub(super) fn to_raw(self) -> Result<bindings::rdma_conn_param> {
        let (private_data, private_data_len) = raw_data(self.private_data)?;
        Ok(bindings::rdma_conn_param {
            private_data,
            private_data_len,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            flow_control: self.flow_control,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq,
            qp_num: self.qp_num,
            qkey: self.qkey,
        })
    }

    fn from_raw(raw: &bindings::rdma_conn_param) -> Self {
        Self {
            private_data: None,
            responder_resources: raw.responder_resources,
            initiator_depth: raw.initiator_depth,
            flow_control: raw.flow_control,
            retry_count: raw.retry_count,
            rnr_retry_count: raw.rnr_retry_count,
            srq: raw.srq,
            qp_num: raw.qp_num,
            qkey: raw.qkey,
        }
    }
}

/// The destination of datagrams.
#[derive(Clone, Copy, Default)]
pub(crate) struct UdParam {
    pub(crate) ah_type: AhType,
    pub(crate) qp_num: u32,
    pub(crate) qkey: u32,
}

/// Options for enhanced connection establishment.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ece {
    pub(crate) vendor_id: u32,
    pub(crate) attr_mod: u32,
}

impl Ece {
    pub(super) fn to_raw(self) -> bindings::rdma_ucm_ece {
        bindings::rdma_ucm_ece {
            vendor_id: self.vendor_id,
            attr_mod: self.attr_mod,
        }
    }
}

/// The most that can be said.
const DATA_LEN: usize = u8::MAX as usize;

/// An event. A copy, that may be kept.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) kind: EventType,
    /// 0, an errno, or a [`RejectReason`](super::refusal::RejectReason) or a
    /// [`SidrStatus`](super::refusal::SidrStatus).
    pub(crate) status: i32,
    /// The parameters of connections, and of requests of all kinds.
    pub(crate) conn: ConnParam<'static>,
    /// The parameters of datagrams, and of groups.
    pub(crate) ud: UdParam,
    pub(crate) ece: Ece,
    /// The context of the join of a group.
    pub(crate) group: usize,
    data: [u8; DATA_LEN],
    len: u8,
}

impl Default for Event {
    fn default() -> Self {
        Self::new(EventType::default(), 0, &[])
    }
}

impl Event {
    /// Creates an event that no handler has been told of.
    pub(crate) fn new(kind: EventType, status: i32, data: &[u8]) -> Self {
        let mut event = Self {
            kind,
            status,
            conn: ConnParam::default(),
            ud: UdParam::default(),
            ece: Ece::default(),
            group: 0,
            data: [0; DATA_LEN],
            len: data.len().try_into().unwrap_or(u8::MAX),
        };
        event
            .data
            .iter_mut()
            .zip(data)
            .for_each(|(to, from)| *to = *from);
        event
    }

    /// Returns the data of the other end.
    pub(crate) fn private_data(&self) -> &[u8] {
        self.data.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Reads an event for an identifier of that type.
    ///
    /// # Safety
    ///
    /// `raw` must be an event as the RDMA CM tells it, whose private data are valid.
    pub(super) unsafe fn from_raw(raw: *const bindings::rdma_cm_event, qp_type: QpType) -> Self {
        // SAFETY: The event is valid. A copy, whose pointers are not kept.
        let raw = unsafe { ptr::read(raw) };
        let kind = EventType(raw.event);
        let is_group = matches!(kind, EventType::MULTICAST_JOIN | EventType::MULTICAST_ERROR);
        let is_ud = is_group || qp_type == QpType::UD && kind == EventType::ESTABLISHED;
        let mut conn = ConnParam::default();
        let mut ud = UdParam::default();
        // SAFETY: These are integers in the part of the union that goes with the event, which the
        // RDMA CM zeroes before it fills it in.
        let (data, len) = unsafe {
            if is_ud {
                ud.ah_type = AhType(raw.param.ud.ah_attr.type_);
                ud.qp_num = raw.param.ud.qp_num;
                ud.qkey = raw.param.ud.qkey;
                (raw.param.ud.private_data, raw.param.ud.private_data_len)
            } else {
                conn = ConnParam::from_raw(&raw.param.conn);
                (raw.param.conn.private_data, raw.param.conn.private_data_len)
            }
        };
        let said = if is_group || data.is_null() {
            &[][..]
        } else {
            // SAFETY: By the safety requirements.
            unsafe { slice::from_raw_parts(data.cast::<u8>(), usize::from(len)) }
        };
        Self {
            conn,
            ud,
            ece: Ece {
                vendor_id: raw.ece.vendor_id,
                attr_mod: raw.ece.attr_mod,
            },
            group: if is_group { data.addr() } else { 0 },
            ..Self::new(kind, raw.status, said)
        }
    }

    /// The event of a connection as C has it; valid as long as `self`.
    pub(super) fn to_raw(self: &Event) -> bindings::rdma_cm_event {
        // SAFETY: All zeros are an event.
        let mut raw: bindings::rdma_cm_event = unsafe { mem::zeroed() };
        raw.event = self.kind.0;
        raw.status = self.status;
        raw.param.conn = bindings::rdma_conn_param {
            private_data: self.data.as_ptr().cast(),
            private_data_len: self.len,
            ..Default::default()
        };
        raw
    }
}

/// The key of all questions about datagrams that say no other.
pub(crate) const RDMA_UDP_QKEY: u32 = bindings::RDMA_UDP_QKEY;
