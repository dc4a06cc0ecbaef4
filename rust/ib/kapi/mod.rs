// SPDX-License-Identifier: GPL-2.0

//! The API of the connection manager for other parts of the kernel.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! A consumer calls an exported C function (`rust/helpers/rdma_cm.c`), which calls the function of
//! the same purpose in [`export`], which makes values of pointers and calls [`crate::kernel_api`].
//! Back it goes by [`IdHead::tell`](super::restrack::IdHead::tell), which calls the consumer's
//! handler.
//!
//! # What a consumer promises
//!
//! It is C, so nobody checks. A `struct rdma_cm_id` is valid from the call that creates it, or from
//! the callback that shows it, until `rdma_destroy_id()` returns, or until the handler has returned
//! non-zero; nobody uses it after that. The handler can be called for as long. A queue pair that the
//! identifier names is valid while it is named. An address is as long as its family says.

mod address;
pub(crate) mod cm;
mod event;
pub(crate) mod export;
mod fields;
mod param;
mod path;
mod program;
mod registration;

pub(crate) use self::{
    fields::{service_level, show_link, show_path, show_services, QpUse, ReleasedQp},
    path::{PathLink, PathRec, ServiceRecs},
    registration::Registration,
};
