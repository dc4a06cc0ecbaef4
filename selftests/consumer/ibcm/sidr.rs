// SPDX-License-Identifier: GPL-2.0

//! Questions to a service, and answers.

use super::{
    ending::refuse,
    inbox::Inbox,
    pair::Pair,
    side::Side,
    world::{next_service, World},
};
use crate::{
    harness::{check, is},
    rdma::{
        ib_cm_event::{Event, EventType},
        ib_cm_id::{IbCmIdRef, State, Verdict},
        refusal::SidrStatus,
    },
};
use kernel::{prelude::*, sync::Arc};

fn answer_question(end: &Inbox, id: &IbCmIdRef, event: &Event) -> Verdict {
    is!(event.kind(), EventType::SIDR_REQ_RECEIVED);
    if let Event::SidrReq(req) = event {
        let gid = &end.world.gid;
        check!(end.is_listener(req.listener));
        check!(req.sgid == end.world.said_gid());
        is!(u32::from(req.port), gid.port());
        is!(req.pkey, 0xffff);
        is!(req.service_id, end.service);
    }
    check!(end.data().starts_with(b"question\0"));
    is!(end.send_sidr_rep(id), Ok(()));
    is!(end.send_sidr_rep(id), Err(EINVAL));
    Verdict::Keep
}

/// Checks the result of the resolution.
fn status_is(a: &Side, status: SidrStatus) {
    if a.expect(EventType::SIDR_REP_RECEIVED) {
        is!(a.sidr_rep().map(|rep| rep.status), Some(status));
    }
}

pub(super) fn questions(world: &Arc<World>) {
    if questions_to_somebody(world).is_none() {
        return;
    }
    // No end listens for this service.
    let a = Side::new(world, next_service());
    is!(a.as_ref().err(), None);
    if let Ok(mut a) = a {
        is!(a.does(Inbox::send_sidr_req), Ok(()));
        status_is(&a, SidrStatus::UNSUPPORTED);
    }
}

fn questions_to_somebody(world: &Arc<World>) -> Option<()> {
    let Pair { l, mut a, b, .. } = Pair::start(world)?;
    b.on(EventType::SIDR_REQ_RECEIVED, answer_question);
    is!(a.does(Inbox::send_sidr_req), Ok(()));
    status_is(&a, SidrStatus::SUCCESS);
    if let Some(rep) = a.sidr_rep() {
        is!(rep.qpn, b.qpn);
        is!(rep.qkey, 0x123_4567);
        check!(rep.sgid == world.answered_gid());
        check!(rep.info.starts_with(b"info\0"));
        check!(a.data_begin(b"answer\0"));
    }
    is!(a.state(), Some(State::IDLE));
    drop((l, a, b));

    // Asked and refused by destruction.
    let Pair {
        l, mut a, mut b, ..
    } = Pair::start(world)?;
    is!(a.does(Inbox::send_sidr_req), Ok(()));
    if b.expect(EventType::SIDR_REQ_RECEIVED) {
        a.is_in(State::SIDR_REQ_SENT);
        b.is_in(State::SIDR_REQ_RCVD);
        b.end();
        status_is(&a, SidrStatus::REJECT);
    }
    drop((l, a, b));

    // By what the callback returns.
    let Pair { l, mut a, b, .. } = Pair::start(world)?;
    b.on(EventType::SIDR_REQ_RECEIVED, refuse);
    is!(a.does(Inbox::send_sidr_req), Ok(()));
    status_is(&a, SidrStatus::REJECT);
    drop((l, a, b));
    Some(())
}
