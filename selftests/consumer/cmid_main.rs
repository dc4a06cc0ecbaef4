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

#[allow(unsafe_code)]
mod bindings;
mod cmid;
#[allow(dead_code, unused_macros, unused_imports)]
mod harness;
#[allow(unsafe_code, dead_code)]
mod rdma;

kernel::prelude::module! {
    type: cmid::Cmid,
    name: "cmid",
    authors: ["The rust_rdma_cm authors"],
    description: "Consumer of the RDMA CM, for tests",
    license: "GPL",
}
