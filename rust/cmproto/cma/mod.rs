// SPDX-License-Identifier: GPL-2.0

//! The states of an endpoint as its consumer sees them, and the events that the consumer is told.
//!
//! This is the layer above the communication manager proper ([`cm`](crate::cm)): addresses and
//! routes are resolved here, and the events of the communication manager become those of the RDMA
//! CM.

mod event;
mod qkey;
pub mod qp;
mod state;

pub use self::{
    event::{resolution_upcall, upcall, Upcall},
    qkey::Qkey,
    state::{State, Trigger},
};
