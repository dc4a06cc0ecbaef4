// SPDX-License-Identifier: GPL-2.0

//! The character device `/dev/infiniband/rdma_cm`, the interface of librdmacm.
//!
//! An open file is a [`channel`]. A write to it is a [`command`], which most often acts on a
//! [`context`], the object that stands for an endpoint in user space. An event that an endpoint
//! reports to its context becomes an [`event`](entries::event), which waits in the channel until a
//! command reads it.
//!
//! No file here takes the lock of an endpoint itself, or calls an endpoint with the lock of a
//! channel held.

mod channel;
mod closing;
mod command;
mod context;
mod entries;
mod globals;
mod multicast;
mod registration;

pub(crate) use self::{globals::Slabs, registration::Registration};

/// Version number of the ABI, as netlink reports it.
pub(crate) const ABI_VERSION: u64 = 4;
