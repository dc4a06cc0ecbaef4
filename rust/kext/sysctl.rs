// SPDX-License-Identifier: GPL-2.0

//! The parameters below `/proc/sys/net/rdma_ucm`.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)

use crate::bindings;
use core::ptr::NonNull;
use kernel::prelude::*;

/// Keeps the parameters registered; dropping it removes them.
///
/// # Invariants
///
/// The pointer is that of a registered table.
pub(crate) struct Registration(NonNull<bindings::ctl_table_header>);

// SAFETY: A table can be unregistered from any thread.
unsafe impl Send for Registration {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl Sync for Registration {}

impl Registration {
    /// Creates `/proc/sys/net/rdma_ucm/max_backlog`: 0..=`INT_MAX`, 1024 at first.
    ///
    /// Fails with [`ENOMEM`] for whatever reason, as C does.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Just an FFI call; the table is static.
        let header = unsafe { bindings::rust_rdma_ucm_sysctl_register() };
        // INVARIANT: Registered just now.
        NonNull::new(header).map(Self).ok_or(ENOMEM)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant, and not used after this.
        unsafe { bindings::rust_rdma_ucm_sysctl_unregister(self.0.as_ptr()) }
    }
}

/// Returns the present value of `max_backlog`.
pub(crate) fn max_backlog() -> u32 {
    // SAFETY: Just an FFI call, which reads a static.
    let value = unsafe { bindings::rust_rdma_ucm_max_backlog() };
    // The table allows no negative value.
    u32::try_from(value).unwrap_or(0)
}
