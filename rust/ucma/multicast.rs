// SPDX-License-Identifier: GPL-2.0

//! Commands about multicast groups.
//!
//! A membership has a number of its own, in one table for all channels, and a uid of its own, which
//! its events carry.

use super::{
    address::in6,
    call::Call,
    channel::Channel,
    context::Context,
    event::{Need, Reserve},
    places::Joined,
    Ucma,
};
use crate::kext::{error::ResultExt, idtable::Reserved};
use cmproto::{addr::SockAddr, mcast::Member, ucma_abi as abi};
use core::mem::size_of;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// A membership in a group, as user space knows it by a number.
pub(super) struct Multicast {
    context: Arc<Context>,
    /// What the endpoint and the channel know it by.
    group: u64,
}

/// A membership whose number is reserved, but cannot be looked up yet.
pub(super) struct UnpublishedGroup<'a> {
    pub(super) multicast: Arc<Multicast>,
    pub(super) number: Reserved<'a, Multicast>,
    /// Memory for its place in the channel.
    pub(super) room: RBTreeNodeReservation<u64, Joined>,
    /// Memory for its event.
    pub(super) reserve: Reserve,
}

impl<'a> UnpublishedGroup<'a> {
    fn new(ucma: &'a Ucma, context: &Arc<Context>) -> Result<Self> {
        let multicast = Multicast {
            context: context.clone(),
            group: ucma.core.next_number(),
        };
        Ok(UnpublishedGroup {
            multicast: Arc::new(multicast, GFP_KERNEL_ACCOUNT)?,
            number: ucma.groups.reserve().map_err(|_| ENOMEM)?,
            room: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            reserve: Reserve::allocate(Need::EVENT, GFP_KERNEL_ACCOUNT)?,
        })
    }
}

impl Multicast {
    /// The context that is a member.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// What the endpoint and the channel know the membership by.
    pub(super) fn group(&self) -> u64 {
        self.group
    }

    /// Takes the memberships of a context that has gone out of sight.
    pub(super) fn forget(ucma: &Ucma, mut groups: RBTree<u64, Joined>) {
        while let Some(cursor) = groups.cursor_front_mut() {
            let (_, node) = cursor.remove_current();
            let (group, joined) = node.to_key_value();
            let taken = ucma.groups.take_if(joined.id, |multicast| {
                if multicast.group == group {
                    Ok(())
                } else {
                    Err(())
                }
            });
            drop(taken);
        }
    }
}

/// What a request to join says.
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
/// As [`join`].
pub(super) fn join_ip(call: &Call<'_>, request: &abi::JoinIpMcast) -> Result {
    let addr = in6(&request.addr).kernel()?;
    check_room(call)?;
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
/// - `EINVAL` for an address of no known family or of another size, for unknown flags, or if the
///   context is not bound to a device, connects, or is not for datagrams;
/// - `ENOSPC` if the answer would not fit;
/// - `EFAULT` if the answer cannot be written; the group is left again then;
/// - `ENOMEM`, also if the channel has too many groups;
/// - those of [`Endpoint::join_group`](crate::endpoint::Endpoint::join_group).
pub(super) fn join(call: &Call<'_>, request: &abi::JoinMcast) -> Result {
    let addr = SockAddr::from_bytes(&request.addr).map_err(|_| EINVAL)?;
    if addr.is_unspec() {
        return Err(EINVAL);
    }
    check_room(call)?;
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

/// Whether there is room for the answer; this comes after the address and before all else.
fn check_room(call: &Call<'_>) -> Result {
    if call.response_len() < size_of::<abi::IdResp>() {
        return Err(ENOSPC);
    }
    Ok(())
}

impl Join {
    fn run(&self, call: &Call<'_>) -> Result {
        let channel = call.channel();
        let context = Context::find(channel, self.id)?;
        let endpoint = context.endpoint();
        if !endpoint.has_device() {
            return Err(EINVAL);
        }
        if !channel.has_room_for_group() {
            return Err(ENOMEM);
        }
        let unpublished = UnpublishedGroup::new(&channel.ucma, &context)?;
        let group = unpublished.multicast.group;
        let joined = endpoint.join_group(group, &self.addr, self.member)?;
        let announced = self.announce(call, &context, unpublished);
        match announced {
            // Only now, so that whoever reads the event can use the number.
            Ok(()) => endpoint.tell_group(group, &joined),
            Err(_) => endpoint.leave_group(group),
        }
        announced
    }

    /// Answers, and publishes the number.
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

/// `LEAVE_MCAST`: ends a membership and says how many of its events were read.
///
/// # Errors
///
/// - `ENOENT` if there is no such membership;
/// - `EINVAL` if its context is of another channel, `ENXIO` if the device has gone;
/// - `EFAULT` if the answer cannot be written; the group is left nevertheless.
pub(super) fn leave(call: &Call<'_>, request: &abi::DestroyId) -> Result {
    let channel = call.channel();
    let (multicast, number) = channel
        .ucma
        .groups
        .take_if(request.id, |multicast| multicast.context.check(channel))?
        .ok_or(ENOENT)?;
    multicast.context.endpoint().leave_group(multicast.group);
    let events_reported = Channel::remove_group(&multicast);
    // Only now nothing is left in the channel under this number.
    drop(number);
    call.respond(
        request.response,
        &abi::EventsReportedResp { events_reported },
    )
}
