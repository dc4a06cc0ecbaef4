// SPDX-License-Identifier: GPL-2.0

//! Helpers of the tests that loom runs in every schedule.

use core::sync::atomic::Ordering::Relaxed;
use loom::{
    sync::{atomic::AtomicU32, Arc},
    thread::{self, JoinHandle},
};

/// Runs `test` in every schedule of the tasks that it spawns.
pub(crate) fn every_schedule(test: impl Fn() + Send + Sync + 'static) {
    loom::model(test);
}

/// Runs `test` in every schedule in which at most three tasks are interrupted. All schedules of
/// three tasks take minutes.
pub(crate) fn most_schedules(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

/// Runs `task` with a reference to `shared` beside the caller.
pub(crate) fn spawn<T, R>(
    shared: &Arc<T>,
    task: impl FnOnce(&T) -> R + Send + 'static,
) -> JoinHandle<R>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
{
    let shared = shared.clone();
    thread::spawn(move || task(&shared))
}

/// The memory of an object, as 32 bits.
///
/// An access is in no order with another one by itself: a task that was not made to see a write
/// reads what was there before in one schedule, and what was written in another one.
pub(crate) struct Memory(AtomicU32);

/// The value of memory that was given back.
const FREED: u32 = u32::MAX;

impl Memory {
    pub(crate) fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// Returns the value. Ends the test if the memory was given back.
    pub(crate) fn read(&self) -> u32 {
        let value = self.0.load(Relaxed);
        assert_ne!(value, FREED, "read after it was freed");
        value
    }

    pub(crate) fn write(&self, value: u32) {
        self.read();
        self.0.store(value, Relaxed);
    }

    /// Gives the memory back. Ends the test if it was.
    pub(crate) fn free(&self) {
        assert_ne!(self.0.swap(FREED, Relaxed), FREED, "freed twice");
    }

    pub(crate) fn is_freed(&self) -> bool {
        self.0.load(Relaxed) == FREED
    }
}
