// SPDX-License-Identifier: GPL-2.0

//! The results of a storm.

use std::fmt;

use super::Config;

/// The results of a storm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Times from the call of connect until a connection was open, in microseconds, in order.
    pub took: Vec<u32>,
    /// Times until all connections of a host had their outcomes, in microseconds, in order.
    pub done: Vec<u64>,
    /// Messages that were sent.
    pub messages: u64,
    /// Messages that the network has lost.
    pub lost: u64,
    /// Messages for which a receive queue had no room.
    pub overflowed: u64,
    /// Connections to live hosts that could not be made.
    pub failed: u64,
    /// Connections to dead hosts.
    pub unreachable: u64,
    /// Connections that were begun anew because their peer had restarted.
    pub again: u64,
    /// Connections without an outcome.
    pub unfinished: u64,
    /// The most memory of the connections of one host, in bytes.
    pub peak: u64,
    /// The mean of that memory over all hosts, in bytes.
    pub mean_peak: u64,
    /// Entries that are left in the tables of all hosts.
    pub left: u64,
}

/// Returns the quantile of sorted values, in seconds.
fn quantile<T: Copy + Into<u64>>(sorted: &[T], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted
        .get(index)
        .map_or(0.0, |us| (*us).into() as f64 / 1_000_000.0)
}

impl Report {
    /// The names of the columns of [`row`](Self::row).
    pub const HEAD: &'static str = "scenario,nodes,waves,wave,policy,loss,condition,seed,\
        connections,connect_p50,connect_p99,connect_max,node_p50,node_p99,node_max,\
        messages_per_connection,lost,overflowed,failed,unreachable,again,\
        peak_bytes,mean_peak_bytes,left";

    /// Returns the time until all connections of all hosts had their outcomes, in seconds.
    pub fn whole(&self) -> f64 {
        self.node(100)
    }

    /// Returns the time until a share of the connections was open after it was asked for.
    pub fn connect(&self, percent: usize) -> f64 {
        quantile(&self.took, percent)
    }

    /// Returns the time until a share of the hosts had the outcomes of all their connections.
    pub fn node(&self, percent: usize) -> f64 {
        quantile(&self.done, percent)
    }

    /// Returns the messages for each connection that was open.
    pub fn messages_per_connection(&self) -> f64 {
        self.messages as f64 / self.took.len().max(1) as f64
    }

    /// Returns the results as a row of a table.
    pub fn row<'a>(&'a self, config: &'a Config) -> impl fmt::Display + 'a {
        Row(self, config)
    }
}

struct Row<'a>(&'a Report, &'a Config);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report, config) = self;
        let plan = &config.plan;
        write!(
            f,
            "{},{},{},{},{},{},{},{},{}",
            plan.scenario,
            plan.nodes,
            plan.waves(),
            plan.peers(1, 0).len(),
            config.policy,
            f64::from(config.wire.lost) / 10_000.0,
            config.condition,
            config.seed,
            report.took.len(),
        )?;
        for percent in [50, 99, 100] {
            write!(f, ",{:.6}", report.connect(percent))?;
        }
        for percent in [50, 99, 100] {
            write!(f, ",{:.6}", report.node(percent))?;
        }
        write!(
            f,
            ",{:.3},{},{},{},{},{},{},{},{}",
            report.messages_per_connection(),
            report.lost,
            report.overflowed,
            report.failed + report.unfinished,
            report.unreachable,
            report.again,
            report.peak,
            report.mean_peak,
            report.left,
        )
    }
}
