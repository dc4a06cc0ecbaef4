// SPDX-License-Identifier: GPL-2.0

//! A count of the users of an object that can be closed; the task that closes it can wait for all
//! users.
//!
//! It protects an object that C code removes while Rust code may be using it, such as a device. It
//! consists of a [`UseState`] and a [`Completion`], which C code usually combines by hand.

use atomics::UseState;
use kernel::{
    prelude::*,
    sync::{Arc, Completion},
};

/// A counter of users that can be closed once.
///
/// # Invariants
///
/// `state` counts the [`Use`]s and [`OwnedUse`]s. `empty` is completed exactly once, by the task to
/// which `state` says that it is closed and has no users.
#[pin_data]
pub(crate) struct UseCount {
    state: UseState,
    #[pin]
    empty: Completion,
}

impl UseCount {
    /// Creates an initialiser for an open count.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state: UseState::new(),
            empty <- Completion::new(),
        })
    }

    /// Counts a user, unless the count is closed. Never sleeps.
    pub(crate) fn try_get(&self) -> Option<Use<'_>> {
        self.state.enter().then(|| Use { count: self })
    }

    /// Counts a user that may outlive the caller, for work that continues elsewhere.
    pub(crate) fn try_get_owned(this: &Arc<Self>) -> Option<OwnedUse> {
        this.state.enter().then(|| OwnedUse {
            count: this.clone(),
        })
    }

    /// Closes the count without waiting. No user is counted from then on.
    pub(crate) fn close(&self) {
        if self.state.close() {
            // INVARIANT: There are no users, which is said once.
            self.empty.complete_all();
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

    fn leave(&self) {
        if self.state.leave() {
            // INVARIANT: There are no users, which is said once.
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
        self.count.leave();
    }
}

/// A user like [`Use`] that holds a reference to the count.
#[must_use = "dropping it ends the use at once"]
pub(crate) struct OwnedUse {
    count: Arc<UseCount>,
}

impl Drop for OwnedUse {
    fn drop(&mut self) {
        self.count.leave();
    }
}
