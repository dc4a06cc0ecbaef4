// SPDX-License-Identifier: GPL-2.0

//! Commands that report the addresses, path, GIDs and services of an endpoint.
//!
//! Each response is made from one snapshot of the endpoint, so that its parts fit together.

use super::call::{request, Call};
use crate::{
    kext::{
        error::{ResultExt, ToKernel},
        uaccess,
    },
    ucma::context::Context,
};
use cmproto::{
    errno::Errno,
    ucma_abi::{
        self as abi, IntoBytes, QueryAddrResp, QueryIbServiceResp, QueryOption, QueryPathResp,
        UserServiceRec,
    },
};
use core::mem::size_of;
use kernel::prelude::*;

request!(Query);

/// `QUERY_ROUTE`: reports addresses, device and path together, for IP addresses.
pub(super) fn route(call: &Call<'_>, context: &Context, request: &abi::Query) -> Result {
    let resp = context.endpoint().snapshot(|seen| seen.route());
    call.respond(request.response, &resp)
}

/// `QUERY`: reports addresses, path, GIDs or services, depending on the option.
///
/// # Errors
///
/// - `ENOSYS` for an unknown option;
/// - `ENOSPC` if the response would not fit; unlike with other commands, this comes after the check
///   of the context;
/// - `ENODATA` if service records are asked for and there are none.
pub(super) fn query(call: &Call<'_>, context: &Context, request: &abi::Query) -> Result {
    let option = QueryOption::try_from(request.option).kernel()?;
    let least = match option {
        QueryOption::Addr | QueryOption::Gid => QueryAddrResp::MIN_LEN,
        QueryOption::Path | QueryOption::IbService => size_of::<QueryPathResp>(),
    };
    if call.response_len() < least {
        return Err(ENOSPC);
    }
    let endpoint = context.endpoint();
    match option {
        QueryOption::IbService => services(call, context, request),
        QueryOption::Addr => {
            let resp = endpoint.snapshot(|seen| seen.addresses());
            call.respond(request.response, &resp)
        }
        QueryOption::Gid => {
            let resp = endpoint.snapshot(|seen| seen.gids());
            call.respond(request.response, &resp)
        }
        QueryOption::Path => {
            let (answer, len) = endpoint.snapshot(|snapshot| snapshot.paths(call.response_len()));
            call.respond(request.response, answer.get(..len).ok_or(EINVAL)?)
        }
    }
}

/// Writes the number of services that were found, and as many records as the caller's buffer takes.
/// If it does not take one, nothing is written.
fn services(call: &Call<'_>, context: &Context, request: &abi::Query) -> Result {
    let services = context.endpoint().services();
    let services = services.ok_or(Errno::ENODATA.to_kernel())?;
    let head = QueryIbServiceResp {
        num_service_recs: u32::try_from(services.len())?,
        reserved: 0,
    };
    let (first, each) = (size_of_val(&head), size_of::<UserServiceRec>());
    let available = call.response_len().saturating_sub(first);
    let whole = available.saturating_sub(available.checked_rem(each).unwrap_or(0));
    let records = services.as_bytes();
    let records = records.get(..whole).unwrap_or(records);
    if records.is_empty() {
        return Ok(());
    }
    call.respond(request.response, &head)?;
    let behind = request.response.wrapping_add(u64::try_from(first)?);
    uaccess::write_prefix(behind, records.len(), records)
}
