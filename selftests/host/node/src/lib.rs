// SPDX-License-Identifier: GPL-2.0

//! A node of the RDMA connection manager in memory.
//!
//! This is the module's glue (`rust/cm`, `rust/cma`, `rust/endpoint`, `rust/table`) without locks,
//! devices and memory that runs out. `cmproto::node` decides about a message, and its state machine
//! about the actions of an endpoint; a [`Node`] keeps the tables and carries that out. All output
//! (messages, timers, events of users) goes to its [`Environment`], which also sees each step
//! before and after it is taken.

mod alternate;
mod endpoint;
mod environment;
mod listener;
mod node;
mod receive;
mod round_trips;
mod sources;
mod step;
mod tables;

pub use self::{
    alternate::Paths,
    endpoint::{Actions, Endpoint, Machine},
    environment::{Arrived, Cause, Environment},
    listener::Listener,
    node::{connect_params, Node, Plant},
    round_trips::RoundTrips,
    tables::{CommIds, EpId, RemoteIdTable, Tables},
};
