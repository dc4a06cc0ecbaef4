// SPDX-License-Identifier: GPL-2.0

//! A spin lock that can also be taken in interrupt context.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::bindings;
use kernel::{
    prelude::*,
    sync::lock::{Backend, Guard, Lock},
};

/// A spin lock that disables interrupts while it is held (`spin_lock_irqsave()`).
///
/// For data that a notifier or a timer touches too, which the kernel crate's
/// [`SpinLock`](kernel::sync::SpinLock) cannot protect.
pub(crate) type SpinLockIrq<T> = Lock<T, SpinLockIrqBackend>;

/// The guard of a [`SpinLockIrq`].
pub(crate) type SpinLockIrqGuard<'a, T> = Guard<'a, T, SpinLockIrqBackend>;

/// Creates an initialiser for a [`SpinLockIrq`] with a lock class of its own.
macro_rules! new_spinlock_irq {
    ($value:expr, $name:literal) => {
        $crate::kext::lock::SpinLockIrq::new(
            $value,
            ::kernel::optional_name!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_spinlock_irq;

/// A `spinlock_t` with the interrupt flags of whoever holds it.
pub(crate) struct SpinLockIrqBackend;

// SAFETY: The `spinlock_t` ensures mutual exclusion. `relock` is the default, which locks again.
unsafe impl Backend for SpinLockIrqBackend {
    type State = bindings::spinlock_t;
    type GuardState = c_ulong;

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller guarantees that `ptr` is valid for writes and that `name` and `key`
        // stay valid.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller guarantees that `ptr` has been initialised.
        unsafe { bindings::rust_rdma_spin_lock_irqsave(ptr) }
    }

    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller guarantees that `ptr` has been initialised.
        let locked = unsafe { bindings::rust_rdma_spin_trylock_irqsave(ptr, &mut flags) };
        locked.then_some(flags)
    }

    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: The caller owns the lock, and the flags are those of its locking.
        unsafe { bindings::rust_rdma_spin_unlock_irqrestore(ptr, *guard_state) }
    }

    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller guarantees that `ptr` has been initialised.
        unsafe { bindings::spin_assert_is_held(ptr) }
    }
}
