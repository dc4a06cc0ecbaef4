// SPDX-License-Identifier: GPL-2.0

//! The tables that the module has once.
//!
//! A table knows nothing of endpoints: where those are its entries, it is generic in them. Most
//! tables return a handle of a new entry, which holds the table and removes the entry.

pub(crate) mod accept_locks;
pub(crate) mod comm_ids;
pub(crate) mod events;
pub(crate) mod listener_key;
pub(crate) mod listeners;
pub(crate) mod members;
pub(crate) mod neighbours;
pub(crate) mod parked;
pub(crate) mod port_spaces;
pub(crate) mod qp_numbers;
pub(crate) mod remote_ids;
pub(crate) mod resolve_budget;
pub(crate) mod round_trips;
pub(crate) mod sharded;
pub(crate) mod sidr_requests;
pub(crate) mod sources;
pub(crate) mod timers;
pub(crate) mod unresolved;
pub(crate) mod wildcard_listeners;
