// SPDX-License-Identifier: GPL-2.0

//! The device goes.

use super::{
    act,
    call_site::CallSite,
    datagram::in_group,
    ground::{at, Ground},
    pair::Pair,
    side::{sleep_ms, LockedId, Part, Side},
};
use crate::{
    harness::{is, wrong},
    rdma::{
        cm_id::{PortSpace, QpType},
        errno::Errno,
        event::EventType,
        owner::Verdict,
        parameter,
        rtnl::Rtnl,
    },
};
use core::net::Ipv4Addr;
use kernel::sync::Arc;

/// The longest time for which the lock of all network interfaces is held.
const LOCKED_MS: i64 = 60_000;
const LOOK_MS: i64 = 50;
/// The time for which the identifiers stay after the device's removal, in which the device waits
/// for them.
const STAY_MS: i64 = 2000;

/// Calls on the way to a connection are refused.
fn refuses(side: &Side, id: &LockedId<'_>, site: CallSite) {
    let right = Errno(parameter::removal()).failure();
    let results = [
        act::resolve(side, id),
        act::resolve_route(side, id),
        act::connect_locked(side, id),
    ];
    for result in results.iter().filter(|result| **result != right) {
        wrong!("{site:?}: {result:?}, not {right:?}");
    }
}

fn refuses_inside(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    refuses(side, id, CallSite::of_caller());
    Verdict::KEEP
}

/// The port of the server that stays.
const SERVER_PORT: u16 = 7174;

/// An identifier that is connected with a server at another device.
fn connected(g: &Arc<Ground>, server: Ipv4Addr) -> Option<Part> {
    let side = Part::create(g, PortSpace::TCP, QpType::RC)?;
    side.set_active();
    let place = at(server, SERVER_PORT);
    let is_connected = is!(side.call(|id| id.resolve_addr(None, place, 2000)), Ok(()))
        && side.expect(EventType::ADDR_RESOLVED)
        && is!(side.resolve_route(), Ok(()))
        && side.expect(EventType::ROUTE_RESOLVED)
        && is!(side.connect(), Ok(()))
        && side.expect(EventType::CONNECT_RESPONSE)
        && is!(side.confirm(), Ok(()));
    is_connected.then_some(side)
}

/// Somebody takes the device away as soon as there is an identifier that is on its way to a
/// connection. One that is connected tells its peer when it ends, for which the device waits.
pub(crate) fn removal(g: &Arc<Ground>) -> Option<()> {
    let _connected = match parameter::peer() {
        Some(server) => Some(connected(g, server)?),
        None => None,
    };
    let pair = Pair::until_resolved(g)?;
    let Pair { a, .. } = &pair;
    a.on(EventType::DEVICE_REMOVAL, refuses_inside);
    if !pair.resolve_route() || !a.expect(EventType::DEVICE_REMOVAL) {
        return None;
    }
    a.see(|id| refuses(a, &id.lock_handler(), CallSite::of_caller()));
    is!(a.connect(), Errno(parameter::removal()).failure());
    sleep_ms(STAY_MS);
    Some(())
}

/// Somebody takes the device of a member of a group away while others hold the lock of all network interfaces:
/// none waits for it.
pub(crate) fn of_a_group(g: &Arc<Ground>) -> Option<()> {
    let a = in_group(g)?;
    a.on(EventType::DEVICE_REMOVAL, act::refuse);
    let lock = Rtnl::lock();
    let mut left = LOCKED_MS;
    while lock.is_wanted() && left > 0 {
        sleep_ms(LOOK_MS);
        left = left.saturating_sub(LOOK_MS);
    }
    is!(lock.is_wanted(), false);
    drop(lock);
    a.expect(EventType::DEVICE_REMOVAL).then_some(())
}
