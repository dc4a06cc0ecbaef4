// SPDX-License-Identifier: GPL-2.0

//! The latencies of a port's connections.

use cmproto::{
    event::Phase,
    latency::{bucket, BUCKETS},
    time::Duration,
};
use kernel::sync::atomic::{ordering::Relaxed, Atomic};

/// The histogram of a phase.
struct Histogram {
    buckets: [Atomic<u64>; BUCKETS],
    /// The sum of the latencies, in microseconds.
    sum: Atomic<u64>,
}

/// The histograms of the phases of a port's connections.
pub(crate) struct Latencies([Histogram; Phase::ALL.len()]);

impl Latencies {
    /// Creates empty histograms.
    #[inline]
    pub(super) const fn new() -> Self {
        Self(
            [const {
                Histogram {
                    buckets: [const { Atomic::new(0) }; BUCKETS],
                    sum: Atomic::new(0),
                }
            }; Phase::ALL.len()],
        )
    }

    /// Counts a phase that has ended after `took`.
    pub(crate) fn count(&self, phase: Phase, took: Duration) {
        let Some(histogram) = self.0.get(phase as usize) else {
            return;
        };
        if let Some(count) = histogram.buckets.get(bucket(took)) {
            count.add(1, Relaxed);
            histogram.sum.add(took.as_micros(), Relaxed);
        }
    }

    /// Returns the sum of the latencies of a phase.
    pub(crate) fn sum(&self, phase: Phase) -> Duration {
        let histogram = self.0.get(phase as usize);
        Duration::from_micros(histogram.map_or(0, |histogram| histogram.sum.load(Relaxed)))
    }

    /// Returns the number of latencies in each bucket of a phase.
    pub(crate) fn buckets(&self, phase: Phase) -> impl Iterator<Item = u64> + '_ {
        let histogram = self.0.get(phase as usize).into_iter();
        histogram.flat_map(|histogram| histogram.buckets.iter().map(|count| count.load(Relaxed)))
    }
}
