// SPDX-License-Identifier: GPL-2.0

//! A consumer of `<rdma/ib_cm.h>`.
//!
//! It calls every function, in every state, from callbacks and from outside, over one device to
//! itself. It works when it is loaded and says in the log what it found; loading fails with `EIO` if
//! something is wrong. It needs no queue pairs: it invents numbers.
//!
//! - `bindings` and `rdma` wrap C, and are the only places with `unsafe`.
//! - `harness` runs tests and finds what is wrong.
//! - `ibcm` are the tests.

#![deny(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

#[allow(unsafe_code)]
mod bindings;
// The shared modules have more than this module needs.
#[allow(dead_code)]
mod harness;
mod ibcm;
// The shared modules have more than this module needs.
#[allow(unsafe_code, dead_code)]
mod rdma {
    pub(crate) mod address;
    pub(crate) mod address_listener;
    pub(crate) mod device;
    pub(crate) mod errno;
    pub(crate) mod gid;
    pub(crate) mod ib_cm_event;
    pub(crate) mod ib_cm_id;
    pub(crate) mod ib_cm_param;
    pub(crate) mod mad;
    pub(crate) mod number;
    pub(crate) mod path;
    pub(crate) mod qp_attr;
    pub(crate) mod queue_pair;
    pub(crate) mod refusal;
    pub(crate) mod service;
    pub(crate) mod word;
}

kernel::prelude::module! {
    type: ibcm::Ibcm,
    name: "ibcm",
    authors: ["The rust_rdma_cm authors"],
    description: "Consumer of the InfiniBand CM, for tests",
    license: "GPL",
}
