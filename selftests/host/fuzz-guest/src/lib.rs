// SPDX-License-Identifier: GPL-2.0

//! A coverage-guided fuzzer of the commands of `/dev/infiniband/rdma_cm` and of the messages on the wire. [`run`](fuzz::run) searches
//! with any [`Kernel`](fuzz::Kernel), so that a host can test it with one that is not real; that of
//! [`guest`] is the kernel of the guest that the program runs in.

pub mod blocks;
pub mod fuzz;
pub mod guest;
pub mod layout;
pub mod message;
pub mod mutate;
pub mod seeds;
pub mod sequence;
pub mod value;
