// SPDX-License-Identifier: GPL-2.0

//! Neighbours that are asked for their link-layer addresses because of a message from them.
//!
//! Anybody can send such messages, also from addresses that nobody has. So the entry of a neighbour
//! that does not answer is removed: the kernel itself would keep it until there are many.
//!
//! C header: [`include/net/neighbour.h`](srctree/include/net/neighbour.h)

use crate::bindings;
use core::ptr::NonNull;

/// The entry of a neighbour that has been asked. Dropping this removes the entry, unless the
/// neighbour has answered or another part of the kernel waits for it.
///
/// # Invariants
///
/// `self` owns a reference to the entry.
pub(super) struct AskedNeighbour(NonNull<bindings::neighbour>);

// SAFETY: Any task may drop a reference to an entry.
unsafe impl Send for AskedNeighbour {}

// SAFETY: A shared reference gives no access to the entry.
unsafe impl Sync for AskedNeighbour {}

impl AskedNeighbour {
    /// Takes over a reference to an entry.
    ///
    /// # Safety
    ///
    /// The pointer must be null, or that of an entry to which the caller has a reference.
    pub(super) unsafe fn from_raw(entry: *mut bindings::neighbour) -> Option<Self> {
        // INVARIANT: By the contract of the function.
        NonNull::new(entry).map(Self)
    }
}

impl Drop for AskedNeighbour {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is ours; the function takes it over.
        unsafe { bindings::rust_rdma_forget_neigh(self.0.as_ptr()) };
    }
}
