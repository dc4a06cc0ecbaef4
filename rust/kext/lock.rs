// SPDX-License-Identifier: GPL-2.0

//! Locks that the kernel crate lacks: a spin lock for interrupt context, and two mutexes at a time.
//!
//! C headers: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h),
//! [`include/linux/mutex.h`](srctree/include/linux/mutex.h)

use crate::bindings;
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        lock::{mutex::MutexBackend, Backend, Guard, Lock},
        Mutex, MutexGuard,
    },
};

/// A spin lock that disables interrupts while it is held (`spin_lock_irqsave()`).
///
/// It protects data that a notifier or a timer uses too, for which the kernel crate's
/// [`SpinLock`](kernel::sync::SpinLock) does not suffice.
pub(crate) type SpinLockIrq<T> = Lock<T, SpinLockIrqBackend>;

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

/// The lock backend of [`SpinLockIrq`]: a `spinlock_t`, with the saved interrupt flags in the
/// guard.
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

/// Locks two different mutexes of one lock class, the one with the lower address first.
///
/// Returns the guards in the order of the arguments. The order of addresses prevents a deadlock
/// between two callers. The caller must not hold another lock of the class.
pub(crate) fn lock_both<'a, T>(
    a: &'a Mutex<T>,
    b: &'a Mutex<T>,
) -> (MutexGuard<'a, T>, MutexGuard<'a, T>) {
    if ptr::from_ref(a) < ptr::from_ref(b) {
        let first = a.lock();
        (first, lock_nested(b))
    } else {
        let first = b.lock();
        (lock_nested(a), first)
    }
}

/// Unlocks a mutex whose guard was leaked.
///
/// # Safety
///
/// The current task must have locked the mutex and have leaked the guard with `forget`.
pub(crate) unsafe fn unlock_forgotten<T>(mutex: &Mutex<T>) {
    // SAFETY: The mutex is locked by the safety requirements, and a `MutexBackend` has no further
    // state.
    drop(unsafe { Guard::new(mutex, ()) });
}

/// Locks a mutex while another one of its lock class is held.
///
/// The callers must agree on an order of the mutexes.
pub(crate) fn lock_nested<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // CAST: A `Lock` is `repr(C)` and begins with the state, which `Lock::from_raw` relies on, too.
    let state: *mut <MutexBackend as Backend>::State = ptr::from_ref(mutex).cast_mut().cast();
    // SAFETY: The mutex is initialised, as the existence of the object proves. The state is in an
    // `Opaque`, so that it may be changed through a pointer made of a shared reference.
    unsafe { bindings::rust_rdma_mutex_lock_nested(state, bindings::SINGLE_DEPTH_NESTING) };
    // SAFETY: The mutex was just locked, and a `MutexBackend` has no further state.
    unsafe { Guard::new(mutex, ()) }
}
