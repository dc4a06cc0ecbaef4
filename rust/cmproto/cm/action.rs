// SPDX-License-Identifier: GPL-2.0

//! What a transition of the state machine asks its caller to do.

use crate::{
    list::List,
    reject::Reason,
    wire::{Attribute, MraMessage},
};

/// A message to send to the peer; [`Connection::encode`](super::Connection::encode) writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// Connection request.
    Req,
    /// Connection reply.
    Rep,
    /// Ready to use.
    Rtu,
    /// Disconnect request.
    Dreq,
    /// Disconnect reply.
    Drep,
    /// Receipt of the named message, which is still being worked on.
    Mra(MraMessage),
    /// Rejection; what it says is kept in the connection.
    Rej,
}

impl Outgoing {
    /// The attribute id of the message.
    pub const fn attribute(self) -> Attribute {
        match self {
            Self::Req => Attribute::Req,
            Self::Rep => Attribute::Rep,
            Self::Rtu => Attribute::Rtu,
            Self::Dreq => Attribute::Dreq,
            Self::Drep => Attribute::Drep,
            Self::Mra(_) => Attribute::Mra,
            Self::Rej => Attribute::Rej,
        }
    }
}

/// What the user of the connection is told.
///
/// What came with it (private data, the peer's parameters) is in the message that was just
/// received. The three errors mean that a request was never answered (`ETIMEDOUT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer accepted; answer with `establish` or `reject`.
    RepReceived,
    /// The peer is ready: connected.
    RtuReceived,
    /// Connected, because the user saw data arrive before the RTU.
    UserEstablished,
    /// The peer rejected or aborted the connection.
    RejReceived {
        /// Why, in the peer's words.
        reason: Reason,
    },
    /// The REQ was never answered.
    ReqError,
    /// The REP was never answered.
    RepError,
    /// The peer disconnects; answer with `confirm_disconnect`.
    DreqReceived,
    /// The DREQ was never answered; the connection is over all the same.
    DreqError,
    /// The peer confirmed the disconnect.
    DrepReceived,
    /// The time wait is over.
    TimewaitExit,
    /// The peer needs more time to answer.
    MraReceived,
}

impl Event {
    /// Most events that one connection gives, whatever its peer sends: each at most once, and some
    /// exclude others.
    pub const MOST: usize = 5;
}

/// Something worth counting, with the message it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A message arrived again (`cm_rx_duplicates`).
    Duplicate(Attribute),
    /// A request was sent again because no answer came (`cm_tx_retries`).
    Retry(Attribute),
    /// An answer was sent again because its request came again. The kernel counts it as two
    /// messages sent, one of them a retry.
    Repeat(Attribute),
    /// A message that the state does not expect was dropped.
    Unexpected(Attribute),
    /// A message that does not name this connection was dropped.
    Mismatch(Attribute),
    /// A message that is not supported (path migration) was dropped.
    Unsupported(Attribute),
}

/// One thing for the caller to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to the peer.
    Send(Outgoing),
    /// [`deadline`](super::Connection::deadline) changed: set the timer anew or stop it.
    Timer,
    /// Take the connection out of the tables of duplicate requests and of stale peers.
    Untrack,
    /// Tell the user.
    Deliver(Event),
    /// The connection is over for good: its communication id may be freed. As long as it is not, a
    /// peer that has missed the REJ of its REP gets it again.
    Release,
    /// Count something.
    Count(Counter),
}

/// The actions of one transition, in the order in which to carry them out. No transition has more
/// than these.
pub type Actions = List<Action, 6>;

impl Actions {
    /// Only `counter` to count.
    pub(super) fn count(counter: Counter) -> Self {
        let mut actions = Self::none();
        actions.push(Action::Count(counter));
        actions
    }
}
