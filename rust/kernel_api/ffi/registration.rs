// SPDX-License-Identifier: GPL-2.0

//! Access to the module for C functions that have no identifier yet.

use crate::core::Core;
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering::Acquire, ordering::Release, Atomic},
        Arc, ArcBorrow,
    },
};

/// The core of the module while consumers may create identifiers, else null.
static CORE: Atomic<*const Core> = Atomic::new(ptr::null());

/// A registration that lets consumers create identifiers until it is dropped.
///
/// Consumers are modules that depend on this one, so that there are none before it is loaded and
/// none when it is unloaded.
pub(crate) struct Registration(Arc<Core>);

impl Registration {
    /// Allows consumers to create identifiers.
    pub(crate) fn new(core: Arc<Core>) -> Self {
        CORE.store(Arc::as_ptr(&core), Release);
        Self(core)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        CORE.store(ptr::null(), Release);
        self.0.callbacks.flush();
    }
}

/// Returns the core of the module, for a consumer that has no identifier yet.
///
/// Fails with `ENODEV` while the module is being loaded or unloaded.
///
/// # Safety
///
/// The caller must be a consumer, which depends on this module.
pub(super) unsafe fn the_core() -> Result<Arc<Core>> {
    // SAFETY: The core lives as long as there are consumers.
    let core = unsafe { CORE.load(Acquire).as_ref() }.ok_or(ENODEV)?;
    // SAFETY: The core is in an `Arc`, to which the registration holds a reference.
    Ok(Arc::from(unsafe { ArcBorrow::from_raw(core) }))
}
