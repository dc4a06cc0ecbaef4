// SPDX-License-Identifier: GPL-2.0

//! What a transition of the state machine asks its caller to do.

use super::status::Status;
use crate::{cm::Counter, list::List, wire::Attribute};

/// A message to send to the peer; [`Resolution::encode`](super::Resolution::encode) writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The question.
    Req,
    /// The answer.
    Rep,
}

impl Outgoing {
    /// The attribute id of the message.
    pub const fn attribute(self) -> Attribute {
        match self {
            Self::Req => Attribute::SidrReq,
            Self::Rep => Attribute::SidrRep,
        }
    }
}

/// What the user who asked is told. The user who is asked hears nothing after the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The answer; what it says is in the message that was just received.
    RepReceived {
        /// Whether there is a queue pair, and why not.
        status: Status,
    },
    /// The question was never answered (`ETIMEDOUT`).
    ReqError,
}

/// One thing for the caller to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to the peer.
    Send(Outgoing),
    /// [`deadline`](super::Resolution::deadline) changed: set the timer anew or stop it.
    Timer,
    /// Take the resolution out of the table of questions.
    Untrack,
    /// Tell the user.
    Deliver(Event),
    /// The resolution is over for good.
    Release,
    /// Count something.
    Count(Counter),
}

/// The actions of one transition, in the order in which to carry them out. No transition has more
/// than these.
pub type Actions = List<Action, 3>;

impl Actions {
    /// Only `counter` to count.
    pub(super) fn count(counter: Counter) -> Self {
        let mut actions = Self::none();
        actions.push(Action::Count(counter));
        actions
    }
}
