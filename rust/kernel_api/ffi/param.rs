// SPDX-License-Identifier: GPL-2.0

//! Conversion of the parameters that a consumer passes.

use crate::{
    bindings,
    endpoint::{ConnParam, Ece},
};
use cmproto::qp::low24;
use core::slice;
use kernel::prelude::*;

/// Zeros, which are sent if a length of private data is given without a pointer.
static NOTHING: [u8; u8::MAX as usize] = [0; u8::MAX as usize];

/// Converts the parameters of a connection; the result is `None` for a null pointer.
///
/// # Safety
///
/// `param` must be null or valid, and so must its private data, for the duration of `'a`.
pub(super) unsafe fn conn_param<'a>(
    param: *const bindings::rdma_conn_param,
) -> Option<ConnParam<'a>> {
    // SAFETY: By the safety requirements.
    let param = unsafe { param.as_ref() }?;
    let len = usize::from(param.private_data_len);
    let private_data = match param.private_data.is_null() {
        true => NOTHING.get(..len).unwrap_or(&[]),
        // SAFETY: By the safety requirements.
        false => unsafe { slice::from_raw_parts(param.private_data.cast::<u8>(), len) },
    };
    Some(ConnParam {
        qp_num: low24(param.qp_num),
        qkey: param.qkey,
        private_data,
        srq: param.srq,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        user: None,
    })
}

/// Converts the ECE parameters; a null pointer gives zeros.
///
/// # Safety
///
/// `ece` must be null or valid.
pub(super) unsafe fn ece(ece: *const bindings::rdma_ucm_ece) -> Ece {
    // SAFETY: By the safety requirements.
    unsafe { ece.as_ref() }.map_or_else(Ece::default, |ece| Ece {
        vendor_id: ece.vendor_id,
        attr_mod: ece.attr_mod,
    })
}

/// Converts a time in milliseconds; a value that does not fit is cut off.
pub(super) fn timeout(ms: c_ulong) -> u32 {
    u32::try_from(ms).unwrap_or(u32::MAX)
}
