// SPDX-License-Identifier: GPL-2.0

//! Coverage of the tasks of the kernel, for fuzzers.
//!
//! C header: [`include/linux/kcov.h`](srctree/include/linux/kcov.h)

/// A scope whose blocks are reported to a fuzzer, if the current task is one of the kernel and the
/// fuzzer asked for them (`KCOV_REMOTE_ENABLE`). A kernel without KCOV does nothing here.
#[must_use = "the scope ends when this is dropped"]
pub(super) struct Coverage {
    #[cfg(CONFIG_KCOV)]
    started: bool,
}

impl Coverage {
    /// Begins a scope, unless one has begun.
    #[inline(always)]
    pub(super) fn begin() -> Self {
        Self {
            // SAFETY: The function may always be called.
            #[cfg(CONFIG_KCOV)]
            started: unsafe { crate::bindings::rust_rdma_kcov_remote_start(HANDLE) },
        }
    }
}

/// The common handle of all tasks, by which a fuzzer asks for their blocks: "rdma".
#[cfg(CONFIG_KCOV)]
const HANDLE: u32 = u32::from_be_bytes(*b"rdma");

#[cfg(CONFIG_KCOV)]
impl Drop for Coverage {
    fn drop(&mut self) {
        if self.started {
            // SAFETY: The current task has begun it.
            unsafe { crate::bindings::kcov_remote_stop() };
        }
    }
}
