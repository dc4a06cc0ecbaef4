// SPDX-License-Identifier: GPL-2.0

//! The RDMA connection management protocol, without I/O.
//!
//! Everything here is a pure function of its input: wire formats, addresses, port rules, the user
//! ABI and the state machines. Nothing allocates, blocks, reads a clock or draws a random number;
//! the caller supplies time and randomness, and executes the actions that are returned. The same
//! files are compiled into the module, and by cargo on a host.
//!
//! Clauses quoted as "IBTA" are those of the InfiniBand Architecture Specification, volume 1.
//! Values in Rust types are in host byte order unless a field says otherwise; only [`wire`],
//! [`private_data`] and [`ucma_abi`] know byte positions.

// The kernel's build names `no_std` on the command line.
#![cfg_attr(not(any(test, CONFIG_RUST)), no_std)]
#![cfg_attr(not(CONFIG_KUNIT), forbid(unsafe_code))]
// The attribute that makes KUnit suites of the tests uses `unsafe`.
#![cfg_attr(CONFIG_KUNIT, deny(unsafe_code))]
#![warn(missing_docs)]
// No input of a peer or a user may cause a panic.
#![cfg_attr(
    not(any(test, CONFIG_KUNIT)),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_underscore,
        clippy::cast_lossless,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod addr;
pub mod bind;
pub mod btf;
pub mod bucket;
pub mod bytes;
pub mod cm;
pub mod cma;
pub mod dropped;
pub mod ephemeral;
pub mod errno;
pub mod event;
pub mod event_budgets;
pub mod gid;
pub mod ibcm;
pub mod ids;
pub mod ipoib;
pub mod iwarp;
#[cfg(CONFIG_KUNIT)]
mod kunit;
pub mod latency;
pub mod list;
pub mod listen;
pub mod mcast;
pub mod netlink;
pub mod node;
mod numbered;
pub mod opa;
pub mod origin;
pub mod path;
mod payload;
pub mod private_data;
pub mod qp;
pub mod reject;
pub mod reuseport;
pub mod roce;
pub mod sa;
pub mod service_id;
pub mod sidr;
mod siphash;
pub mod stored_addr;
#[cfg(any(test, CONFIG_KUNIT))]
mod testing;
pub mod time;
pub mod ucma;
pub mod ucma_abi;
pub mod wire;
