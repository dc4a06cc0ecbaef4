// SPDX-License-Identifier: GPL-2.0

//! Identifiers that end, each in every state: in a callback by what that returns, or from outside.

use super::{
    act,
    address::resolve_nobody,
    ground::{at, Ground},
    pair::Pair,
    side::{sleep_ms, Act, LockedId, Part, Side},
    states::Situation,
};
use crate::{
    harness::{check, is, is_good},
    rdma::{
        cm_id::{PortSpace, QpType},
        errno::Errno,
        event::EventType,
        owner::Verdict,
        refusal::RejectReason,
    },
};
use kernel::{
    sync::Arc,
    time::{delay::fsleep, Delta},
};

pub(super) const CONSUMER_DEFINED: i32 = RejectReason::CONSUMER_DEFINED.status();

fn refuses(side: &Side, event: EventType) {
    side.on(event, act::refuse);
}

fn accept_and_refuse(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    is!(act::accept(side, id), Ok(()));
    Verdict::END
}

/// Identifiers that `end` ends in their callbacks, and `accept_and_end` after it has accepted. They
/// are told nothing more; their peers are.
fn end_in_callbacks(g: &Arc<Ground>, end: Act, accept_and_end: Act) {
    if let Some(Pair { a, .. }) = &Pair::start(g) {
        a.on(EventType::ADDR_RESOLVED, end);
        is!(a.resolve(), Ok(()));
        a.expect(EventType::ADDR_RESOLVED);
        check!(a.is_gone());
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_route(g) {
        b.on(EventType::CONNECT_REQUEST, accept_and_end);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        check!(b.is_gone());
        if a.comes(EventType::CONNECT_RESPONSE) {
            a.expect(EventType::CONNECT_RESPONSE);
        }
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_request(g) {
        a.on(EventType::CONNECT_RESPONSE, end);
        is!(b.accept(), Ok(()));
        a.expect(EventType::CONNECT_RESPONSE);
        check!(a.is_gone());
        b.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_response(g) {
        b.on(EventType::ESTABLISHED, end);
        is!(a.confirm(), Ok(()));
        b.expect(EventType::ESTABLISHED);
        check!(b.is_gone());
        a.expect(EventType::DISCONNECTED);
        is!(a.disconnect(), Ok(()));
    }
}

/// A consumer that returns something else than 0 is told nothing more; the peer is.
pub(crate) fn returns(g: &Arc<Ground>) -> Option<()> {
    end_in_callbacks(g, act::refuse, accept_and_refuse);
    if let Some(a) = Part::create(g, PortSpace::TCP, QpType::RC) {
        refuses(&a, EventType::ADDR_ERROR);
        is!(resolve_nobody(&a, 100), Ok(()));
        a.expect_status(EventType::ADDR_ERROR, Errno::ETIMEDOUT.failed());
        check!(a.is_gone());
    }
    if let Some(Pair { a, .. }) = &Pair::until_resolved(g) {
        refuses(a, EventType::ROUTE_RESOLVED);
        is!(a.resolve_route(), Ok(()));
        a.expect(EventType::ROUTE_RESOLVED);
        check!(a.is_gone());
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_established(g) {
        refuses(b, EventType::DISCONNECTED);
        is!(a.disconnect(), Ok(()));
        b.expect(EventType::DISCONNECTED);
        check!(b.is_gone());
        refuses(a, EventType::TIMEWAIT_EXIT);
        a.expect(EventType::DISCONNECTED);
        a.expect(EventType::TIMEWAIT_EXIT);
        check!(a.is_gone());
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_request(g) {
        refuses(a, EventType::REJECTED);
        is!(b.reject(), Ok(()));
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
        check!(a.is_gone());
        b.is_in(Situation::Rejected);
    }
    Some(())
}

/// A consumer that destroys an identifier waits for a callback that runs, and no other comes after.
fn linger(_side: &Arc<Side>, _id: &LockedId<'_>, _event: EventType) -> Verdict {
    sleep_ms(50);
    Verdict::KEEP
}

/// Before there is anybody else.
fn destroyed_alone(g: &Arc<Ground>) {
    if let Some(Pair { a, .. }) = &Pair::start(g) {
        if is!(a.resolve(), Ok(())) {
            a.end();
        }
    }
    if let Some(a) = Part::create(g, PortSpace::TCP, QpType::RC) {
        is!(resolve_nobody(&a, 60000), Ok(()));
        a.end();
        is!(a.told(), 0);
    }
    if let Some(Pair { a, .. }) = &Pair::until_resolved(g) {
        if is!(a.resolve_route(), Ok(())) {
            a.end();
        }
    }
    if let Some(Pair { a, .. }) = &Pair::start(g) {
        a.on(EventType::ADDR_RESOLVED, linger);
        is!(a.resolve(), Ok(()));
        a.wait_inside(100);
        a.end();
        is!(a.inside(), 0);
        let told = a.told();
        sleep_ms(20);
        is!(a.told(), told);
    }
}

/// Each end of a connection, while it is made and after.
pub(crate) fn destruction(g: &Arc<Ground>) -> Option<()> {
    destroyed_alone(g);
    if let Some(Pair { a, b, .. }) = &Pair::until_request(g) {
        a.end();
        b.expect_status(EventType::REJECTED, RejectReason::TIMEOUT.status());
    }
    // The active end goes while the request is told.
    if let Some(Pair { a, b, .. }) = &Pair::until_route(g) {
        b.on(EventType::CONNECT_REQUEST, linger);
        is!(a.connect(), Ok(()));
        b.wait_inside(1000);
        a.end();
        b.expect(EventType::CONNECT_REQUEST);
        b.expect_status(EventType::REJECTED, RejectReason::TIMEOUT.status());
    }
    if let Some(Pair { a, b, l }) = &Pair::until_request(g) {
        // The listener may go before.
        l.end();
        b.end();
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_response(g) {
        a.end();
        b.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_response(g) {
        b.end();
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_established(g) {
        a.end();
        if b.expect(EventType::DISCONNECTED) {
            is!(b.disconnect(), Ok(()));
        }
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_established(g) {
        b.end();
        if a.expect(EventType::DISCONNECTED) {
            is!(a.disconnect(), Ok(()));
        }
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_established(g) {
        if is!(a.disconnect(), Ok(())) && b.expect(EventType::DISCONNECTED) {
            b.end();
            a.expect(EventType::DISCONNECTED);
        }
    }
    if let Some(Pair { a, .. }) = &Pair::until_disconnected(g) {
        a.end();
    }
    Some(())
}

fn destroy_itself(side: &Arc<Side>, _id: &LockedId<'_>, _event: EventType) -> Verdict {
    side.end();
    Verdict::KEEP
}

fn accept_and_destroy(side: &Arc<Side>, id: &LockedId<'_>, event: EventType) -> Verdict {
    is!(act::accept(side, id), Ok(()));
    destroy_itself(side, id, event)
}

/// An identifier that is destroyed in its own callback does not wait for that, and its consumer is
/// told nothing more; the peer is. With C this never ends.
pub(crate) fn in_own_callback(g: &Arc<Ground>) -> Option<()> {
    end_in_callbacks(g, destroy_itself, accept_and_destroy);
    if let Some(Pair { a, b, .. }) = &Pair::until_route(g) {
        b.on(EventType::CONNECT_REQUEST, destroy_itself);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        check!(b.is_gone());
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    Some(())
}

/// Two that wait for an answer which does not come.
pub(crate) struct Silence {
    rc: Part,
    ud: Part,
}

/// An address that leads to a link-layer address, which nobody has (consumer.sh).
fn ask_nobody(g: &Arc<Ground>, ps: PortSpace, qp_type: QpType) -> Option<Part> {
    let side = Part::create(g, ps, qp_type)?;
    side.set_active();
    let place = at(g.neighbour(98), 1);
    let is_asked = is!(side.call(|id| id.resolve_addr(None, place, 2000)), Ok(()))
        && side.expect(EventType::ADDR_RESOLVED)
        && is!(side.resolve_route(), Ok(()))
        && side.expect(EventType::ROUTE_RESOLVED)
        && is!(side.connect(), Ok(()));
    is_asked.then_some(side)
}

impl Silence {
    /// The end takes more than a minute until these are answered, so that the other tests run meanwhile.
    pub(crate) fn begin(g: &Arc<Ground>) -> Option<Self> {
        let rc = ask_nobody(g, PortSpace::TCP, QpType::RC)?;
        let ud = ask_nobody(g, PortSpace::UDP, QpType::UD)?;
        rc.is_in(Situation::ReqSent);
        rc.calls_in_callbacks();
        refuses(&ud, EventType::UNREACHABLE);
        Some(Self { rc, ud })
    }

    pub(crate) fn end(self) {
        let Self { rc, ud } = &self;
        let timeout = Errno::ETIMEDOUT.failed();
        ud.expect_status(EventType::UNREACHABLE, timeout);
        check!(ud.is_gone());
        if rc.expect_status(EventType::UNREACHABLE, timeout) {
            rc.is_in(Situation::Unreachable);
        }
    }
}

/// The peer may have gone: the results of the calls do not matter.
fn go_on(side: &Arc<Side>, id: &LockedId<'_>, event: EventType) -> Verdict {
    let _ = match event {
        EventType::ADDR_RESOLVED => {
            side.on(EventType::ROUTE_RESOLVED, go_on);
            act::resolve_route(side, id)
        }
        EventType::ROUTE_RESOLVED => {
            side.on(EventType::CONNECT_RESPONSE, go_on);
            act::connect_locked(side, id)
        }
        EventType::CONNECT_RESPONSE => act::accept_nothing(side, id),
        _ => {
            side.on(EventType::ESTABLISHED, go_on);
            act::accept(side, id)
        }
    };
    Verdict::KEEP
}

/// Connections that are made and destroyed at once, while messages are on their way.
pub(crate) fn haste(g: &Arc<Ground>) -> Option<()> {
    for i in 0..200i64 {
        if !is_good() {
            break;
        }
        let Pair { a, b, l } = &Pair::start(g)?;
        b.on(EventType::CONNECT_REQUEST, go_on);
        a.on(EventType::ADDR_RESOLVED, go_on);
        is!(a.resolve(), Ok(()));
        fsleep(Delta::from_micros(i.wrapping_mul(40)));
        l.end();
        a.end();
        // A consumer that has seen the request has it to the end.
        b.end();
    }
    Some(())
}
