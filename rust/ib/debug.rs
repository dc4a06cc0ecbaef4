// SPDX-License-Identifier: GPL-2.0

//! Lines for the log that an administrator can switch on, as `dyndbg module rust_rdma_cm +p`.
//!
//! While that is not done, nothing is written.

use super::restrack::IdHead;
use crate::bindings;

/// Of what a line tells.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Failure {
    /// An address was not resolved.
    AddrUnresolved = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ADDR_UNRESOLVED,
    /// An address was resolved, but no device leads there.
    AddrWithoutDevice = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ADDR_WITHOUT_DEVICE,
    /// The answer to a SIDR_REQ has another Q_Key than the identifier.
    AddrQkey = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ADDR_QKEY,
    /// No path was found.
    RouteUnresolved = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ROUTE_UNRESOLVED,
    /// No service was found.
    ServiceUnresolved = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_SERVICE_UNRESOLVED,
    /// A REP came, and the queue pair could not be made ready.
    NotEstablished = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_NOT_ESTABLISHED,
    /// A REJ came; what is told is its reason.
    Rejected = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_REJECTED,
    /// A SIDR_REP came that refuses; what is told is its status.
    SidrRefused = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_SIDR_REFUSED,
    /// A multicast group was not joined, or the membership is lost.
    MulticastFailed = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_MULTICAST_FAILED,
}

/// Tells whoever has asked for it what has happened to the identifier, and the error, reason or status.
pub(crate) fn tell(head: &IdHead, failure: Failure, status: i32) {
    // SAFETY: The identifier is valid for the call, and only read.
    unsafe { bindings::rust_rdma_cm_debug(head.as_id(), failure as u32, status) };
}
