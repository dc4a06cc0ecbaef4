// SPDX-License-Identifier: GPL-2.0

//! An event as C has it, for the handler of a consumer.

use super::super::{qp, restrack::IdHead};
use crate::{
    bindings,
    endpoint::{ConnEventParam, Event, EventParam, PrivateData, UdEventParam},
    kernel_api::Turn,
};
use core::ptr;
use kernel::prelude::*;

/// Where private data is; null if there is none.
fn pointer(data: &PrivateData<'_>) -> *const c_void {
    match data.bytes() {
        [] => ptr::null(),
        bytes => bytes.as_ptr().cast(),
    }
}

/// An event as C has it, without what comes with it.
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

/// The parameters of a connection, as C has them. The private data is borrowed.
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

impl IdHead {
    /// The way of datagrams, as C has it. The private data is borrowed.
    fn ud(
        &self,
        param: &UdEventParam<'_>,
        dmac: [u8; 6],
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
            // SAFETY: Without a device there is no address of a peer.
            ah_attr: unsafe { qp::ah_to_raw((*self.as_id()).device, &param.ah_attr, dmac) },
            qp_num: param.qp_num,
            qkey: param.qkey,
        }
    }

    /// An event as C has it, which borrows its private data.
    ///
    /// `dmac` is where the peer is on the link. `group` is what the consumer called the multicast
    /// group that the event is about.
    pub(super) fn raw_event(
        &self,
        event: &Event<'_>,
        dmac: [u8; 6],
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
            EventParam::Ud(param) => raw.param.ud = self.ud(param, dmac, group),
            EventParam::Arg(arg) => raw.param.arg = *arg,
            // For consumers of another kind.
            EventParam::Message(_) => {}
        }
        raw
    }

    /// Calls the consumer's handler and returns what that returns: 0, or anything else if the
    /// identifier is to be destroyed. Without a handler nothing happens.
    ///
    /// `dmac` is where the peer is on the link. `group` is what the consumer called the multicast
    /// group that the event is about. `_turn` is that of the consumer, by this identifier or by the
    /// listener that a request came to.
    pub(crate) fn tell(
        &self,
        _turn: &Turn<'_>,
        event: &Event<'_>,
        dmac: [u8; 6],
        group: *mut c_void,
    ) -> c_int {
        // SAFETY: The field is inside the object.
        let handler = unsafe { (&raw const (*self.as_id()).event_handler).read_volatile() };
        let Some(handler) = handler else {
            return 0;
        };
        let mut raw = self.raw_event(event, dmac, group);
        // SAFETY: It is the consumer's turn, so that its handler can be called. The event and what
        // it borrows live until it returns.
        unsafe { handler(self.as_id(), ptr::from_mut(&mut raw)) }
    }
}
