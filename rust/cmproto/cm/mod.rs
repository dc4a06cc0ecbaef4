// SPDX-License-Identifier: GPL-2.0

//! The connection state machine of the InfiniBand communication manager (IBTA volume 1, 12.9).
//!
//! The state machine has no input and output of its own. A [`Connection`] processes a verb of the
//! user, a received message or the expiry of the timer: it changes its state and returns a short
//! list of [`Action`]s for the caller to carry out. All that is needed to send a message again is
//! stored in the connection, so that the caller keeps neither message buffers nor timers, except
//! for one timer that runs until [`Connection::deadline`].
//!
//! A connection has at most one timer, one request in flight, and the private data of one message.
//! It ends once: after [`Action::Release`] it ignores every input, except that it answers a
//! repeated REP with its REJ.

mod action;
mod alternate;
mod connection;
mod destroy;
mod encode;
mod heard;
mod keepalive;
mod lap;
mod params;
mod qp_attr;
mod receive;
mod retransmit;
mod retransmit_buffer;
mod round_trip;
mod state;
mod timeout;
mod tuning;
mod verbs;

#[cfg(any(test, CONFIG_KUNIT))]
pub(crate) mod tests;

pub use self::{
    action::{Action, Actions, Counter, Event, Outgoing},
    alternate::{AlternateEnd, Unusable},
    connection::Connection,
    destroy::DestroyCause,
    heard::{Heard, LatestAnswered},
    lap::{AprStatus, LapParams, Received},
    params::{AcceptParams, ConnectParams, Limits},
    qp_attr::{access, qp_attr_mask, QpState},
    retransmit::{Expiry, Retransmit, RetryPolicy, Schedule, TotalTimeout, Waiting, EARLY_SENDS},
    retransmit_buffer::{Inline, RetransmitBuffer, RetransmitMemory},
    round_trip::RoundTrip,
    state::State,
    tuning::{Tunable, Tuning},
};
