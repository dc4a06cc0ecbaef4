// SPDX-License-Identifier: GPL-2.0

//! Connections whose queue pairs are the consumers' own, here invented numbers.

use super::{
    act,
    ground::Ground,
    pair::Pair,
    side::{LockedId, Side, REP_DATA, REQ_DATA},
    states::Situation,
};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        cm_id::{DeviceEvent, PortSpace, QpType},
        event::EventType,
        owner::Verdict,
        parameter,
        qp_attr::{QpAttr, QpMask, QpState},
    },
};
use core::iter;
use kernel::{prelude::*, sync::Arc};

fn attributes(side: &Side, peer: &Side, reads: u8, depth: u8) {
    let init = |state| {
        let attr = side.see(|id| id.init_qp_attr(state)).unwrap_or(Err(ENOENT));
        is!(attr.map(|_| ()), Ok(()));
        attr.unwrap_or_default()
    };
    let attr: QpAttr = init(QpState::INIT);
    let mask = QpMask::STATE | QpMask::ACCESS_FLAGS | QpMask::PKEY_INDEX | QpMask::PORT;
    is!(attr.mask, mask);
    is!(attr.port, 1);
    let attr = init(QpState::RTR);
    is!(attr.dest_qpn, peer.qpn());
    is!(attr.max_dest_rd_atomic, reads);
    check!(attr.address.is_some());
    let attr = init(QpState::RTS);
    is!(attr.max_rd_atomic, depth);
    is!(attr.retry_count, 6);
}

/// Returns true if so many bytes are the sent data, and zeros.
pub(crate) fn is_all_data(side: &Side, len: usize, said: &[u8]) -> bool {
    let right = Iterator::chain(said.iter().copied(), iter::repeat(0));
    right.take(len).eq(side.data().into_iter().take(len))
}

pub(crate) fn connection(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_route(g)?;
    let Pair { a, b, l } = &pair;
    // Each makes all calls in its callbacks, too.
    a.calls_in_callbacks();
    b.calls_in_callbacks();
    if !pair.request() {
        return None;
    }
    a.is_in(Situation::ReqSent);
    b.is_in(Situation::ReqRcvd);
    check!(b.holds(|b| l.holds(|l| !core::ptr::eq(b, l))));
    check!(b.holds(|b| l.holds(|l| b.calls_what_calls(l))));
    is!(b.see(|id| id.port_space()), Some(PortSpace::TCP));
    is!(b.see(|id| id.qp_type()), Some(QpType::RC));
    check!(is_all_data(b, REQ_DATA, b"said\0"));
    let conn = b.last().conn;
    is!(conn.qp_num, a.qpn());
    is!(conn.responder_resources, 5);
    is!(conn.initiator_depth, 3);
    is!(conn.retry_count, 6);
    is!(conn.rnr_retry_count, 7);
    is!(conn.flow_control, 1);
    is!(conn.srq, 0);
    if !(is!(b.accept(), Ok(())) && a.expect(EventType::CONNECT_RESPONSE)) {
        return None;
    }
    b.is_in(Situation::Accepted);
    a.is_in(Situation::Response);
    check!(is_all_data(a, REP_DATA, b"said\0"));
    let conn = a.last().conn;
    is!(conn.qp_num, b.qpn());
    is!(conn.responder_resources, 2);
    is!(conn.initiator_depth, 4);
    attributes(a, b, 2, 4);
    attributes(b, a, 4, 2);
    if !(is!(a.confirm(), Ok(())) && b.expect(EventType::ESTABLISHED)) {
        return None;
    }
    a.is_in(Situation::Established);
    b.is_in(Situation::Established);
    a.is_quiet();
    attributes(b, a, 4, 2);
    if !(is!(a.disconnect(), Ok(())) && b.expect(EventType::DISCONNECTED)) {
        return None;
    }
    b.is_in(Situation::Disconnecting);
    is!(b.disconnect(), Ok(()));
    is!(b.disconnect(), Ok(()));
    a.expect(EventType::DISCONNECTED);
    a.expect(EventType::TIMEWAIT_EXIT);
    b.expect(EventType::TIMEWAIT_EXIT);
    a.is_in(Situation::Disconnected);
    b.is_in(Situation::Disconnected);
    a.is_quiet();
    b.is_quiet();
    Some(())
}

/// The actions of the active end at each event.
fn act_of_a(side: &Arc<Side>, id: &LockedId<'_>, event: EventType) -> Verdict {
    match event {
        EventType::ADDR_RESOLVED => {
            is!(act::resolve_route(side, id), Ok(()));
            side.on(EventType::ROUTE_RESOLVED, act_of_a);
        }
        EventType::ROUTE_RESOLVED => {
            side.on(EventType::CONNECT_RESPONSE, act_of_a);
            is!(act::connect_locked(side, id), Ok(()));
        }
        EventType::CONNECT_RESPONSE => {
            // The next event comes soon.
            side.on(EventType::DISCONNECTED, act_of_a);
            is!(act::accept_nothing(side, id), Ok(()));
        }
        EventType::DISCONNECTED => {
            is!(act::disconnect(side, id), Ok(()));
        }
        _ => wrong!("event {} of nobody's", event.0),
    }
    Verdict::KEEP
}

/// The actions of the passive end at each event.
fn act_of_b(side: &Arc<Side>, id: &LockedId<'_>, event: EventType) -> Verdict {
    match event {
        EventType::CONNECT_REQUEST => {
            is!(act::accept(side, id), Ok(()));
            side.on(EventType::ESTABLISHED, act_of_b);
        }
        EventType::ESTABLISHED => {
            side.on(EventType::DISCONNECTED, act_of_b);
            is!(act::disconnect(side, id), Ok(()));
        }
        EventType::DISCONNECTED => return Verdict::END,
        _ => wrong!("event {} of nobody's", event.0),
    }
    Verdict::KEEP
}

pub(crate) fn in_callbacks(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::start(g)?;
    let Pair { a, b, .. } = &pair;
    a.on(EventType::ADDR_RESOLVED, act_of_a);
    b.on(EventType::CONNECT_REQUEST, act_of_b);
    is!(a.resolve(), Ok(()));
    if a.expect(EventType::ADDR_RESOLVED)
        && a.expect(EventType::ROUTE_RESOLVED)
        && a.expect(EventType::CONNECT_RESPONSE)
    {
        b.expect(EventType::CONNECT_REQUEST);
        b.expect(EventType::ESTABLISHED);
        a.expect(EventType::DISCONNECTED);
        b.expect(EventType::DISCONNECTED);
        a.expect(EventType::TIMEWAIT_EXIT);
    }
    Some(())
}

pub(crate) fn extensions(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_route(g)?;
    let Pair { a, b, .. } = &pair;
    is!(a.connect_ece(), Ok(()));
    if !b.expect(EventType::CONNECT_REQUEST) {
        return None;
    }
    is!(b.last().ece.vendor_id, 0x123456);
    is!(b.last().ece.attr_mod, 0x9abcdef0);
    is!(b.call_locked(|id| act::accept_ece(b, id)), Ok(()));
    if a.expect(EventType::CONNECT_RESPONSE) {
        is!(a.last().ece.vendor_id, 0x654321);
        is!(a.last().ece.attr_mod, 0xfedcba9);
    }
    Some(())
}

pub(crate) fn early_data(g: &Arc<Ground>) -> Option<()> {
    let Pair { a, b, .. } = &Pair::until_response(g)?;
    is!(b.call(|id| id.notify(DeviceEvent::COMM_EST)), Ok(()));
    b.expect(EventType::ESTABLISHED);
    b.is_in(Situation::Established);
    is!(a.confirm(), Ok(()));
    b.is_quiet();

    // An end that has told of data may end the connection in the same breath. C goes on repeating
    // its REP then, for which the end of the identifier waits longer than a task may hang.
    if parameter::claims_end() {
        return Some(());
    }
    let Pair { a, b, .. } = &Pair::until_response(g)?;
    let ended = b.call(|id| {
        id.notify(DeviceEvent::COMM_EST)?;
        id.disconnect()
    });
    is!(ended, Ok(()));
    is!(a.confirm(), Ok(()));
    if a.expect(EventType::DISCONNECTED) {
        is!(a.disconnect(), Ok(()));
        b.expect(EventType::ESTABLISHED);
        b.expect(EventType::DISCONNECTED);
    }
    Some(())
}
