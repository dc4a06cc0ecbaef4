// SPDX-License-Identifier: GPL-2.0

//! Conversion of events to their C form, and calls of a consumer's handler.

use crate::{
    bindings,
    endpoint::{ConnEventParam, Event, EventParam, PrivateData, UdEventParam},
    ib::{
        qp::{self, NextHop},
        restrack::RdmaIdPrivate,
    },
    kernel_api::HandlerGuard,
};
use cmproto::ucma_abi::CmEvent;
use core::ptr;
use kernel::prelude::*;

/// Returns a pointer to private data, or null if there is none.
fn pointer(data: &PrivateData<'_>) -> *const c_void {
    match data.bytes() {
        [] => ptr::null(),
        bytes => bytes.as_ptr().cast(),
    }
}

/// Converts an event without its parameters.
#[inline(always)]
pub(super) fn plain(event: &Event<'_>) -> bindings::rdma_cm_event {
    bindings::rdma_cm_event {
        event: event.kind.number(),
        status: event.status,
        ece: bindings::rdma_ucm_ece {
            vendor_id: event.ece.vendor_id,
            attr_mod: event.ece.attr_mod,
        },
        ..pin_init::zeroed()
    }
}

/// Converts the parameters of a connection; the result borrows the private data.
#[inline(always)]
pub(super) fn conn(param: &ConnEventParam<'_>) -> bindings::rdma_conn_param {
    bindings::rdma_conn_param {
        private_data: pointer(&param.private_data),
        private_data_len: param.private_data.len(),
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        srq: param.srq,
        qp_num: param.qp_num,
        qkey: 0,
    }
}

impl RdmaIdPrivate {
    /// Converts the parameters of a datagram event; the result borrows the private data.
    fn ud(
        &self,
        param: &UdEventParam<'_>,
        hop: NextHop,
        group: *mut c_void,
    ) -> bindings::rdma_ud_param {
        let private_data = if group.is_null() {
            pointer(&param.private_data)
        } else {
            group.cast_const()
        };
        bindings::rdma_ud_param {
            private_data,
            private_data_len: param.private_data.len(),
            // SAFETY: Without a device the event has no address of a peer.
            ah_attr: unsafe { qp::ah_to_raw((*self.as_id()).device, &param.ah_attr, hop) },
            qp_num: param.qp_num,
            qkey: param.qkey,
        }
    }

    /// Converts an event; the result borrows the private data.
    ///
    /// `hop` is the next hop to the peer. `group` is the context of the multicast group that the
    /// event is about, or null.
    pub(super) fn raw_event(
        &self,
        event: &Event<'_>,
        hop: NextHop,
        group: *mut c_void,
    ) -> bindings::rdma_cm_event {
        let mut raw = plain(event);
        match &event.param {
            EventParam::None if !group.is_null() => {
                raw.param.ud = bindings::rdma_ud_param {
                    private_data: group.cast_const(),
                    ..pin_init::zeroed()
                };
            }
            EventParam::None => {}
            EventParam::Conn(param) => raw.param.conn = conn(param),
            EventParam::Ud(param) => {
                let hop = match hop {
                    // The LID of a group is in the vector.
                    NextHop::OpaLid(_) if event.kind != CmEvent::Established => NextHop::NONE,
                    _ => hop,
                };
                raw.param.ud = self.ud(param, hop, group);
            }
            EventParam::Arg(arg) => raw.param.arg = *arg,
            // Such events are for the consumers of the IB CM.
            EventParam::Message(_) => {}
        }
        raw
    }

    /// Calls the consumer's handler and returns its result.
    ///
    /// A result other than 0 means that the identifier is to be destroyed. Without a handler
    /// nothing happens, and the result is 0.
    ///
    /// `hop` is the next hop to the peer. `group` is the context of the multicast group that the
    /// event is about, or null. `_guard` is that of the handler, locked for this
    /// identifier or for the listener of a connection request.
    pub(crate) fn deliver(
        &self,
        _guard: &HandlerGuard<'_>,
        event: &Event<'_>,
        hop: NextHop,
        group: *mut c_void,
    ) -> c_int {
        // SAFETY: The field is inside the object.
        let handler = unsafe { (&raw const (*self.as_id()).event_handler).read_volatile() };
        let Some(handler) = handler else {
            return 0;
        };
        let mut raw = self.raw_event(event, hop, group);
        // SAFETY: The guard shows that the handler can be called. The event and the
        // data that it borrows live until the handler returns.
        unsafe { handler(self.as_id(), ptr::from_mut(&mut raw)) }
    }
}
