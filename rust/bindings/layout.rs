// SPDX-License-Identifier: GPL-2.0

//! Layouts of structures that are shared with `ib_core` without a common header.
//!
//! The numbers are those of the C compiler for `include/core_private.h`, and were compared with the
//! kernel that the module is built for (`rust/helpers/layout.c`).

use super::generated as c;
use core::mem::{align_of, offset_of, size_of};

/// Asserts that the Rust compiler and the C compiler agree on a layout.
macro_rules! same {
    ($($left:expr => $right:ident,)*) => {
        $(const _: () = assert!($left == c::$right as usize, stringify!($right));)*
    };
}

same! {
    size_of::<c::rdma_cm_id>() => RDMA_ID_PRIVATE_ID_SIZE,
    offset_of!(c::rdma_id_private_head, state) => RDMA_ID_PRIVATE_STATE,
    offset_of!(c::rdma_id_private_head, qp_num) => RDMA_ID_PRIVATE_QP_NUM,
    offset_of!(c::rdma_id_private_head, res) => RDMA_ID_PRIVATE_RES,
    size_of::<c::rdma_restrack_entry>() => RDMA_ID_PRIVATE_RES_SIZE,
    offset_of!(c::rdma_cm_id, device) => RDMA_CM_ID_DEVICE,
    offset_of!(c::rdma_cm_id, route) => RDMA_CM_ID_ROUTE,
    offset_of!(c::rdma_cm_id, ps) => RDMA_CM_ID_PS,
    offset_of!(c::rdma_cm_id, qp_type) => RDMA_CM_ID_QP_TYPE,
    offset_of!(c::rdma_cm_id, port_num) => RDMA_CM_ID_PORT_NUM,
}

const _: () = assert!(offset_of!(c::rdma_id_private_head, id) == 0);
const _: () = assert!(align_of::<c::rdma_id_private_head>() == 8);
