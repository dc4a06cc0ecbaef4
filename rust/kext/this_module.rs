// SPDX-License-Identifier: GPL-2.0

//! The `struct module` of this module.

use crate::bindings;

#[cfg(MODULE)]
extern "C" {
    // Only its address is used: what a `struct module` holds depends on the configuration.
    static __this_module: core::ffi::c_void;
}

/// The C object of this module (`THIS_MODULE`), which is null in a kernel that has it built in.
///
/// The `module!` macro defines one too, but at a place that differs between kernel releases.
#[cfg(MODULE)]
pub(crate) const THIS_MODULE: *mut bindings::module = (&raw const __this_module).cast_mut().cast();
#[cfg(not(MODULE))]
pub(crate) const THIS_MODULE: *mut bindings::module = core::ptr::null_mut();
