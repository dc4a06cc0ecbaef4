// SPDX-License-Identifier: GPL-2.0

//! The kernel of the guest that this runs in: threads that write commands, its wire, and its log.

mod kcov;
mod log;
mod memory;
mod operator;
mod pool;
mod verbs;
mod wire;
mod worker;

pub use pool::Guest;
