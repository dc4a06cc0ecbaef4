// SPDX-License-Identifier: GPL-2.0

//! The sysctls in `/proc/sys/net/rdma_ucm`.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)

use crate::bindings;
use cmproto::ucma::account::Resource;
use core::ptr::NonNull;
use kernel::prelude::*;

/// A registration of the sysctls; dropping it unregisters them.
///
/// # Invariants
///
/// The pointer is that of a registered table.
pub(crate) struct Registration(NonNull<bindings::ctl_table_header>);

// SAFETY: A table can be unregistered from any thread.
unsafe impl Send for Registration {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers the files in `/proc/sys/net/rdma_ucm`, with values from 0 to `INT_MAX`:
    /// `max_backlog` with a default of 1024, and `max_user_...` for each [`Resource`].
    ///
    /// Every failure is reported as [`ENOMEM`], as in C.
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

/// Returns the current value of `max_backlog`.
pub(crate) fn max_backlog() -> u32 {
    // SAFETY: Just an FFI call, which reads a static.
    let value = unsafe { bindings::rust_rdma_ucm_max_backlog() };
    // The sysctl table does not allow negative values.
    u32::try_from(value).unwrap_or(0)
}

const _: () = assert!(bindings::RUST_RDMA_USER_RESOURCES as usize == Resource::COUNT);

/// Returns the current value of `max_user_...` for a resource: the limit of each user.
#[inline]
pub(crate) fn max_user(resource: Resource) -> u32 {
    let limits = (&raw const bindings::rust_rdma_ucm_max_user).cast::<c_int>();
    // SAFETY: The array has a number for each resource. A task may write it at the same time.
    let limit = unsafe { limits.add(resource as usize).read_volatile() };
    // The sysctl table does not allow negative values.
    limit.unsigned_abs()
}
