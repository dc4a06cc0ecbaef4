// SPDX-License-Identifier: GPL-2.0

//! Storms: thousands of nodes that connect at once, with the time that their processors take.
//!
//! The nodes are those of the other simulations, and so run the crate that ships. No rule is judged
//! here; a storm measures how long it takes, how many messages are sent, and how much memory is
//! used. Each host has one processor, which takes time for each message and each
//! call, a receive queue that drops what it has no room for, and a link to a switch. An
//! application on it accepts each request after a while.
//!
//! The policy is that of the module or that of the C modules, which is the same node with
//! other tunables and with 128 outstanding requests, a work queue behind the receive queue, and a
//! rest in memory for the time wait.

pub mod command;
mod cost;
mod host;
mod link;
mod policy;
mod report;
mod scenario;
mod surroundings;
mod user;
mod world;

use cmproto::cm::{Tunable, Tuning};

pub use self::{
    cost::{Costs, Sizes},
    link::Wire,
    policy::Policy,
    report::Report,
    scenario::{Condition, Plan, Scenario},
};

/// The parameters of a storm. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    pub plan: Plan,
    pub policy: Policy,
    pub condition: Condition,
    pub seed: u64,
    pub wire: Wire,
    /// Messages that the receive queue of QP1 has room for (`recv_queue_size` of ib_core).
    pub receive_queue: usize,
    /// The backlog of each listener (`max_backlog`).
    pub backlog: u32,
    /// Time until the application reads a request that it was told of.
    pub accept_delay: u64,
    /// Time between two ticks of a kernel, at which timers run out.
    pub tick: u64,
    /// The applications begin within this time.
    pub spread: u64,
    /// Time until a host that restarts is back.
    pub boot: u64,
    /// Time until a queue pair notices that its peer is gone.
    pub notice: u64,
    /// Tunables that differ from those of the policy.
    pub tuned: Vec<(Tunable, u32)>,
}

impl Config {
    /// Returns a storm of the default size with nothing lost.
    pub fn new(scenario: Scenario, policy: Policy) -> Self {
        let nodes = match scenario {
            Scenario::Held => 1_000,
            Scenario::Waves | Scenario::Server => 10_000,
        };
        Self {
            plan: Plan {
                scenario,
                nodes,
                waves: 4,
                wave: 50,
            },
            policy,
            condition: Condition::Plain,
            seed: 1,
            wire: Wire {
                latency: 2_000,
                gigabits: 25,
                lost: 0,
            },
            receive_queue: 512,
            backlog: 1_024,
            accept_delay: 50_000,
            tick: 4_000_000,
            spread: 1_000_000,
            boot: 1_000_000_000,
            notice: 600_000_000,
            tuned: Vec::new(),
        }
    }

    fn tuning(&self) -> Tuning {
        let mut tuning = self.policy.tuning();
        for (tunable, value) in &self.tuned {
            // The command has checked it.
            let _ = tuning.set(*tunable, *value);
        }
        tuning
    }
}

/// Lets a storm pass.
pub fn storm(config: &Config) -> Report {
    world::World::new(config).run()
}
