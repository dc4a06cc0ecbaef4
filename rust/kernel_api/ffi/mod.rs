// SPDX-License-Identifier: GPL-2.0

//! The in-kernel API of the RDMA connection manager.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! A consumer calls an exported C function (`rust/helpers/rdma_cm.c`), which calls the
//! corresponding function in [`export`], which turns pointers into values and calls
//! [`crate::kernel_api`]. In the other direction, [`RdmaIdPrivate::deliver`] calls the consumer's
//! handler.
//!
//! [`RdmaIdPrivate::deliver`]: crate::ib::restrack::RdmaIdPrivate::deliver
//!
//! # Promises of a consumer
//!
//! A consumer is C code, so the compiler cannot check these. A `struct rdma_cm_id` is valid from
//! the call that creates it, or from the callback that announces it, until `rdma_destroy_id()`
//! returns, or until the handler has returned non-zero; it is not used after that. The handler can
//! be called for the same time. A queue pair is valid while the identifier refers to it. A socket
//! address is as long as its family requires.

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
