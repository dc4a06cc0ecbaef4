// SPDX-License-Identifier: GPL-2.0

//! Socket addresses of a consumer.

use crate::{bindings, kext::error::ResultExt};
use cmproto::addr::SockAddr;
use core::{mem::size_of_val, slice};
use kernel::prelude::*;

/// Reads a socket address; null and the unspecified family are the same.
///
/// Fails with `EAFNOSUPPORT` for a family that is none of IPv4, IPv6 and native InfiniBand.
///
/// # Safety
///
/// `addr` must be null, or valid for as many bytes as its family says.
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
