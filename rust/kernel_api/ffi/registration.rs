// SPDX-License-Identifier: GPL-2.0

//! Access to the module for C functions that have no identifier yet.

use crate::globals::Globals;
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering::Acquire, ordering::Release, Atomic},
        Arc, ArcBorrow,
    },
};

/// The globals of the module while consumers may create identifiers, else null.
static GLOBALS: Atomic<*const Globals> = Atomic::new(ptr::null());

/// A registration that lets consumers create identifiers until it is dropped.
///
/// Consumers are modules that depend on this one, so that there are none before it is loaded and
/// none when it is unloaded. In a kernel that has both built in, a consumer that comes first gets
/// `ENODEV`, and there is none yet while this one starts, because it starts before all devices.
pub(crate) struct Registration(Arc<Globals>);

impl Registration {
    /// Allows consumers to create identifiers.
    pub(crate) fn new(globals: Arc<Globals>) -> Self {
        GLOBALS.store(Arc::as_ptr(&globals), Release);
        Self(globals)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        GLOBALS.store(ptr::null(), Release);
        self.0.callbacks.flush();
    }
}

/// Returns the globals of the module, for a consumer that has no identifier yet.
///
/// Fails with `ENODEV` while the module is being loaded or unloaded.
///
/// # Safety
///
/// The caller must be a consumer, which depends on this module.
pub(super) unsafe fn the_globals() -> Result<Arc<Globals>> {
    // SAFETY: The globals live as long as there are consumers.
    let globals = unsafe { GLOBALS.load(Acquire).as_ref() }.ok_or(ENODEV)?;
    // SAFETY: The globals are in an `Arc`, to which the registration holds a reference.
    Ok(Arc::from(unsafe { ArcBorrow::from_raw(globals) }))
}
