// SPDX-License-Identifier: GPL-2.0

//! Tests of the times of retries and of the end, in milliseconds.

use super::*;

/// Calls `timeout` at each deadline of `c` until there is none. Returns the times of all sends of
/// `message`, and the times of the events.
fn run(mut c: Connection, message: Outgoing) -> (Vec<u64>, Vec<(u64, Event)>) {
    let (mut sends, mut events) = (Vec::new(), Vec::new());
    while let Some(deadline) = c.deadline() {
        let early = Instant::from_micros(deadline.as_micros() - 1);
        let before = c.clone();
        assert!(c.timeout(early).is_empty());
        assert_eq!(c, before);
        for action in c.timeout(deadline) {
            match action {
                Action::Send(sent) | Action::SendUnasked(sent) => {
                    assert_eq!(sent, message);
                    sends.push(millis(deadline));
                }
                Action::Deliver(event) => events.push((millis(deadline), event)),
                Action::Timer
                | Action::ReleaseRemoteIds
                | Action::Release
                | Action::EndLap { .. }
                | Action::Count(_) => {}
            }
        }
    }
    assert!(c.is_closed());
    (sends, events)
}

fn every(interval: u64, count: u64) -> Vec<u64> {
    (1..=count).map(|i| i * interval).collect()
}

#[test]
fn req() {
    let (sends, events) = run(Situation::ReqSent.connection(), Outgoing::Req);
    assert_eq!(sends, every(4608, 15));
    assert_eq!(events, [(16 * 4608, Event::ReqError)]);
}

#[test]
fn rep() {
    let (sends, events) = run(Situation::RepSent.connection(), Outgoing::Rep);
    assert_eq!(sends, every(4096, 15));
    assert_eq!(events, [(16 * 4096, Event::RepError)]);
}

#[test]
fn active_dreq() {
    let (sends, events) = run(Situation::DreqSent.connection(), Outgoing::Dreq);
    assert_eq!(sends, every(4608, 15));
    let over = 16 * 4608;
    assert_eq!(
        events,
        [(over, Event::DreqError), (over + 512, Event::TimewaitExit)]
    );
}

#[test]
fn passive_dreq() {
    let mut c = Situation::EstablishedPassive.connection();
    let _ = c.disconnect(&[], at(0)).unwrap();
    let (sends, events) = run(c, Outgoing::Dreq);
    assert_eq!(sends, every(4096, 15));
    let over = 16 * 4096;
    assert_eq!(
        events,
        [(over, Event::DreqError), (over + 512, Event::TimewaitExit)]
    );
}

#[test]
fn no_retries() {
    let mut c = active();
    let params = ConnectParams {
        max_cm_retries: 0,
        ..connect_params()
    };
    let _ = c.connect(&params, &[], at(0)).unwrap();
    let (sends, events) = run(c, Outgoing::Req);
    assert_eq!(sends, []);
    assert_eq!(events, [(4608, Event::ReqError)]);
}

#[test]
fn a_late_timer_delays_all_further_sends() {
    let mut c = Situation::ReqSent.connection();
    assert!(c.timeout(at(5000)).contains(Action::Send(Outgoing::Req)));
    assert_eq!(c.deadline(), Some(at(5000 + 4608)));
}

#[test]
fn times_of_every_code() {
    for code in 0..=31u8 {
        let ms = 1u64 << code.saturating_sub(8);
        let mut c = active();
        let params = ConnectParams {
            packet_life_time: code,
            remote_cm_response_timeout: 31 - code,
            ..connect_params()
        };
        let _ = c.connect(&params, &[], at(0)).unwrap();
        let other = 1u64 << (31 - code).saturating_sub(8);
        assert_eq!(c.deadline(), Some(at(2 * ms + other)));

        let req = Req {
            local_cm_response_timeout: code,
            ..peer_req()
        };
        let mut c = passive_with(&req, &Limits::DEFAULT);
        let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
        assert_eq!(c.deadline(), Some(at(ms.min(8000))), "code {code}");
    }
}

#[test]
fn codes_too_large_are_clamped() {
    let mut c = active();
    let params = ConnectParams {
        packet_life_time: 255,
        remote_cm_response_timeout: 255,
        local_cm_response_timeout: 255,
        ca_ack_delay: 255,
        max_cm_retries: 255,
        ..connect_params()
    };
    let _ = c.connect(&params, &[], at(0)).unwrap();
    assert_eq!(c.deadline(), Some(at(3 << 23)));
    let (sends, _) = run(c, Outgoing::Req);
    assert_eq!(sends.len(), 15);
}

#[test]
fn a_peer_is_believed_within_limits() {
    let req = Req {
        local_cm_response_timeout: 31,
        max_cm_retries: 15,
        ..peer_req()
    };
    let limits = Limits {
        passive_retries: 2,
        ..Limits::DEFAULT
    };
    let mut c = passive_with(&req, &limits);
    let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
    let (sends, events) = run(c, Outgoing::Rep);
    assert_eq!(sends, [8000, 16000]);
    assert_eq!(events, [(24000, Event::RepError)]);
}

#[test]
fn an_mra_extends_one_wait() {
    // The wait is 2^12 ms of service timeout and 512 ms of ack timeout.
    let mut c = Situation::ReqSent.connection();
    let actions = receive(
        &mut c,
        Message::Mra(peer_mra(MraMessage::Req, 20)),
        at(1000),
    );
    assert!(actions.contains(Action::Timer));
    let first = 1000 + 4096 + 512;
    let (sends, events) = run(c, Outgoing::Req);
    let expected: Vec<u64> = (0..15).map(|i| first + i * 4608).collect();
    assert_eq!(sends, expected);
    assert_eq!(events, [(first + 15 * 4608, Event::ReqError)]);
}

#[test]
fn an_mra_extends_by_a_minute_at_most() {
    for code in 24..=255 {
        let mut c = Situation::RepSent.connection();
        let _ = receive(
            &mut c,
            Message::Mra(peer_mra(MraMessage::Rep, code)),
            at(1000),
        );
        assert_eq!(c.deadline(), Some(at(61_000)));
        // Another MRA before the next send changes nothing.
        let before = c.clone();
        let again = receive(
            &mut c,
            Message::Mra(peer_mra(MraMessage::Rep, code)),
            at(50_000),
        );
        assert_eq!(c, before);
        assert_eq!(again, Actions::count(Counter::Duplicate(Attribute::Mra)));
    }
}

#[test]
fn an_mra_never_shortens_a_wait() {
    let mut c = Situation::ReqSent.connection();
    let _ = receive(&mut c, Message::Mra(peer_mra(MraMessage::Req, 0)), at(1));
    assert_eq!(c.deadline(), Some(at(4608)));
}

#[test]
fn time_wait_of_the_active_side() {
    // Each case has a packet life time, a target ack delay, and the resulting code.
    for (life_time, delay, code) in [
        (16, 15, 17),
        (16, 16, 18),
        (16, 17, 18),
        (14, 20, 20),
        (0, 0, 2),
        (31, 31, 31),
    ] {
        let mut c = active();
        let params = ConnectParams {
            packet_life_time: life_time,
            ..connect_params()
        };
        let _ = c.connect(&params, &[], at(0)).unwrap();
        let rep = Rep {
            target_ack_delay: delay,
            ..peer_rep()
        };
        let _ = receive(&mut c, Message::Rep(rep), at(0));
        assert_eq!(c.qp_attr(QpState::Rts).unwrap().timeout, code);
        let _ = c.establish(&[], at(0)).unwrap();
        let _ = c.destroy(DestroyCause::User, at(7));
        let wait = 1u64 << code.min(22).saturating_sub(8);
        assert_eq!(c.deadline(), Some(at(7 + wait)));
    }
}

#[test]
fn time_wait_of_the_passive_side() {
    for code in 0..=31u8 {
        let mut req = peer_req();
        req.primary.local_ack_timeout = code;
        let mut c = passive_with(&req, &Limits::DEFAULT);
        assert_eq!(c.qp_attr(QpState::Rts).unwrap().timeout, code.max(1));
        let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
        let _ = c.destroy(DestroyCause::User, at(0));
        let wait = 1u64 << code.min(22).saturating_sub(8);
        assert_eq!(c.deadline(), Some(at(wait)));
    }
}

#[test]
fn a_request_that_was_rejected_as_stale_waits_too() {
    let mut c = Situation::ReqSent.connection();
    let rej = peer_rej(&c, Reason::STALE_CONN);
    let _ = receive(&mut c, Message::Rej(rej), at(5));
    assert_eq!(
        (c.state(), c.deadline()),
        (State::Timewait, Some(at(5 + 512)))
    );
}
