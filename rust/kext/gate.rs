// SPDX-License-Identifier: GPL-2.0

//! A gate counts its users until it is closed; the one who closes it can wait until all have left.
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

/// The bit of the state that is set once the gate is closed.
const CLOSED: u64 = 1;
/// The amount that one user adds to the state.
const VISITOR: u64 = 2;

/// A counter of users that can be closed once.
///
/// # Invariants
///
/// `state` is [`CLOSED`] or 0, plus [`VISITOR`] times the number of [`Guard`]s and [`OwnedGuard`]s.
/// `empty` is completed exactly once, by the task that makes `state` equal to [`CLOSED`].
#[pin_data]
pub(crate) struct Gate {
    state: Atomic<u64>,
    #[pin]
    empty: Completion,
}

impl Gate {
    /// Creates an initialiser for an open gate.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state: Atomic::new(0),
            empty <- Completion::new(),
        })
    }

    /// Enters the gate, unless it is closed. Never sleeps.
    pub(crate) fn enter(&self) -> Option<Guard<'_>> {
        self.count_in().then(|| Guard { gate: self })
    }

    /// Enters the gate with a guard that may outlive the caller, for work that continues elsewhere.
    pub(crate) fn enter_owned(this: &Arc<Self>) -> Option<OwnedGuard> {
        this.count_in().then(|| OwnedGuard { gate: this.clone() })
    }

    /// Closes the gate without waiting. All later attempts to enter fail.
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

    /// Closes the gate and sleeps until all users have left.
    ///
    /// Can be called more than once, and by several tasks, but not by a task that holds a guard.
    pub(crate) fn close_and_wait(&self) {
        self.close();
        // Wait even if the counter is zero: the last user may not have returned from
        // `complete_all()` yet.
        self.empty.wait_for_completion();
    }

    fn count_in(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state & CLOSED == 0 {
            // The counter cannot overflow, as there is not enough memory for that many guards.
            match self.state.cmpxchg(state, state.wrapping_add(VISITOR), Full) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    fn count_out(&self) {
        let before = self.state.fetch_sub(VISITOR, Full);
        if before == VISITOR | CLOSED {
            // INVARIANT: This made the state equal to `CLOSED`.
            self.empty.complete_all();
        }
    }
}

/// A guard that proves that its holder is inside a [`Gate`]; dropping it leaves the gate.
#[must_use = "dropping it leaves the gate at once"]
pub(crate) struct Guard<'a> {
    gate: &'a Gate,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.gate.count_out();
    }
}

/// A guard like [`Guard`] that holds a reference to the gate.
#[must_use = "dropping it leaves the gate at once"]
pub(crate) struct OwnedGuard {
    gate: Arc<Gate>,
}

impl Drop for OwnedGuard {
    fn drop(&mut self) {
        self.gate.count_out();
    }
}
