// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use crate::bindings;

/// Fills `buf` with random bytes of cryptographic quality.
pub(crate) fn fill(buf: &mut [u8]) {
    // SAFETY: `buf` is valid for writes of its length.
    unsafe { bindings::get_random_bytes(buf.as_mut_ptr().cast(), buf.len()) }
}

/// Returns a random 32-bit number.
pub(crate) fn u32() -> u32 {
    // SAFETY: Just an FFI call.
    unsafe { bindings::get_random_u32() }
}

/// Returns a random 64-bit number.
pub(crate) fn u64() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}
