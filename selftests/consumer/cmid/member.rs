// SPDX-License-Identifier: GPL-2.0

//! Listeners that share their address, because the port says so (`cm_reuseport`), of which one
//! goes.

use super::{
    ground::{at, Ground},
    lock::Holder,
    pair::Pair,
    side::{sleep_ms, Part},
};
use crate::{
    harness::{check, is},
    rdma::{
        cm_id::{PortSpace, QpType},
        event::EventType,
    },
};
use kernel::sync::Arc;

/// Another listener at the address of the last one, and the side that its request is for.
fn another(g: &Arc<Ground>, ps: PortSpace, qp_type: QpType) -> Option<(Part, Part)> {
    let b = Part::new(g)?;
    let l = Part::create(g, ps, qp_type)?;
    l.serve(&b);
    let place = at(g.ip, g.port());
    let listens = is!(l.call(|id| id.bind_addr(place)), Ok(())) && is!(l.listen(), Ok(()));
    listens.then_some((l, b))
}

/// A side that asks at the address of the last listener.
fn asker(g: &Arc<Ground>, ps: PortSpace, qp_type: QpType) -> Option<Part> {
    let a = Part::create(g, ps, qp_type)?;
    a.set_active();
    let is_routed = is!(a.resolve(), Ok(()))
        && a.expect(EventType::ADDR_RESOLVED)
        && is!(a.resolve_route(), Ok(()))
        && a.expect(EventType::ROUTE_RESOLVED);
    is_routed.then_some(a)
}

/// Two requests wait for a listener. In the callback of the first it goes, and the second one goes
/// to the other listener. Its sender, who does not repeat it, is answered.
fn moved(g: &Arc<Ground>, ps: PortSpace, qp_type: QpType) -> Option<(Part, Part)> {
    let first = Pair::new(g, ps, qp_type)?;
    check!(first.resolve() && first.resolve_route());
    let a = asker(g, ps, qp_type)?;
    let holder = Holder::new(&first.l)?;
    for side in [&first.a, &a] {
        is!(side.connect(), Ok(()));
        // They are told in the order in which they came.
        sleep_ms(20);
    }
    let (l, b) = another(g, ps, qp_type)?;
    first.b.ends_on(EventType::CONNECT_REQUEST, &first.l);
    drop(holder);
    first.b.expect(EventType::CONNECT_REQUEST);
    check!(first.l.is_gone());
    check!(b.expect(EventType::CONNECT_REQUEST) && b.has_heard(b"said\0"));
    is!((first.l.told(), l.told()), (0, 0));
    // The one that was told of belongs to its consumer.
    is!(first.b.accept(), Ok(()));
    is!(b.accept(), Ok(()));
    let answer = if qp_type == QpType::UD {
        EventType::ESTABLISHED
    } else {
        EventType::CONNECT_RESPONSE
    };
    first.a.expect(answer);
    a.expect(answer);
    first.b.is_quiet();
    Some((a, b))
}

pub(crate) fn request(g: &Arc<Ground>) -> Option<()> {
    let (a, b) = &moved(g, PortSpace::TCP, QpType::RC)?;
    is!(a.confirm(), Ok(()));
    b.expect(EventType::ESTABLISHED);
    is!(a.disconnect(), Ok(()));
    b.expect(EventType::DISCONNECTED);
    Some(())
}

pub(crate) fn question(g: &Arc<Ground>) -> Option<()> {
    let (a, b) = &moved(g, PortSpace::UDP, QpType::UD)?;
    is!(a.last().ud.qp_num, b.qpn());
    Some(())
}
