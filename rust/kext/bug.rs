// SPDX-License-Identifier: GPL-2.0

//! Reports of errors of this module.
//!
//! C header: [`include/asm-generic/bug.h`](srctree/include/asm-generic/bug.h)

use kernel::prelude::*;

/// Warns, with the stack, that entries of the table `table` have lost their owner, unless
/// `is_empty`.
pub(crate) fn check_empty(table: &str, is_empty: bool) {
    if !is_empty {
        pr_err!("{table}: entries without an owner are left\n");
    }
    kernel::warn_on!(!is_empty);
}

/// Warns, with the stack, that an entry of the table `table` has been removed before its owner has
/// done so.
#[cold]
pub(crate) fn missing(table: &str) {
    pr_err!("{table}: an entry is missing\n");
    kernel::warn_on!(true);
}
