// SPDX-License-Identifier: GPL-2.0

//! A count of the entries of a table, for those who would look something up in vain.

use crate::word::{full_barrier, Word64};

/// The number of entries of a table that is nearly always empty, so that nobody need take its lock
/// then.
///
/// An entry is counted before it is entered, and uncounted after it was removed. A task that finds
/// the table empty has missed no entry that was counted before, where something orders the two: a
/// lock that one has released and the other has taken, or what
/// [`is_empty_or_told`](Self::is_empty_or_told) says.
pub struct Presence(Word64);

impl Presence {
    /// Creates the count of an empty table.
    pub fn new() -> Self {
        Self(Word64::new(0))
    }

    /// Counts an entry before it is entered, fully ordered.
    #[inline]
    pub fn add(&self) {
        self.0.add(1);
    }

    /// Uncounts an entry after it was removed.
    #[inline]
    pub fn remove(&self) {
        self.0.sub(1);
    }

    /// Returns whether the table has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.load_relaxed() == 0
    }

    /// Returns whether the table has no entry, in order with everything that the caller did before.
    ///
    /// If the table is found empty, a task that counts an entry now sees what the caller did.
    #[inline]
    pub fn is_empty_or_told(&self) -> bool {
        full_barrier();
        self.is_empty()
    }
}

impl Default for Presence {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted() {
        let presence = Presence::new();
        assert!(presence.is_empty());
        presence.add();
        presence.add();
        presence.remove();
        assert!(!presence.is_empty() && !presence.is_empty_or_told());
        presence.remove();
        assert!(presence.is_empty() && presence.is_empty_or_told());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn, Memory};
    use loom::sync::{Arc, Mutex};

    struct Listener {
        presence: Presence,
        requests: Mutex<u32>,
        listens: Mutex<bool>,
    }

    impl Listener {
        /// Enters a request, and looks whether the listener still listens. Returns false, and takes
        /// the request out again, if not.
        fn enter(&self) -> bool {
            self.presence.add();
            *self.requests.lock().unwrap() += 1;
            if *self.listens.lock().unwrap() {
                return true;
            }
            self.take();
            false
        }

        /// Takes the request out, if it is there. Returns whether it was.
        fn take(&self) -> bool {
            let mut requests = self.requests.lock().unwrap();
            let was_there = *requests != 0;
            if was_there {
                *requests = 0;
                self.presence.remove();
            }
            was_there
        }
    }

    // As table/unresolved.rs does it.
    #[test]
    fn a_request_ends_with_its_listener() {
        every_schedule(|| {
            let listener = Arc::new(Listener {
                presence: Presence::new(),
                requests: Mutex::new(0),
                listens: Mutex::new(true),
            });
            let entering = spawn(&listener, Listener::enter);
            *listener.listens.lock().unwrap() = false;
            let ended = !listener.presence.is_empty() && listener.take();
            let entered = entering.join().unwrap();
            // A request that was let in was ended; one may be ended and refused by both.
            assert!(!entered || ended);
            assert!(listener.presence.is_empty());
        });
    }

    struct Number {
        presence: Presence,
        /// Set when a queue pair has the number.
        queue_pair: Memory,
        /// Set when a user who has no such queue pair claims it.
        claims: Mutex<u32>,
    }

    impl Number {
        /// Claims the number, and then looks whether a queue pair has it. Returns whether one has.
        fn claim(&self) -> bool {
            self.presence.add();
            *self.claims.lock().unwrap() += 1;
            self.queue_pair.read() != 0
        }

        /// Makes a queue pair with the number, and then looks for claims. Returns whether there
        /// are any.
        fn own(&self) -> bool {
            self.queue_pair.write(1);
            !self.presence.is_empty_or_told() && *self.claims.lock().unwrap() != 0
        }
    }

    // As table/qp_numbers.rs does it. A claim that is counted but not entered yet is one that sees
    // the queue pair.
    #[test]
    fn an_owner_or_a_claimant_sees_the_other() {
        every_schedule(|| {
            let number = Arc::new(Number {
                presence: Presence::new(),
                queue_pair: Memory::new(0),
                claims: Mutex::new(0),
            });
            let claimant = spawn(&number, Number::claim);
            let seen_by_owner = number.own();
            assert!(claimant.join().unwrap() || seen_by_owner);
        });
    }
}
