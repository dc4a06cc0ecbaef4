// SPDX-License-Identifier: GPL-2.0

//! The part of a listener that requests look at when it shares its address with others.

use crate::table::listeners::Vacancy;
use kernel::sync::atomic::{Atomic, Relaxed};

/// The vacancy of a listener. It is looked at under the lock of the table of listeners, where no
/// endpoint may be locked.
pub(crate) struct VacancyFlags {
    /// Set while the backlog is full. It is a hint: a request that comes to a full member after all
    /// is handled like one to any other listener.
    is_full: Atomic<bool>,
    /// Set when the listener ends, or cannot be offered requests any more.
    has_gone: Atomic<bool>,
}

impl VacancyFlags {
    /// Creates the flags of an endpoint that does not listen.
    pub(super) const fn new() -> Self {
        VacancyFlags {
            is_full: Atomic::new(false),
            has_gone: Atomic::new(true),
        }
    }

    /// Lets requests find the endpoint from now on, which is about to listen.
    pub(crate) fn open(&self) {
        self.has_gone.store(false, Relaxed);
    }

    /// Lets no request find the endpoint any more if others share its address.
    pub(crate) fn close(&self) {
        self.has_gone.store(true, Relaxed);
    }

    /// Notes whether the backlog is full.
    #[inline]
    pub(crate) fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Relaxed);
    }

    /// Returns the vacancy.
    pub(super) fn get(&self) -> Vacancy {
        if self.has_gone.load(Relaxed) {
            Vacancy::Gone
        } else if self.is_full.load(Relaxed) {
            Vacancy::Full
        } else {
            Vacancy::Room
        }
    }
}
