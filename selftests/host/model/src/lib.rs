// SPDX-License-Identifier: GPL-2.0

//! An exhaustive search of what two nodes with the real state machine can do to each other.
//!
//! [`machine`] wraps [`cmproto::cm::Connection`] so that a state is a number, [`world`] is two
//! nodes, their users and the network between them, [`tables`] is what a node finds its ends by,
//! [`model`] says which properties must hold, [`graph`] that every fair run ends, and [`bounds`]
//! how far each search goes.
//!
//! Time is abstract: every call says that it is the end of time ([`Instant::MAX`]), so that each
//! deadline saturates there and has come the moment it is set. A timer that runs may therefore go
//! off before anything else or after everything else, and no state differs from another one by
//! a time alone.
//!
//! The network is the set of all messages ever sent. Each of them may arrive at any time, any
//! number of times, or never: that is all loss, duplication, reordering and delay there can be.
//!
//! [`Instant::MAX`]: cmproto::time::Instant::MAX

pub mod bounds;
pub mod graph;
pub mod machine;
pub mod model;
pub mod tables;
pub mod world;
