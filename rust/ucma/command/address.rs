// SPDX-License-Identifier: GPL-2.0

//! Commands that bind a context to an address and resolve addresses, routes and services.

use super::call::{request, Call};
use crate::{
    kext::error::ResultExt,
    ucma::{context::Context, entries::ExpectedEvents},
};
use cmproto::{addr::SockAddr, errno::Errno, sa::ServiceQuery, ucma_abi as abi};
use kernel::prelude::*;

/// Parses an IPv4 or IPv6 address from a field of the size of `struct sockaddr_in6`.
///
/// # Errors
///
/// `EINVAL` for any other address family.
pub(super) fn in6(field: &[u8]) -> Result<SockAddr, Errno> {
    match SockAddr::from_bytes(field) {
        Ok(addr @ (SockAddr::V4 { .. } | SockAddr::V6 { .. })) => Ok(addr),
        _ => Err(Errno::EINVAL),
    }
}

/// Parses a field of the size of `struct sockaddr_in6` that may be empty (`AF_UNSPEC`).
fn in6_or_none(field: &[u8]) -> Result<SockAddr, Errno> {
    match SockAddr::from_bytes(field) {
        Ok(SockAddr::Unspec) => Ok(SockAddr::Unspec),
        _ => in6(field),
    }
}

/// Parses an address of any family from a field of the size of `struct sockaddr_storage`.
///
/// # Errors
///
/// `EINVAL` for an unknown family, or if `size`, in bytes, is not the size of the family's address.
fn storage(field: &[u8], size: u16) -> Result<SockAddr, Errno> {
    let addr = SockAddr::from_bytes(field).map_err(|_| Errno::EINVAL)?;
    if size == 0 || usize::from(size) != addr.len() {
        return Err(Errno::EINVAL);
    }
    Ok(addr)
}

request!(BindIp: |request| in6(&request.addr).map(drop));

/// `BIND_IP`: gives the context an IPv4 or IPv6 address.
pub(super) fn bind_ip(_: &Call<'_>, context: &Context, request: &abi::BindIp) -> Result {
    context.endpoint().bind(&in6(&request.addr).kernel()?)
}

request!(Bind: |request| {
    if request.reserved != 0 {
        return Err(Errno::EINVAL);
    }
    storage(&request.addr, request.addr_size).map(drop)
});

/// `BIND`: gives the context an address of any family.
pub(super) fn bind(_: &Call<'_>, context: &Context, request: &abi::Bind) -> Result {
    let addr = storage(&request.addr, request.addr_size).kernel()?;
    context.endpoint().bind(&addr)
}

request!(ResolveIp: |request| {
    in6_or_none(&request.src_addr)?;
    in6(&request.dst_addr).map(drop)
});

/// `RESOLVE_IP`: finds the device that leads to an IPv4 or IPv6 address.
pub(super) fn resolve_ip(call: &Call<'_>, context: &Context, request: &abi::ResolveIp) -> Result {
    let src = in6_or_none(&request.src_addr).kernel()?;
    let dst = in6(&request.dst_addr).kernel()?;
    resolve(call, context, &src, &dst, request.timeout_ms)
}

request!(ResolveAddr: |request| {
    if request.reserved != 0 {
        return Err(Errno::EINVAL);
    }
    if request.src_size != 0 {
        storage(&request.src_addr, request.src_size)?;
    }
    storage(&request.dst_addr, request.dst_size).map(drop)
});

/// `RESOLVE_ADDR`: finds the device that leads to an address of any family.
///
/// A source address is used even if its size is given as 0, unless its family is `AF_UNSPEC`.
pub(super) fn resolve_addr(
    call: &Call<'_>,
    context: &Context,
    request: &abi::ResolveAddr,
) -> Result {
    let src = SockAddr::from_bytes(&request.src_addr).kernel()?;
    let dst = storage(&request.dst_addr, request.dst_size).kernel()?;
    resolve(call, context, &src, &dst, request.timeout_ms)
}

fn resolve(
    call: &Call<'_>,
    context: &Context,
    src: &SockAddr,
    dst: &SockAddr,
    timeout_ms: u32,
) -> Result {
    // A program that resolves an address is about to connect. It costs less to allocate the memory
    // of all the events at once.
    call.channel()
        .reserve_events(context, ExpectedEvents::CONNECT)?;
    context.endpoint().resolve_addr(src, dst, timeout_ms)
}

request!(ResolveRoute);

/// `RESOLVE_ROUTE`: finds the path to the address that was resolved.
pub(super) fn resolve_route(
    call: &Call<'_>,
    context: &Context,
    request: &abi::ResolveRoute,
) -> Result {
    call.channel()
        .reserve_events(context, ExpectedEvents::ROUTE)?;
    context.endpoint().resolve_route(request.timeout_ms)
}

request!(ResolveIbService);

/// `RESOLVE_IB_SERVICE`: asks the subnet administrator for the records of a service.
pub(super) fn resolve_ib_service(
    call: &Call<'_>,
    context: &Context,
    request: &abi::ResolveIbService,
) -> Result {
    call.channel()
        .reserve_events(context, ExpectedEvents::RESOLVE)?;
    let query = ServiceQuery::from_user(&request.ibs);
    context.endpoint().resolve_ib_service(&query)
}
