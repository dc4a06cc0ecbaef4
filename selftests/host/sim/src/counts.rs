// SPDX-License-Identifier: GPL-2.0

//! What was counted in simulations.

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub worlds: u64,
    pub steps: u64,
    pub connections: u64,
    pub established: u64,
    pub resolved: u64,
    pub rejected: u64,
    pub unreachable: u64,
    pub disconnected: u64,
    pub messages: u64,
    pub lost: u64,
    pub late: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    pub restarts: u64,
    pub half_open: u64,
    pub reused: u64,
}

impl Counts {
    /// Adds up.
    pub fn add(&mut self, other: &Self) {
        self.worlds += other.worlds;
        self.steps += other.steps;
        self.connections += other.connections;
        self.established += other.established;
        self.resolved += other.resolved;
        self.rejected += other.rejected;
        self.unreachable += other.unreachable;
        self.disconnected += other.disconnected;
        self.messages += other.messages;
        self.lost += other.lost;
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.restarts += other.restarts;
        self.half_open += other.half_open;
        self.reused += other.reused;
    }
}
