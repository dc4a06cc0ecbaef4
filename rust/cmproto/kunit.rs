// SPDX-License-Identifier: GPL-2.0

//! The tests of this crate as KUnit suites of the module.
//!
//! Tests are written once, beside the code, and run under cargo and in a kernel that has
//! `CONFIG_KUNIT=y`. Each module with tests is
//!
//! ```ignore
//! #[cfg(any(test, CONFIG_KUNIT))]
//! #[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_name))]
//! mod tests {
//! ```
//!
//! [`suite`] makes KUnit cases of the functions marked `#[test]`, and failures of the case of
//! `assert!` and `assert_eq!`, which take no message here: a value that tells one round of a loop
//! from another is put into both sides of the comparison. All other panics are panics of the
//! kernel. A test that needs `std` or an allocator is `#[cfg(test)]`, and KUnit reports it as
//! skipped.

pub(crate) use kernel::prelude::kunit_tests as suite;

/// The `assert_eq!` of functions that tests share; [`suite`] replaces that of the tests themselves.
macro_rules! assert_eq {
    ($left:expr, $right:expr $(, $($message:tt)+)?) => {
        ::kernel::kunit_assert!(
            "cmproto",
            c"a function that tests share",
            0,
            $left == $right
        )
    };
}

pub(crate) use assert_eq;
