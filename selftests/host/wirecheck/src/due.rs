// SPDX-License-Identifier: GPL-2.0

//! The messages that have to follow, and their deadlines.

use crate::{connection::End, rule::Rule};

/// A message that has to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// An MRA, because a REQ was repeated.
    Mra,
    /// An RTU again, because a REP was repeated.
    Rtu,
    /// A DREP of this end again, because a DREQ was repeated.
    Drep(End),
    /// REJ 10, because another connection has the QPN.
    Stale,
    /// The end of the connection whose QPN was claimed.
    Ends,
    /// Another REQ, or the end.
    Req,
    /// Another REP, or the end.
    Rep,
}

/// A message that is due.
#[derive(Clone, Debug)]
pub struct Due {
    /// The connection.
    pub at: usize,
    /// The message.
    pub wants: Wants,
    /// By when, in microseconds.
    pub until: u64,
    /// The frame that calls for it.
    pub frame: usize,
}

impl Wants {
    /// The rule that demands it.
    pub const fn rule(self) -> Rule {
        match self {
            Self::Mra => Rule::W9,
            Self::Rtu | Self::Drep(_) => Rule::W10,
            Self::Stale | Self::Ends => Rule::W11,
            Self::Req | Self::Rep => Rule::W7,
        }
    }

    /// Returns the text for the missing message.
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Mra => "no MRA for the repeated REQ",
            Self::Rtu => "no RTU for the repeated REP",
            Self::Drep(_) => "no DREP for the repeated DREQ",
            Self::Stale => "this has the QPN of a connection that is alive, and no REJ 10 came",
            Self::Ends => "the connection whose QPN was taken goes on",
            Self::Req => "this REQ was neither answered nor repeated nor withdrawn",
            Self::Rep => "this REP was neither answered nor repeated nor withdrawn",
        }
    }
}

/// The messages that are due.
#[derive(Debug, Default)]
pub struct Dues {
    all: Vec<Due>,
}

impl Dues {
    /// Something is due.
    pub fn push(&mut self, due: Due) {
        self.all.push(due);
    }

    /// The message came, or need not come any more.
    pub fn settle(&mut self, at: usize, wants: Wants) {
        self.all.retain(|due| (due.at, due.wants) != (at, wants));
    }

    /// The connection is at its end: only its own end can still be due.
    pub fn settle_all(&mut self, at: usize) {
        self.all
            .retain(|due| due.at != at || due.wants == Wants::Stale);
    }

    /// Takes out what should have come before `now`, in microseconds.
    pub fn overdue(&mut self, now: u64) -> Vec<Due> {
        let (late, rest) = self.all.drain(..).partition(|due| due.until < now);
        self.all = rest;
        late
    }
}
