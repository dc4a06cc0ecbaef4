// SPDX-License-Identifier: GPL-2.0

//! What a transition of the state machine asks its caller to do.

use crate::{
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
    /// The connection is over for good: its communication id may be freed.
    Release,
    /// Count something.
    Count(Counter),
}

/// The actions of one transition, in the order in which to carry them out.
///
/// # Invariants
///
/// The first `len` slots hold an action, the others hold none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a transition is complete only when its actions have been carried out"]
pub struct Actions {
    slots: [Option<Action>; Self::CAPACITY],
    len: usize,
    taken: usize,
}

impl Actions {
    /// No transition has more actions than this.
    pub const CAPACITY: usize = 6;

    /// No actions.
    pub(super) const fn none() -> Self {
        Self {
            slots: [None; Self::CAPACITY],
            len: 0,
            taken: 0,
        }
    }

    /// Only `counter` to count.
    pub(super) fn count(counter: Counter) -> Self {
        let mut actions = Self::none();
        actions.push(Action::Count(counter));
        actions
    }

    /// Adds `action` at the end. There is room for all that any transition adds; the tests try
    /// every one of them.
    pub(super) fn push(&mut self, action: Action) {
        // INVARIANT: the slot after the last action is filled and `len` counts it.
        if let Some(slot) = self.slots.get_mut(self.len) {
            *slot = Some(action);
            self.len = self.len.saturating_add(1);
        } else {
            debug_assert!(
                false,
                "a transition has more than {} actions",
                Self::CAPACITY
            );
        }
    }

    /// The actions not yet taken, without taking them.
    pub fn iter(&self) -> impl Iterator<Item = Action> + '_ {
        self.slots.iter().skip(self.taken).copied().flatten()
    }

    /// How many actions are not yet taken.
    pub fn len(&self) -> usize {
        self.len.saturating_sub(self.taken)
    }

    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `action` is among those not yet taken.
    pub fn contains(&self, action: Action) -> bool {
        self.iter().any(|candidate| candidate == action)
    }
}

impl Iterator for Actions {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let action = self.slots.get(self.taken).copied().flatten()?;
        self.taken = self.taken.saturating_add(1);
        Some(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_come_out_in_order_and_once() {
        let mut actions = Actions::none();
        assert!(actions.is_empty());
        let all = [
            Action::Send(Outgoing::Rej),
            Action::Untrack,
            Action::Timer,
            Action::Deliver(Event::ReqError),
            Action::Release,
            Action::Count(Counter::Retry(Attribute::Req)),
        ];
        for action in all {
            actions.push(action);
        }
        assert_eq!(actions.len(), Actions::CAPACITY);
        assert!(actions.iter().eq(all));
        assert_eq!(actions.next(), Some(Action::Send(Outgoing::Rej)));
        assert!(!actions.contains(Action::Send(Outgoing::Rej)));
        assert!(actions.iter().eq(all[1..].iter().copied()));
        assert_eq!(actions.len(), 5);
        assert!(actions.by_ref().eq(all[1..].iter().copied()));
        assert_eq!((actions.len(), actions.next()), (0, None));
    }
}
