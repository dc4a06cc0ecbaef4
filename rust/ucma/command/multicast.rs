// SPDX-License-Identifier: GPL-2.0

//! Commands that join and leave multicast groups.

use super::{address::in6, call::Call};
use crate::{
    kext::error::ResultExt,
    ucma::{channel::Channel, context::Context, multicast::UnpublishedGroup},
};
use cmproto::{addr::SockAddr, mcast::Member, ucma::account::Resource, ucma_abi as abi};
use core::mem::size_of;
use kernel::prelude::*;

/// A request to join a group.
struct Join {
    id: u32,
    uid: u64,
    response: u64,
    addr: SockAddr,
    member: Member,
}

/// `JOIN_IP_MCAST`: makes a context a full member of the group of an IPv4 or IPv6 address.
///
/// # Errors
///
/// The errors of [`join`].
pub(super) fn join_ip(call: &Call<'_>, request: &abi::JoinIpMcast) -> Result {
    let addr = in6(&request.addr).kernel()?;
    check_response_len(call)?;
    Join {
        id: request.id,
        uid: request.uid,
        response: request.response,
        addr,
        member: Member::Full,
    }
    .run(call)
}

/// `JOIN_MCAST`: makes a context a member of the group of an address of any family.
///
/// # Errors
///
/// - `EINVAL` for an address of an unknown family or of another size, for unknown flags, or if the
///   context is not bound to a device, has begun to connect, or is not for datagrams;
/// - `ENOSPC` if the response would not fit;
/// - `EFAULT` if the response cannot be written; the group is left then;
/// - `EMFILE` if the user has too many memberships;
/// - `ENOMEM` if there is no memory, or if the channel has too many memberships;
/// - the errors of [`Endpoint::join_group`](crate::endpoint::Endpoint::join_group).
pub(super) fn join(call: &Call<'_>, request: &abi::JoinMcast) -> Result {
    let addr = SockAddr::from_bytes(&request.addr).map_err(|_| EINVAL)?;
    if addr.is_unspec() {
        return Err(EINVAL);
    }
    check_response_len(call)?;
    if usize::from(request.addr_size) != addr.len() {
        return Err(EINVAL);
    }
    Join {
        id: request.id,
        uid: request.uid,
        response: request.response,
        addr,
        member: Member::from_flags(request.join_flags).kernel()?,
    }
    .run(call)
}

/// Checks that the response fits into the caller's buffer. C does this after the check of the
/// address and before all others.
fn check_response_len(call: &Call<'_>) -> Result {
    if call.response_len() < size_of::<abi::IdResp>() {
        return Err(ENOSPC);
    }
    Ok(())
}

impl Join {
    fn run(&self, call: &Call<'_>) -> Result {
        let channel = call.channel();
        let context = channel.context(self.id)?;
        let endpoint = context.endpoint();
        if !endpoint.has_device() {
            return Err(EINVAL);
        }
        if !channel.has_room_for_group() {
            return Err(ENOMEM);
        }
        let charge = call.charge(&context, Resource::Memberships)?;
        let unpublished = UnpublishedGroup::new(&channel.ucma, &context, charge)?;
        let group = unpublished.multicast.group();
        let joined = endpoint.join_group(group, &self.addr, self.member)?;
        let announced = self.announce(call, &context, unpublished);
        match announced {
            // The event comes after the number is published, so that its reader can use the number.
            Ok(()) => endpoint.report_group(group, &joined),
            Err(_) => endpoint.leave_group(group),
        }
        announced
    }

    /// Writes the response and publishes the number.
    fn announce(
        &self,
        call: &Call<'_>,
        context: &Context,
        unpublished: UnpublishedGroup<'_>,
    ) -> Result {
        let id = unpublished.number.id();
        call.respond(self.response, &abi::IdResp { id })?;
        Channel::add_group(context, unpublished, self.uid)
    }
}

/// `LEAVE_MCAST`: ends a membership and returns the number of its events that were read.
///
/// # Errors
///
/// - `ENOENT` if no context of the file has such a membership;
/// - `ENXIO` if the device was removed;
/// - `EFAULT` if the response cannot be written; the group is left nevertheless.
pub(super) fn leave(call: &Call<'_>, request: &abi::DestroyId) -> Result {
    let channel = call.channel();
    let (multicast, number) = channel
        .ucma
        .groups
        .take_if(request.id, |multicast| multicast.context().check(channel))?
        .ok_or(ENOENT)?;
    multicast
        .context()
        .endpoint()
        .leave_group(multicast.group());
    let events_reported = Channel::remove_group(&multicast);
    // The number is free for another membership only now that nothing is left in the channel under
    // it.
    drop(number);
    call.respond(
        request.response,
        &abi::EventsReportedResp { events_reported },
    )
}
