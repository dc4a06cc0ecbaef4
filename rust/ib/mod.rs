// SPDX-License-Identifier: GPL-2.0

//! Abstractions of the kernel's RDMA core for in-kernel clients.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_mad.h`](srctree/include/rdma/ib_mad.h),
//! [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h),
//! [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h),
//! [`include/rdma/ib_sa.h`](srctree/include/rdma/ib_sa.h),
//! [`include/rdma/restrack.h`](srctree/include/rdma/restrack.h).
//!
//! # Ownership
//!
//! A device belongs to its driver, which may remove it at any time. A client sees the device
//! between [`ClientOps::add`] and [`ClientOps::remove`], through a [`DeviceRef`]. Every object that
//! the RDMA core keeps for a client per device (a [`GidAttr`], an [`Ah`], an [`AgentRegistration`],
//! an [`RdmaIdPrivate`] that is shown, [`PortCounters`], an [`SaQuery`] that is not answered, an
//! [`SaMembership`]) holds a [`DeviceRef`], and the removal of the device waits until the last one
//! is dropped. So none of these objects can be used after the device is gone. A client that keeps
//! one for too long makes the removal hang, with warnings in the log, instead of crashing the
//! kernel.
//!
//! Callbacks run in process context. The trait of each callback says what it may do.
//!
//! [`Ah`]: ah::Ah
//! [`AgentRegistration`]: mad::AgentRegistration
//! [`ClientOps::add`]: client::ClientOps::add
//! [`ClientOps::remove`]: client::ClientOps::remove
//! [`DeviceRef`]: device::DeviceRef
//! [`GidAttr`]: gid::GidAttr
//! [`RdmaIdPrivate`]: restrack::RdmaIdPrivate
//! [`PortCounters`]: counters::PortCounters
//! [`SaMembership`]: sa::SaMembership
//! [`SaQuery`]: sa::SaQuery

// The abstractions are complete, like a library's, and not all of them are used.

pub(crate) mod addr;
pub(crate) mod ah;
mod ah_cache;
mod asked_neighbour;
pub(crate) mod cache;
pub(crate) mod client;
pub(crate) mod counters;
pub(crate) mod debug;
pub(crate) mod dev_addr;
pub(crate) mod device;
pub(crate) mod device_filter;
pub(crate) mod gid;
pub(crate) mod interface;
pub(crate) mod iw;
pub(crate) mod latency;
pub(crate) mod layout;
pub(crate) mod mad;
mod mad_source;
mod named_qp;
pub(crate) mod overlaid_rdma_id;
pub(crate) mod port;
pub(crate) mod port_events;
pub(crate) mod qp;
pub(crate) mod restrack;
pub(crate) mod sa;
mod send_buffer;
pub(crate) mod trace;
