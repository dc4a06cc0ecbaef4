// SPDX-License-Identifier: GPL-2.0

//! Tests of early sends.

use super::*;
use crate::{
    cm::{Expiry, Retransmit, RetryPolicy, RoundTrip, Schedule, Waiting, EARLY_SENDS},
    errno::Errno,
};

const FIRST: Duration = Duration::from_millis(20);
const FAST: RetryPolicy = RetryPolicy::After(FIRST);

/// Returns the times of the sends after the first one, and the time of the end, in microseconds.
/// `policy` returns the policy at each expiry.
fn run(
    (schedule, mut request): (Schedule, Retransmit),
    mut policy: impl FnMut(Instant) -> RetryPolicy,
) -> (Vec<u64>, u64) {
    let mut sends = Vec::new();
    loop {
        let now = request.deadline();
        assert_eq!(
            request.expire(schedule, FAST, now - Duration(1)),
            Expiry::Early
        );
        match request.expire(schedule, policy(now), now) {
            Expiry::Early => panic!("due at {now:?}"),
            Expiry::Later => assert!(request.deadline() > now),
            Expiry::Resend => sends.push(now.as_micros()),
            Expiry::GiveUp => return (sends, now.as_micros()),
        }
    }
}

fn schedule(ms: u64, retries: u8) -> Schedule {
    Schedule::fixed(Duration::from_millis(ms), retries)
}

fn start(schedule: Schedule) -> (Schedule, Retransmit) {
    (schedule, Retransmit::start(schedule, at(0)))
}

/// Returns the retransmission of a request with early sends.
fn with_policy(schedule: Schedule, policy: RetryPolicy, seed: u32) -> (Schedule, Retransmit) {
    (schedule, start(schedule).1.with_policy(policy, seed))
}

fn classic(schedule: Schedule) -> (Vec<u64>, u64) {
    run(start(schedule), |_| RetryPolicy::Classic)
}

#[test]
fn classic_sends_stay_and_a_bounded_number_comes_before_the_first() {
    for ms in [1, 2, 19, 30, 100, 512, 4096, 4608, 8000, 1 << 23] {
        for retries in [0, 1, 2, 15] {
            let schedule = schedule(ms, retries);
            let (classic_sends, classic_end) = classic(schedule);
            for seed in (0..50u32).map(|i| i.wrapping_mul(0x9e37_79b9)) {
                let (sends, end) = run(with_policy(schedule, FAST, seed), |_| FAST);
                assert_eq!(end, classic_end);
                let (early, rest): (Vec<u64>, Vec<u64>) =
                    sends.iter().partition(|send| **send < ms * 1_000);
                assert_eq!(rest, classic_sends);
                assert!(early.len() <= usize::from(EARLY_SENDS));
                assert_eq!(early.is_empty(), ms < 40, "{ms} {early:?}");
                // The first early send is after 20 ms, and up to a quarter later. Then the gaps
                // double, and are 0.5 to 1.5 times as long.
                let mut last = 0;
                for (i, send) in early.iter().enumerate() {
                    let gap = 20_000 << i;
                    let gaps = match i {
                        0 => gap..=gap * 5 / 4,
                        _ => gap / 2..=gap * 3 / 2,
                    };
                    assert!(gaps.contains(&(send - last)), "{early:?}");
                    last = *send;
                }
            }
        }
    }
    let (sends, _) = run(with_policy(schedule(4608, 15), FAST, 7), |_| FAST);
    assert_eq!(sends.len(), 15 + 7);
}

#[test]
fn an_early_send_that_is_late_gives_way_to_the_classic_send() {
    let schedule = schedule(4608, 15);
    let (_, request) = with_policy(schedule, FAST, 7);
    let classic = at(4608);
    let expire = |now| {
        let mut late = request;
        (late.expire(schedule, FAST, now), late.deadline())
    };
    // The gap to the second early send is 40 ms, and half of it is left.
    assert_eq!(expire(at(4588)).0, Expiry::Resend);
    let late = (Expiry::Later, classic);
    assert_eq!(expire(at(4588) + Duration(1)), late);
    assert_eq!(expire(classic - Duration(1)), late);
    assert_eq!(expire(classic).0, Expiry::Resend);
}

#[test]
fn gaps_differ() {
    let first = |seed| with_policy(schedule(4608, 15), FAST, seed).1.deadline();
    let mut all: Vec<Instant> = (0..100).map(first).collect();
    all.sort();
    all.dedup();
    assert!(all.len() > 20, "{}", all.len());
}

#[test]
fn a_peer_whose_answers_take_longer_is_waited_for() {
    let slow = |now: Instant| match now < at(300) {
        true => RetryPolicy::After(Duration::from_millis(300)),
        false => FAST,
    };
    let (sends, end) = run(with_policy(schedule(4608, 15), FAST, 3), slow);
    assert_eq!((sends[0], end), (300_000, classic(schedule(4608, 15)).1));
    // Answers take too long for any early send.
    let slower = |_| RetryPolicy::After(Duration::from_millis(4_000));
    let request = with_policy(schedule(4608, 15), FAST, 3);
    assert_eq!(run(request, slower), classic(schedule(4608, 15)));
}

#[test]
fn nothing_is_sent_early_to_a_silent_peer_that_many_ask() {
    let request = with_policy(schedule(4608, 15), RetryPolicy::Hold(FIRST), 3);
    let mut asked = 0;
    let held = run(request, |_| {
        asked += 1;
        RetryPolicy::Hold(FIRST)
    });
    assert_eq!(held, classic(schedule(4608, 15)));
    assert!(asked < 16 + 10, "{asked}");
    // The peer is no longer silent.
    let (sends, _) = run(request, |now| match now < at(1000) {
        true => RetryPolicy::Hold(FIRST),
        false => FAST,
    });
    assert!((1_000_000..2_000_000).contains(&sends[0]), "{sends:?}");
}

#[test]
fn a_dead_peer_costs_only_itself() {
    let policy = |unanswered, silent| {
        let silent = Duration::from_millis(silent);
        RetryPolicy::of(unanswered, silent, RoundTrip::UNKNOWN, FIRST, false)
    };
    assert_eq!(policy(32, 99_999), FAST);
    assert_eq!(policy(33, 1_001), RetryPolicy::Hold(FIRST));
    assert_eq!(policy(33, 1_000), FAST);
    assert_eq!(policy(u32::MAX, 0), FAST);
}

/// Tests the effect of a later request that was answered, when a peer with a long queue takes long
/// to answer.
#[test]
fn a_request_that_others_overtake_is_sent_again() {
    let slow = (0..60).fold(RoundTrip::UNKNOWN, |trip, _| {
        trip.answered(Duration::from_millis(600), false)
    });
    let policy = |overtaken| RetryPolicy::of(1, Duration::ZERO, slow, FIRST, overtaken);
    let RetryPolicy::After(timeout) = policy(false) else {
        panic!("held");
    };
    assert!(timeout > Duration::from_millis(800));
    let overtaken = RetryPolicy::Overtaken(FIRST);
    assert_eq!(policy(true), overtaken);
    let of_silent = RetryPolicy::of(33, Duration::from_millis(1_001), slow, FIRST, true);
    assert_eq!(of_silent, RetryPolicy::Hold(timeout));
    for overtaken_at in [0, 5, 100, 300, 700] {
        let request = with_policy(schedule(4608, 15), policy(false), 3);
        let (sends, _) = run(request, |now| policy(now >= at(overtaken_at)));
        let soonest = overtaken_at.max(100);
        let latest = soonest.saturating_mul(3).div_ceil(2) + 25;
        let first = sends[0] / 1_000;
        assert!(
            (soonest..=latest).contains(&first),
            "{overtaken_at}: {first}"
        );
    }
    // A request that is not overtaken waits as long as answers take.
    let request = with_policy(schedule(4608, 15), policy(false), 3);
    let mut looks = 0;
    let (sends, _) = run(request, |_| {
        looks += 1;
        policy(false)
    });
    assert_eq!(sends[0], timeout.as_micros());
    assert!(looks < 15 + 10, "{looks}");
}

#[test]
fn switched_off_meanwhile() {
    let request = with_policy(schedule(4608, 15), FAST, 3);
    assert_eq!(
        run(request, |_| RetryPolicy::Classic),
        classic(schedule(4608, 15))
    );
}

#[test]
fn the_total_is_a_limit() {
    for (total, sends) in [(1, 0), (100, 0), (10_000, 2), (1_000_000, 15)] {
        let (schedule, request) = start(schedule(4608, 15));
        let limited = request.within(Duration::from_millis(total));
        let (classic_sends, end) = run((schedule, limited), |_| RetryPolicy::Classic);
        assert_eq!(classic_sends.len(), sends);
        assert_eq!(end, 1_000 * total.min(16 * 4608));
        let (_, early_sends) = run((schedule, limited.with_policy(FAST, 9)), |_| FAST);
        assert_eq!(early_sends, end);
    }
}

/// Tests an MRA that answers an early send: its wait begins with the first classic retry, which
/// would have been answered with an MRA without early sends.
#[test]
fn an_mra_for_an_early_send() {
    let mut c = active();
    c.set_retry_policy(FAST);
    let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
    let first = c.deadline().unwrap();
    assert!(c.timeout(first).contains(Action::Send(Outgoing::Req)));
    let waiting = |ambiguous| Waiting {
        message: Attribute::Req,
        since: at(0),
        ambiguous,
        early: 1,
    };
    assert_eq!(c.waiting(), Some(waiting(true)));
    let _ = receive(
        &mut c,
        Message::Mra(peer_mra(MraMessage::Req, 24)),
        first + Duration(100),
    );
    assert_eq!(c.state(), State::MraReqRcvd);
    // Both copies have arrived, so that the answer is to the first one.
    assert_eq!(c.waiting(), Some(waiting(false)));
    assert_eq!(c.deadline(), Some(at(4608)));
    assert!(c.timeout(at(4608)).contains(Action::Send(Outgoing::Req)));
    assert_eq!(c.deadline(), Some(at(64_608)));
    assert!(c.timeout(at(64_608)).contains(Action::Send(Outgoing::Req)));
    assert_eq!(c.deadline(), Some(at(64_608 + 4608)));
}

/// Tests an MRA for an early REP: as the RTU may have been sent and lost since, the REP is sent
/// again before the first classic retry.
#[test]
fn an_mra_for_an_early_rep() {
    let mut c = passive();
    c.set_retry_policy(FAST);
    let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
    let first = c.deadline().unwrap();
    assert!(is_sent(&c.timeout(first), Outgoing::Rep));
    let _ = receive(&mut c, Message::Mra(peer_mra(MraMessage::Rep, 24)), first);
    let mut late = c.clone();
    let second = loop {
        let now = c.deadline().unwrap();
        if c.timeout(now).contains(Action::Send(Outgoing::Rep)) {
            break now;
        }
    };
    assert!((at(512)..at(700)).contains(&second), "{second:?}");
    // The REP is sent earlier if later requests are answered, because then the RTU was lost.
    late.set_retry_policy(RetryPolicy::Overtaken(FIRST));
    let second = late.deadline().unwrap();
    assert!((at(120)..at(160)).contains(&second), "{second:?}");
    assert!(late.timeout(second).contains(Action::Send(Outgoing::Rep)));
    assert!(late.deadline().unwrap() >= second + Duration::from_millis(200));
    let mut early = 2;
    while c.deadline().unwrap() < at(4096) {
        let now = c.deadline().unwrap();
        early += usize::from(c.timeout(now).contains(Action::Send(Outgoing::Rep)));
    }
    assert!(early <= usize::from(EARLY_SENDS));
    assert_eq!(c.deadline(), Some(at(4096)));
    assert!(c.timeout(at(4096)).contains(Action::Send(Outgoing::Rep)));
    assert_eq!(c.deadline(), Some(at(4096 + 60_000)));
}

#[test]
fn every_request_of_a_connection() {
    let mut req = active();
    req.set_retry_policy(FAST);
    let _ = req.connect(&connect_params(), &[], at(0)).unwrap();
    let mut rep = passive();
    rep.set_retry_policy(FAST);
    let _ = rep.accept(&accept_params(), &[], at(0)).unwrap();
    let mut dreq = Situation::EstablishedPassive.connection();
    assert_eq!(dreq.waiting(), None);
    dreq.set_retry_policy(FAST);
    let _ = dreq.disconnect(&[], at(0)).unwrap();
    for (mut c, message) in [
        (req, Outgoing::Req),
        (rep, Outgoing::Rep),
        (dreq, Outgoing::Dreq),
    ] {
        let first = c.deadline().unwrap();
        assert!((at(20)..=at(25)).contains(&first));
        let waiting = |ambiguous| Waiting {
            message: message.attribute(),
            since: at(0),
            ambiguous,
            early: ambiguous.into(),
        };
        assert_eq!(c.waiting(), Some(waiting(false)));
        assert!(is_sent(&c.timeout(first), message));
        assert_eq!(c.waiting(), Some(waiting(true)));
        // The peer becomes slow.
        c.set_retry_policy(RetryPolicy::After(Duration::from_millis(150)));
        let second = c.deadline().unwrap();
        let only_later = c.timeout(second);
        assert!(only_later.contains(Action::Timer));
        assert!(!is_sent(&only_later, message));
        assert_eq!(c.deadline(), Some(at(150)));
    }
}

#[test]
fn a_request_is_parked() {
    for situation in Situation::ALL {
        let mut c = situation.connection();
        let before = c.clone();
        let message = match situation {
            Situation::ReqRcvd => MraMessage::Req,
            Situation::RepRcvd => MraMessage::Rep,
            _ => {
                assert_eq!(c.park(22), Err(Errno::EINVAL), "{situation:?}");
                assert_eq!(c, before);
                continue;
            }
        };
        let actions = c.park(22).unwrap();
        assert!(is_sent(&actions, Outgoing::Mra(message)));
        let mad = encoded(&c, Outgoing::Mra(message));
        let (_, Message::Mra(mra)) = wire::decode(&mad).unwrap() else {
            panic!("no MRA");
        };
        assert_eq!((mra.service_timeout, mra.message), (22, message));
        assert_eq!(mra.local_comm_id, OWN_ID);
        if message == MraMessage::Req {
            // A repeated REQ is answered with another MRA, and has no other effect.
            let parked = c.clone();
            let again = c.duplicate_req(at(9));
            assert!(again.contains(Action::Send(Outgoing::Mra(MraMessage::Req))));
            assert_eq!(c, parked);
        }
    }
}

/// Tests that requests that were sent together, and lost together, come again at all times: some in
/// each 10 ms. A receiver that has no room for all at once is idle between no two groups of them.
#[test]
fn requests_that_were_lost_together_come_again_apart() {
    let schedule = schedule(4608, 15);
    let mut counts = [0; 60];
    for seed in (0..1_000u32).map(|i| i.wrapping_mul(0x9e37_79b9)) {
        let (sends, _) = run(with_policy(schedule, FAST, seed), |_| FAST);
        for send in sends {
            if let Some(count) = counts.get_mut((send / 10_000) as usize) {
                *count += 1;
            }
        }
    }
    assert!(counts[5..].iter().all(|count| *count > 0), "{counts:?}");
}
