// SPDX-License-Identifier: GPL-2.0

//! Credentials and capabilities of the current task.
//!
//! C headers: [`include/linux/capability.h`](srctree/include/linux/capability.h),
//! [`include/linux/cred.h`](srctree/include/linux/cred.h)

use crate::bindings;
use kernel::{fs::LocalFile, prelude::*};

/// A capability (`CAP_*`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) struct Capability(c_int);

impl Capability {
    /// `CAP_NET_BIND_SERVICE`: binding to ports that are reserved for system services.
    pub(crate) const NET_BIND_SERVICE: Self = Self(10);
}

/// Returns whether the current task has a capability in the initial user namespace.
///
/// The check counts as use of the privilege (`PF_SUPERPRIV`) and may be audited, so it should be
/// the last of several checks.
pub(crate) fn capable(cap: Capability) -> bool {
    // SAFETY: `cap` is a valid capability by construction.
    unsafe { bindings::capable(cap.0) }
}

/// Returns the effective user of the current task, in the initial user namespace.
pub(crate) fn current_user() -> u32 {
    // SAFETY: It only reads the credentials of the current task.
    unsafe { bindings::rust_rdma_current_user() }
}

/// Returns whether the current task has the same credentials that `file` was opened with.
///
/// A command that arrives by `write()` must check this (`ib_safe_file_access()`). Otherwise a
/// privileged program that is tricked into writing to an inherited descriptor acts on behalf of the
/// one who opened it.
pub(crate) fn opened_by_current(file: &LocalFile) -> bool {
    // SAFETY: The reference proves that the file is valid.
    unsafe { bindings::rust_rdma_ib_safe_file_access(file.as_ptr()) }
}
