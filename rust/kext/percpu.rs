// SPDX-License-Identifier: GPL-2.0

//! Values of which each CPU has its own, so that no two CPUs write the same cache line.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use crate::bindings;
use core::{
    mem::{align_of, size_of},
    ptr::NonNull,
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// A value of each CPU. Other CPUs may use it, too.
///
/// # Invariants
///
/// `raw` is per-CPU memory with an initialised `T` for each possible CPU, which only the owner of
/// this drops and frees.
pub(crate) struct PerCpu<T: Send + Sync> {
    raw: NonNull<T>,
}

// SAFETY: The values may be used and dropped by any task.
unsafe impl<T: Send + Sync> Send for PerCpu<T> {}

// SAFETY: The values may be used by all tasks.
unsafe impl<T: Send + Sync> Sync for PerCpu<T> {}

impl<T: Send + Sync> PerCpu<T> {
    /// Creates the value of each CPU, whose number `init` gets. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new(init: impl Fn(u32) -> T) -> Result<Self> {
        // SAFETY: The size is that of a type, and the alignment a power of two.
        let raw = unsafe { bindings::rust_rdma_alloc_percpu(size_of::<T>(), align_of::<T>()) };
        let raw = NonNull::new(raw).ok_or(ENOMEM)?.cast::<T>();
        for cpu in 0..nr_cpu_ids() {
            // SAFETY: The memory was allocated above.
            if let Some(value) = unsafe { of(raw, cpu) } {
                // SAFETY: The memory is ours, and has the size and the alignment of a value.
                unsafe { value.write(init(cpu)) };
            }
        }
        // INVARIANT: All values were initialised.
        Ok(Self { raw })
    }

    /// Returns the value of this CPU, or of another one if the task moves.
    #[inline]
    pub(crate) fn here(&self) -> &T {
        // SAFETY: The memory is per-CPU memory by the type invariant.
        let value = unsafe { bindings::rust_rdma_raw_cpu_ptr(self.raw.as_ptr().cast()) };
        // SAFETY: The values are initialised by the type invariant, and live as long as `self`.
        unsafe { &*value.cast() }
    }

    /// Returns the value of a CPU, if there can be one.
    #[inline]
    pub(crate) fn of(&self, cpu: u32) -> Option<&T> {
        // SAFETY: The values are initialised by the type invariant, and live as long as `self`.
        unsafe { Some(of(self.raw, cpu)?.as_ref()) }
    }

    /// Returns the values of all CPUs.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        (0..nr_cpu_ids()).filter_map(|cpu| self.of(cpu))
    }
}

/// Returns the value of a CPU, if there can be one.
///
/// # Safety
///
/// `raw` must be per-CPU memory of a `T`.
#[inline]
unsafe fn of<T>(raw: NonNull<T>, cpu: u32) -> Option<NonNull<T>> {
    // SAFETY: `raw` is per-CPU memory.
    NonNull::new(unsafe { bindings::rust_rdma_per_cpu_ptr(raw.as_ptr().cast(), cpu) }.cast())
}

impl<T: Send + Sync> Drop for PerCpu<T> {
    fn drop(&mut self) {
        for cpu in 0..nr_cpu_ids() {
            // SAFETY: The memory is per-CPU memory by the type invariant.
            if let Some(value) = unsafe { of(self.raw, cpu) } {
                // SAFETY: The value is initialised by the type invariant, and not used any more.
                unsafe { value.drop_in_place() };
            }
        }
        // SAFETY: By the type invariant the memory is ours.
        unsafe { bindings::rust_rdma_free_percpu(self.raw.as_ptr().cast()) };
    }
}

/// `N` counters. Each CPU adds to its own, and the value of a counter is the sum of all.
pub(crate) struct PerCpuCounters<const N: usize>(PerCpu<[Atomic<u64>; N]>);

impl<const N: usize> PerCpuCounters<N> {
    /// Creates counters, all 0. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new() -> Result<Self> {
        PerCpu::new(|_| [const { Atomic::new(0) }; N]).map(Self)
    }

    /// Adds to a counter. Does nothing if there is no such counter.
    #[inline]
    pub(crate) fn add(&self, counter: usize, n: u64) {
        if counter < N {
            let value = self.0.raw.cast::<u64>().as_ptr().wrapping_add(counter);
            // SAFETY: This is a value in per-CPU memory, as there are `N`.
            unsafe { bindings::rust_rdma_this_cpu_add(value, n) };
        }
    }

    /// Returns the value of a counter, which is 0 if there is no such counter.
    pub(crate) fn sum(&self, counter: usize) -> u64 {
        let values = self.0.all().filter_map(|values| values.get(counter));
        values.fold(0, |sum, value| sum.wrapping_add(value.load(Relaxed)))
    }
}
