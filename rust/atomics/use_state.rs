// SPDX-License-Identifier: GPL-2.0

//! The users of an object that can be closed.

use crate::word::Word64;

/// The bit of the word that is set once the object is closed.
const CLOSED: u64 = 1;
/// The amount that one user adds to the word.
const ONE: u64 = 2;

/// The number of users of an object, and whether it is closed.
///
/// A closed object gets no more users. The moment at which it has none is reported to exactly one
/// task, which sees everything that the users did.
///
/// # Invariants
///
/// The word is [`CLOSED`] or 0, plus [`ONE`] for each call of [`enter`](Self::enter) that has
/// returned true and was not followed by [`leave`](Self::leave) yet.
pub struct UseState(Word64);

impl UseState {
    /// Creates the state of an open object without users.
    pub fn new() -> Self {
        Self(Word64::new(0))
    }

    /// Counts a user. Returns false, and counts nobody, if the object is closed.
    #[inline]
    pub fn enter(&self) -> bool {
        let mut word = self.0.load_relaxed();
        while word & CLOSED == 0 {
            // The word cannot overflow, as there is not enough memory for that many users.
            match self.0.change(word, word.wrapping_add(ONE)) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Uncounts a user, after the last access to the object. Returns true if this was the last user
    /// of an object that is closed.
    #[inline]
    pub fn leave(&self) -> bool {
        self.0.sub(ONE) == ONE | CLOSED
    }

    /// Closes the object. Returns true if it has no users and was not closed before; if it has,
    /// the call of [`leave`](Self::leave) of the last one returns true.
    pub fn close(&self) -> bool {
        let mut word = self.0.load_relaxed();
        while word & CLOSED == 0 {
            match self.0.change(word, word | CLOSED) {
                Ok(()) => return word == 0,
                Err(now) => word = now,
            }
        }
        false
    }
}

impl Default for UseState {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_user_of_a_closed_object_says_so() {
        let state = UseState::new();
        assert!(state.enter() && state.enter());
        assert!(!state.leave());
        assert!(!state.close());
        assert!(!state.enter(), "a closed object gets no user");
        assert!(state.leave());
        assert!(!state.close(), "it is said once");
    }

    #[test]
    fn who_closes_an_object_without_users_says_so() {
        let state = UseState::new();
        assert!(state.enter());
        assert!(!state.leave());
        assert!(state.close());
        assert!(!state.enter() && !state.close());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, most_schedules, spawn, Memory};
    use loom::sync::Arc;

    struct Object {
        state: UseState,
        memory: Memory,
    }

    impl Object {
        fn new() -> Arc<Self> {
            Arc::new(Object {
                state: UseState::new(),
                memory: Memory::new(0),
            })
        }

        /// Uses the object, if it is open, and frees its memory if nobody uses it any more.
        fn use_it(&self) {
            if self.state.enter() {
                self.memory.write(1);
                if self.state.leave() {
                    self.memory.free();
                }
            }
        }

        fn close(&self) {
            if self.state.close() {
                self.memory.free();
            }
        }
    }

    #[test]
    fn nobody_uses_what_is_freed() {
        every_schedule(|| {
            let object = Object::new();
            let user = spawn(&object, Object::use_it);
            object.close();
            user.join().unwrap();
            assert!(object.memory.is_freed());
        });
    }

    #[test]
    fn two_users_and_who_closes() {
        most_schedules(|| {
            let object = Object::new();
            let one = spawn(&object, Object::use_it);
            let other = spawn(&object, Object::use_it);
            object.close();
            one.join().unwrap();
            other.join().unwrap();
            assert!(object.memory.is_freed());
        });
    }

    #[test]
    fn two_that_close() {
        every_schedule(|| {
            let object = Object::new();
            assert!(object.state.enter());
            let other = spawn(&object, Object::close);
            object.close();
            assert!(!object.memory.is_freed(), "it is in use");
            if object.state.leave() {
                object.memory.free();
            }
            other.join().unwrap();
            assert!(object.memory.is_freed());
        });
    }
}
