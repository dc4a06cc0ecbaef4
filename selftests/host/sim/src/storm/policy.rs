// SPDX-License-Identifier: GPL-2.0

//! The two policies that are compared.

use std::fmt;

use cmnode::{Environment, Node, Plant};
use cmproto::cm::{Tunable, Tuning};

/// The policy of all nodes of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The policy of the C modules, as far as the node that ships can be tuned to it.
    C,
    /// The defaults that ship.
    Ours,
}

impl Policy {
    /// Both, in the order of the results.
    pub const ALL: [Self; 2] = [Self::C, Self::Ours];

    /// Tunes a node.
    pub(super) fn tune<E: Environment>(self, node: &mut Node<E>, tuning: &Tuning) {
        node.tuning = *tuning;
        if self == Self::C {
            // A REP is repeated whether its receiver has confirmed anything or not.
            node.plant = Some(Plant::Unasked);
        }
    }

    /// Returns the values of the tunables.
    pub fn tuning(self) -> Tuning {
        let mut tuning = Tuning::NONE;
        if self == Self::C {
            for tunable in [Tunable::EarlyRetry, Tunable::Parking] {
                tuning.set(tunable, 0).expect("0 is valid");
            }
        }
        tuning
    }

    /// Returns the number of REQs and DREQs of a port that may wait for their answers
    /// (`recv_queue_size` / 4 of ib_core). The others wait in a queue.
    pub(super) const fn window(self) -> u32 {
        match self {
            Self::C => 128,
            Self::Ours => u32::MAX,
        }
    }

    /// Returns whether a message is handed to a work queue, and not handled where it arrives.
    pub(super) const fn hands_over(self) -> bool {
        matches!(self, Self::C)
    }

    /// Returns the time for which a closed connection leaves something behind, in nanoseconds.
    pub(super) const fn timewait(self) -> u64 {
        match self {
            Self::C => 512_000_000,
            Self::Ours => 0,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "c",
            Self::Ours => "rust",
        })
    }
}
