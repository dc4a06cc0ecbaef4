// SPDX-License-Identifier: GPL-2.0

//! Copying of structures from and to user space whose length may differ there.
//!
//! A structure of the user ABI grows at its end. An old program passes fewer bytes than the kernel
//! knows and means zero for the rest; a new program passes more, which an old kernel ignores.
//!
//! A page fault can take as long as a hostile user likes, so no lock may be held across these
//! functions.

use crate::bindings;
use core::{mem::MaybeUninit, ptr};
use kernel::{prelude::*, uaccess::UserSliceReader};
use zerocopy::FromBytes;

/// A range of user memory, whose address may be invalid.
#[derive(Clone, Copy)]
pub(crate) struct UserBytes {
    addr: usize,
    len: usize,
}

impl UserBytes {
    /// Creates a range of `len` bytes at `addr`.
    pub(crate) fn new(addr: usize, len: usize) -> Self {
        UserBytes { addr, len }
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the part of the range after its first `count` bytes.
    pub(crate) fn after(&self, count: usize) -> Self {
        UserBytes {
            addr: self.addr.wrapping_add(count),
            len: self.len.saturating_sub(count),
        }
    }

    /// Reads a `T` into `slot` from at most the first `len` bytes of the range, and zeroes the
    /// rest.
    ///
    /// Fails with [`EFAULT`] if an address is bad.
    pub(crate) fn read_prefix<'a, T: FromBytes>(
        &self,
        len: usize,
        slot: &'a mut MaybeUninit<T>,
    ) -> Result<&'a T> {
        let len = len.min(self.len).min(size_of::<T>());
        let start = slot.as_mut_ptr().cast::<u8>();
        // SAFETY: `len` bytes of `slot` can be written; the user address is checked by the
        // function.
        let missed = unsafe {
            bindings::_copy_from_user(start.cast(), ptr::without_provenance(self.addr), len)
        };
        if missed != 0 {
            return Err(EFAULT);
        }
        let rest = size_of::<T>().saturating_sub(len);
        if rest > 0 {
            // SAFETY: These are the bytes of `slot` that follow.
            unsafe { ptr::write_bytes(start.add(len), 0, rest) };
        }
        // SAFETY: All bytes were written, and any bytes are a `T`.
        Ok(unsafe { slot.assume_init_ref() })
    }
}

/// Reads `N` bytes, of which user space supplies at most `len`, and zeroes the rest.
///
/// Never reads past `len` nor past the end of `reader`, which advances by the number of bytes read.
/// Fails with [`EFAULT`] if an address is bad.
pub(crate) fn read_prefix<const N: usize>(
    reader: &mut UserSliceReader,
    len: usize,
) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let len = len.min(N).min(reader.len());
    if let Some(prefix) = bytes.get_mut(..len) {
        reader.read_slice(prefix)?;
    }
    Ok(bytes)
}

/// Writes the first `len` bytes of `bytes`, or all if it is shorter, to a user address.
///
/// Fails with [`EFAULT`] if an address is bad.
pub(crate) fn write_prefix(addr: u64, len: usize, bytes: &[u8]) -> Result {
    let prefix = bytes.get(..len).unwrap_or(bytes);
    // As in `u64_to_user_ptr()`, but an address that does not fit fails.
    let addr = usize::try_from(addr).map_err(|_| EFAULT)?;
    // SAFETY: `prefix` can be read, and any address may be written to.
    let missed = unsafe {
        bindings::_copy_to_user(
            ptr::without_provenance_mut(addr),
            prefix.as_ptr().cast(),
            prefix.len(),
        )
    };
    if missed != 0 {
        return Err(EFAULT);
    }
    Ok(())
}

/// Writes `len` zeros, at most 512, to a user address.
///
/// Fails with [`EFAULT`] if an address is bad.
pub(crate) fn write_zeros(addr: u64, len: usize) -> Result {
    static ZEROS: [u8; 512] = [0; 512];
    write_prefix(addr, len, &ZEROS)
}
