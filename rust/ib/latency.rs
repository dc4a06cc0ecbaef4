// SPDX-License-Identifier: GPL-2.0

//! The latencies of a port's connections.

use crate::kext::percpu::PerCpuCounters;
use cmproto::{
    event::Phase,
    latency::{bucket, BUCKETS},
    time::Duration,
};
use kernel::prelude::*;

/// The counters of a histogram: its buckets, and the sum of the latencies in microseconds.
const COUNTERS: usize = BUCKETS + 1;

/// The histograms of the phases of a port's connections.
pub(crate) struct Latencies(PerCpuCounters<{ Phase::ALL.len() * COUNTERS }>);

impl Latencies {
    /// Creates empty histograms.
    pub(super) fn new() -> Result<Self> {
        PerCpuCounters::new().map(Self)
    }

    /// Returns the counter of a bucket of a phase.
    fn counter(phase: Phase, bucket: usize) -> usize {
        (phase as usize).wrapping_mul(COUNTERS).wrapping_add(bucket)
    }

    /// Counts a phase that has ended after `took`.
    pub(crate) fn count(&self, phase: Phase, took: Duration) {
        self.0.add(Self::counter(phase, bucket(took)), 1);
        self.0.add(Self::counter(phase, BUCKETS), took.as_micros());
    }

    /// Returns the sum of the latencies of a phase.
    pub(crate) fn sum(&self, phase: Phase) -> Duration {
        Duration::from_micros(self.0.sum(Self::counter(phase, BUCKETS)))
    }

    /// Returns the number of latencies in each bucket of a phase.
    pub(crate) fn buckets(&self, phase: Phase) -> impl Iterator<Item = u64> + '_ {
        (0..BUCKETS).map(move |bucket| self.0.sum(Self::counter(phase, bucket)))
    }
}
