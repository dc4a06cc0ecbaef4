// SPDX-License-Identifier: GPL-2.0

//! Presence of other modules.

use crate::{bindings, kext::this_module::THIS_MODULE};
use kernel::prelude::*;

/// Returns whether a module called `name` is loaded, or is built in and has parameters.
///
/// Returns false in a kernel that has this module built in. The answer may be outdated at once, so
/// it serves as a hint for a message only. Must not be called in atomic context.
pub(crate) fn module_is_loaded(name: &CStr) -> bool {
    // SAFETY: Our own module is loaded while its code runs, or it is built in and the pointer is
    // null; `name` is a string.
    unsafe { bindings::rust_rdma_module_is_loaded(THIS_MODULE, name.as_char_ptr()) }
}
