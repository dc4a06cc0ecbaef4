// SPDX-License-Identifier: GPL-2.0

//! A count of the users of an object, like [`UseCount`](super::use_count::UseCount), to which each
//! CPU adds for itself until it is closed. It is for objects that all CPUs use all the time: no two
//! of them write the same cache line. To close it takes a grace period of RCU.
//!
//! C header: [`include/linux/percpu-refcount.h`](srctree/include/linux/percpu-refcount.h)

use crate::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{Atomic, Full},
        Completion,
    },
    types::Opaque,
};

/// A counter of users that can be closed once, and that is in parts until then
/// (`struct percpu_ref`).
///
/// # Invariants
///
/// `raw` counts the [`PerCpuUse`]s, and one more until `is_closed` is set. `empty` is completed
/// when there is none after that.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct PerCpuUseCount {
    // The first field, so that a pointer to it is one to the count.
    #[pin]
    raw: Opaque<bindings::percpu_ref>,
    is_closed: Atomic<bool>,
    #[pin]
    empty: Completion,
}

// SAFETY: Any task may count users, and close and free the count.
unsafe impl Send for PerCpuUseCount {}

// SAFETY: The counter does its own locking.
unsafe impl Sync for PerCpuUseCount {}

impl PerCpuUseCount {
    /// Creates an initialiser for an open count. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            is_closed: Atomic::new(false),
            empty <- Completion::new(),
            // INVARIANT: The counter begins with one, and without users.
            raw <- Opaque::try_ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes, and does not move.
                to_result(unsafe {
                    bindings::percpu_ref_init(slot, Some(Self::released), 0, bindings::GFP_KERNEL)
                })
            }),
        }? Error)
    }

    /// Counts a user, unless the count is closed. Never sleeps.
    #[inline]
    pub(crate) fn try_get(&self) -> Option<PerCpuUse<'_>> {
        // SAFETY: The counter is initialised.
        let is_live = unsafe { bindings::rust_rdma_percpu_ref_tryget_live(self.raw.get()) };
        is_live.then_some(PerCpuUse { count: self })
    }

    /// Closes the count, and sleeps until there is no user left. No user is counted from the call
    /// on.
    ///
    /// Can be called more than once, and by several tasks, but not by a task that is a user.
    pub(crate) fn close_and_wait(&self) {
        if !self.is_closed.xchg(true, Full) {
            // SAFETY: The counter is initialised. This is done once, and drops the one by which it
            // began.
            unsafe { bindings::percpu_ref_kill_and_confirm(self.raw.get(), None) };
        }
        self.empty.wait_for_completion();
    }

    /// Called when the counter is 0.
    ///
    /// # Safety
    ///
    /// `raw` must be that of a `PerCpuUseCount`, which does not use the counter after this.
    unsafe extern "C" fn released(raw: *mut bindings::percpu_ref) {
        // SAFETY: The counter is the first field, and who closes the count waits for this.
        let this = unsafe { &*raw.cast::<Self>() };
        this.empty.complete_all();
    }
}

#[pinned_drop]
impl PinnedDrop for PerCpuUseCount {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Initialised by the type invariant. There are no users, which borrow the count.
        unsafe { bindings::percpu_ref_exit(self.raw.get()) };
    }
}

/// A user of the object of a [`PerCpuUseCount`], until it is dropped.
#[must_use = "dropping it ends the use at once"]
pub(crate) struct PerCpuUse<'a> {
    count: &'a PerCpuUseCount,
}

impl Drop for PerCpuUse<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The counter is initialised, and we are counted.
        unsafe { bindings::rust_rdma_percpu_ref_put(self.count.raw.get()) };
    }
}
