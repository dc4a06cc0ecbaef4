// SPDX-License-Identifier: GPL-2.0

//! Connections over iWARP, whose requests ask and whose answers are the last word.

use super::{
    act,
    call_site::CallSite,
    exchange::{exchange, word_receive, word_send},
    ground::Ground,
    pair::Pair,
    queue_pair::{prepared, routed},
    side::{LockedId, Side},
};
use crate::{
    harness::{check, is, is_good, task::spawn},
    rdma::{
        cm_id::{DeviceEvent, PortSpace, QpType},
        errno::Errno,
        event::{ConnParam, EventType},
        owner::Verdict,
        qp_attr::QpState,
        stuck::StuckAccept,
    },
};
use core::net::{Ipv4Addr, SocketAddr};
use kernel::{
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
    time::{delay::fsleep, Delta},
};

/// More connections than there were locks for them once.
const OTHERS: u32 = 20;

const RESET: i32 = Errno::ECONNRESET.failed();

/// Ends the identifier unless this holds.
fn keep_if(holds: bool) -> Verdict {
    if holds {
        Verdict::KEEP
    } else {
        Verdict::END
    }
}

fn prepare_and_accept(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    if !is!(act::create_qp(side, id), Ok(())) {
        return Verdict::END;
    }
    act::qp_is(id, QpState::INIT, CallSite::of_caller());
    keep_if(is!(act::accept(side, id), Ok(())))
}

fn connect_inside(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    is!(act::connect_locked(side, id), Ok(()));
    Verdict::KEEP
}

fn reject_inside(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    is!(act::reject(side, id), Ok(()));
    Verdict::KEEP
}

fn disconnect_inside(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    act::disconnect(side, id).into()
}

/// More data than there can be.
fn accept_badly(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    if !is!(act::create_qp(side, id), Ok(())) {
        return Verdict::END;
    }
    let param = ConnParam {
        private_data: Some(&[0; 255]),
        initiator_depth: 255,
        ..side.param()
    };
    check!(id.accept(Some(&param)).is_err());
    Verdict::KEEP
}

/// Asked in the callback that says how the peer is reached.
fn asked(g: &Arc<Ground>) -> Option<Pair> {
    let pair = prepared(g)?;
    pair.a.on(EventType::ROUTE_RESOLVED, connect_inside);
    let is_asked = pair.resolve_route() && pair.b.expect(EventType::CONNECT_REQUEST);
    is_asked.then_some(pair)
}

/// Asked, and the peer has a queue pair.
fn asked_and_prepared(g: &Arc<Ground>) -> Option<Pair> {
    let pair = asked(g)?;
    is!(pair.b.create_qp(), Ok(())).then_some(pair)
}

fn joined(g: &Arc<Ground>) -> Option<Pair> {
    let pair = asked_and_prepared(g)?;
    let Pair { a, b, .. } = &pair;
    let is_joined = is!(b.accept(), Ok(()))
        && a.expect(EventType::ESTABLISHED)
        && b.expect(EventType::ESTABLISHED);
    is_joined.then_some(pair)
}

fn has_said(side: &Side) -> bool {
    is!(side.last().private_data().len(), 5) && check!(side.has_heard(b"said\0"))
}

fn has_iw_cm_id(side: &Side) -> bool {
    side.holds(|id| id.has_iw_cm_id())
}

/// Drivers are told of the identifiers of the iWARP CM, as soon as there are any.
fn shown_to_drivers(g: &Arc<Ground>) -> Option<()> {
    let pair = prepared(g)?;
    let Pair { a, b, l } = &pair;
    check!(has_iw_cm_id(l));
    check!(!has_iw_cm_id(a));
    if pair.resolve_route() && pair.request() {
        check!(has_iw_cm_id(a));
        let server = SocketAddr::from((g.ip, g.port()));
        is!(a.see(|id| id.iw_peer()).flatten(), Some(server));
        check!(has_iw_cm_id(b));
        let client = b.see(|id| id.iw_peer()).flatten();
        is!(client.map(|client| client.ip()), Some(g.ip.into()));
        is!(b.reject(), Ok(()));
        a.expect_status(EventType::REJECTED, RESET);
    }
    Some(())
}

pub(crate) fn connection(g: &Arc<Ground>) -> Option<()> {
    shown_to_drivers(g);
    if let Some(Pair { a, b, l }) = &asked(g) {
        check!(b.holds(|id| id.is_on(&g.device)));
        check!(has_said(b));
        is!(b.last().conn.responder_resources, 5);
        is!(b.last().conn.initiator_depth, 3);
        is!(b.create_qp(), Ok(()));
        is!(b.accept(), Ok(()));
        b.expect(EventType::ESTABLISHED);
        if a.expect(EventType::ESTABLISHED) {
            check!(has_said(a));
        }
        // It was answered.
        is!(b.reject(), Err(EINVAL));
        a.qp_is(QpState::RTS);
        b.qp_is(QpState::RTS);
        exchange(a, b);
        exchange(b, a);
        is!(a.call(|id| id.notify(DeviceEvent::COMM_EST)), Ok(()));
        is!(a.call(|id| id.notify(DeviceEvent::PATH_MIG_ERR)), Ok(()));
        is!(l.call(|id| id.notify(DeviceEvent::COMM_EST)), Ok(()));
        // The listener may go before.
        l.end();
        exchange(a, b);
        is!(a.disconnect(), Ok(()));
        a.expect(EventType::DISCONNECTED);
        b.expect(EventType::DISCONNECTED);
        is!(a.disconnect(), Ok(()));
        is!(b.disconnect(), Ok(()));
        check!(a.is_quiet());
        check!(b.is_quiet());
    }

    // All of it in callbacks.
    let pair = prepared(g)?;
    let Pair { a, b, .. } = &pair;
    a.on(EventType::ROUTE_RESOLVED, connect_inside);
    b.on(EventType::CONNECT_REQUEST, prepare_and_accept);
    pair.resolve_route();
    b.expect(EventType::CONNECT_REQUEST);
    a.expect(EventType::ESTABLISHED);
    b.expect(EventType::ESTABLISHED);
    b.on(EventType::DISCONNECTED, disconnect_inside);
    is!(b.disconnect(), Ok(()));
    a.expect(EventType::DISCONNECTED);
    b.expect(EventType::DISCONNECTED);
    Some(())
}

fn receive_and_accept(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    let created = act::create_qp(side, id);
    keep_if(created.is_ok() && word_receive(side, id) && is!(act::accept(side, id), Ok(())))
}

fn send_inside(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    keep_if(word_send(side, id))
}

/// Data that are sent in the callback for the answer arrive.
pub(crate) fn at_once(g: &Arc<Ground>) -> Option<()> {
    for _ in 0..200 {
        if !is_good() {
            break;
        }
        if let Some(Pair { a, b, .. }) = &routed(g) {
            if g.word_begins() {
                a.on(EventType::ESTABLISHED, send_inside);
                b.on(EventType::CONNECT_REQUEST, receive_and_accept);
                is!(a.connect(), Ok(()));
                b.expect(EventType::CONNECT_REQUEST);
                a.expect(EventType::ESTABLISHED);
                b.expect(EventType::ESTABLISHED);
                g.word_ends();
            }
        }
    }
    Some(())
}

/// A driver does not return from the accept of one connection: others are made.
pub(crate) fn stuck(g: &Arc<Ground>) -> Option<()> {
    let pair = asked_and_prepared(g)?;
    let Pair { a, b, .. } = &pair;
    let qpn = b.see(|id| id.with_qp(|qp| qp.number())).flatten()?;
    let driver = StuckAccept::begin(&g.device, qpn);
    let accepter = Arc::clone(b);
    let accepted = spawn(move || {
        is!(accepter.accept(), Ok(()));
    })?;
    driver.wait();
    check!(driver.is_stuck());
    for _ in 0..OTHERS {
        let joined = joined(g);
        if !check!(joined.is_some()) || !check!(driver.is_stuck()) {
            break;
        }
    }
    drop(driver);
    accepted.wait_for_completion();
    a.expect(EventType::ESTABLISHED);
    b.expect(EventType::ESTABLISHED);
    exchange(a, b);
    Some(())
}

pub(crate) fn rejections(g: &Arc<Ground>) -> Option<()> {
    if let Some(Pair { a, b, .. }) = &routed(g) {
        b.on(EventType::CONNECT_REQUEST, reject_inside);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        a.expect_status(EventType::REJECTED, RESET);
        let message = a.see(|id| id.reject_message(RESET)).flatten();
        is!(message, Some(c"reset by remote host"));
        // The last event is not the consumer's.
        let last = a.last();
        let (data, len) = a.see(|id| id.consumer_reject_data(&last)).flatten()?;
        check!(data.is_none());
        is!(len, 0);
        is!(b.reject(), Err(EINVAL));
        is!(b.accept(), Err(EINVAL));
    }

    // By what the callback returns, or without a word.
    if let Some(Pair { a, b, .. }) = &routed(g) {
        b.on(EventType::CONNECT_REQUEST, act::refuse);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        check!(b.is_gone());
        a.expect_status(EventType::REJECTED, RESET);
    }
    if let Some(Pair { a, b, .. }) = &asked(g) {
        b.end();
        a.expect_status(EventType::REJECTED, RESET);
    }

    // A consumer that accepts an impossible request refuses it.
    if let Some(Pair { a, b, .. }) = &routed(g) {
        b.on(EventType::CONNECT_REQUEST, accept_badly);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        a.expect_status(EventType::REJECTED, RESET);
    }

    // Nobody listens: known at once, and may be tried again.
    if let Some(pair) = prepared(g) {
        let Pair { a, l, .. } = &pair;
        l.end();
        pair.resolve_route();
        is!(a.connect(), Errno::ECONNREFUSED.failure());
        check!(!has_iw_cm_id(a));
        is!(a.connect(), Errno::ECONNREFUSED.failure());
        check!(a.is_quiet());
    }
    Some(())
}

/// The queue pair stays; not destroyed in a callback, until whose return it may be in use.
fn leave(_side: &Arc<Side>, _id: &LockedId<'_>, _event: EventType) -> Verdict {
    Verdict::END
}

fn left_by(side: &Side) {
    check!(side.is_gone());
    check!(side.destroy_left_qp());
}

pub(crate) fn ends(g: &Arc<Ground>) -> Option<()> {
    if let Some(Pair { a, b, .. }) = &asked_and_prepared(g) {
        a.on(EventType::ESTABLISHED, leave);
        is!(b.accept(), Ok(()));
        a.expect(EventType::ESTABLISHED);
        left_by(a);
        b.expect(EventType::ESTABLISHED);
        b.expect(EventType::DISCONNECTED);
    }
    if let Some(Pair { a, b, .. }) = &asked_and_prepared(g) {
        b.on(EventType::ESTABLISHED, leave);
        is!(b.accept(), Ok(()));
        b.expect(EventType::ESTABLISHED);
        left_by(b);
        a.expect(EventType::ESTABLISHED);
        a.expect(EventType::DISCONNECTED);
    }
    if let Some(Pair { a, b, .. }) = &joined(g) {
        b.on(EventType::DISCONNECTED, leave);
        is!(a.disconnect(), Ok(()));
        b.expect(EventType::DISCONNECTED);
        left_by(b);
        a.expect(EventType::DISCONNECTED);
    }
    if let Some(Pair { a, b, .. }) = &joined(g) {
        a.end();
        b.expect(EventType::DISCONNECTED);
    }
    if let Some(Pair { a, b, .. }) = &joined(g) {
        b.end();
        a.expect(EventType::DISCONNECTED);
    }
    // The listener, while a request waits.
    if let Some(Pair { a, b, l }) = &asked(g) {
        l.end();
        b.end();
        a.expect_status(EventType::REJECTED, RESET);
    }
    Some(())
}

/// A listener on all addresses, which is one at each device.
pub(crate) fn wildcard(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::listening(g, Ipv4Addr::UNSPECIFIED, PortSpace::TCP, QpType::RC)?;
    let Pair { a, b, .. } = &pair;
    let is_asked =
        pair.resolve() && is!(a.create_qp(), Ok(())) && pair.resolve_route() && pair.request();
    if is_asked {
        check!(b.holds(|id| id.is_on(&g.device)));
        is!(b.create_qp(), Ok(()));
        is!(b.accept(), Ok(()));
        a.expect(EventType::ESTABLISHED);
        b.expect(EventType::ESTABLISHED);
        exchange(a, b);
    }
    Some(())
}

/// True if no more queue pairs are made.
static OVER: Atomic<bool> = Atomic::new(false);

/// The peer may have gone: the results of the calls do not matter.
fn go_on(side: &Arc<Side>, id: &LockedId<'_>, event: EventType) -> Verdict {
    if OVER.load(Relaxed) {
        return keep_if(side.is_active());
    }
    let _ = match event {
        EventType::ADDR_RESOLVED => {
            side.on(EventType::ROUTE_RESOLVED, go_on);
            act::create_qp(side, id).and_then(|()| act::resolve_route(side, id))
        }
        EventType::ROUTE_RESOLVED => act::connect_locked(side, id),
        _ => act::create_qp(side, id).and_then(|()| act::accept(side, id)),
    };
    Verdict::KEEP
}

/// Connections that are made and destroyed at once.
pub(crate) fn haste(g: &Arc<Ground>) -> Option<()> {
    for i in 0..100i64 {
        if !is_good() {
            break;
        }
        let Pair { a, b, l } = &Pair::start(g)?;
        b.on(EventType::CONNECT_REQUEST, go_on);
        a.on(EventType::ADDR_RESOLVED, go_on);
        OVER.store(false, Relaxed);
        is!(a.resolve(), Ok(()));
        fsleep(Delta::from_micros(i.wrapping_mul(80)));
        // No callback runs that would make a queue pair.
        a.see(|id| {
            let _lock = id.lock_handler();
            OVER.store(true, Relaxed);
        });
        // Before the listener: an answer that does not come the driver awaits for 10 s.
        a.end();
        l.end();
        b.end();
    }
    Some(())
}
