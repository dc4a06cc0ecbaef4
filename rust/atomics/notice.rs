// SPDX-License-Identifier: GPL-2.0

//! A notice for a task that is woken.

use crate::word::Word32;

/// A notice that is left for a task before that is woken.
///
/// To wake the task must be fully ordered, as to enqueue work is, and the work that runs must be
/// off the queue again before it [takes](Self::take) the notice. Then no notice is lost, and
/// notices that come before the task has run are one.
pub struct Notice(Word32);

impl Notice {
    /// Creates a place without a notice.
    pub fn new() -> Self {
        Self(Word32::new(0))
    }

    /// Leaves a notice. The caller wakes the task after it.
    #[inline]
    pub fn leave(&self) {
        self.0.store_relaxed(1);
    }

    /// Leaves a notice that stays. Returns whether this was the first one.
    #[inline]
    pub fn leave_once(&self) -> bool {
        self.0.replace(1) == 0
    }

    /// Takes the notice. Returns whether there was one.
    #[inline]
    pub fn take(&self) -> bool {
        self.0.replace(0) != 0
    }
}

impl Default for Notice {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_taken_once() {
        let notice = Notice::new();
        assert!(!notice.take());
        notice.leave();
        notice.leave();
        assert!(notice.take());
        assert!(!notice.take());
        assert!(notice.leave_once() && !notice.leave_once());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn};
    use loom::sync::{Arc, Mutex};

    struct Work {
        notice: Notice,
        /// Set while the work is in its queue.
        is_pending: Word32,
        taken: Mutex<u32>,
    }

    impl Work {
        fn leave(&self) {
            self.notice.leave();
            self.is_pending.replace(1);
        }

        /// Runs the work as often as it is in the queue.
        fn run(&self) {
            while self.is_pending.replace(0) != 0 {
                if self.notice.take() {
                    *self.taken.lock().unwrap() += 1;
                }
            }
        }
    }

    #[test]
    fn no_notice_is_lost() {
        every_schedule(|| {
            let work = Arc::new(Work {
                notice: Notice::new(),
                is_pending: Word32::new(0),
                taken: Mutex::new(0),
            });
            let worker = spawn(&work, Work::run);
            work.leave();
            work.leave();
            worker.join().unwrap();
            // The worker may have been too early for the last notice.
            work.run();
            assert!(!work.notice.take());
            assert!((1..=2).contains(&*work.taken.lock().unwrap()));
        });
    }
}
