// SPDX-License-Identifier: GPL-2.0

//! C bindings: everything of `kernel::bindings`, and what the RDMA headers and our helpers add.
//!
//! Only `rdma` uses them.

#[path = "../../../rust/bindings/generated.rs"]
mod generated;

pub(crate) use generated::*;
