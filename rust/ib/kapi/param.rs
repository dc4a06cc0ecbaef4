// SPDX-License-Identifier: GPL-2.0

//! Parameters that a consumer gives.

use crate::{
    bindings,
    endpoint::{ConnParam, Ece},
};
use core::slice;
use kernel::prelude::*;

/// Private data of which there are none, in full length.
static NOTHING: [u8; u8::MAX as usize] = [0; u8::MAX as usize];

/// Reads the parameters of a connection; none of null.
///
/// # Safety
///
/// `param` must be null or valid, and so must the private data that it names, for `'a`.
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
        qp_num: param.qp_num & 0x00ff_ffff,
        qkey: param.qkey,
        private_data,
        srq: param.srq,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
    })
}

/// Reads what a consumer says about ECE; nothing of null.
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

/// A time of C in milliseconds.
pub(super) fn timeout(ms: c_ulong) -> u32 {
    u32::try_from(ms).unwrap_or(u32::MAX)
}
