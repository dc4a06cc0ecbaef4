// SPDX-License-Identifier: GPL-2.0

//! The rules of `/dev/infiniband/rdma_cm` that need no kernel.
//!
//! The structures are in [`ucma_abi`](crate::ucma_abi). The rules for their values are here: which
//! writes are well formed, what a backlog admits, how much a user may have, which options there
//! are, and how a path is reported to user space.

pub mod account;
pub mod backlog;
pub mod frame;
pub mod option;
pub mod order;
pub mod path;
pub mod qp_number;
pub mod query;
pub mod turn;
