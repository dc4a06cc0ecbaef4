// SPDX-License-Identifier: GPL-2.0

//! States that several tasks change without a lock.
//!
//! Each type is a word or two, and the orders of memory that its users rely on. A host runs each
//! in every schedule of two or three tasks (loom), together with what the module does around it,
//! such as a look-up under a lock. The module has no other atomic variable by which one task hands
//! memory to another.
//!
//! In the module the words are those of the kernel crate, whose orders are those of the kernel's
//! memory model. On a host [`word`] puts them together of what Rust's memory model has.

// The kernel's build names `no_std` on the command line.
#![cfg_attr(not(any(test, CONFIG_RUST)), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
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

mod notice;
mod occupancy;
mod presence;
mod published;
mod query_state;
#[cfg(all(test, loom))]
mod schedule;
mod slots;
mod use_state;
mod verb_state;
mod word;

pub use notice::Notice;
pub use occupancy::Occupancy;
pub use presence::Presence;
pub use published::Published;
pub use query_state::QueryState;
pub use slots::Slots;
pub use use_state::UseState;
pub use verb_state::VerbState;
