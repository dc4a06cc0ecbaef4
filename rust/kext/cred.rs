// SPDX-License-Identifier: GPL-2.0

//! Credentials and capabilities of the current task.
//!
//! C headers: [`include/linux/capability.h`](srctree/include/linux/capability.h),
//! [`include/linux/cred.h`](srctree/include/linux/cred.h)

use crate::bindings;
use kernel::{
    fs::{File, LocalFile},
    prelude::*,
};

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

/// The most users in a [`Lineage`]: user namespaces are nested 33 deep at most.
const MOST_USERS: usize = 34;

/// A user and the owners of the user namespaces around it, in the initial user namespace.
pub(crate) struct Lineage {
    users: [u32; MOST_USERS],
    count: usize,
}

impl Lineage {
    /// Returns the effective user who has opened `file`, and the owners of the user namespaces
    /// that the task was in then, from the innermost one on.
    pub(crate) fn of_opener(file: &File) -> Self {
        let mut users = [0; MOST_USERS];
        // SAFETY: The reference proves that the file is valid, and there is room for `MOST_USERS`.
        let count =
            unsafe { bindings::rust_rdma_opener(file.as_ptr(), users.as_mut_ptr(), MOST_USERS) };
        Lineage { users, count }
    }

    /// Returns the users. There is at least one.
    pub(crate) fn users(&self) -> &[u32] {
        self.users.get(..self.count).unwrap_or(&[])
    }
}
