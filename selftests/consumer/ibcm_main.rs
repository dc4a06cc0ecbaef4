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

#[allow(unsafe_code)]
mod bindings;
#[allow(dead_code, unused_macros, unused_imports)]
mod harness;
mod ibcm;
#[allow(unsafe_code, dead_code)]
mod rdma;

kernel::prelude::module! {
    type: ibcm::Ibcm,
    name: "ibcm",
    authors: ["The rust_rdma_cm authors"],
    description: "Consumer of the InfiniBand CM, for tests",
    license: "GPL",
}
