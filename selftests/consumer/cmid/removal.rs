// SPDX-License-Identifier: GPL-2.0

//! The device goes.

use super::{
    act,
    ground::Ground,
    pair::Pair,
    place::Place,
    side::{Held, Side},
};
use crate::{
    harness::{is, wrong},
    rdma::{errno::Errno, event::EventType, owner::Verdict, parameter},
};
use kernel::sync::Arc;

/// Whatever is on the way to a connection is refused.
fn refuses(side: &Side, id: &Held<'_>, place: Place) {
    let right = Errno(parameter::removal()).failure();
    let results = [
        act::resolve(side, id),
        act::resolve_route(side, id),
        act::connect_locked(side, id),
    ];
    for result in results.iter().filter(|result| **result != right) {
        wrong!("{place:?}: {result:?}, not {right:?}");
    }
}

fn refuses_inside(side: &Arc<Side>, id: &Held<'_>, _event: EventType) -> Verdict {
    refuses(side, id, Place::of_caller());
    Verdict::KEEP
}

/// Somebody takes the device away as soon as there is an identifier with a route.
pub(crate) fn removal(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_resolved(g)?;
    let Pair { a, .. } = &pair;
    a.on(EventType::DEVICE_REMOVAL, refuses_inside);
    if !pair.resolve_route() || !a.expect(EventType::DEVICE_REMOVAL) {
        return None;
    }
    a.see(|id| refuses(a, &id.lock_handler(), Place::of_caller()));
    is!(a.connect(), Errno(parameter::removal()).failure());
    Some(())
}
