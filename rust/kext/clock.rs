// SPDX-License-Identifier: GPL-2.0

//! The clock that timers use, and a coarse one.
//!
//! C headers: [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h),
//! [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

use crate::bindings;

/// Returns the monotonic time (`CLOCK_MONOTONIC`) in microseconds since boot.
///
/// The clock stops while the system is suspended and never goes back. Can be called from any
/// context but NMI.
pub(crate) fn now_us() -> u64 {
    // SAFETY: Just an FFI call.
    let ns = unsafe { bindings::ktime_get() };
    u64::try_from(ns).unwrap_or(0) / 1000
}

/// A time of the coarse clock, which takes an instruction to read.
#[derive(Clone, Copy)]
pub(crate) struct Tick(u64);

impl Tick {
    /// Returns the current time.
    #[inline]
    pub(crate) fn now() -> Self {
        // SAFETY: The kernel writes the variable at any time, hence the volatile access.
        let ticks = unsafe { (&raw const bindings::jiffies).read_volatile() };
        // Lossless on 64-bit machines.
        Tick(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// Returns the time since then, in milliseconds.
    pub(crate) fn elapsed_ms(self) -> u64 {
        let ticks = Self::now().0.wrapping_sub(self.0);
        // SAFETY: Just an FFI call.
        unsafe { bindings::jiffies64_to_msecs(ticks) }
    }
}
