// SPDX-License-Identifier: GPL-2.0

//! Connections whose queue pairs the connection manager takes through their states.

use super::{
    act,
    call_site::CallSite,
    exchange::exchange,
    ground::Ground,
    pair::Pair,
    side::{Id, LockedId, Side, REP_DATA},
    states::Situation,
};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        cm_id::QpType,
        errno::Errno,
        event::{ConnParam, EventType},
        owner::Verdict,
        qp_attr::QpState,
        queue_pair::QpInit,
        refusal::RejectReason,
    },
};
use kernel::{prelude::*, sync::Arc};

const CONSUMER_DEFINED: i32 = RejectReason::CONSUMER_DEFINED.status();

fn prepare_and_accept(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    if !is!(act::create_qp(side, id), Ok(())) {
        return Verdict::END;
    }
    act::qp_is(id, QpState::INIT, CallSite::of_caller());
    is!(act::accept(side, id), Ok(()));
    act::qp_is(id, QpState::RTS, CallSite::of_caller());
    Verdict::KEEP
}

/// Resolved, with a queue pair.
pub(crate) fn prepared(g: &Arc<Ground>) -> Option<Pair> {
    let pair = Pair::until_resolved(g)?;
    if !is!(pair.a.create_qp(), Ok(())) {
        return None;
    }
    pair.a.qp_is(QpState::INIT);
    Some(pair)
}

/// With a queue pair and a route.
pub(crate) fn routed(g: &Arc<Ground>) -> Option<Pair> {
    let pair = prepared(g)?;
    pair.resolve_route().then_some(pair)
}

fn joined(g: &Arc<Ground>) -> Option<Pair> {
    let pair = routed(g)?;
    pair.b.on(EventType::CONNECT_REQUEST, prepare_and_accept);
    let is_joined = pair.request()
        && pair.a.expect(EventType::ESTABLISHED)
        && pair.b.expect(EventType::ESTABLISHED);
    is_joined.then_some(pair)
}

fn destroy_qp_and_refuse(_side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    id.destroy_qp();
    Verdict::END
}

/// More data than there can be.
fn accept_badly(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    if !is!(act::create_qp(side, id), Ok(())) {
        return Verdict::END;
    }
    let param = ConnParam {
        private_data: Some(&[0; REP_DATA + 1]),
        ..side.param()
    };
    is!(id.accept(Some(&param)), Err(EINVAL));
    act::qp_is(id, QpState::ERR, CallSite::of_caller());
    Verdict::KEEP
}

/// More than the other end's device can do.
fn accept_much(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    let param = ConnParam {
        responder_resources: 255,
        ..side.param()
    };
    id.accept(Some(&param)).into()
}

fn has_qp(side: &Side) -> bool {
    side.holds(|id| id.has_qp())
}

/// From the first word to the last.
fn used(g: &Arc<Ground>) -> Option<()> {
    let Pair { a, b, .. } = &joined(g)?;
    a.qp_is(QpState::RTS);
    b.qp_is(QpState::RTS);
    let number = b.see(|id| id.with_qp(|qp| qp.number())).flatten();
    is!(Some(a.last().conn.qp_num), number);
    a.is_in(Situation::Established);
    b.is_in(Situation::Established);
    exchange(a, b);
    exchange(b, a);
    is!(a.disconnect(), Ok(()));
    a.qp_is(QpState::ERR);
    if b.expect(EventType::DISCONNECTED) {
        is!(b.disconnect(), Ok(()));
        b.qp_is(QpState::ERR);
        a.expect(EventType::DISCONNECTED);
    }
    Some(())
}

/// The device refuses these queue pairs.
fn refused_by_device(g: &Arc<Ground>) -> Option<()> {
    let Pair { a, .. } = &Pair::until_resolved(g)?;
    let init = QpInit {
        qp_type: QpType::RC,
        max_send_wr: 1 << 30,
        max_recv_wr: 0,
        max_send_sge: 0,
        max_recv_sge: 0,
    };
    check!(a.call(|id| id.create_qp(g.pd()?, g.cq()?, &init)).is_err());
    check!(!has_qp(a));
    is!(a.create_qp(), Ok(()));
    a.see(|id| id.destroy_qp());
    check!(!has_qp(a));
    is!(a.create_qp(), Ok(()));
    check!(has_qp(a));
    Some(())
}

pub(crate) fn queue_pairs(g: &Arc<Ground>) -> Option<()> {
    used(g);
    refused_by_device(g);

    // An end that is refused has a queue pair that is of no use.
    if let Some(Pair { a, b, .. }) = &routed(g) {
        is!(a.connect(), Ok(()));
        if b.expect(EventType::CONNECT_REQUEST) {
            is!(b.reject(), Ok(()));
        }
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
        a.qp_is(QpState::ERR);
    }

    // The same is true for an end that cannot accept: the peer is refused.
    if let Some(Pair { a, b, .. }) = &routed(g) {
        b.on(EventType::CONNECT_REQUEST, accept_badly);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }

    // And so is a peer that offers too much.
    if let Some(Pair { a, b, .. }) = &routed(g) {
        b.on(EventType::CONNECT_REQUEST, accept_much);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        a.expect_status(EventType::CONNECT_ERROR, Errno::EINVAL.failed());
        a.qp_is(QpState::ERR);
        b.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }

    // The end of an identifier in the callback that says it is connected.
    if let Some(Pair { a, b, .. }) = &routed(g) {
        b.on(EventType::CONNECT_REQUEST, prepare_and_accept);
        a.on(EventType::ESTABLISHED, destroy_qp_and_refuse);
        is!(a.connect(), Ok(()));
        b.expect(EventType::CONNECT_REQUEST);
        a.expect(EventType::ESTABLISHED);
        check!(a.is_gone());
        if b.comes(EventType::ESTABLISHED) {
            b.expect(EventType::ESTABLISHED);
        }
        b.expect(EventType::DISCONNECTED);
    }
    Some(())
}

/// Checks which states a queue pair may be moved to: this is right or `EINVAL`.
fn allows_at(side: &Side, id: &Id, init: bool, ready: bool, site: CallSite) {
    let right = |is_right| if is_right { Ok(()) } else { Err(EINVAL) };
    let states = [
        (QpState::INIT, init),
        (QpState::RTR, ready),
        (QpState::RTS, ready),
    ];
    for (state, is_right) in states {
        let result = id.init_qp_attr(state).map(|_| ());
        if result != right(is_right) {
            wrong!("{site:?}: state {} is {result:?}", state.0);
        }
    }
    let result = act::create_qp(side, id);
    if result != right(init) {
        wrong!("{site:?}: create_qp is {result:?}");
    }
    if result.is_ok() {
        id.destroy_qp();
    }
    check!(!id.has_qp());
}

/// From outside.
#[track_caller]
fn allows(side: &Side, init: bool, ready: bool) {
    let site = CallSite::of_caller();
    if side
        .see(|id| allows_at(side, id, init, ready, site))
        .is_none()
    {
        wrong!("{site:?}: no identifier");
    }
}

fn allows_inside(side: &Arc<Side>, id: &LockedId<'_>, event: EventType) -> Verdict {
    allows_at(
        side,
        id,
        true,
        event != EventType::REJECTED,
        CallSite::of_caller(),
    );
    Verdict::KEEP
}

pub(crate) fn queue_pair_states(g: &Arc<Ground>) -> Option<()> {
    if let Some(Pair { a, b, l }) = &Pair::until_resolved(g) {
        allows(a, true, true);
        allows(l, false, false);
        is!(a.resolve_route(), Ok(()));
        a.expect(EventType::ROUTE_RESOLVED);
        allows(a, true, true);
        b.on(EventType::CONNECT_REQUEST, allows_inside);
        is!(a.connect(), Ok(()));
        allows(a, true, false);
        b.expect(EventType::CONNECT_REQUEST);
        allows(b, true, true);
        a.on(EventType::CONNECT_RESPONSE, allows_inside);
        is!(b.accept(), Ok(()));
        allows(b, true, true);
        a.expect(EventType::CONNECT_RESPONSE);
        allows(a, true, true);
        b.on(EventType::ESTABLISHED, allows_inside);
        is!(a.confirm(), Ok(()));
        allows(a, true, true);
        b.expect(EventType::ESTABLISHED);
        allows(b, true, true);
        is!(a.disconnect(), Ok(()));
        b.expect(EventType::DISCONNECTED);
        allows(b, false, false);
        is!(b.disconnect(), Ok(()));
        a.expect(EventType::DISCONNECTED);
        allows(a, false, false);
    }
    if let Some(Pair { a, b, .. }) = &Pair::until_request(g) {
        is!(b.reject(), Ok(()));
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
        allows(a, false, false);
        allows(b, false, false);
    }
    Some(())
}
