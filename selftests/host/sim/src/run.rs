// SPDX-License-Identifier: GPL-2.0

//! Many simulations, on as many threads as asked for.

use std::{
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Mutex,
    },
    thread,
    time::{Duration, Instant},
};

use crate::{play_seed, rules::Rule, Counts, Knobs};

/// The amount to simulate: what comes first ends a run.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub connections: Option<u64>,
    pub time: Option<Duration>,
    /// Broken rules after which it is enough.
    pub violations: usize,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub counts: Counts,
    /// Seeds that broke a rule, in no order.
    pub broken: Vec<(u64, Rule)>,
    pub elapsed: Duration,
}

impl Summary {
    /// Returns the number of times that `rule` was broken.
    pub fn broken(&self, rule: Rule) -> usize {
        self.broken.iter().filter(|(_, r)| *r == rule).count()
    }

    /// Connections per minute and thread.
    pub fn rate(&self, jobs: usize) -> u64 {
        let seconds = self.elapsed.as_secs_f64().max(0.001) * jobs.max(1) as f64;
        (self.counts.connections as f64 * 60.0 / seconds) as u64
    }
}

/// Plays the seeds from `first` on, on `jobs` threads. `progress` is called about once a second.
pub fn run(
    first: u64,
    budget: &Budget,
    knobs: &Knobs,
    jobs: usize,
    progress: impl Fn(&Summary) + Sync,
) -> Summary {
    let start = Instant::now();
    let next = AtomicU64::new(first);
    let enough = AtomicBool::new(false);
    let summary = Mutex::new(Summary::default());
    let shown = Mutex::new(start);
    let work = || {
        while !enough.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let outcome = play_seed(seed, knobs, false);
            let Ok(mut summary) = summary.lock() else {
                return;
            };
            summary.counts.add(&outcome.counts);
            summary.elapsed = start.elapsed();
            if let Some(violation) = outcome.violation {
                summary.broken.push((seed, violation.rule));
            }
            let connections = summary.counts.connections;
            if budget.connections.is_some_and(|most| connections >= most)
                || budget.time.is_some_and(|most| summary.elapsed >= most)
                || summary.broken.len() >= budget.violations
            {
                enough.store(true, Ordering::Relaxed);
            }
            let copy = summary.clone();
            drop(summary);
            if let Ok(mut shown) = shown.try_lock() {
                if shown.elapsed() >= Duration::from_secs(1) {
                    *shown = Instant::now();
                    progress(&copy);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    summary.into_inner().unwrap_or_default()
}
