// SPDX-License-Identifier: GPL-2.0

//! Reading and writing what user space may know in another length.
//!
//! A structure of the user ABI grows at its end. An old program passes less than the kernel knows
//! and means zero for the rest; a new one passes more, which an old kernel does not look at.
//!
//! A page fault can take as long as a hostile user likes: hold no lock across these.

use kernel::{
    prelude::*,
    uaccess::{UserPtr, UserSlice, UserSliceReader},
};

/// Reads `N` bytes, of which user space supplies at most `len`; the rest is zero.
///
/// Never reads past `len` nor past the end of `reader`, which advances by what was read.
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

/// Writes the first `len` bytes of `bytes`, or all if there are fewer, to a user address.
///
/// Fails with [`EFAULT`] if an address is bad.
pub(crate) fn write_prefix(addr: u64, len: usize, bytes: &[u8]) -> Result {
    let len = len.min(bytes.len());
    // As `u64_to_user_ptr()`; an address that does not fit is not one.
    let addr = usize::try_from(addr).map_err(|_| EFAULT)?;
    let prefix = bytes.get(..len).ok_or(EFAULT)?;
    UserSlice::new(UserPtr::from_addr(addr), len)
        .writer()
        .write_slice(prefix)
}

/// Reads `N` bytes from a user address.
///
/// Fails with [`EFAULT`] if an address is bad.
pub(crate) fn read_at<const N: usize>(addr: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    read_slice_at(addr, &mut bytes)?;
    Ok(bytes)
}

/// Fills `bytes` from a user address.
///
/// Fails with [`EFAULT`] if an address is bad.
pub(crate) fn read_slice_at(addr: u64, bytes: &mut [u8]) -> Result {
    let addr = usize::try_from(addr).map_err(|_| EFAULT)?;
    UserSlice::new(UserPtr::from_addr(addr), bytes.len())
        .reader()
        .read_slice(bytes)
}
