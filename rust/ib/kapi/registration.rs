// SPDX-License-Identifier: GPL-2.0

//! The way from a function of C to the module.

use crate::core::Core;
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering::Acquire, ordering::Release, Atomic},
        Arc, ArcBorrow,
    },
};

/// The module, for those who have no identifier yet.
static CORE: Atomic<*const Core> = Atomic::new(ptr::null());

/// Lets consumers create identifiers until it is dropped.
///
/// Consumers are modules that need this one, so that there are none before it is loaded and none
/// when it is unloaded.
pub(crate) struct Registration(Arc<Core>);

impl Registration {
    /// Opens the door.
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

/// The module, for a consumer that has no identifier yet.
///
/// Fails with `ENODEV` while the module is loaded or unloaded.
///
/// # Safety
///
/// The caller must be a consumer, which needs this module.
pub(super) unsafe fn the_core() -> Result<Arc<Core>> {
    // SAFETY: The core stays while there are consumers.
    let core = unsafe { CORE.load(Acquire).as_ref() }.ok_or(ENODEV)?;
    // SAFETY: It is in an `Arc`, which the registration holds.
    Ok(Arc::from(unsafe { ArcBorrow::from_raw(core) }))
}
