// SPDX-License-Identifier: GPL-2.0

//! What an allocation may wait for.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::bindings;
use core::ffi::c_uint;
use kernel::types::NotThreadSafe;

/// A scope in which no allocation of the current task waits for input or output to a device, whatever its
/// flags say (`memalloc_noio_save()`).
///
/// For what storage depends on: the memory that it would wait for may be written back by the connection that is
/// being made. Ends when dropped, in the reverse order of the beginnings.
#[must_use = "the scope ends when this is dropped"]
pub(crate) struct NoIo {
    before: c_uint,
    _task: NotThreadSafe,
}

impl NoIo {
    /// Begins the scope. In an interrupt it is one of the task that is interrupted, and must end there.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: It may always be called; what it changes is the current task's.
            before: unsafe { bindings::rust_rdma_memalloc_noio_save() },
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
