// SPDX-License-Identifier: GPL-2.0

//! The line of the source that calls a function.

use core::{fmt, panic::Location};

/// A line of a test.
#[derive(Clone, Copy)]
pub(crate) struct CallSite(&'static Location<'static>);

impl CallSite {
    /// Returns the caller of the function that calls this.
    #[track_caller]
    pub(crate) fn of_caller() -> Self {
        Self(Location::caller())
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.file().rsplit('/').next();
        write!(f, "{}:{}", file.unwrap_or_default(), self.0.line())
    }
}
