// SPDX-License-Identifier: GPL-2.0

//! Judges captured messages of the communication manager by rules that need no knowledge of what
//! the two sides wanted ([`rule::Rule`]).
//!
//! A capture ([`capture`]) is taken apart into packets ([`packet`]). Each message is judged by
//! itself ([`message`]), by the addresses in it ([`subnet`]), and as a step of its exchange ([`exchange`], [`datagram`]) by what was seen
//! before it, and by what had to follow ([`due`]). Fields are read by the decoder of the module's
//! protocol crate; which bits are reserved comes from the table of `cm_script`, which shares
//! nothing with it.

pub mod capture;
mod connection;
mod datagram;
mod due;
mod exchange;
mod judge;
mod message;
pub mod packet;
pub mod rule;
mod subnet;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use judge::{judge, Verdict};
