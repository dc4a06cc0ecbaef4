// SPDX-License-Identifier: GPL-2.0

//! Socket addresses in the arguments of a consumer.

use crate::{bindings, kext::error::ResultExt};
use cmproto::addr::SockAddr;
use core::{mem::size_of_val, slice};
use kernel::prelude::*;

/// Reads a socket address; a null pointer is the same as the unspecified family.
///
/// Fails with `EAFNOSUPPORT` for other families than IPv4, IPv6 and native InfiniBand.
///
/// # Safety
///
/// `addr` must be null, or valid for the number of bytes that its family requires.
pub(super) unsafe fn read(addr: *const bindings::sockaddr) -> Result<SockAddr> {
    if addr.is_null() {
        return Ok(SockAddr::Unspec);
    }
    // SAFETY: Every address has a family.
    let family = unsafe { (*addr).sa_family };
    let len = SockAddr::len_of_family(family).max(size_of_val(&family));
    // SAFETY: By the safety requirements.
    let bytes = unsafe { slice::from_raw_parts(addr.cast::<u8>(), len) };
    SockAddr::from_bytes(bytes).kernel()
}
