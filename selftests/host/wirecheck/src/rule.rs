// SPDX-License-Identifier: GPL-2.0

//! The rules (IBTA volume 1, chapters 12 and 13, annexes A11 and A17; values as Linux has them).

use std::fmt;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// Every rule, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the demand of the rule, in a few words.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

rules! {
    /// Class 7, version 2, method Send, status 0, 256 bytes, from QP 1 to QP 1 with the well-known
    /// Q_Key (13.4.3, 13.4.2).
    W1 = "header of a CM message",
    /// The invariant CRC is right (A17.3.3).
    W2 = "invariant CRC",
    /// An exchange has the transaction id of its REQ until it is established; a DREQ has one of its
    /// sender, and its DREP has the same (12.6.4).
    W3 = "transaction ids",
    /// Communication ids belong together, and none is used for two connections at a time (12.9.7).
    W4 = "communication ids",
    /// A message is sent no more often than Max CM Retries allows, and no sooner than the response
    /// timeout (12.7.27); but up to 7 come early, before the first response timeout is over.
    W5 = "number and times of retries",
    /// A retry is the message that it repeats, bit for bit (12.9.8.2).
    W6 = "retries are identical",
    /// A request is repeated until it is answered, and then no more (12.9.8).
    W7 = "repeated until answered",
    /// After an MRA the sender waits for as long as it says; there is one for each receipt at most
    /// (12.6.6).
    W8 = "MRA delays the retries",
    /// A repeated REQ gets what its state demands, never a second decision (12.9.8.3).
    W9 = "repeated REQ",
    /// A repeated REP gets an RTU again, a repeated DREQ a DREP (12.9.8.3).
    W10 = "repeated REP and DREQ",
    /// A REQ with the QPN of a connection that is alive gets REJ 10, and that connection ends
    /// (12.9.8.3.1).
    W11 = "stale connections",
    /// Reasons of a REJ, and what they bring along (12.6.7.2).
    W12 = "reasons of REJ",
    /// A REJ names the message that it rejects, and the ids that its sender knows (12.6.7).
    W13 = "message and ids of REJ",
    /// Reserved bits are zero, and so is private data that nobody gave (12.6).
    W14 = "reserved bits and unused data",
    /// Lengths of fields; annex A11 begins the private data of requests (12.6, A11).
    W15 = "lengths and header of private data",
    /// A communication id is not used again before the time wait is over (12.9.8.4).
    W16 = "time wait",
    /// Numbers of queue pairs and services (12.6.5, A11).
    W17 = "QPNs and service ids",
    /// An answer goes to where the message came from (13.5.4.2).
    W18 = "answers go back",
    /// The primary path of a REQ is the one that it takes (12.6.5); GIDs and LIDs belong together.
    W19 = "path of a REQ",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A message that breaks a rule.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The number of the frame in the capture, from 1.
    pub frame: usize,
    /// The description of the error.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "frame {}: {} ({}): {}",
            self.frame,
            self.rule,
            self.rule.text(),
            self.text
        )
    }
}

/// The violations of rules, as they are found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The number of the frame that is looked at.
    pub frame: usize,
    /// All that was found.
    pub all: Vec<Violation>,
}

impl Findings {
    /// The frame breaks a rule.
    pub fn breaks(&mut self, rule: Rule, text: impl Into<String>) {
        let (frame, text) = (self.frame, text.into());
        self.all.push(Violation { rule, frame, text });
    }

    /// The frame breaks a rule if that does not hold.
    pub fn check(&mut self, rule: Rule, holds: bool, text: impl Into<String>) {
        if !holds {
            self.breaks(rule, text);
        }
    }
}
