// SPDX-License-Identifier: GPL-2.0

//! The `struct module` of this module.

use crate::bindings;
use core::ffi::c_void;

extern "C" {
    // Only its address is used: what a `struct module` holds depends on the configuration.
    static __this_module: c_void;
}

/// The C object of this module (`THIS_MODULE`).
///
/// The `module!` macro defines one too, but at a place that differs between kernel releases.
pub(crate) const THIS_MODULE: *mut bindings::module = (&raw const __this_module).cast_mut().cast();
