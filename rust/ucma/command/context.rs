// SPDX-License-Identifier: GPL-2.0

//! Commands that create, destroy and move contexts.

use super::call::Call;
use crate::{
    endpoint::{Endpoint, EndpointRef, IdKind},
    kext::{delay, net::Net, users::IdCharge},
    ucma::{channel::Channel, context::Unpublished},
};
use cmproto::{qp::QpType, service_id::PortSpace, ucma::account::Resource, ucma_abi as abi};
use kernel::prelude::*;

/// `CREATE_ID`: creates a context and its endpoint.
///
/// # Errors
///
/// - `EINVAL` for an unknown port space;
/// - `EMFILE` if the user has too many ids;
/// - `ENOMEM` if there is no memory, or if the channel has too many contexts;
/// - `EFAULT` if the response cannot be written; the context is destroyed then.
pub(super) fn create(call: &Call<'_>, request: &abi::CreateId) -> Result {
    let ps = PortSpace::try_from(request.ps).map_err(|_| EINVAL)?;
    let qp_type = match ps {
        PortSpace::Tcp => QpType::RC,
        PortSpace::Udp | PortSpace::Ipoib => QpType::UD,
        // As in C, any type is accepted.
        PortSpace::Ib => QpType(request.qp_type),
    };
    let channel = call.channel();
    if !channel.has_room() {
        return Err(ENOMEM);
    }
    let (globals, net) = (&channel.ucma.globals, Net::current());
    let charge = IdCharge::new(channel.user.as_ref(), false)
        .inspect_err(|_| channel.tell_limit(&net, Resource::Ids))?;
    let endpoint = Endpoint::create(globals, net, ps, qp_type, IdKind::User, None, Some(charge))?;
    create_for(call, request, &endpoint).inspect_err(|_| endpoint.destroy())
}

/// Creates the context of a new endpoint and writes the response.
///
/// The number is published last: a context whose number could not be told is never seen.
fn create_for(call: &Call<'_>, request: &abi::CreateId, endpoint: &EndpointRef) -> Result {
    let channel = call.channel();
    let unpublished = Unpublished::new(&channel.ucma, call.channel_arc(), endpoint.clone())?;
    let id = unpublished.context.id();
    call.respond(request.response, &abi::IdResp { id })?;
    endpoint.set_consumer(unpublished.context.clone())?;
    delay::point();
    channel.add(unpublished, request.uid);
    Ok(())
}

/// `DESTROY_ID`: destroys a context and returns the number of its events that were read.
///
/// librdmacm waits until that many events are acknowledged.
///
/// # Errors
///
/// - `ENOENT` if the file has no such context or it is being destroyed;
/// - `EFAULT` if the response cannot be written; the context is destroyed nevertheless.
pub(super) fn destroy(call: &Call<'_>, request: &abi::DestroyId) -> Result {
    let channel = call.channel();
    let (context, number) = channel
        .ucma
        .contexts
        .take_if(request.id, |context| context.check_in(channel))?
        .ok_or(ENOENT)?;
    let events_reported = context.end(number);
    call.respond(
        request.response,
        &abi::EventsReportedResp { events_reported },
    )
}

/// `MIGRATE_ID`: moves a context of another open file to the channel that is written to, with its
/// unread events, and returns the number of its events that were read.
///
/// # Errors
///
/// - `ENOENT` if there is no such descriptor, if its file has no such context, or if the context is
///   being destroyed;
/// - `EINVAL` if the descriptor is not a file of this device;
/// - `ENXIO` if the context's device was removed;
/// - `ENOMEM` if the channel has too many contexts;
/// - `EFAULT` if the response cannot be written; the context has moved nevertheless.
pub(super) fn migrate(call: &Call<'_>, request: &abi::MigrateId) -> Result {
    let from = call.sibling(request.fd)?;
    let context = from.context(request.id)?;
    delay::point();
    let events_reported = Channel::migrate(&context, &from, &call.channel_arc())?;
    call.respond(
        request.response,
        &abi::EventsReportedResp { events_reported },
    )
}
