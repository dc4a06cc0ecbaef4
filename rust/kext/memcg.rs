// SPDX-License-Identifier: GPL-2.0

//! Memory cgroups: who pays for an allocation.
//!
//! C headers: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h),
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::bindings;
use core::ptr::NonNull;
use kernel::types::NotThreadSafe;

/// A counted reference to a memory cgroup other than the root.
///
/// # Invariants
///
/// `raw` is valid, and this object owns a reference to it.
pub(crate) struct MemCgroup {
    raw: NonNull<bindings::mem_cgroup>,
}

// SAFETY: The reference counter of a cgroup is atomic, and a scope is about the current task only.
unsafe impl Send for MemCgroup {}
// SAFETY: As above.
unsafe impl Sync for MemCgroup {}

impl MemCgroup {
    /// Returns the memory cgroup that pays for the allocations of the current task, or `None` if
    /// that is the root, whose memory is not limited.
    pub(crate) fn of_current() -> Option<Self> {
        // SAFETY: The function may be called by any task.
        let raw = NonNull::new(unsafe { bindings::rust_rdma_mem_cgroup_of_current() })?;
        // INVARIANT: The function returns a reference, which we own now.
        Some(Self { raw })
    }

    /// Begins a scope in which the group pays for the accounted allocations of the current task
    /// (`set_active_memcg()`).
    pub(crate) fn charge(&self) -> ChargeScope<'_> {
        ChargeScope {
            // SAFETY: By the type invariant, the group is valid. It stays so until the scope ends,
            // as the scope borrows the reference.
            before: unsafe { bindings::rust_rdma_set_active_memcg(self.raw.as_ptr()) },
            _group: self,
            _task: NotThreadSafe,
        }
    }
}

impl Clone for MemCgroup {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant, there is a reference already.
        unsafe { bindings::rust_rdma_mem_cgroup_get(self.raw.as_ptr()) };
        // INVARIANT: The reference is the one that we have just taken.
        Self { raw: self.raw }
    }
}

impl Drop for MemCgroup {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, we own this reference.
        unsafe { bindings::rust_rdma_mem_cgroup_put(self.raw.as_ptr()) };
    }
}

/// A scope in which a memory cgroup pays for the accounted allocations of the current task.
///
/// Nested scopes must end in reverse order.
#[must_use = "the scope ends when this is dropped"]
pub(crate) struct ChargeScope<'a> {
    before: *mut bindings::mem_cgroup,
    _group: &'a MemCgroup,
    _task: NotThreadSafe,
}

impl Drop for ChargeScope<'_> {
    fn drop(&mut self) {
        // SAFETY: The group paid when the scope began, in the same task, and the scope around this
        // one, which has not ended, keeps it valid. It is null if there is no such scope.
        unsafe { bindings::rust_rdma_set_active_memcg(self.before) };
    }
}
