// SPDX-License-Identifier: GPL-2.0

//! A consumer of `<rdma/rdma_cm.h>`.
//!
//! It calls every function, in every state, from callbacks and from outside, over one device.
//! It works when it is loaded and says in the log what it found; loading fails with `EIO` if
//! something is wrong.
//!
//! - `bindings` and `rdma` wrap C, and are the only places with `unsafe`.
//! - `harness` runs tests and finds what is wrong.
//! - `cmid` are the tests.

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
mod cmid;
// The shared modules have more than this module needs.
#[allow(dead_code)]
mod harness;
// The shared modules have more than this module needs.
#[allow(unsafe_code, dead_code)]
mod rdma {
    pub(crate) mod address;
    pub(crate) mod cm_id;
    pub(crate) mod device;
    pub(crate) mod errno;
    pub(crate) mod event;
    pub(crate) mod gid;
    pub(crate) mod neighbour;
    pub(crate) mod number;
    pub(crate) mod owner;
    pub(crate) mod parameter;
    pub(crate) mod path;
    pub(crate) mod qp_attr;
    pub(crate) mod queue_pair;
    pub(crate) mod refusal;
    pub(crate) mod rtnl;
    pub(crate) mod stuck;
    pub(crate) mod word;
}

kernel::prelude::module! {
    type: cmid::Cmid,
    name: "cmid",
    authors: ["The rust_rdma_cm authors"],
    description: "Consumer of the RDMA CM, for tests",
    license: "GPL",
}
