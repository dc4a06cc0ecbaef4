// SPDX-License-Identifier: GPL-2.0

//! This module, as C knows it.

use crate::bindings;
use core::ffi::c_void;

extern "C" {
    // Only its address is used: what a `struct module` holds depends on the configuration.
    static __this_module: c_void;
}

/// `THIS_MODULE` of C. The `module!` macro has one too, in another place in each release.
pub(crate) const THIS_MODULE: *mut bindings::module = (&raw const __this_module).cast_mut().cast();
