// SPDX-License-Identifier: GPL-2.0

//! The actions and events that a transition of a resolution returns.

use super::status::Status;
use crate::{cm::Counter, list::List, wire::Attribute};

/// A message for the peer, which [`Resolution::encode`](super::Resolution::encode) writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A SIDR_REQ.
    Req,
    /// A SIDR_REP.
    Rep,
}

impl Outgoing {
    /// Returns the attribute id of the message.
    pub const fn attribute(self) -> Attribute {
        match self {
            Self::Req => Attribute::SidrReq,
            Self::Rep => Attribute::SidrRep,
        }
    }
}

/// An event for the user on the requesting side. On the responding side, the user is told nothing
/// after the SIDR_REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A SIDR_REP was received. Its contents are in the message that was just received.
    RepReceived {
        /// The status in the SIDR_REP.
        status: Status,
    },
    /// The SIDR_REQ was never answered (`ETIMEDOUT`).
    ReqError,
}

/// One action for the caller to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to the peer.
    Send(Outgoing),
    /// Set the timer to the new [`deadline`](super::Resolution::deadline), or stop it.
    Timer,
    /// Take the resolution out of the table of SIDR requests.
    ReleaseRequest,
    /// Deliver an event to the user.
    Deliver(Event),
    /// Release the resolution, which is over for good.
    Release,
    /// Increment a counter.
    Count(Counter),
}

/// The actions of one transition, at most 3, in the order in which to carry them out.
pub type Actions = List<Action, 3>;

impl Actions {
    /// Creates a list with the one action to increment `counter`.
    pub(super) fn count(counter: Counter) -> Self {
        let mut actions = Self::none();
        actions.push(Action::Count(counter));
        actions
    }
}
