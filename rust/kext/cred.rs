// SPDX-License-Identifier: GPL-2.0

//! What the current task may do.
//!
//! C headers: [`include/linux/capability.h`](srctree/include/linux/capability.h),
//! [`include/linux/cred.h`](srctree/include/linux/cred.h)

use crate::bindings;
use kernel::{fs::LocalFile, prelude::*};

/// A capability (`CAP_*`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) struct Capability(c_int);

impl Capability {
    /// Binding to the ports that are reserved for system services.
    pub(crate) const NET_BIND_SERVICE: Self = Self(10);
    /// Sending what only the network stack should send.
    pub(crate) const NET_RAW: Self = Self(13);
    /// Network administration.
    pub(crate) const NET_ADMIN: Self = Self(12);
}

/// Returns whether the current task has a capability in the initial user namespace.
///
/// Having been asked counts as use of the privilege (`PF_SUPERPRIV`) and may be audited: ask last.
pub(crate) fn capable(cap: Capability) -> bool {
    // SAFETY: `cap` is a valid capability by construction.
    unsafe { bindings::capable(cap.0) }
}

/// Returns whether the current task has the very credentials that `file` was opened with.
///
/// A command that arrives by `write()` must check this, or else a privileged program that is made
/// to write to an inherited descriptor acts for whoever opened it (`ib_safe_file_access()`).
pub(crate) fn opened_by_current(file: &LocalFile) -> bool {
    // SAFETY: The reference proves that the file is valid.
    unsafe { bindings::rust_rdma_ib_safe_file_access(file.as_ptr()) }
}
