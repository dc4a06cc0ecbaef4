// SPDX-License-Identifier: GPL-2.0

//! Tracepoints, with the names that the C connection manager has given them.
//!
//! A call of a disabled tracepoint costs one no-op instruction.
//!
//! C headers: `include/trace/rdma_cma.h`, `include/trace/ib_cma.h`,
//! [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

use super::{device::Device, restrack::RdmaIdPrivate};
use crate::bindings;

/// Calls a tracepoint if it is enabled; otherwise the arguments are not evaluated.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {
        ::kernel::macros::paste! {{
            // SAFETY: The key is that of a tracepoint of this module, defined in C.
            let is_on = unsafe {
                ::kernel::jump_label::static_branch_unlikely!(
                    bindings::[<__tracepoint_ $name>],
                    bindings::tracepoint,
                    key
                )
            };
            if is_on {
                // SAFETY: All arguments that are pointers live for the call, and their targets are
                // only read.
                unsafe { bindings::[<rust_do_trace_ $name>]($($arg),*) };
            }
        }}
    };
}

/// Defines the functions that call tracepoints, in groups with the same parameters and arguments.
macro_rules! tracepoints {
    ($(fn $params:tt => $args:tt { $($(#[$doc:meta])* $name:ident;)* })*) => {$($(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name $params {
            call!($name $args);
        }
    )*)*};
}

/// The event group `rdma_cma`: identifiers, their consumers, and devices.
///
/// The number, the addresses and the queue pair of an identifier are those that it shows; `tos` is
/// the type of service that its consumer has set, or 0.
pub(crate) mod cma {
    use super::*;

    /// The event of a REQ (`IB_CM_REQ_RECEIVED`).
    const REQ_RECEIVED: u32 = bindings::ib_cm_event_type_IB_CM_REQ_RECEIVED;

    tracepoints! {
        fn(id_priv: &RdmaIdPrivate, tos: u8) => (id_priv.as_raw(), tos) {
            /// Traces that an identifier connects.
            cm_send_req;
            /// Traces that a connection request is accepted.
            cm_send_rep;
            /// Traces that the answer to a connection request is accepted.
            cm_send_rtu;
            /// Traces that a connection request or its answer is rejected.
            cm_send_rej;
            /// Traces that a datagram service is requested.
            cm_send_sidr_req;
            /// Traces that a request for a datagram service is answered.
            cm_send_sidr_rep;
            /// Traces that from here on a duplicate of the peer's message is answered with an MRA.
            cm_prepare_mra;
            /// Traces that a connection is about to be ended, or its end to be confirmed.
            cm_disconnect;
            /// Traces that a DREQ was sent.
            cm_sent_dreq;
            /// Traces that a DREP was sent.
            cm_sent_drep;
            /// Traces that an identifier is about to be destroyed.
            cm_id_destroy;
            /// Traces that the queue pair of an identifier is about to be destroyed.
            cm_qp_destroy;
        }
        fn(id_priv: &RdmaIdPrivate, tos: u8) => (id_priv.as_raw(), tos, REQ_RECEIVED) {
            /// Traces that the listener for a REQ was found.
            cm_req_handler;
        }
        fn(id_priv: &RdmaIdPrivate, tos: u8, event: u32, status: i32) => (
            id_priv.as_raw(), tos, event, status
        ) {
            /// Traces that the consumer is about to be told of `event`, an `enum
            /// rdma_cm_event_type`.
            cm_event_handler;
            /// Traces that the consumer was told of `event`, and returned 0 or a negative error
            /// number.
            cm_event_done;
        }
        fn(id_priv: &RdmaIdPrivate, device: &Device) => (id_priv.as_raw(), device.as_raw()) {
            /// Traces that an identifier was attached to a device.
            cm_id_attach;
        }
        fn(device: &Device) => (device.as_raw()) {
            /// Traces that a device was added.
            cm_add_one;
            /// Traces that a device is about to be removed.
            cm_remove_one;
        }
    }

    /// Traces the creation of a queue pair for an identifier.
    ///
    /// `result` is 0 or a negative error number.
    ///
    /// # Safety
    ///
    /// `pd` and `attr` must be valid.
    #[inline(always)]
    pub(crate) unsafe fn cm_qp_create(
        id_priv: &RdmaIdPrivate,
        tos: u8,
        pd: *const bindings::ib_pd,
        attr: *const bindings::ib_qp_init_attr,
        result: i32,
    ) {
        call!(cm_qp_create(id_priv.as_raw(), tos, pd, attr, result));
    }
}

/// The event group `ib_cma`: messages of the IB CM.
pub(crate) mod icm {
    use super::*;
    use core::ptr;
    use kernel::prelude::*;

    /// The status of a message that was never answered (`IB_WC_RESP_TIMEOUT_ERR`).
    const RESPONSE_TIMEOUT: u32 = bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR;

    /// The connection that an event is about.
    pub(crate) struct IcmId<'a> {
        /// The identifier of the connection, if there is one.
        pub(crate) id_priv: Option<&'a RdmaIdPrivate>,
        /// The local communication id.
        pub(crate) local_id: u32,
        /// The peer's communication id; 0 if it is not known.
        pub(crate) remote_id: u32,
        /// The state of the connection, an `enum ib_cm_state`.
        pub(crate) state: u32,
    }

    impl IcmId<'_> {
        fn pointer(&self) -> *const c_void {
            self.id_priv
                .map_or(ptr::null(), |id_priv| id_priv.as_raw().cast_const().cast())
        }
    }

    tracepoints! {
        fn(id: &IcmId<'_>) => (id.pointer(), id.local_id, id.remote_id, id.state) {
            /// Traces that a REQ is about to be sent.
            icm_send_req;
            /// Traces that a REP is about to be sent.
            icm_send_rep;
            /// Traces that an RTU is about to be sent.
            icm_send_rtu;
            /// Traces that a SIDR_REQ is about to be sent.
            icm_send_sidr_req;
            /// Traces that a SIDR_REP is about to be sent.
            icm_send_sidr_rep;
            /// Traces that a DREQ is about to be sent.
            icm_send_dreq;
            /// Traces that a DREP is about to be sent.
            icm_send_drep;
            /// Traces that a duplicate REQ is about to be answered.
            icm_send_dup_req;
            /// Traces that a duplicate REP is about to be answered.
            icm_send_dup_rep;
            /// Traces that no DREQ is sent, as the connection does not need one.
            icm_dreq_skipped;
            /// Traces that the state has no RTU to send.
            icm_send_cm_rtu_err;
            /// Traces that the consumer has received data, but the state does not wait for an RTU.
            icm_establish_err;
            /// Traces that a REQ did not become a connection request.
            icm_no_listener_err;
            /// Traces that the state has no DREP to send.
            icm_send_drep_err;
            /// Traces that a received DREQ does not fit the state.
            icm_dreq_unknown_err;
            /// Traces that the state has nothing to reject.
            icm_send_unknown_rej_err;
            /// Traces that a received REJ does not fit the state.
            icm_rej_unknown_err;
            /// Traces that the state has no message to answer with an MRA.
            icm_prepare_mra_unknown_err;
            /// Traces that a received MRA does not fit the state.
            icm_mra_unknown_err;
            /// Traces that the state has no attributes for a transition of the queue pair to INIT.
            icm_qp_init_err;
            /// Traces that the state has no attributes for a transition of the queue pair to RTR.
            icm_qp_rtr_err;
            /// Traces that the state has no attributes for a transition of the queue pair to RTS.
            icm_qp_rts_err;
        }
        fn(id: &IcmId<'_>, reason: u16) => (
            id.pointer(), id.local_id, id.remote_id, id.state, u32::from(reason)
        ) {
            /// Traces that a REJ is about to be sent.
            icm_send_rej;
        }
        fn(local_id: u32, remote_id: u32) => (local_id, remote_id) {
            /// Traces that a message is about to be rejected that belongs to no connection.
            icm_issue_rej;
            /// Traces that a DREQ is about to be confirmed that belongs to no connection.
            icm_issue_drep;
            /// Traces that a REP names the queue pair of another connection.
            icm_staleconn_err;
            /// Traces that a DREQ belongs to no connection.
            icm_no_priv_err;
        }
        fn(remote_id: u32) => (remote_id) {
            /// Traces that a REP belongs to no connection that waits for one.
            icm_remote_no_priv_err;
            /// Traces that a REP names the communication id of another connection.
            icm_insert_failed_err;
        }
        fn(local_id: u32, state: u32) => (local_id, state) {
            /// Traces that the state has no REP to send.
            icm_send_rep_err;
        }
        fn(local_id: u32, remote_id: u32, state: u32) => (local_id, remote_id, state) {
            /// Traces that a received REP does not fit the state.
            icm_rep_unknown_err;
        }
        fn(state: u32) => (state, RESPONSE_TIMEOUT) {
            /// Traces that a message was never answered.
            icm_mad_send_err;
        }
    }
}
