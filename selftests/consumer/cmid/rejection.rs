// SPDX-License-Identifier: GPL-2.0

//! Tests of impossible and of unwanted connections.

use super::{
    act,
    connection::is_all_data,
    ground::Ground,
    pair::Pair,
    side::{sleep_ms, Part, Side, REJ_DATA, REP_DATA, REQ_DATA},
    states::Situation,
};
use crate::{
    harness::{check, is},
    rdma::{
        cm_id::{PortSpace, QpType},
        event::{ConnParam, EventType},
        parameter,
        refusal::RejectReason,
    },
};
use kernel::{prelude::*, sync::Arc};

const CONSUMER_DEFINED: i32 = RejectReason::CONSUMER_DEFINED.status();

pub(crate) fn parameters(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::until_route(g)?;
    let Pair { a, b, .. } = &pair;
    let with = |side: &Side, data| ConnParam {
        private_data: data,
        ..side.param()
    };
    let param = with(a, Some(&[0; REQ_DATA + 1][..]));
    is!(a.call(|id| id.connect(&param)), Err(EINVAL));
    let param = with(a, Some(&[0; 255][..]));
    is!(a.call(|id| id.connect(&param)), Err(EINVAL));
    a.is_in(Situation::RouteResolved);
    // More than there can be of retries is the most there can be.
    let param = ConnParam {
        retry_count: 255,
        rnr_retry_count: 8,
        ..with(a, None)
    };
    let asked =
        is!(a.call(|id| id.connect(&param)), Ok(())) && b.expect(EventType::CONNECT_REQUEST);
    if !asked {
        return None;
    }
    check!(is_all_data(b, REQ_DATA, &[]));
    is!(b.last().conn.retry_count, 7);
    is!(b.last().conn.rnr_retry_count, 7);
    // An answer that cannot be sent is a refusal.
    let param = with(b, Some(&[0; REP_DATA + 1][..]));
    is!(b.call_locked(|id| id.accept(Some(&param))), Err(EINVAL));
    a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    drop(pair);

    let Pair { a, b, .. } = &Pair::until_request(g)?;
    let reject = |data: &[u8]| b.call(|id| id.reject(Some(data), RejectReason::CONSUMER_DEFINED));
    is!(reject(&[0; REJ_DATA + 1]), Err(EINVAL));
    b.is_in(Situation::ReqRcvd);
    is!(reject(&[0; REJ_DATA]), Ok(()));
    a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    Some(())
}

/// Returns the data of the other end's consumer when it rejected, and their length.
fn reject_data(side: &Side) -> Option<(bool, u8)> {
    let last = side.last();
    let (data, len) = side.see(|id| id.consumer_reject_data(&last)).flatten()?;
    Some((data.is_some(), len))
}

pub(crate) fn rejections(g: &Arc<Ground>) -> Option<()> {
    // In words.
    if let Some(Pair { a, b, .. }) = &Pair::until_request(g) {
        a.calls_in_callbacks();
        is!(b.reject(), Ok(()));
        if a.expect_status(EventType::REJECTED, CONSUMER_DEFINED) {
            check!(a.has_heard(b"no\0"));
            let (is_data, len) = reject_data(a)?;
            check!(is_data);
            is!(usize::from(len), REJ_DATA);
        }
        a.is_in(Situation::Rejected);
        b.is_in(Situation::Rejected);
        // There is nothing to accept, nor to reject, any more.
        is!(b.accept(), Err(EINVAL));
        is!(b.reject(), Err(EINVAL));
        a.is_quiet();
        b.is_quiet();
    }
    // For another reason, which is not the consumer's.
    if let Some(Pair { a, b, .. }) = &Pair::until_request(g) {
        let reason = RejectReason::VENDOR_OPTION_NOT_SUPPORTED;
        is!(b.call(|id| id.reject(None, reason)), Ok(()));
        if a.expect_status(EventType::REJECTED, reason.status()) {
            check!(reject_data(a).is_some_and(|(is_data, _)| !is_data));
        }
    }
    // By what the callback returns.
    if let Some(Pair { a, b, .. }) = &Pair::until_route(g) {
        b.on(EventType::CONNECT_REQUEST, act::refuse);
        is!(a.connect(), Ok(()));
        a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    }
    // An answer is rejected.
    if let Some(Pair { a, b, .. }) = &Pair::until_response(g) {
        b.calls_in_callbacks();
        is!(a.reject(), Ok(()));
        b.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
        is!(a.confirm(), Err(EINVAL));
    }
    stale(g)
}

/// Twice the same number of a queue pair. With C what the older connection was of is no more; else
/// its peer is asked, who lives.
fn stale(g: &Arc<Ground>) -> Option<()> {
    let Pair { a, b, .. } = &Pair::until_established(g)?;
    let other = Part::create(g, PortSpace::TCP, QpType::RC)?;
    other.set_qpn(a.qpn());
    other.set_active();
    is!(other.resolve(), Ok(()));
    other.expect(EventType::ADDR_RESOLVED);
    is!(other.resolve_route(), Ok(()));
    other.expect(EventType::ROUTE_RESOLVED);
    is!(other.connect(), Ok(()));
    other.expect_status(EventType::REJECTED, RejectReason::STALE_CONN.status());
    other.end();
    if parameter::claims_end() {
        a.expect(EventType::DISCONNECTED);
    } else {
        let told = (a.told(), b.told());
        sleep_ms(200);
        is!((a.told(), b.told()), told);
    }
    is!(a.disconnect(), Ok(()));
    b.expect(EventType::DISCONNECTED);
    Some(())
}
