// SPDX-License-Identifier: GPL-2.0

//! The clock that timers use.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

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
