// SPDX-License-Identifier: GPL-2.0

//! The RDMA connection manager.
//!
//! This module replaces the C modules `rdma_ucm` (the character device that librdmacm uses),
//! `rdma_cm` (addresses, routes, ports, listeners) and `ib_cm` (the InfiniBand CM protocol on QP1).
//!
//! - `bindings`, `kext` and `ib` wrap C interfaces, and `kernel_api::ffi` is what C calls; they are
//!   the only folders with `unsafe`.
//! - The crate [`cmproto`] is the protocol; it does not depend on the kernel.
//! - The crate [`containers`] has the trees of the tables; it does not depend on the kernel either.
//! - `ucma`, `kernel_api`, `cma` and `cm` connect both: they have the locks, queues and tables.
//!   They share one object, the `endpoint`.

#![deny(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use kernel::prelude::*;

#[allow(unsafe_code)]
mod bindings;
mod cm;
mod cma;
mod device;
mod endpoint;
mod globals;
#[allow(unsafe_code)]
mod ib;
mod kernel_api;
#[allow(unsafe_code)]
mod kext;
mod module;
mod netlink;
mod table;
mod ucma;

module! {
    type: module::RdmaCm,
    name: "rust_rdma_cm",
    authors: ["The rust_rdma_cm authors"],
    description: "RDMA connection manager",
    license: "GPL",
    alias: ["rdma-client-rdma_cm"],
}
