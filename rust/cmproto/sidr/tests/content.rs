// SPDX-License-Identifier: GPL-2.0

//! Tests of the contents of messages, and of when they are sent.

use super::*;
use crate::cm::{RetryPolicy, EARLY_SENDS};

/// Returns the message of an action, as on the wire.
fn encoded(r: &Resolution, message: Outgoing) -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    r.encode(message, &mut mad).unwrap();
    mad
}

fn padded<const N: usize>(data: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    field[..data.len()].copy_from_slice(data);
    field
}

#[test]
fn a_question() {
    let mad = encoded(&Situation::ReqSent.resolution(), Outgoing::Req);
    let (hdr, msg) = wire::decode(&mad).unwrap();
    assert_eq!(hdr, Header::new(Attribute::SidrReq, TID));
    let expected = Message::SidrReq(SidrReq {
        private_data: &padded::<216>(b"question"),
        ..question()
    });
    assert_eq!(msg, expected);
}

#[test]
fn an_answer() {
    let mut r = Situation::ReqRcvd.resolution();
    let params = ReplyParams {
        vendor_id: 0xff12_3456,
        attr_mod: 7,
        ..ReplyParams::success(0xff00_0011, 5)
    };
    let _ = r.reply(&params, b"info", b"answer", at(0)).unwrap();
    let mad = encoded(&r, Outgoing::Rep);
    let (hdr, msg) = wire::decode(&mad).unwrap();
    assert_eq!((hdr.tid, hdr.attr_mod), (TID, 7));
    let expected = Message::SidrRep(SidrRep {
        request_id: ID,
        status: 0,
        info_len: 4,
        vendor_id: 0x12_3456,
        qpn: 0x11,
        service_id: SERVICE,
        qkey: 5,
        info: &padded(b"info"),
        private_data: &padded::<136>(b"answer"),
    });
    assert_eq!(msg, expected);
}

#[test]
fn a_refusal_names_no_queue_pair() {
    for cause in [DestroyCause::User, DestroyCause::NoMemory] {
        let mut r = Situation::ReqRcvd.resolution();
        let _ = r.destroy(cause, at(0));
        let mad = encoded(&r, Outgoing::Rep);
        let (hdr, msg) = wire::decode(&mad).unwrap();
        assert_eq!(hdr.tid, TID);
        let expected = SidrRep {
            private_data: &[0; 136],
            ..refusal(&question(), Status::REJECT)
        };
        assert_eq!(msg, Message::SidrRep(expected));
    }
}

#[test]
fn a_number_used_for_another_question() {
    let hdr = Header::new(Attribute::SidrReq, TID);
    let r = Situation::ReqRcvd.resolution();
    assert!(r.is_same_req(&hdr, &question()));
    let req = |change: fn(&mut SidrReq<'_>)| {
        let mut req = question();
        change(&mut req);
        r.is_same_req(&hdr, &req)
    };
    assert!(!req(|req| req.request_id ^= 1));
    assert!(!req(|req| req.service_id ^= 1));
    assert!(!req(|req| req.pkey ^= 1));
    let other = Header::new(Attribute::SidrReq, TID ^ 1);
    assert!(!r.is_same_req(&other, &question()));
}

#[test]
fn the_same_bytes_each_time() {
    for (situation, message) in [
        (Situation::ReqSent, Outgoing::Req),
        (Situation::Answered, Outgoing::Rep),
    ] {
        let mut r = situation.resolution();
        let first = encoded(&r, message);
        let _ = r.duplicate_req(at(50));
        let _ = r.timeout(at(5_000));
        assert_eq!(encoded(&r, message), first);
    }
}

#[test]
fn only_what_was_to_be_sent() {
    for situation in Situation::ALL {
        let r = situation.resolution();
        for message in [Outgoing::Req, Outgoing::Rep] {
            let expected = match situation {
                Situation::Fresh | Situation::ReqRcvd => false,
                Situation::ReqSent | Situation::Resolved => message == Outgoing::Req,
                Situation::Answered | Situation::Forgotten => message == Outgoing::Rep,
            };
            let mut mad = [0; MAD_LEN];
            let result = r.encode(message, &mut mad);
            assert_eq!(result.is_ok(), expected, "{message:?} in {situation:?}");
            assert_eq!(mad == [0; MAD_LEN], !expected);
        }
    }
}

/// Calls `timeout` at each deadline of `r` until its end. Returns the times of all sends and of the
/// end, in milliseconds.
fn run(mut r: Resolution) -> (Vec<u64>, u64) {
    let mut sends = Vec::new();
    while let Some(deadline) = r.deadline() {
        let ms = deadline.as_micros() / 1_000;
        assert!(r
            .timeout(Instant::from_micros(deadline.as_micros() - 1))
            .is_empty());
        for action in r.timeout(deadline) {
            match action {
                Action::Send(_) => sends.push(ms),
                Action::Release => return (sends, ms),
                Action::Timer | Action::ReleaseRequest | Action::Deliver(_) | Action::Count(_) => {}
            }
        }
    }
    panic!("no end");
}

#[test]
fn sixteen_questions() {
    let (sends, end) = run(Situation::ReqSent.resolution());
    let expected: Vec<_> = (1..=15).map(|i| i * 4096).collect();
    assert_eq!((sends, end), (expected, 16 * 4096));
}

#[test]
fn retries_are_clamped() {
    for (asked, sent) in [(0, 0), (1, 1), (15, 15), (16, 15), (255, 15)] {
        let mut r = Situation::Fresh.resolution();
        let params = ResolveParams {
            timeout: Duration::from_millis(10),
            max_cm_retries: asked,
            ..ResolveParams::new(SERVICE, 0xffff)
        };
        let _ = r.resolve(&params, &[], at(0)).unwrap();
        let (sends, end) = run(r);
        assert_eq!((sends.len(), end), (sent, (sent as u64 + 1) * 10));
    }
}

/// Tests that a SIDR_REQ is sent early, but only looked at again while early sends are held back.
#[test]
fn a_question_is_asked_early() {
    let fast = RetryPolicy::After(Duration::from_millis(20));
    let mut firsts = Vec::new();
    for id in 0..50 {
        let mut r = Resolution::new(id, TID);
        r.set_retry_policy(fast);
        let params = ResolveParams::new(SERVICE, 0xffff);
        let _ = r.resolve(&params, b"question", at(0)).unwrap();
        let first = r.deadline().unwrap();
        assert!((at(20)..=at(25)).contains(&first), "{first:?}");
        firsts.push(first);
        let waiting = r.waiting().unwrap();
        assert_eq!(
            (waiting.message, waiting.since, waiting.ambiguous),
            (Attribute::SidrReq, at(0), false)
        );

        // Early sends are held back because the peer is silent, and enough other requests wait for
        // it.
        let mut held = r.clone();
        held.set_retry_policy(RetryPolicy::Hold(Duration::from_millis(20)));
        let actions = held.timeout(first);
        assert_eq!(actions.collect::<Vec<_>>(), [Action::Timer]);
        assert!(held.deadline().is_some_and(|next| next > first));

        let actions = r.timeout(first);
        assert!(actions.contains(Action::Send(Outgoing::Req)));
        assert!(actions.contains(Action::Timer));
        assert!(r.waiting().unwrap().ambiguous);
        let (sends, end) = run(r);
        assert!((15..=15 + usize::from(EARLY_SENDS) - 1).contains(&sends.len()));
        assert_eq!(sends[sends.len() - 15], 4_096);
        assert_eq!(end, 16 * 4_096);
    }
    firsts.sort();
    firsts.dedup();
    assert!(firsts.len() > 10, "{}", firsts.len());
}

#[test]
fn a_question_ends_at_its_deadline() {
    for policy in [
        RetryPolicy::Classic,
        RetryPolicy::After(Duration::from_millis(20)),
    ] {
        let mut r = Situation::Fresh.resolution();
        r.set_retry_policy(policy);
        let params = ResolveParams {
            total: Duration::from_millis(10_000),
            ..ResolveParams::new(SERVICE, 0xffff)
        };
        let _ = r.resolve(&params, &[], at(0)).unwrap();
        assert_eq!(run(r).1, 10_000);
    }
}

#[test]
fn an_answer_outlives_its_question() {
    let (sends, end) = run(Situation::Answered.resolution());
    assert_eq!((sends, end), (vec![], 65_536));
    // The SIDR_REP is kept for longer than the last of a kernel's 16 SIDR_REQs needs to arrive.
    assert!(Resolution::MEMORY > ResolveParams::TIMEOUT.saturating_mul(15));
}

/// Tests two sides on a network that loses the first `lost` SIDR_REPs.
#[test]
fn a_lost_answer_is_given_again_without_the_user() {
    for lost in 0..=16u64 {
        let mut asking = Situation::ReqSent.resolution();
        let mut answering = Situation::Answered.resolution();
        let mut now = at(0);
        for _ in 0..lost {
            now = asking.deadline().unwrap();
            let again = asking.timeout(now).contains(Action::Send(Outgoing::Req));
            assert_eq!(again, now < at(16 * 4096));
            if again {
                let actions = answering.duplicate_req(now);
                assert!(actions.contains(Action::Send(Outgoing::Rep)));
            }
        }
        let mad = encoded(&answering, Outgoing::Rep);
        let (_, msg) = wire::decode(&mad).unwrap();
        let heard = Action::Deliver(Event::RepReceived {
            status: Status::SUCCESS,
        });
        assert_eq!(asking.receive(&msg, now).contains(heard), lost < 16);
        assert!(asking.is_closed());
    }
}
