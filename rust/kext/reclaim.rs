// SPDX-License-Identifier: GPL-2.0

//! Limits to memory reclaim.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::{bindings, kext::kcov::Coverage};
use core::ffi::c_uint;
use kernel::types::NotThreadSafe;

/// A scope in which allocations of the current task start no I/O (`memalloc_noio_save()`).
///
/// It overrides the flags of each allocation. Code that storage depends on needs it: reclaim could
/// otherwise wait for the write-back of pages through the very connection that is being made. The
/// scope ends when this is dropped; nested scopes must end in reverse order.
///
/// A scope begins wherever another task of the kernel calls this module, so that the scope has the
/// coverage of that, too.
#[must_use = "the scope ends when this is dropped"]
pub(crate) struct NoIo {
    before: c_uint,
    _coverage: Coverage,
    _task: NotThreadSafe,
}

impl NoIo {
    /// Begins a scope. In an interrupt the scope applies to the interrupted task, and must end
    /// there.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: The function may always be called and changes only flags of the current task.
            before: unsafe { bindings::rust_rdma_memalloc_noio_save() },
            _coverage: Coverage::begin(),
            _task: NotThreadSafe,
        }
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: The flags are those of the current task, where `self` was made and stays.
        unsafe { bindings::rust_rdma_memalloc_noio_restore(self.before) };
    }
}
