// SPDX-License-Identifier: GPL-2.0

//! The InfiniBand CM: messages, timers, and the tables that find endpoints.
//!
//! [`cmproto::cm`], [`cmproto::sidr`] and [`cmproto::node`] make the decisions, and this layer
//! executes them.

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
