// SPDX-License-Identifier: GPL-2.0

//! Scripts of the RDMA connection manager, in the spirit of packetdrill.
//!
//! A script plays two parts: the peer on the wire, and the user of the connection manager. A
//! [`world::World`] lies between them: the protocol crate with a virtual clock ([`host`]), or a
//! kernel with its character device and its network ([`guest`]). The language is described in
//! `selftests/scenarios/README.rst`.
//!
//! The messages are read and written with a table of their own ([`wire`]), which shares nothing with
//! the code under test.

pub mod guest;
pub mod host;
pub mod parse;
pub mod play;
pub mod report;
pub mod wire;
pub mod world;
