// SPDX-License-Identifier: GPL-2.0

//! Identifiers, their addresses and the way to others.

use super::{
    ground::{at, Ground, NOWHERE},
    pair::Pair,
    side::{Part, Side},
    states::{calls_inside, Situation},
};
use crate::{
    harness::{check, is},
    rdma::{
        address::Address,
        cm_id::{PortSpace, QpType},
        errno::Errno,
        event::{Event, EventType},
        gid::Gid,
        path::{Path, MTU_1024},
        qp_attr::QpState,
        refusal::RejectReason,
    },
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use kernel::{prelude::*, sync::Arc};

const TCP: PortSpace = PortSpace::TCP;
const UDP: PortSpace = PortSpace::UDP;
const RC: QpType = QpType::RC;
const UD: QpType = QpType::UD;

/// All addresses.
const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

pub(crate) fn unused(g: &Arc<Ground>) -> Option<()> {
    let a = Part::create(g, TCP, RC)?;
    check!(a.holds(|id| !id.has_device()));
    check!(a.holds(|id| !id.has_qp()));
    check!(a.holds(|id| Arc::ptr_eq(id.handler(), &a)));
    is!(a.see(|id| id.port_space()), Some(TCP));
    is!(a.see(|id| id.qp_type()), Some(RC));
    a.is_in(Situation::New);
    a.end();
    is!(a.told(), 0);
    // The user part belongs to the calling program, which is insmod.
    let user = Part::create_user(g, UDP, UD)?;
    check!(user.holds(|id| Arc::ptr_eq(id.handler(), &user)));
    is!(user.see(|id| id.port_space()), Some(UDP));
    Some(())
}

pub(crate) fn texts(g: &Arc<Ground>) -> Option<()> {
    is!(EventType::ADDR_RESOLVED.message(), c"address resolved");
    is!(EventType::DEVICE_REMOVAL.message(), c"device removal");
    is!(EventType::TIMEWAIT_EXIT.message(), c"timewait exit");
    is!(EventType(1000).message(), c"unrecognized event");
    let a = Part::create(g, TCP, RC)?;
    if !is!(a.bind(), Ok(())) {
        return None;
    }
    let message = |status| a.see(|id| id.reject_message(status)).flatten();
    is!(
        message(RejectReason::STALE_CONN.status()),
        Some(c"stale conn")
    );
    is!(message(1000), Some(c"unrecognized reason"));
    let defined = RejectReason::CONSUMER_DEFINED.status();
    let event = Event::new(EventType::REJECTED, defined, b"why\0");
    let (data, len) = a.see(|id| id.consumer_reject_data(&event)).flatten()?;
    check!(data.is_some_and(|data| data.as_ptr() == event.private_data().as_ptr()));
    is!(len, 4);
    let stale = RejectReason::STALE_CONN.status();
    let event = Event::new(EventType::REJECTED, stale, b"why\0");
    let (data, len) = a.see(|id| id.consumer_reject_data(&event)).flatten()?;
    check!(data.is_none());
    is!(len, 0);
    Some(())
}

fn at6(ip: Ipv6Addr, port: u16) -> Address {
    SocketAddr::from(SocketAddrV6::new(ip, port, 0, 0)).into()
}

/// An address of a link, without that.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);

fn port_of(side: &Side) -> u16 {
    let source = side.see(|id| id.source()).flatten();
    source.map_or(0, |source| source.port())
}

fn bind_to(side: &Side, ip: Ipv4Addr, port: u16) -> Result {
    side.call(|id| id.bind_addr(at(ip, port)))
}

fn bind_to6(side: &Side, ip: Ipv6Addr, port: u16) -> Result {
    side.call(|id| id.bind_addr(at6(ip, port)))
}

fn set_reuseaddr(side: &Side, reuse: bool) -> Result {
    side.call(|id| id.set_reuseaddr(reuse))
}

fn set_afonly(side: &Side, afonly: bool) -> Result {
    side.call(|id| id.set_afonly(afonly))
}

pub(crate) fn addresses(g: &Arc<Ground>) -> Option<()> {
    let a = Part::create(g, TCP, RC)?;
    is!(bind_to(&a, NOWHERE, 0), Errno::EADDRNOTAVAIL.failure());
    is!(bind_to6(&a, LINK_LOCAL, 0), Err(EINVAL));
    a.is_in(Situation::New);
    is!(a.bind(), Ok(()));
    a.is_in(Situation::Bound);
    check!(a.holds(|id| id.is_on(&g.device)));
    let taken = port_of(&a);
    check!(taken != 0);

    // A port is for one, unless all share it; and so are all ports of an address.
    let other = Part::create(g, TCP, RC)?;
    is!(bind_to(&other, g.ip, taken), Errno::EADDRINUSE.failure());
    is!(bind_to(&other, ANY, taken), Errno::EADDRNOTAVAIL.failure());
    other.is_in(Situation::New);
    is!(set_reuseaddr(&other, false), Ok(()));
    is!(bind_to(&other, g.ip, taken), Errno::EADDRINUSE.failure());
    is!(bind_to(&other, g.ip, taken.wrapping_add(1)), Ok(()));
    check!(other.holds(|id| id.is_on(&g.device)));
    other.end();
    a.end();

    let a = Part::create(g, TCP, RC)?;
    let other = Part::create(g, TCP, RC)?;
    is!(set_reuseaddr(&a, true), Ok(()));
    is!(set_reuseaddr(&other, true), Ok(()));
    is!(bind_to(&a, g.ip, taken), Ok(()));
    is!(bind_to(&other, g.ip, taken), Ok(()));
    is!(a.listen(), Errno::EADDRINUSE.failure());
    other.end();
    is!(a.listen(), Ok(()));
    a.is_in(Situation::Listening);
    a.end();

    // Families, each with a wildcard of its own if it says so.
    let a = Part::create(g, TCP, RC)?;
    let other = Part::create(g, TCP, RC)?;
    is!(bind_to(&a, ANY, taken), Ok(()));
    check!(a.holds(|id| !id.has_device()));
    a.is_in(Situation::Bound);
    is!(set_afonly(&other, false), Ok(()));
    let all = Ipv6Addr::UNSPECIFIED;
    is!(bind_to6(&other, all, taken), Errno::EADDRNOTAVAIL.failure());
    is!(set_afonly(&other, true), Ok(()));
    is!(bind_to6(&other, all, taken), Ok(()));
    Some(())
}

pub(crate) fn options(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_resolved(g)?;
    let Pair { a, b, .. } = &pair;
    a.see(|id| id.set_service_type(0x20));
    is!(a.call(|id| id.set_ack_timeout(15)), Ok(()));
    is!(a.call(|id| id.set_min_rnr_timer(21)), Ok(()));
    is!(a.call(|id| id.set_min_rnr_timer(32)), Err(EINVAL));
    if !pair.resolve_route() {
        return None;
    }
    let path = a.see(|id| id.path()).flatten().unwrap_or_default();
    // The subnet administrator has it as the class of service, and says 0.
    let traffic_class = if g.link.is_ib() { 0 } else { 0x20 };
    is!(path.traffic_class, traffic_class);
    is!(path.packet_life_time, 14);
    let answered =
        pair.request() && is!(b.accept(), Ok(())) && a.expect(EventType::CONNECT_RESPONSE);
    if !answered {
        return None;
    }
    let init = |state| a.see(|id| id.init_qp_attr(state)).unwrap_or(Err(ENOENT));
    let attr = init(QpState::RTR);
    is!(attr.map(|_| ()), Ok(()));
    let attr = attr.unwrap_or_default();
    is!(attr.min_rnr_timer, 21);
    let global = attr.address.and_then(|address| address.global);
    let traffic_class = (!g.link.is_ib()).then_some(traffic_class);
    is!(global.map(|global| global.traffic_class), traffic_class);
    let attr = init(QpState::RTS);
    is!(attr.map(|_| ()), Ok(()));
    is!(attr.unwrap_or_default().timeout, 15);
    drop(pair);

    // Datagrams have no such timers.
    let a = Part::create(g, UDP, UD)?;
    is!(a.call(|id| id.set_ack_timeout(15)), Err(EINVAL));
    Some(())
}

fn resolve_from(
    side: &Side,
    source: Option<Ipv4Addr>,
    to: (Ipv4Addr, u16),
    timeout_ms: usize,
) -> Result {
    let (ip, port) = to;
    side.call(|id| id.resolve_addr(source.map(|source| at(source, 0)), at(ip, port), timeout_ms))
}

/// An address in the network of the device that nobody has.
pub(crate) fn resolve_nobody(side: &Side, timeout_ms: usize) -> Result {
    resolve_from(side, None, (side.ground.neighbour(99), 1), timeout_ms)
}

fn without_an_address(g: &Arc<Ground>) -> Option<()> {
    // Nothing answers at this address, or no route leads there.
    let a = Part::create(g, TCP, RC)?;
    a.calls_in_callbacks();
    is!(
        resolve_from(&a, None, (NOWHERE, 1), 100),
        Errno::ENETUNREACH.failure()
    );
    a.is_in(Situation::Bound);
    is!(resolve_nobody(&a, 200), Ok(()));
    a.is_in(Situation::Query);
    a.expect_status(EventType::ADDR_ERROR, Errno::ETIMEDOUT.failed());
    a.is_in(Situation::Bound);
    // It may try again.
    is!(a.resolve(), Ok(()));
    if a.expect(EventType::ADDR_RESOLVED) {
        a.is_in(Situation::Resolved);
    }
    a.end();

    // A source of one's own, which is not another's.
    let a = Part::create(g, TCP, RC)?;
    let to = (g.ip, g.port());
    is!(
        resolve_from(&a, Some(NOWHERE), to, 1000),
        Errno::EADDRNOTAVAIL.failure()
    );
    a.is_in(Situation::New);
    is!(resolve_from(&a, Some(g.ip), to, 1000), Ok(()));
    a.expect(EventType::ADDR_RESOLVED);
    Some(())
}

fn all_of_the_way(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_resolved(g)?;
    let a = &pair.a;
    a.calls_in_callbacks();
    check!(a.holds(|id| id.is_on(&g.device)));
    let gid = g.gid;
    let (mut own, mut far) = (Gid::default(), Gid::default());
    a.see(|id| id.read_gids(Some(&mut own), Some(&mut far)));
    check!(own == gid);
    check!(far == gid);
    let gids = g.link.is_ib().then_some((gid, gid));
    is!(a.see(|id| id.ipoib_gids()), Some(gids));
    is!(a.see(|id| id.num_paths()), Some(0));
    a.is_in(Situation::Resolved);
    // While nobody can be told, the answer is on its way.
    a.see(|id| {
        let held = id.lock_handler();
        is!(id.resolve_route(2000), Ok(()));
        calls_inside(a, &held, Situation::RouteQuery);
        a.is_quiet();
    });
    if a.expect(EventType::ROUTE_RESOLVED) {
        a.is_in(Situation::RouteResolved);
    }
    is!(a.see(|id| id.num_paths()), Some(1));
    let path = a.see(|id| id.path()).flatten();
    if check!(path.is_some()) {
        let path = path.unwrap_or_default();
        is!(path.pkey, 0xffff);
        check!(path.dgid == gid);
        if g.link.is_ib() {
            is!(path.link, g.link);
        }
    }
    Some(())
}

fn known_path(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_resolved(g)?;
    let Pair { a, b, .. } = &pair;
    let gid = g.gid;
    let path = Path {
        sgid: gid,
        dgid: gid,
        link: g.link,
        pkey: 0xffff,
        mtu: MTU_1024 as u8,
        packet_life_time: 16,
        hop_limit: if g.link.is_ib() { 0 } else { 64 },
        ..Path::default()
    };
    is!(a.call(|id| id.set_ib_path(&path)), Ok(()));
    a.is_in(Situation::RouteResolved);
    is!(a.see(|id| id.num_paths()), Some(1));
    let path = a.see(|id| id.path()).flatten();
    if check!(path.is_some()) {
        let path = path.unwrap_or_default();
        is!(u32::from(path.mtu), MTU_1024);
        check!(path.sgid == gid);
    }
    is!(a.connect(), Ok(()));
    b.expect(EventType::CONNECT_REQUEST);
    Some(())
}

pub(crate) fn resolution(g: &Arc<Ground>) -> Option<()> {
    without_an_address(g)?;
    all_of_the_way(g)?;
    // A path that the consumer knows needs no question.
    known_path(g)
}

/// A service that the subnet administrator knows, and one that it does not.
const SERVICE: u64 = 0x1000_0000_cafe;
const NO_SERVICE: u64 = 0x1000_0000_beef;

/// Over InfiniBand.
pub(crate) fn services(g: &Arc<Ground>) -> Option<()> {
    let a = Part::create(g, TCP, RC)?;
    is!(a.bind(), Ok(()));
    is!(a.call(|id| id.resolve_ib_service(NO_SERVICE)), Ok(()));
    a.expect_status(EventType::ADDRINFO_ERROR, Errno::ENODATA.failed());
    is!(a.see(|id| id.first_service()), Some(None));
    is!(a.call(|id| id.resolve_ib_service(SERVICE)), Ok(()));
    is!(a.call(|id| id.resolve_ib_service(SERVICE)), Err(EINVAL));
    if a.expect(EventType::ADDRINFO_RESOLVED) {
        is!(
            a.see(|id| id.first_service()),
            Some(Some((SERVICE, g.gid, 1)))
        );
        // From there the route can be resolved.
        is!(a.call(|id| id.resolve_route(2000)), Ok(()));
        a.expect(EventType::ROUTE_RESOLVED);
        let path = a.see(|id| id.path()).flatten();
        is!(
            path.map(|path| (path.dgid, path.link)),
            Some((g.gid, g.link))
        );
    }
    Some(())
}

/// One at the address, one at all of them, and nobody's child.
fn two_listeners(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::start(g)?;
    let Pair { a, b, l } = &pair;
    let port = g.port();
    let next = port.wrapping_add(1);
    let other = Part::create(g, TCP, RC)?;
    l.is_in(Situation::Listening);
    is!(bind_to(&other, ANY, port), Errno::EADDRNOTAVAIL.failure());
    is!(bind_to(&other, g.ip, port), Errno::EADDRINUSE.failure());
    is!(bind_to(&other, ANY, next), Ok(()));
    is!(other.listen(), Ok(()));
    is!(other.listen(), Err(EINVAL));
    check!(other.holds(|id| !id.has_device()));
    other.serve(b);
    let asked = is!(resolve_from(a, None, (g.ip, next), 1000), Ok(()))
        && a.expect(EventType::ADDR_RESOLVED)
        && pair.resolve_route()
        && pair.request();
    if asked {
        check!(b.holds(|id| id.is_on(&g.device)));
        check!(b.holds(|id| id.port_space() == TCP));
        let source = b.see(|id| id.source()).flatten();
        is!(source.map(|source| source.ip()), Some(IpAddr::V4(g.ip)));
        // Without its listener it goes on.
        other.end();
        is!(b.accept(), Ok(()));
        a.expect(EventType::CONNECT_RESPONSE);
    }
    g.next_port();
    Some(())
}

pub(crate) fn listeners(g: &Arc<Ground>) -> Option<()> {
    two_listeners(g)?;

    // To none.
    if let Some(Pair { a, l, .. }) = &Pair::until_route(g) {
        l.end();
        is!(a.connect(), Ok(()));
        a.expect_status(
            EventType::REJECTED,
            RejectReason::INVALID_SERVICE_ID.status(),
        );
        a.is_in(Situation::Rejected);
    }

    // A listener that is bound to nothing has a port.
    let l = Part::create(g, TCP, RC)?;
    is!(l.listen(), Ok(()));
    check!(port_of(&l) != 0);
    check!(l.holds(|id| !id.has_device()));
    Some(())
}
