// SPDX-License-Identifier: GPL-2.0

//! The state machine of service id resolution, which takes the place of connections for unreliable
//! datagrams (IBTA volume 1, 12.11).
//!
//! One side asks with a SIDR_REQ which queue pair serves a service id, the other side answers once
//! with a SIDR_REP, and both are done. A [`Resolution`] is one side of that. Like a
//! [`cm::Connection`](crate::cm::Connection), it changes its state on inputs and returns
//! [`Action`]s.
//!
//! # Duties of the caller
//!
//! On the requesting side, a resolution is found by its request id, and the caller checks that a
//! SIDR_REP comes from the peer's address. On the responding side, a resolution is found by (source
//! GID, request id) in a table of the caller's. The caller enters a new resolution there, passes a
//! SIDR_REQ that the table has already to [`Resolution::duplicate_req`], and takes the resolution
//! out on [`Action::ReleaseRequest`]. A SIDR_REQ for which nobody listens is answered with
//! [`refusal`], and nothing of it is kept.
//!
//! A SIDR_REP can be lost, and then the SIDR_REQ is sent again. For this case, an answered
//! resolution stays in the table, as data without a user, until the peer has surely given up or has
//! received the SIDR_REP. (Linux forgets it at once, and presents the SIDR_REQ to the user again.)
//! The caller limits the number of answered resolutions: if one is dropped early, a repeated
//! SIDR_REQ is presented to the user again, and nothing worse happens. A SIDR_REQ for which
//! [`is_same_req`] returns false is another request, and takes the place of the one that was
//! answered.
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
