// SPDX-License-Identifier: GPL-2.0

//! Runs tests one after the other, and says in the log what is wrong.

pub(crate) mod task;

use core::panic::Location;
use kernel::{
    fmt,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// True if the test that runs has found no error. Callbacks check, too.
static GOOD: Atomic<bool> = Atomic::new(true);

/// Says that something is wrong, and where: where the caller is, or who called that, if it says
/// `#[track_caller]`.
#[track_caller]
pub(crate) fn say_wrong(what: fmt::Arguments<'_>) {
    let at = Location::caller();
    let file = at.file().rsplit('/').next().unwrap_or_default();
    pr_err!("{}:{}: {}\n", file, at.line(), what);
    GOOD.store(false, Relaxed);
}

/// Returns true if this test has found no error so far.
pub(crate) fn is_good() -> bool {
    GOOD.load(Relaxed)
}

/// Says that something is wrong.
macro_rules! wrong {
    ($($message:tt)*) => {
        $crate::harness::say_wrong(::kernel::prelude::fmt!($($message)*))
    };
}
pub(crate) use wrong;

/// Checks a condition, and returns whether it holds.
macro_rules! check {
    ($condition:expr) => {{
        let holds: bool = $condition;
        if !holds {
            $crate::harness::wrong!("{}", ::core::stringify!($condition));
        }
        holds
    }};
}
pub(crate) use check;

/// Checks that two values are the same, and returns whether they are.
macro_rules! is {
    ($value:expr, $right:expr) => {{
        let (value, right) = ($value, $right);
        let same = value == right;
        if !same {
            $crate::harness::wrong!(
                "{} is {:?}, not {:?}",
                ::core::stringify!($value),
                value,
                right
            );
        }
        same
    }};
}
pub(crate) use is;

/// The tests of a module, as far as they have been run.
pub(crate) struct Run {
    number: u32,
    failed: bool,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            number: 0,
            failed: false,
        }
    }

    /// Runs a test.
    pub(crate) fn test(&mut self, name: &str, test: impl FnOnce()) {
        GOOD.store(true, Relaxed);
        test();
        self.number = self.number.saturating_add(1);
        self.failed |= !is_good();
        let verdict = if is_good() { "ok" } else { "not ok" };
        pr_info!("{} {} - {}\n", verdict, self.number, name);
    }

    /// To be returned when the module is loaded: `EIO` if something was wrong.
    pub(crate) fn outcome(self) -> Result {
        pr_info!("1..{}\n", self.number);
        if self.failed {
            Err(EIO)
        } else {
            Ok(())
        }
    }
}
