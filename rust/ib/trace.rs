// SPDX-License-Identifier: GPL-2.0

//! Tracepoints, under the names that the C connection manager has given them.
//!
//! While nobody listens to a tracepoint, a call costs one instruction that does nothing.
//!
//! C headers: `include/trace/rdma_cma.h`, `include/trace/ib_cma.h`,
//! [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

use super::{device::Device, restrack::IdHead};
use crate::bindings;

/// Calls the tracepoint if somebody listens to it; the arguments are not evaluated otherwise.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {
        ::kernel::macros::paste! {{
            // SAFETY: The key is that of a tracepoint of our own, made by C.
            let is_on = unsafe {
                ::kernel::jump_label::static_branch_unlikely!(
                    bindings::[<__tracepoint_ $name>],
                    bindings::tracepoint,
                    key
                )
            };
            if is_on {
                // SAFETY: All that is pointed to lives for the call, and is only read.
                unsafe { bindings::[<rust_do_trace_ $name>]($($arg),*) };
            }
        }}
    };
}

/// The group `rdma_cma`: identifiers, their consumers, devices.
///
/// The number, the addresses and the queue pair of an identifier are those that it shows; `tos` is
/// what its consumer has set, or 0.
pub(crate) mod cma {
    use super::*;

    macro_rules! of_identifier {
        ($($(#[$doc:meta])* $name:ident;)*) => {$(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name(head: &IdHead, tos: u8) {
                call!($name(head.as_raw(), tos));
            }
        )*};
    }

    of_identifier! {
        /// Connects.
        cm_send_req;
        /// Accepts a connection request.
        cm_send_rep;
        /// Accepts the answer to its connection request.
        cm_send_rtu;
        /// Refuses.
        cm_send_rej;
        /// Asks for a datagram service.
        cm_send_sidr_req;
        /// Answers the question for one.
        cm_send_sidr_rep;
        /// From here on a message that comes again is answered with an MRA.
        cm_prepare_mra;
        /// Is about to end its connection, or to confirm the end.
        cm_disconnect;
        /// Has sent a DREQ.
        cm_sent_dreq;
        /// Has sent a DREP.
        cm_sent_drep;
        /// Is about to end.
        cm_id_destroy;
        /// Its queue pair is about to be destroyed.
        cm_qp_destroy;
    }

    /// A queue pair was created for the identifier, or was not, with a negative error number in
    /// `result`.
    ///
    /// # Safety
    ///
    /// `pd` and `attr` must be valid.
    #[inline(always)]
    pub(in crate::ib) unsafe fn cm_qp_create(
        head: &IdHead,
        tos: u8,
        pd: *const bindings::ib_pd,
        attr: *const bindings::ib_qp_init_attr,
        result: i32,
    ) {
        call!(cm_qp_create(head.as_raw(), tos, pd, attr, result));
    }

    /// The identifier was attached to a device.
    #[inline(always)]
    pub(crate) fn cm_id_attach(head: &IdHead, device: &Device) {
        call!(cm_id_attach(head.as_raw(), device.as_raw()));
    }

    /// The listener was found that a REQ is for.
    #[inline(always)]
    pub(crate) fn cm_req_handler(head: &IdHead, tos: u8) {
        call!(cm_req_handler(
            head.as_raw(),
            tos,
            bindings::ib_cm_event_type_IB_CM_REQ_RECEIVED
        ));
    }

    /// The consumer is about to be told of `event`, an `enum rdma_cm_event_type`.
    #[inline(always)]
    pub(crate) fn cm_event_handler(head: &IdHead, tos: u8, event: u32, status: i32) {
        call!(cm_event_handler(head.as_raw(), tos, event, status));
    }

    /// The consumer was told of `event`, and returned 0 or a negative error number.
    #[inline(always)]
    pub(crate) fn cm_event_done(head: &IdHead, tos: u8, event: u32, result: i32) {
        call!(cm_event_done(head.as_raw(), tos, event, result));
    }

    /// A device has come.
    #[inline(always)]
    pub(crate) fn cm_add_one(device: &Device) {
        call!(cm_add_one(device.as_raw()));
    }

    /// A device is about to go.
    #[inline(always)]
    pub(crate) fn cm_remove_one(device: &Device) {
        call!(cm_remove_one(device.as_raw()));
    }
}

/// The group `ib_cma`: messages of the IB CM.
pub(crate) mod icm {
    use super::*;
    use core::ptr;
    use kernel::prelude::*;

    /// `IB_WC_RESP_TIMEOUT_ERR`: nobody has answered.
    const RESPONSE_TIMEOUT: u32 = bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR;

    /// What is said of a connection.
    pub(crate) struct IcmId<'a> {
        /// The identifier that has it, if there is one.
        pub(crate) head: Option<&'a IdHead>,
        /// Its communication id.
        pub(crate) local_id: u32,
        /// The peer's communication id; 0 if that is not known.
        pub(crate) remote_id: u32,
        /// The state, an `enum ib_cm_state`.
        pub(crate) state: u32,
    }

    impl IcmId<'_> {
        fn pointer(&self) -> *const c_void {
            self.head
                .map_or(ptr::null(), |head| head.as_raw().cast_const().cast())
        }
    }

    macro_rules! of_connection {
        ($($(#[$doc:meta])* $name:ident;)*) => {$(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name(id: &IcmId<'_>) {
                call!($name(id.pointer(), id.local_id, id.remote_id, id.state));
            }
        )*};
    }

    of_connection! {
        /// A REQ is about to be sent.
        icm_send_req;
        /// A REP is about to be sent.
        icm_send_rep;
        /// An RTU is about to be sent.
        icm_send_rtu;
        /// A SIDR_REQ is about to be sent.
        icm_send_sidr_req;
        /// A SIDR_REP is about to be sent.
        icm_send_sidr_rep;
        /// A DREQ is about to be sent.
        icm_send_dreq;
        /// A DREP is about to be sent.
        icm_send_drep;
        /// A repeated REQ is about to be answered.
        icm_send_dup_req;
        /// A repeated REP is about to be answered.
        icm_send_dup_rep;
        /// There is no DREQ to send.
        icm_dreq_skipped;
        /// There is no RTU to send.
        icm_send_cm_rtu_err;
        /// The consumer saw data, but the connection is not about to be established.
        icm_establish_err;
        /// A REQ did not become a connection request.
        icm_no_listener_err;
        /// There is no DREP to send.
        icm_send_drep_err;
        /// A DREQ does not fit the state.
        icm_dreq_unknown_err;
        /// There is nothing to refuse.
        icm_send_unknown_rej_err;
        /// A REJ does not fit the state.
        icm_rej_unknown_err;
        /// Nothing waits for an answer of the consumer.
        icm_prepare_mra_unknown_err;
        /// An MRA does not fit the state.
        icm_mra_unknown_err;
        /// The state has no attributes for a queue pair that goes to INIT.
        icm_qp_init_err;
        /// The state has no attributes for a queue pair that goes to RTR.
        icm_qp_rtr_err;
        /// The state has no attributes for a queue pair that goes to RTS.
        icm_qp_rts_err;
    }

    /// A REJ is about to be sent.
    #[inline(always)]
    pub(crate) fn icm_send_rej(id: &IcmId<'_>, reason: u16) {
        call!(icm_send_rej(
            id.pointer(),
            id.local_id,
            id.remote_id,
            id.state,
            u32::from(reason)
        ));
    }

    macro_rules! of_message {
        ($($(#[$doc:meta])* $name:ident;)*) => {$(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name(local_id: u32, remote_id: u32) {
                call!($name(local_id, remote_id));
            }
        )*};
    }

    of_message! {
        /// A message is about to be refused, on behalf of no connection.
        icm_issue_rej;
        /// A DREQ is about to be confirmed, on behalf of no connection.
        icm_issue_drep;
        /// A REP has the queue pair of another connection.
        icm_staleconn_err;
        /// A DREQ is for no connection.
        icm_no_priv_err;
    }

    /// A REP is for no connection that waits for one.
    #[inline(always)]
    pub(crate) fn icm_remote_no_priv_err(remote_id: u32) {
        call!(icm_remote_no_priv_err(remote_id));
    }

    /// A REP has the communication id of another connection.
    #[inline(always)]
    pub(crate) fn icm_insert_failed_err(remote_id: u32) {
        call!(icm_insert_failed_err(remote_id));
    }

    /// There is no REP to send.
    #[inline(always)]
    pub(crate) fn icm_send_rep_err(local_id: u32, state: u32) {
        call!(icm_send_rep_err(local_id, state));
    }

    /// A REP does not fit the state.
    #[inline(always)]
    pub(crate) fn icm_rep_unknown_err(local_id: u32, remote_id: u32, state: u32) {
        call!(icm_rep_unknown_err(local_id, remote_id, state));
    }

    /// A message was never answered.
    #[inline(always)]
    pub(crate) fn icm_mad_send_err(state: u32) {
        call!(icm_mad_send_err(state, RESPONSE_TIMEOUT));
    }
}
