// SPDX-License-Identifier: GPL-2.0

//! Abstractions of general kernel interfaces that the kernel crate does not have yet.
//!
//! Each file is a candidate for `rust/kernel/`: it wraps one C interface in a safe one and does not
//! depend on RDMA.

pub(crate) mod bug;
pub(crate) mod chardev;
pub(crate) mod clock;
pub(crate) mod configfs;
pub(crate) mod counted;
pub(crate) mod cred;
pub(crate) mod delay;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod idtable;
pub(crate) mod ip_multicast;
mod kcov;
pub(crate) mod loaded;
pub(crate) mod lock;
pub(crate) mod memcg;
pub(crate) mod net;
pub(crate) mod netdev;
pub(crate) mod netlink;
pub(crate) mod netlink_group;
pub(crate) mod notifier;
pub(crate) mod percpu;
pub(crate) mod percpu_use;
pub(crate) mod random;
pub(crate) mod reclaim;
pub(crate) mod seq_file;
pub(crate) mod slab;
pub(crate) mod sysctl;
pub(crate) mod this_module;
pub(crate) mod uaccess;
pub(crate) mod use_count;
pub(crate) mod users;
pub(crate) mod wait;
pub(crate) mod workqueue;
