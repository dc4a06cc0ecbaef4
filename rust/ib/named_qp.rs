// SPDX-License-Identifier: GPL-2.0

//! Queue pairs that programs name by their numbers.
//!
//! C header: [`include/rdma/restrack.h`](srctree/include/rdma/restrack.h)

use super::device::Device;
use crate::bindings;
use cmproto::ucma::qp_number::Maker;

impl Device {
    /// Returns the maker of the queue pair with the number `number`, as the current task sees it,
    /// or `None` if there is no such queue pair.
    ///
    /// Queue pairs 0 and 1 are never connected and never found.
    #[inline]
    pub(crate) fn qp_maker(&self, number: u32) -> Option<Maker> {
        let mut found = bindings::rust_rdma_named_qp::default();
        // SAFETY: The device is registered by the type invariant.
        let maker = unsafe { bindings::rust_rdma_named_qp(self.as_raw(), number, &mut found) };
        match maker {
            bindings::rust_rdma_qp_maker_RUST_RDMA_QP_MAKER_NONE => None,
            bindings::rust_rdma_qp_maker_RUST_RDMA_QP_MAKER_CALLER => Some(Maker::Caller),
            bindings::rust_rdma_qp_maker_RUST_RDMA_QP_MAKER_PROCESS => Some(Maker::Process {
                user: found.user,
                shares: found.is_shared_target,
            }),
            _ => Some(Maker::Kernel),
        }
    }
}
