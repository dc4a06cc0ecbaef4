// SPDX-License-Identifier: GPL-2.0

//! Other modules.

use crate::{bindings, kext::this_module::THIS_MODULE};
use kernel::{prelude::*, str::CStrExt as _};

/// Returns whether a module of this name is loaded, or a built-in one of this name has parameters.
///
/// Only a hint for a message: it can be unloaded or loaded the moment after. Must not be called in
/// atomic context.
pub(crate) fn module_is_loaded(name: &CStr) -> bool {
    // SAFETY: Our own module is loaded while its code runs, and `name` is a string.
    unsafe { bindings::rust_rdma_module_is_loaded(THIS_MODULE, name.as_char_ptr()) }
}
