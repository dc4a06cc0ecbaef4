// SPDX-License-Identifier: GPL-2.0

//! Why the other end will not.
//!
//! C header: [`include/rdma/ib_cm.h`](srctree/include/rdma/ib_cm.h)

use super::number::numbers;
use crate::bindings;
use kernel::prelude::*;

numbers! {
    /// Why a connection is refused, where the connection manager is that of InfiniBand.
    RejectReason {
        TIMEOUT = ib_cm_rej_reason_IB_CM_REJ_TIMEOUT,
        UNSUPPORTED = ib_cm_rej_reason_IB_CM_REJ_UNSUPPORTED,
        INVALID_SERVICE_ID = ib_cm_rej_reason_IB_CM_REJ_INVALID_SERVICE_ID,
        STALE_CONN = ib_cm_rej_reason_IB_CM_REJ_STALE_CONN,
        CONSUMER_DEFINED = ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED,
        VENDOR_OPTION_NOT_SUPPORTED = ib_cm_rej_reason_IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED,
    }
    /// The result of a resolution for datagrams.
    SidrStatus {
        SUCCESS = ib_cm_sidr_status_IB_SIDR_SUCCESS,
        UNSUPPORTED = ib_cm_sidr_status_IB_SIDR_UNSUPPORTED,
        REJECT = ib_cm_sidr_status_IB_SIDR_REJECT,
    }
}

impl RejectReason {
    /// Returns C's name for it.
    pub(crate) fn message(self) -> &'static CStr {
        // SAFETY: Any number will do, and the text is constant.
        unsafe { CStr::from_char_ptr(bindings::ibcm_reject_msg(self.0 as c_int)) }
    }
}
