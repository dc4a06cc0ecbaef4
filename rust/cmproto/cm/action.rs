// SPDX-License-Identifier: GPL-2.0

//! The actions and events that a transition of a connection returns.

use crate::{
    list::List,
    reject::Reason,
    wire::{Attribute, MraMessage},
};

/// A message for the peer, which [`Connection::encode`](super::Connection::encode) writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A REQ: connection request.
    Req,
    /// A REP: connection reply.
    Rep,
    /// An RTU: ready to use.
    Rtu,
    /// A DREQ: disconnect request.
    Dreq,
    /// A DREQ with a queue pair that is not the peer's. A peer that has the connection ignores it,
    /// and one that has not confirms it by a DREP.
    Challenge,
    /// A DREP: disconnect reply.
    Drep,
    /// An MRA: receipt of the given message, which is still being processed.
    Mra(MraMessage),
    /// A REJ: rejection. Its contents are stored in the connection.
    Rej,
    /// A LAP: request for another alternate path.
    Lap,
    /// An APR: answer to a LAP.
    Apr,
}

impl Outgoing {
    /// Returns the attribute id of the message.
    pub const fn attribute(self) -> Attribute {
        match self {
            Self::Req => Attribute::Req,
            Self::Rep => Attribute::Rep,
            Self::Rtu => Attribute::Rtu,
            Self::Dreq | Self::Challenge => Attribute::Dreq,
            Self::Drep => Attribute::Drep,
            Self::Mra(_) => Attribute::Mra,
            Self::Rej => Attribute::Rej,
            Self::Lap => Attribute::Lap,
            Self::Apr => Attribute::Apr,
        }
    }
}

/// An event for the user of the connection.
///
/// The data of an event (private data, parameters of the peer) is in the message that was just
/// received. The three errors mean that a request was never answered (`ETIMEDOUT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer has accepted. The user answers with `establish` or `reject`.
    RepReceived,
    /// The peer is ready: the connection is established.
    RtuReceived,
    /// The connection is established, because the user has received data before the RTU.
    UserEstablished,
    /// The peer has rejected or aborted the connection.
    RejReceived {
        /// The reason in the REJ.
        reason: Reason,
    },
    /// The REQ was never answered.
    ReqError,
    /// The REP was never answered.
    RepError,
    /// The peer disconnects. The user answers with `confirm_disconnect`.
    DreqReceived,
    /// The DREQ was never answered. The connection is over nevertheless.
    DreqError,
    /// The own link was down for as long as the user has waited. The connection is over, and
    /// nothing but [`TimewaitExit`](Self::TimewaitExit) follows.
    LinkDown,
    /// The peer has confirmed the disconnect.
    DrepReceived,
    /// The time wait is over.
    TimewaitExit,
    /// The peer needs more time to answer.
    MraReceived,
    /// The peer has another alternate path, which is used from now on. It was told so.
    LapReceived,
}

impl Event {
    /// Maximum number of events of one connection, whatever its peer sends, without
    /// [`LapReceived`](Self::LapReceived): each event occurs at most once, and some exclude others.
    pub const MOST: usize = 5;
}

/// A counter to increment, with the kind of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A repeated message was received (`cm_rx_duplicates`).
    Duplicate(Attribute),
    /// A request was sent again because there was no answer (`cm_tx_retries`).
    Retry(Attribute),
    /// An answer was sent again because its request was repeated. The kernel counts it as two
    /// messages sent, one of them a retry.
    Repeat(Attribute),
    /// A message that is not expected in this state was dropped.
    Unexpected(Attribute),
    /// A message that does not name this connection was dropped.
    Mismatch(Attribute),
    /// A message that is not supported (a LAP over RoCE) was dropped.
    Unsupported(Attribute),
}

/// One action for the caller to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to the peer.
    Send(Outgoing),
    /// Send a message that the peer has not asked for, who has not confirmed its request, if
    /// [`Unasked`](crate::node::Unasked) allows it. If not, a count that follows is left out, too.
    SendUnasked(Outgoing),
    /// Set the timer to the new [`deadline`](super::Connection::deadline), or stop it.
    Timer,
    /// Remove the ids of the peer from the tables of duplicate requests and of stale peers, as far
    /// as they were entered.
    ReleaseRemoteIds,
    /// Deliver an event to the user.
    Deliver(Event),
    /// Release the connection, which is over for good: its communication id may be freed. Until it
    /// is freed, a peer that repeats a REP, because the REJ was lost, receives the REJ again.
    Release,
    /// The LAP of this end was answered or given up. If `is_loaded` is set, its path is the
    /// alternate path from now on.
    EndLap {
        /// Set if the peer uses the path.
        is_loaded: bool,
    },
    /// Increment a counter.
    Count(Counter),
}

/// The actions of one transition, at most 6, in the order in which to carry them out.
pub type Actions = List<Action, 6>;

impl Actions {
    /// Creates a list with the one action to increment `counter`.
    pub(super) fn count(counter: Counter) -> Self {
        let mut actions = Self::none();
        actions.push(Action::Count(counter));
        actions
    }
}
