// SPDX-License-Identifier: GPL-2.0

//! Questions about datagrams, and groups.

use super::{
    act,
    ground::{at, Ground},
    pair::Pair,
    side::{LockedId, Part, Side, SIDR_REP_DATA},
};
use crate::{
    harness::{check, is},
    rdma::{
        cm_id::{PortSpace, QpType},
        event::{AhType, ConnParam, EventType, RDMA_UDP_QKEY},
        owner::Verdict,
        path::Link,
        qp_attr::QpState,
        refusal::SidrStatus,
    },
};
use core::net::Ipv4Addr;
use kernel::{prelude::*, sync::Arc};

const FULL_MEMBER: u8 = 1 << 0;
const SEND_ONLY_FULL_MEMBER: u8 = 1 << 3;

const REJECT: i32 = SidrStatus::REJECT.status();

fn listener(g: &Arc<Ground>) -> Option<Pair> {
    Pair::new(g, PortSpace::UDP, QpType::UD)
}

fn until_question(g: &Arc<Ground>) -> Option<Pair> {
    let pair = listener(g)?;
    let is_asked = pair.resolve()
        && pair.resolve_route()
        && is!(pair.a.disconnect(), Err(EINVAL))
        && pair.request();
    is_asked.then_some(pair)
}

fn accept_question(side: &Arc<Side>, id: &LockedId<'_>, _event: EventType) -> Verdict {
    if is!(act::create_qp(side, id), Ok(())) {
        is!(id.with_qp(|qp| qp.state()), Some(Ok(QpState::RTS)));
    }
    act::accept(side, id).into()
}

/// Sends a request, whose result does not matter.
fn ask(pair: &Pair) {
    pair.resolve();
    pair.resolve_route();
    is!(pair.a.connect(), Ok(()));
}

pub(crate) fn datagrams(g: &Arc<Ground>) -> Option<()> {
    if let Some(Pair { a, b, .. }) = &until_question(g) {
        check!(b.has_heard(b"said\0"));
        is!(a.connect(), Err(EINVAL));
        is!(b.accept(), Ok(()));
        if a.expect(EventType::ESTABLISHED) {
            let last = a.last();
            is!(last.ud.qp_num, b.qpn());
            is!(last.ud.qkey, RDMA_UDP_QKEY);
            is!(last.private_data().len(), SIDR_REP_DATA);
            let ah_type = match g.link {
                Link::Roce(_) => AhType::ROCE,
                Link::Ib { .. } => AhType::IB,
                Link::Opa { .. } => AhType::OPA,
            };
            is!(last.ud.ah_type, ah_type);
        }
        // There is nothing to end.
        is!(a.disconnect(), Ok(()));
        is!(b.disconnect(), Ok(()));
        a.is_quiet();
        b.is_quiet();
    }
    // With a queue pair, and a key.
    if let Some(pair) = listener(g) {
        let Pair { a, b, .. } = &pair;
        b.on(EventType::CONNECT_REQUEST, accept_question);
        ask(&pair);
        b.expect(EventType::CONNECT_REQUEST);
        if a.expect(EventType::ESTABLISHED) {
            let number = b.see(|id| id.with_qp(|qp| qp.number())).flatten();
            is!(Some(a.last().ud.qp_num), number);
        }
    }
    if let Some(Pair { a, b, .. }) = &until_question(g) {
        let param = ConnParam {
            qkey: 0x1234,
            ..b.param()
        };
        is!(b.call_locked(|id| id.accept(Some(&param))), Ok(()));
        if a.expect(EventType::ESTABLISHED) {
            is!(a.last().ud.qkey, 0x1234);
        }
    }
    // Refused: in words, by what the callback returns, by the end of the identifier.
    if let Some(Pair { a, b, .. }) = &until_question(g) {
        is!(b.reject(), Ok(()));
        a.expect_status(EventType::UNREACHABLE, REJECT);
    }
    if let Some(Pair { a, b, .. }) = &until_question(g) {
        b.end();
        a.expect_status(EventType::UNREACHABLE, REJECT);
    }
    if let Some(pair) = listener(g) {
        pair.b.on(EventType::CONNECT_REQUEST, act::refuse);
        ask(&pair);
        pair.a.expect_status(EventType::UNREACHABLE, REJECT);
    }
    // Nobody is asked.
    if let Some(pair) = listener(g) {
        pair.l.end();
        ask(&pair);
        let unsupported = SidrStatus::UNSUPPORTED.status();
        pair.a.expect_status(EventType::UNREACHABLE, unsupported);
    }
    Some(())
}

/// A group, and one that nobody is in.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const OTHER_GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 4);

fn join_as(side: &Side, ip: Ipv4Addr, state: u8, group: usize) -> Result {
    side.call(|id| id.join_multicast(at(ip, 0), state, group))
}

fn join(g: &Arc<Ground>, state: u8) -> Option<()> {
    let a = Part::create(g, PortSpace::UDP, QpType::UD)?;
    if !is!(a.bind(), Ok(())) {
        return None;
    }
    let name = 0x1234;
    is!(join_as(&a, GROUP, state, name), Ok(()));
    if a.expect(EventType::MULTICAST_JOIN) {
        let last = a.last();
        check!(last.group == name);
        is!(last.ud.qp_num, 0xffffff);
        is!(last.ud.qkey, RDMA_UDP_QKEY);
    }
    a.see(|id| id.leave_multicast(at(GROUP, 0)));
    a.see(|id| id.leave_multicast(at(OTHER_GROUP, 0)));
    Some(())
}

/// A member of a group.
pub(crate) fn in_group(g: &Arc<Ground>) -> Option<Part> {
    let a = Part::create(g, PortSpace::UDP, QpType::UD)?;
    let joined = is!(a.bind(), Ok(()))
        && is!(join_as(&a, GROUP, FULL_MEMBER, 0), Ok(()))
        && a.expect(EventType::MULTICAST_JOIN);
    joined.then_some(a)
}

pub(crate) fn groups(g: &Arc<Ground>) -> Option<()> {
    join(g, FULL_MEMBER);
    join(g, SEND_ONLY_FULL_MEMBER);

    // A member may leave before it is told that it has joined.
    let a = Part::create(g, PortSpace::UDP, QpType::UD)?;
    is!(join_as(&a, GROUP, FULL_MEMBER, 0), Err(EINVAL));
    is!(a.bind(), Ok(()));
    if !g.link.is_ib() {
        // There the subnet administrator would choose one.
        is!(
            join_as(&a, Ipv4Addr::UNSPECIFIED, FULL_MEMBER, 0),
            Err(EINVAL)
        );
    }
    is!(join_as(&a, GROUP, FULL_MEMBER, 0), Ok(()));
    Some(())
}
