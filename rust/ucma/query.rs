// SPDX-License-Identifier: GPL-2.0

//! Commands that tell what is known of an endpoint.
//!
//! Each answer is taken from one snapshot, so that its parts belong together.

use super::{
    call::{Call, Request},
    context::Context,
};
use crate::{
    cma::view::Asked,
    kext::error::{ResultExt, ToKernel},
};
use cmproto::{
    errno::Errno,
    ucma_abi::{self as abi, QueryAddrResp, QueryOption, QueryPathResp},
};
use core::mem::size_of;
use kernel::prelude::*;

impl Request for abi::Query {
    fn id(&self) -> u32 {
        self.id
    }
}

/// `QUERY_ROUTE`: addresses, device and path in one, for IP addresses.
pub(super) fn route(call: &Call<'_>, context: &Context, request: &abi::Query) -> Result {
    let asked = Asked {
        gids: true,
        path: true,
    };
    call.respond(
        request.response,
        &context.endpoint().snapshot(asked).route(),
    )
}

/// `QUERY`: addresses, path or GIDs, as the option says.
///
/// # Errors
///
/// - `ENOSYS` for an unknown option;
/// - `ENOSPC` if the answer would not fit; unlike with other commands, the context comes first;
/// - `ENODATA` for service records: there are none.
pub(super) fn query(call: &Call<'_>, context: &Context, request: &abi::Query) -> Result {
    let option = QueryOption::try_from(request.option).kernel()?;
    let least = match option {
        QueryOption::Addr | QueryOption::Gid => QueryAddrResp::MIN_LEN,
        QueryOption::Path | QueryOption::IbService => size_of::<QueryPathResp>(),
    };
    if call.response_len() < least {
        return Err(ENOSPC);
    }
    let snapshot = context.endpoint().snapshot(Asked {
        gids: option == QueryOption::Gid,
        path: option == QueryOption::Path,
    });
    match option {
        QueryOption::Addr => call.respond(request.response, &snapshot.addresses()),
        QueryOption::Gid => call.respond(request.response, &snapshot.gids()),
        QueryOption::IbService => Err(Errno::ENODATA.to_kernel()),
        QueryOption::Path => {
            let (answer, len) = snapshot.paths(call.response_len());
            call.respond(request.response, answer.get(..len).ok_or(EINVAL)?)
        }
    }
}
