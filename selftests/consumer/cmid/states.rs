// SPDX-License-Identifier: GPL-2.0

//! Every function, wherever an identifier is.

use super::{
    act,
    call_site::CallSite,
    ground::at,
    side::{Id, LockedId, Side},
};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        address::Address,
        cm_id::{DeviceEvent, NodeType},
        errno::Errno,
        gid::Gid,
        path::Path,
    },
};
use core::net::Ipv4Addr;
use kernel::{prelude::*, sync::Arc};

/// The progress of an identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Situation {
    New,
    Bound,
    Query,
    Resolved,
    RouteQuery,
    RouteResolved,
    Listening,
    ReqSent,
    ReqRcvd,
    Response,
    Accepted,
    Established,
    Disconnecting,
    Disconnected,
    Rejected,
    Unreachable,
    Any,
}

use Situation::*;

/// Situations.
#[derive(Clone, Copy)]
struct Set(u32);

impl Set {
    const NONE: Self = Self(0);
    const ALL: Self = Self(!0);

    const fn one(situation: Situation) -> Self {
        Self(1u32.wrapping_shl(situation as u32))
    }

    const fn and(self, situation: Situation) -> Self {
        Self(self.0 | Self::one(situation).0)
    }

    const fn but(situation: Situation) -> Self {
        Self(!Self::one(situation).0)
    }

    const fn has(self, situation: Situation) -> bool {
        self.0 & Self::one(situation).0 != 0
    }
}

/// The situations in which there is a connection, or a request for one.
const CONNECTING: Set = Set::one(ReqSent)
    .and(ReqRcvd)
    .and(Response)
    .and(Accepted)
    .and(Established)
    .and(Rejected)
    .and(Unreachable);

/// A group.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

fn resolve_service(side: &Side, id: &Id) -> Result {
    if side.ground.link.is_ib() && id.has_device() {
        // Tested elsewhere: it may find one.
        return Err(EINVAL);
    }
    let result = id.resolve_ib_service(0);
    // There are none over RoCE.
    if result == Errno::EOPNOTSUPP.failure() && id.has_device() {
        return Err(EINVAL);
    }
    result
}

fn set_path(side: &Side, id: &Id) -> Result {
    id.set_ib_path(&Path {
        link: side.ground.link,
        ..Path::default()
    })
}

fn create_qp_without_device(side: &Side, id: &Id) -> Result {
    if id.has_device() {
        return Err(EINVAL);
    }
    act::create_qp(side, id)
}

fn notify_migration_error(_side: &Side, id: &Id) -> Result {
    id.notify(DeviceEvent::PATH_MIG_ERR)
}

fn notify_data(_side: &Side, id: &Id) -> Result {
    id.notify(DeviceEvent::COMM_EST)
}

fn join(_side: &Side, id: &Id) -> Result {
    if id.has_qp() {
        return Err(EINVAL);
    }
    id.join_multicast(at(GROUP, 0), 1, 0)
}

fn reuse(_side: &Side, id: &Id) -> Result {
    id.set_reuseaddr(true)
}

fn no_reuse(_side: &Side, id: &Id) -> Result {
    id.set_reuseaddr(false)
}

fn one_family(_side: &Side, id: &Id) -> Result {
    id.set_afonly(true)
}

fn ack_timeout(_side: &Side, id: &Id) -> Result {
    id.set_ack_timeout(17)
}

fn rnr_timer(_side: &Side, id: &Id) -> Result {
    id.set_min_rnr_timer(12)
}

fn long_rnr_timer(_side: &Side, id: &Id) -> Result {
    id.set_min_rnr_timer(32)
}

/// Confines the identifier to a kind of device. If it is too late for that, the answer is a number
/// that no other function gives.
fn restrict_to(id: &Id, kind: NodeType) -> Result {
    let result = id.restrict_node_type(kind);
    if result == Errno::EALREADY.failure() {
        return Err(EINVAL);
    }
    result
}

fn restrict_type(_side: &Side, id: &Id) -> Result {
    restrict_to(id, NodeType::IB_CA)
}

fn restrict_no_type(_side: &Side, id: &Id) -> Result {
    restrict_to(id, NodeType::UNSPECIFIED)
}

/// 0 is no kind of device, and not all of them either.
fn restrict_0(_side: &Side, id: &Id) -> Result {
    id.restrict_node_type(NodeType(0))
}

fn restrict_switch(_side: &Side, id: &Id) -> Result {
    id.restrict_node_type(NodeType::IB_SWITCH)
}

/// A function, and what is to be known of the lock of the handler, which a callback has.
enum Call {
    Free(fn(&Side, &Id) -> Result),
    /// The function takes the lock.
    Takes(fn(&Side, &Id) -> Result),
    /// The function needs the lock.
    Needs(fn(&Side, &LockedId<'_>) -> Result),
}

use Call::*;

/// A function and its effect: nothing but to fail with `EINVAL`, unless it succeeds and changes
/// nothing; left out where it would do what it is for.
struct Act {
    name: &'static str,
    call: Call,
    succeeds: Set,
    is_for: Set,
    /// True if it ends the work of a queue pair.
    ends: bool,
}

const fn act(name: &'static str, call: Call) -> Act {
    Act {
        name,
        call,
        succeeds: Set::NONE,
        is_for: Set::NONE,
        ends: false,
    }
}

impl Act {
    const fn succeeds(self, succeeds: Set) -> Self {
        Self { succeeds, ..self }
    }

    const fn meant_for(self, is_for: Set) -> Self {
        Self { is_for, ..self }
    }
}

const ACTS: &[Act] = &[
    act("bind", Free(act::bind)).meant_for(Set::one(New)),
    act("resolve", Free(act::resolve)).meant_for(Set::one(New).and(Bound)),
    act("resolve_route", Free(act::resolve_route)).meant_for(Set::one(Resolved)),
    act("resolve_service", Free(resolve_service)),
    act("set_path", Free(set_path)).meant_for(Set::one(Resolved)),
    act("create_qp", Free(create_qp_without_device)),
    act("connect", Takes(act::connect)).meant_for(Set::one(RouteResolved)),
    act("connect_ece", Takes(act::connect_ece)).meant_for(Set::one(RouteResolved)),
    // The route of RoCE may be known before anybody is told.
    act("connect_locked", Needs(act::connect_locked))
        .meant_for(Set::one(RouteQuery).and(RouteResolved)),
    act("listen", Free(act::listen)).meant_for(Set::one(New).and(Bound)),
    act("accept", Needs(act::accept)).meant_for(CONNECTING),
    act("accept_ece", Needs(act::accept_ece)).meant_for(CONNECTING),
    act("accept_nothing", Needs(act::accept_nothing)).meant_for(CONNECTING),
    act("notify_data", Free(notify_data)).meant_for(CONNECTING),
    act("notify_migration_error", Free(notify_migration_error)),
    act("reject", Free(act::reject))
        .meant_for(Set::one(ReqSent).and(ReqRcvd).and(Response).and(Accepted)),
    Act {
        ends: true,
        ..act("disconnect", Free(act::disconnect))
            .succeeds(CONNECTING.and(Disconnected).and(Listening))
            .meant_for(Set::one(Established).and(Disconnecting))
    },
    act("join", Free(join)),
    act("reuse", Free(reuse)).succeeds(Set::but(Listening)),
    act("no_reuse", Free(no_reuse)).succeeds(Set::one(New)),
    act("one_family", Free(one_family)).succeeds(Set::one(New).and(Bound)),
    act("ack_timeout", Free(ack_timeout)).succeeds(Set::ALL),
    act("rnr_timer", Free(rnr_timer)).succeeds(Set::ALL),
    act("long_rnr_timer", Free(long_rnr_timer)),
    act("restrict", Free(restrict_type)).succeeds(Set::one(New)),
    act("restrict_no_type", Free(restrict_no_type)).succeeds(Set::one(New)),
    act("restrict_0", Free(restrict_0)),
    act("restrict_switch", Free(restrict_switch)),
];

/// Calls the functions that only read, and so can be called everywhere.
fn look(side: &Side, id: &Id) {
    let ground = &side.ground;
    let service = u64::from(id.port_space().0)
        .wrapping_shl(16)
        .wrapping_add(4420);
    check!(id.service_id(at(Ipv4Addr::UNSPECIFIED, 4420)) == service);
    let mut own = Gid([0xff; 16]);
    let mut far = Gid([0xff; 16]);
    id.read_gids(Some(&mut own), Some(&mut far));
    id.read_gids(None, None);
    if id.has_device() {
        check!(id.is_on(&ground.device));
        check!(own == ground.gid);
        check!(!id.has_iw_cm_id());
        is!(id.reject_message(28), Some(c"consumer defined"));
        is!(id.port_num(), 1);
    } else {
        is!(own, Gid::default());
        is!(far, Gid::default());
    }
    id.set_service_type(0);
    id.leave_multicast(at(GROUP, 0));
}

/// A side is in a situation, which nothing changes that is for another. The caller is inside if it
/// has the lock of the handler, or is in a callback.
fn calls_at(
    side: &Side,
    id: &Id,
    inside: Option<&LockedId<'_>>,
    situation: Situation,
    site: CallSite,
) {
    look(side, id);
    if situation == Any {
        return;
    }
    for act in ACTS {
        let takes = matches!(act.call, Takes(_));
        if act.is_for.has(situation) || inside.is_some() && takes || act.ends && id.has_qp() {
            continue;
        }
        let right = if act.succeeds.has(situation) {
            Ok(())
        } else {
            Err(EINVAL)
        };
        let result = match (&act.call, inside) {
            (Free(call) | Takes(call), _) => call(side, id),
            (Needs(call), Some(held)) => call(side, held),
            (Needs(call), None) => call(side, &id.lock_handler()),
        };
        if result != right {
            let side = if inside.is_some() {
                "inside"
            } else {
                "outside"
            };
            let (name, number) = (act.name, situation as u32);
            wrong!("{site:?}: {name} in situation {number} {side} is {result:?}, not {right:?}");
        }
    }
    is!(
        id.bind_addr(Address::UNSPECIFIED),
        Errno::EAFNOSUPPORT.failure()
    );
}

/// Calls all functions, by somebody who has the lock of the handler.
#[track_caller]
pub(crate) fn calls_inside(side: &Arc<Side>, id: &LockedId<'_>, situation: Situation) {
    calls_at(side, id, Some(id), situation, CallSite::of_caller());
}

impl Side {
    /// Calls all functions, from outside.
    #[track_caller]
    pub(crate) fn is_in(&self, situation: Situation) {
        let site = CallSite::of_caller();
        if self
            .see(|id| calls_at(self, id, None, situation, site))
            .is_none()
        {
            wrong!("{site:?}: no identifier");
        }
    }
}
