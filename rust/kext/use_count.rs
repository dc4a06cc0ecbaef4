// SPDX-License-Identifier: GPL-2.0

//! A count of the users of an object that can be closed; the task that closes it can wait for all
//! users.
//!
//! It protects an object that C code removes while Rust code may be using it, such as a device. It
//! consists of a counter and a [`Completion`], which C code usually combines by hand.

use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering::Full, ordering::Relaxed, Atomic},
        Arc, Completion,
    },
};

/// The bit of the state that is set once the count is closed.
const CLOSED: u64 = 1;
/// The amount that one user adds to the state.
const ONE: u64 = 2;

/// A counter of users that can be closed once.
///
/// # Invariants
///
/// `state` is [`CLOSED`] or 0, plus [`ONE`] times the number of [`Use`]s and [`OwnedUse`]s.
/// `empty` is completed exactly once, by the task that makes `state` equal to [`CLOSED`].
#[pin_data]
pub(crate) struct UseCount {
    state: Atomic<u64>,
    #[pin]
    empty: Completion,
}

impl UseCount {
    /// Creates an initialiser for an open count.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state: Atomic::new(0),
            empty <- Completion::new(),
        })
    }

    /// Counts a user, unless the count is closed. Never sleeps.
    pub(crate) fn try_get(&self) -> Option<Use<'_>> {
        self.try_inc().then(|| Use { count: self })
    }

    /// Counts a user that may outlive the caller, for work that continues elsewhere.
    pub(crate) fn try_get_owned(this: &Arc<Self>) -> Option<OwnedUse> {
        this.try_inc().then(|| OwnedUse {
            count: this.clone(),
        })
    }

    /// Closes the count without waiting. No user is counted from then on.
    pub(crate) fn close(&self) {
        let mut state = self.state.load(Relaxed);
        while state & CLOSED == 0 {
            match self.state.cmpxchg(state, state | CLOSED, Full) {
                Ok(_) => {
                    if state == 0 {
                        // INVARIANT: This made the state equal to `CLOSED`.
                        self.empty.complete_all();
                    }
                    return;
                }
                Err(now) => state = now,
            }
        }
    }

    /// Closes the count and sleeps until there is no user left.
    ///
    /// Can be called more than once, and by several tasks, but not by a task that is a user.
    pub(crate) fn close_and_wait(&self) {
        self.close();
        // Wait even if the counter is zero: the last user may not have returned from
        // `complete_all()` yet.
        self.empty.wait_for_completion();
    }

    fn try_inc(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state & CLOSED == 0 {
            // The counter cannot overflow, as there is not enough memory for that many users.
            match self.state.cmpxchg(state, state.wrapping_add(ONE), Full) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    fn dec(&self) {
        let before = self.state.fetch_sub(ONE, Full);
        if before == ONE | CLOSED {
            // INVARIANT: This made the state equal to `CLOSED`.
            self.empty.complete_all();
        }
    }
}

/// A user of the object of a [`UseCount`], until it is dropped.
#[must_use = "dropping it ends the use at once"]
pub(crate) struct Use<'a> {
    count: &'a UseCount,
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.count.dec();
    }
}

/// A user like [`Use`] that holds a reference to the count.
#[must_use = "dropping it ends the use at once"]
pub(crate) struct OwnedUse {
    count: Arc<UseCount>,
}

impl Drop for OwnedUse {
    fn drop(&mut self) {
        self.count.dec();
    }
}
