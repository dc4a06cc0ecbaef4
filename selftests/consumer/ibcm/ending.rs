// SPDX-License-Identifier: GPL-2.0

//! Rejected, or destroyed.

use super::{inbox::Inbox, pair::Pair, world::World};
use crate::{
    harness::{check, is, is_good},
    rdma::{
        ib_cm_event::{Event, EventType},
        ib_cm_id::{IbCmIdRef, State, Verdict},
        refusal::RejectReason,
    },
};
use kernel::{
    sync::Arc,
    time::{delay::fsleep, Delta},
};

pub(super) fn refuse(_: &Inbox, _: &IbCmIdRef, _: &Event) -> Verdict {
    Verdict::Destroy(-1)
}

fn reject_and_destroy(end: &Inbox, id: &IbCmIdRef, _: &Event) -> Verdict {
    is!(end.send_rej(id), Ok(()));
    Verdict::Destroy(1)
}

pub(super) fn rejections(world: &Arc<World>) {
    if rejected_by_callback(world).is_some() {
        rejected_in_words(world);
    }
    rejected_answers(world);
}

/// By what the callback returns.
fn rejected_by_callback(world: &Arc<World>) -> Option<()> {
    let Pair {
        l: _l, mut a, b, ..
    } = Pair::start(world)?;
    b.on(EventType::REQ_RECEIVED, refuse);
    is!(a.does(Inbox::send_req), Ok(()));
    if a.expect(EventType::REJ_RECEIVED) {
        is!(
            a.rej().map(|rej| rej.reason),
            Some(RejectReason::CONSUMER_DEFINED)
        );
    }
    a.is_in(State::IDLE);
    Some(())
}

fn rejected_in_words(world: &Arc<World>) {
    let Some(Pair {
        l: _l, mut a, b, ..
    }) = Pair::start(world)
    else {
        return;
    };
    b.on(EventType::REQ_RECEIVED, reject_and_destroy);
    is!(a.does(Inbox::send_req), Ok(()));
    if a.expect(EventType::REJ_RECEIVED) {
        let rej = a.rej();
        is!(rej.map(|rej| rej.reason), Some(RejectReason::UNSUPPORTED));
        is!(rej.map(|rej| rej.ari_length), Some(3));
        check!(rej.is_some_and(|rej| rej.ari.starts_with(b"ari\0")));
        check!(a.data_begin(b"rej\0"));
    }
}

/// A REP is rejected, and the passive end rejects after its REP.
fn rejected_answers(world: &Arc<World>) {
    if let Some(Pair {
        l: _l,
        mut a,
        mut b,
        ..
    }) = Pair::until_rep(world)
    {
        is!(a.does(Inbox::send_rej), Ok(()));
        is!(a.state(), Some(State::IDLE));
        b.expect(EventType::REJ_RECEIVED);
        is!(b.state(), Some(State::IDLE));
    }
    if let Some(Pair {
        l: _l,
        mut a,
        mut b,
        ..
    }) = Pair::until_rep(world)
    {
        is!(b.does(Inbox::send_rej), Ok(()));
        b.is_in(State::TIMEWAIT);
        if a.expect(EventType::REJ_RECEIVED) {
            a.is_in(State::TIMEWAIT);
        }
        b.expect(EventType::TIMEWAIT_EXIT);
    }
}

/// A consumer that destroys an identifier is not told of it; the peer is.
pub(super) fn destruction(world: &Arc<World>) {
    if let Some(mut pair) = Pair::until_req(world) {
        pair.a.end();
        if pair.b.expect(EventType::REJ_RECEIVED) {
            is!(
                pair.b.rej().map(|rej| rej.reason),
                Some(RejectReason::TIMEOUT)
            );
        }
    }
    if let Some(mut pair) = Pair::until_req(world) {
        // The listener may go before.
        pair.l.end();
        pair.b.end();
        if pair.a.expect(EventType::REJ_RECEIVED) {
            is!(
                pair.a.rej().map(|rej| rej.reason),
                Some(RejectReason::CONSUMER_DEFINED)
            );
        }
    }
    if let Some(mut pair) = Pair::until_rep(world) {
        pair.a.end();
        if pair.b.expect(EventType::REJ_RECEIVED) {
            is!(
                pair.b.rej().map(|rej| rej.reason),
                Some(RejectReason::CONSUMER_DEFINED)
            );
        }
    }
    if let Some(mut pair) = Pair::until_rep(world) {
        pair.b.end();
        pair.a.expect(EventType::REJ_RECEIVED);
    }
    if let Some(mut pair) = Pair::until_established(world) {
        pair.a.end();
        if pair.b.expect(EventType::DREQ_RECEIVED) {
            pair.b.is_in(State::DREQ_RCVD);
        }
    }
    if let Some(mut pair) = Pair::until_established(world) {
        if is!(pair.a.does(Inbox::send_dreq), Ok(())) {
            pair.a.end();
            pair.b.expect(EventType::DREQ_RECEIVED);
        }
    }
    if let Some(mut pair) = Pair::until_established(world) {
        if is!(pair.a.does(Inbox::send_dreq), Ok(())) && pair.b.expect(EventType::DREQ_RECEIVED) {
            pair.b.end();
            pair.a.expect(EventType::DREP_RECEIVED);
            pair.a.is_in(State::TIMEWAIT);
        }
    }
}

/// The peer may have gone.
fn try_rep(end: &Inbox, id: &IbCmIdRef, _: &Event) -> Verdict {
    let _ = end.send_rep(id);
    Verdict::Keep
}

fn try_rtu(end: &Inbox, id: &IbCmIdRef, _: &Event) -> Verdict {
    let _ = end.send_rtu(id);
    Verdict::Keep
}

/// Connections that are made and destroyed at once, while messages are on their way.
pub(super) fn haste(world: &Arc<World>) {
    for i in 0i64..200 {
        if !is_good() {
            break;
        }
        let Some(Pair {
            mut l,
            mut a,
            mut b,
            ..
        }) = Pair::start(world)
        else {
            return;
        };
        b.on(EventType::REQ_RECEIVED, try_rep);
        a.on(EventType::REP_RECEIVED, try_rtu);
        is!(a.does(Inbox::send_req), Ok(()));
        fsleep(Delta::from_micros(i.saturating_mul(20)));
        l.end();
        a.end();
        // A consumer that has seen the request has it to the end.
        b.end();
    }
}
