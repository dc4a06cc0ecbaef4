// SPDX-License-Identifier: GPL-2.0

//! The IB CM: messages, timers and the tables that connect them to endpoints.
//!
//! What to do is decided by the state machine in [`cmproto::cm`]; this layer does it.

pub(crate) mod execute;
mod held;
pub(crate) mod ids;
mod pace;
pub(crate) mod parked;
pub(crate) mod peers;
pub(crate) mod port;
pub(crate) mod questions;
mod reach;
mod receive;
pub(crate) mod remote;
mod reply;
mod request;
mod sidr;
pub(crate) mod target;
pub(crate) mod timer;
mod trace;
pub(crate) mod unreached;

pub(crate) use self::reach::Searches;
