// SPDX-License-Identifier: GPL-2.0

//! A gate: closed once, after which nobody enters and the closer knows that everybody has left.
//!
//! For an object that C takes away while Rust code may be using it, such as a device. Built of a
//! counter and a [`Completion`], as C code does by hand.

use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering::Acquire, ordering::Full, ordering::Relaxed, Atomic},
        Arc, Completion,
    },
};

/// The bit of the state that says "closed".
const CLOSED: u64 = 1;
/// What one visitor adds to the state.
const VISITOR: u64 = 2;

/// Counts visitors until it is closed.
///
/// # Invariants
///
/// `state` is [`CLOSED`] or 0, plus [`VISITOR`] times the number of [`Guard`]s and [`OwnedGuard`]s.
/// `empty` is completed once, by whoever makes `state` equal to [`CLOSED`].
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

    /// Enters, unless the gate is closed. Never sleeps.
    pub(crate) fn enter(&self) -> Option<Guard<'_>> {
        self.count_in().then(|| Guard { gate: self })
    }

    /// Enters with a guard that may outlive the caller, for work that continues elsewhere.
    pub(crate) fn enter_owned(this: &Arc<Self>) -> Option<OwnedGuard> {
        this.count_in().then(|| OwnedGuard { gate: this.clone() })
    }

    /// Returns whether the gate is closed, which it then stays.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Acquire) & CLOSED != 0
    }

    /// Closes the gate without waiting. Nobody enters any more.
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

    /// Closes the gate and sleeps until all who entered have left.
    ///
    /// Can be called more than once, and by several tasks; never by one that holds a guard.
    pub(crate) fn close_and_wait(&self) {
        self.close();
        // Always, even if nobody is inside: the last visitor may still be about to complete it.
        self.empty.wait_for_completion();
    }

    fn count_in(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state & CLOSED == 0 {
            // The counter cannot overflow: that takes more guards than memory holds.
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

/// Proof of being inside a [`Gate`]; dropping it leaves.
#[must_use = "dropping it leaves the gate at once"]
pub(crate) struct Guard<'a> {
    gate: &'a Gate,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.gate.count_out();
    }
}

/// As [`Guard`], with a reference to the gate.
#[must_use = "dropping it leaves the gate at once"]
pub(crate) struct OwnedGuard {
    gate: Arc<Gate>,
}

impl Drop for OwnedGuard {
    fn drop(&mut self) {
        self.gate.count_out();
    }
}
