// SPDX-License-Identifier: GPL-2.0

//! The RDMA connection manager.
//!
//! Takes the place of the C modules `rdma_ucm` (the device that librdmacm talks to), `rdma_cm`
//! (addresses, routes, ports, listeners) and `ib_cm` (the InfiniBand CM protocol on QP 1).
//!
//! - `bindings`, `kext` and `ib` wrap C, and are the only places with `unsafe`.
//! - The crate [`cmproto`] is the protocol; it knows no kernel.
//! - `ucma`, `kernel_api`, `cma` and `cm` connect the two: locks, queues, tables. They share one
//!   object, the `endpoint`.

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
mod core;
mod endpoint;
#[allow(unsafe_code)]
mod ib;
mod kernel_api;
#[allow(unsafe_code, dead_code, unused_imports)]
mod kext;
mod module;
mod ucma;

module! {
    type: module::RdmaCm,
    name: "rust_rdma_cm",
    authors: ["The rust_rdma_cm authors"],
    description: "RDMA connection manager",
    license: "GPL",
    alias: ["rdma-client-rdma_cm"],
}
