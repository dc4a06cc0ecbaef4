// SPDX-License-Identifier: GPL-2.0

//! The connection state machine of the InfiniBand communication manager (IBTA volume 1, 12.9).
//!
//! It does no input or output of its own: a [`Connection`] takes a user's verb, a received message
//! or the passing of time, changes its state, and returns a short list of [`Action`]s for its
//! caller to carry out. It holds all that is needed to write its messages again, so a caller
//! keeps neither message buffers nor timers beyond the one that [`Connection::deadline`] names.
//!
//! One connection has at most one timer, one request in flight, and one stored piece of private
//! data. It ends once: after [`Action::Release`] it answers every input with nothing, but for a REP
//! that comes again after its REJ.

mod action;
mod connection;
mod destroy;
mod encode;
mod params;
mod qp_attr;
mod receive;
mod retransmit;
mod round_trip;
mod state;
mod timeout;
mod tuning;
mod verbs;

#[cfg(any(test, CONFIG_KUNIT))]
pub(crate) mod tests;

pub use self::{
    action::{Action, Actions, Counter, Event, Outgoing},
    connection::Connection,
    destroy::DestroyCause,
    params::{AcceptParams, ConnectParams, Limits, QpType},
    qp_attr::{QpAttr, QpAttrMask, QpState},
    retransmit::{Expiry, Pace, Retransmit, Schedule, Total, Waiting, EARLY_SENDS},
    round_trip::RoundTrip,
    state::State,
    tuning::{Tunable, Tuning},
};
