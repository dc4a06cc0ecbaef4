// SPDX-License-Identifier: GPL-2.0

//! The state machine of service id resolution, which datagrams have instead of connections
//! (IBTA volume 1, 12.11).
//!
//! One side asks with a SIDR_REQ which queue pair serves a service id, the other side answers once
//! with a SIDR_REP, and both are done. A [`Resolution`] is one side of that, in the manner of
//! [`cm::Connection`](crate::cm::Connection): inputs change its state and return [`Action`]s.
//!
//! # The caller's part
//!
//! The asking side is found by its request id, and the caller checks that an answer comes from the
//! peer's address. The answering side is found by (source GID, request id): the caller enters a
//! new one into a table of these, gives a SIDR_REQ that is there already to
//! [`Resolution::duplicate_req`], and takes it out upon [`Action::Untrack`]. A SIDR_REQ for which
//! nobody listens is answered with [`refusal`] and leaves nothing behind.
//!
//! An answer can be lost, and the question comes again then. So an answered resolution stays in
//! the table, as data without a user, until the peer has surely given up or has got its answer;
//! Linux forgets it at once, and presents the question to the user again. How many are remembered
//! is for the caller to bound: to drop one early costs no more than that. What [`is_same_req`] does not
//! know is another question, and takes the place of the one that was remembered.
//!
//! [`is_same_req`]: Resolution::is_same_req

mod action;
mod encode;
mod params;
mod resolution;
mod status;

#[cfg(test)]
mod tests;

pub use self::{
    action::{Action, Actions, Event, Outgoing},
    encode::refusal,
    params::{ReplyParams, ResolveParams},
    resolution::Resolution,
    status::Status,
};
