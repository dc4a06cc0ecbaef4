// SPDX-License-Identifier: GPL-2.0

//! The state of a query whose owner may go at any time.

use crate::word::Word32;

/// Somebody else has the query, and will call back.
const PENDING: u32 = 0;
/// The callback is running.
const RUNNING: u32 = 1;
/// The callback is about to return.
const FINISHED: u32 = 2;
/// The query was cancelled before the callback ran.
const CANCELLED: u32 = 3;
/// The owner went while the callback ran.
const ABANDONED: u32 = 4;

/// The state of a query that calls back once, and that its owner may drop before, during and after
/// the callback.
///
/// Exactly one of the two frees what belongs to the query: the owner, unless it has
/// [abandoned](Self::abandon) the query, then the callback.
pub struct QueryState(Word32);

impl QueryState {
    /// Creates the state of a query that nobody has answered.
    pub fn new() -> Self {
        Self(Word32::new(PENDING))
    }

    /// Begins the callback. Returns false if the query was cancelled: then its owner is not to be
    /// called, and what belongs to the query may go as soon as the callback has returned.
    pub fn begin(&self) -> bool {
        self.0.change(PENDING, RUNNING).is_ok()
    }

    /// Ends the callback. Returns false if the owner has gone, so that the callback frees what
    /// belongs to the query.
    pub fn finish(&self) -> bool {
        self.0.change(RUNNING, FINISHED).is_ok()
    }

    /// Cancels the query for its owner, who may do so more than once. Returns false if the callback
    /// has begun.
    pub fn cancel(&self) -> bool {
        matches!(self.0.change(PENDING, CANCELLED), Ok(()) | Err(CANCELLED))
    }

    /// Leaves what belongs to the query to the callback that is running. Returns false if none is
    /// running, so that the owner frees it. If [`cancel`](Self::cancel) has returned false before,
    /// the callback is about to return then.
    pub fn abandon(&self) -> bool {
        self.0.change(RUNNING, ABANDONED).is_ok()
    }
}

impl Default for QueryState {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_answered_or_cancelled() {
        let state = QueryState::new();
        assert!(state.begin());
        assert!(!state.begin() && !state.cancel());
        assert!(state.finish());
        assert!(!state.abandon() && !state.cancel() && !state.finish());

        let state = QueryState::new();
        assert!(state.cancel());
        assert!(!state.begin() && !state.abandon() && !state.finish());
        assert!(state.cancel());
    }

    #[test]
    fn an_owner_that_goes_leaves_the_query_to_the_callback() {
        let state = QueryState::new();
        assert!(!state.abandon() && state.begin());
        assert!(state.abandon());
        assert!(!state.finish() && !state.abandon());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn, Memory};
    use loom::sync::{Arc, Mutex};

    struct Query {
        state: QueryState,
        /// The memory that belongs to the query.
        memory: Memory,
        /// The answer, as the owner sees it.
        answer: Memory,
        /// The lock of somebody else: held for the callback, so that who takes it waits for that.
        callback: Mutex<()>,
        /// Set if a task that is not the callback frees the memory after it.
        left: Mutex<bool>,
    }

    impl Query {
        fn new() -> Arc<Self> {
            Arc::new(Query {
                state: QueryState::new(),
                memory: Memory::new(0),
                answer: Memory::new(0),
                callback: Mutex::new(()),
                left: Mutex::new(false),
            })
        }

        /// The callback, and after it the task that frees what the callback has left.
        fn call_back(&self) {
            {
                let _running = self.callback.lock().unwrap();
                if !self.state.begin() {
                    return;
                }
                self.memory.write(1);
                self.answer.write(1);
                if self.state.finish() {
                    return;
                }
                *self.left.lock().unwrap() = true;
            }
            self.memory.free();
        }

        /// The end of the owner. Returns true if the query was cancelled.
        fn drop_it(&self) -> bool {
            let cancelled = self.state.cancel();
            if !cancelled && self.state.abandon() {
                return false;
            }
            drop(self.callback.lock().unwrap());
            self.memory.free();
            cancelled
        }
    }

    #[test]
    fn what_belongs_to_a_query_is_freed_once() {
        every_schedule(|| {
            let query = Query::new();
            let callback = spawn(&query, Query::call_back);
            query.drop_it();
            callback.join().unwrap();
            assert!(query.memory.is_freed());
        });
    }

    #[test]
    fn who_has_cancelled_gets_no_answer() {
        every_schedule(|| {
            let query = Query::new();
            let callback = spawn(&query, Query::call_back);
            if query.drop_it() {
                query.answer.free();
            }
            callback.join().unwrap();
        });
    }

    #[test]
    fn who_waits_for_the_callback_sees_the_answer() {
        every_schedule(|| {
            let query = Query::new();
            let callback = spawn(&query, Query::call_back);
            if !query.state.cancel() && !query.state.abandon() {
                assert_eq!(query.answer.read(), 1);
            }
            callback.join().unwrap();
        });
    }
}
