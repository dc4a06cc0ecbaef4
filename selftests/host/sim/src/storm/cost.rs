// SPDX-License-Identifier: GPL-2.0

//! The time that the processor of a host takes, and the memory of an end of a connection.

use super::policy::Policy;

/// Instructions of the steps of a connection, and the rate at which a processor executes them.
///
/// The instructions are the medians of `Documentation/bench/insns.csv` and `floor.csv`, both ends
/// together, over soft-RoCE with 128 connections in flight.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Clock rate of a processor, in MHz.
    pub megahertz: u64,
    /// Instructions per 1,000 cycles.
    pub per_kilocycle: u64,
    /// Instructions to send a message, and as many to receive one, without a connection manager.
    pub message: u64,
    /// Instructions to open a connection, its messages included.
    pub open: u64,
    /// Instructions to close a connection, its messages included.
    pub close: u64,
}

/// Messages of a connection that opens, and steps: connect, REQ, accept, REP, RTU.
const OPEN: (u64, u64) = (3, 5);
/// Messages of a connection that closes, and steps: disconnect, DREQ, its confirmation, DREP.
const CLOSE: (u64, u64) = (2, 4);

impl Costs {
    /// Returns the measured costs of a policy.
    pub const fn measured(policy: Policy) -> Self {
        let (open, close) = match policy {
            Policy::C => (199_997, 56_385),
            Policy::Ours => (164_816, 70_976),
        };
        Self {
            megahertz: 3_000,
            per_kilocycle: 1_000,
            // 8,452 times three messages per second, at 500 million instructions per second.
            message: 9_860,
            open,
            close,
        }
    }

    fn step(&self, whole: u64, (messages, steps): (u64, u64)) -> u64 {
        whole.saturating_sub(2 * messages * self.message) / steps
    }

    /// Returns the nanoseconds of so many instructions.
    fn nanos(&self, instructions: u64) -> u64 {
        instructions * 1_000_000 / (self.megahertz * self.per_kilocycle).max(1)
    }

    /// Returns the nanoseconds to send or receive `n` messages.
    pub fn messages(&self, n: u64) -> u64 {
        self.nanos(n * self.message)
    }

    /// Returns the nanoseconds of a step while a connection opens, without its messages.
    pub fn opening(&self) -> u64 {
        self.nanos(self.step(self.open, OPEN))
    }

    /// Returns the nanoseconds of a step while a connection closes, without its messages.
    pub fn closing(&self) -> u64 {
        self.nanos(self.step(self.close, CLOSE))
    }

    /// Returns the nanoseconds of a timer that has run out, without its messages.
    pub fn timer(&self) -> u64 {
        self.nanos(1_000)
    }
}

/// The bytes of an end of a connection in the kernel, as measured (`memory.csv`, `ids.csv`).
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// An end that is connected.
    pub open: u64,
    /// An end that is being connected, with its request.
    pub opening: u64,
    /// The rest of a closed connection for the time wait.
    pub timewait: u64,
}

impl Sizes {
    /// Returns the measured sizes of a policy.
    pub const fn measured(policy: Policy) -> Self {
        match policy {
            Policy::C => Self {
                open: 2_405,
                opening: 1_790,
                timewait: 304,
            },
            Policy::Ours => Self {
                open: 2_510,
                opening: 2_695,
                timewait: 0,
            },
        }
    }
}
