// SPDX-License-Identifier: GPL-2.0

//! Access to the module for C functions that have no identifier yet.

use crate::globals::Globals;
use atomics::Published;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
};

/// The globals of the module while consumers may create identifiers.
static GLOBALS: Published<Globals> = Published::new();

/// A registration that lets consumers create identifiers until it is dropped.
///
/// Consumers are modules that depend on this one, so that there are none before it is loaded and
/// none when it is unloaded. In a kernel that has both built in, a consumer that comes first gets
/// `ENODEV`, and there is none yet while this one starts, because it starts before all devices.
pub(crate) struct Registration {
    _globals: Arc<Globals>,
}

impl Registration {
    /// Allows consumers to create identifiers.
    pub(crate) fn new(globals: Arc<Globals>) -> Self {
        GLOBALS.publish(NonNull::from(&*globals));
        Self { _globals: globals }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        GLOBALS.withdraw();
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
    let globals = unsafe { GLOBALS.get().ok_or(ENODEV)?.as_ref() };
    // SAFETY: The globals are in an `Arc`, to which the registration holds a reference.
    Ok(Arc::from(unsafe { ArcBorrow::from_raw(globals) }))
}
