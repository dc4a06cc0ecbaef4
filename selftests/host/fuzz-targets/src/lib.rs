// SPDX-License-Identifier: GPL-2.0

//! Fuzz targets: functions that take any bytes, and panic when something is wrong.
//!
//! The targets of [`decode`] give the bytes to a decoder. The targets of [`sequence`] read them as
//! a script of calls, messages and waits, so that a fuzzer finds its way into every state.

mod bytes;
mod decode;
mod sequence;

pub use self::{
    decode::{ip_header, mad, sockaddr, ucma},
    sequence::{connection, pair, resolution},
};

/// A target.
pub type Target = fn(&[u8]);

/// Every target, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("mad", mad),
    ("ip_header", ip_header),
    ("sockaddr", sockaddr),
    ("ucma", ucma),
    ("connection", connection),
    ("pair", pair),
    ("resolution", resolution),
];
