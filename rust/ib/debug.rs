// SPDX-License-Identifier: GPL-2.0

//! Debug messages, which an administrator can enable with `dyndbg module rust_rdma_cm +p`.
//!
//! A disabled message is not formatted.

use super::restrack::RdmaIdPrivate;
use crate::bindings;

/// A failure that a debug message reports.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Failure {
    /// An address was not resolved.
    AddrUnresolved = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ADDR_UNRESOLVED,
    /// An address was resolved, but no device leads there.
    AddrWithoutDevice = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ADDR_WITHOUT_DEVICE,
    /// The SIDR_REP has a Q_Key that differs from that of the id.
    AddrQkey = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ADDR_QKEY,
    /// No path was found.
    RouteUnresolved = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_ROUTE_UNRESOLVED,
    /// No service was found.
    ServiceUnresolved = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_SERVICE_UNRESOLVED,
    /// A REP was received, but the queue pair could not be made ready.
    NotEstablished = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_NOT_ESTABLISHED,
    /// A REJ was received; the status of the message is its reason.
    Rejected = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_REJECTED,
    /// A SIDR_REP was received that refuses the request; the status of the message is its status.
    SidrRefused = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_SIDR_REFUSED,
    /// A multicast group was not joined, or the membership was lost.
    MulticastFailed = bindings::rust_rdma_cm_failure_RUST_RDMA_CM_MULTICAST_FAILED,
}

/// Logs a failure of an id, with its error number, reason or status, if debug messages are enabled.
pub(crate) fn log(id_priv: &RdmaIdPrivate, failure: Failure, status: i32) {
    // SAFETY: The id is valid for the call, and is only read.
    unsafe { bindings::rust_rdma_cm_debug(id_priv.as_id(), failure as u32, status) };
}
