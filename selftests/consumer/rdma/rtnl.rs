// SPDX-License-Identifier: GPL-2.0

//! The lock of all network interfaces.
//!
//! C header: [`include/linux/rtnetlink.h`](srctree/include/linux/rtnetlink.h)

use crate::bindings;
use core::marker::PhantomData;
use kernel::types::NotThreadSafe;

/// The lock, held until this is dropped. The parameter `locked` of the module says so.
pub(crate) struct Rtnl(PhantomData<NotThreadSafe>);

impl Rtnl {
    pub(crate) fn lock() -> Self {
        // SAFETY: The task has it not, as it has no other of these.
        unsafe { bindings::rust_test_rtnl_lock() };
        Self(PhantomData)
    }

    /// Returns true if the lock may not be given back yet.
    pub(crate) fn is_wanted(&self) -> bool {
        // SAFETY: It may always be asked.
        unsafe { bindings::rust_test_is_locked() }
    }
}

impl Drop for Rtnl {
    fn drop(&mut self) {
        // SAFETY: The task has it.
        unsafe { bindings::rust_test_rtnl_unlock() };
    }
}
