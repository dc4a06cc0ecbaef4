// SPDX-License-Identifier: GPL-2.0

//! RDMA devices as the kernel's RDMA core offers them to in-kernel clients.
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
//! A device belongs to its driver, and the driver takes it away whenever it likes. A client sees it
//! between [`ClientOps::add`] and [`ClientOps::remove`], through a [`DeviceRef`]. Whatever the RDMA
//! core keeps for a client per device (a [`GidAttr`], an [`Ah`], an [`AgentRegistration`], an
//! [`IdHead`] that is shown, [`PortCounters`], an [`SaQuery`] that is not answered, an
//! [`SaMembership`]) holds a [`DeviceRef`], and the removal of the
//! device waits until the last one is dropped. So none of these can be used after the device, and
//! a client that keeps one for too long makes the removal hang, loudly, rather than the kernel
//! crash.
//!
//! Callbacks run in process context. What each may and may not do is said at its trait.
//!
//! [`Ah`]: ah::Ah
//! [`AgentRegistration`]: mad::AgentRegistration
//! [`ClientOps::add`]: client::ClientOps::add
//! [`ClientOps::remove`]: client::ClientOps::remove
//! [`DeviceRef`]: device::DeviceRef
//! [`GidAttr`]: gid::GidAttr
//! [`IdHead`]: restrack::IdHead
//! [`PortCounters`]: counters::PortCounters
//! [`SaMembership`]: sa::SaMembership
//! [`SaQuery`]: sa::SaQuery

// A wrapper of the whole of what a connection manager needs, as if it were a library.
#![allow(dead_code)]

pub(crate) mod addr;
pub(crate) mod ah;
pub(crate) mod cache;
pub(crate) mod client;
pub(crate) mod counters;
pub(crate) mod debug;
pub(crate) mod dev_addr;
pub(crate) mod device;
pub(crate) mod gid;
pub(crate) mod iw;
pub(crate) mod kapi;
pub(crate) mod mad;
pub(crate) mod port;
pub(crate) mod qp;
pub(crate) mod restrack;
pub(crate) mod sa;
mod send_buffer;
pub(crate) mod trace;
mod ways;
