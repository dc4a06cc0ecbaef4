// SPDX-License-Identifier: GPL-2.0

//! Tests of the waits that a peer asks for by MRAs, and of their limits.

use super::*;
use crate::cm::{RetryPolicy, Tunable, Tuning, EARLY_SENDS};

const FAST: RetryPolicy = RetryPolicy::After(Duration::from_millis(20));
const POLICIES: [RetryPolicy; 2] = [RetryPolicy::Classic, FAST];

/// Returns a connection whose REQ was sent at time 0.
fn asking(policy: RetryPolicy, retries: u8) -> Connection {
    let mut c = active();
    c.set_retry_policy(policy);
    let params = ConnectParams {
        max_cm_retries: retries,
        ..connect_params()
    };
    let _ = c.connect(&params, &[], at(0)).unwrap();
    c
}

/// Returns a connection whose REP was sent at time 0.
fn answering(policy: RetryPolicy) -> Connection {
    let mut c = passive();
    c.set_retry_policy(policy);
    let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
    c
}

/// Runs `c` until its request is given up.
///
/// Each time that `message` is sent, `peer` returns the time code of an MRA for `mra`, if it sends
/// one. Returns the times of the sends after the first one, and of the end, in milliseconds.
fn run(
    c: &mut Connection,
    (message, mra): (Outgoing, MraMessage),
    mut peer: impl FnMut(u64) -> Option<u8>,
) -> (Vec<u64>, u64) {
    let mut sends = Vec::new();
    loop {
        let now = c.deadline().unwrap();
        let actions = c.timeout(now);
        let over = [Event::ReqError, Event::RepError, Event::DreqError];
        if over
            .iter()
            .any(|event| actions.contains(Action::Deliver(*event)))
        {
            return (sends, millis(now));
        }
        if !is_sent(&actions, message) {
            continue;
        }
        sends.push(millis(now));
        if let Some(code) = peer(millis(now)) {
            let mra = Message::Mra(peer_mra(mra, code));
            let _ = receive(c, mra, now);
        }
    }
}

const REQ: (Outgoing, MraMessage) = (Outgoing::Req, MraMessage::Req);
const REP: (Outgoing, MraMessage) = (Outgoing::Rep, MraMessage::Rep);

/// Tests a peer that answers each copy of a request with an MRA, as Linux does until its user has
/// answered. The waits are of 60 s, the limit for an MRA.
#[test]
fn every_send_may_be_answered_by_an_mra() {
    for policy in POLICIES {
        let (sends, end) = run(&mut asking(policy, 15), REQ, |_| Some(24));
        let early = usize::from(policy == FAST);
        assert_eq!(sends.len(), 15 + early);
        assert_eq!(sends[early], 4_608);
        for (n, send) in (0..).zip(&sends[early..]) {
            assert_eq!(*send, 4_608 + n * 60_000, "{policy:?}");
        }
        assert_eq!(end, 4_608 + 15 * 60_000, "{policy:?}");
    }
    let (sends, end) = run(&mut answering(RetryPolicy::Classic), REP, |_| Some(24));
    assert_eq!((sends.len(), sends[14], end), (15, 844_096, 904_096));
}

/// Tests that a parked request is sent again as often as its retries allow, each time after the
/// wait that the MRA asks for.
#[test]
fn a_parked_request_asks_as_often_as_it_may() {
    for policy in POLICIES {
        let mut c = asking(policy, 15);
        let told = receive(&mut c, Message::Mra(peer_mra(MraMessage::Req, 22)), at(1));
        assert!(told.contains(Action::Deliver(Event::MraReceived)));
        let (sends, end) = run(&mut c, REQ, |_| Some(22));
        let wait = 16_384 + 512;
        assert_eq!(sends.len(), 15);
        for (n, send) in (1..).zip(sends) {
            assert!(send.abs_diff(n * wait) < 5, "{policy:?} {n}: {send}");
        }
        assert!(end.abs_diff(16 * wait) < 5, "{policy:?}: {end}");
    }
}

/// Tests that one MRA is effective for each send, however many arrive, and that the user is told of
/// one.
#[test]
fn a_flood_of_mras_is_no_longer_wait() {
    for (mut c, kind) in [(asking(FAST, 15), REQ), (answering(FAST), REP)] {
        let mra = Message::Mra(peer_mra(kind.1, 24));
        let (mut sends, mut told, mut end) = (0, 0, None);
        for now in (0..2_000_000).step_by(50).map(at) {
            let mut seen = |actions: Actions| {
                told += usize::from(actions.contains(Action::Deliver(Event::MraReceived)));
                sends += usize::from(actions.contains(Action::Send(kind.0)));
            };
            seen(receive(&mut c, mra, now));
            if c.deadline().is_some_and(|due| due <= now) {
                seen(c.timeout(now));
            }
            if c.is_closed() && end.is_none() {
                end = Some(now);
            }
        }
        assert_eq!(told, 1);
        assert!(sends <= 15 + usize::from(EARLY_SENDS));
        let longest = at(16 * 60_000 + 16 * 200);
        assert!(end.is_some_and(|end| end <= longest), "{kind:?} {end:?}");
    }
}

/// Tests that a second MRA between two sends is dropped, even if it asks for more time, and that
/// the user is not told of it.
#[test]
fn one_mra_for_each_send() {
    let mut c = asking(RetryPolicy::Classic, 15);
    let mra = |c: &mut Connection, code, ms| {
        receive(c, Message::Mra(peer_mra(MraMessage::Req, code)), at(ms))
    };
    let _ = mra(&mut c, 20, 1_000);
    let before = c.clone();
    let again = mra(&mut c, 24, 2_000);
    assert_eq!(again, Actions::count(Counter::Duplicate(Attribute::Mra)));
    assert_eq!(c, before);
    assert!(c.timeout(at(5_608)).contains(Action::Send(Outgoing::Req)));
    let next = mra(&mut c, 20, 6_000);
    assert!(next.contains(Action::Count(Counter::Duplicate(Attribute::Mra))));
    assert!(next.contains(Action::Timer));
    assert!(!next.contains(Action::Deliver(Event::MraReceived)));
    assert_eq!(c.state(), State::MraReqRcvd);
    assert_eq!(c.deadline(), Some(at(6_000 + 4_096 + 512)));
}

/// Tests that an MRA has the same effect with and without early sends, whether there are retries
/// left or not.
#[test]
fn an_mra_is_worth_the_same_in_any_pace() {
    for retries in [0, 1, 2, 15] {
        for code in [16, 20, 22, 24] {
            let [classic, fast] = POLICIES.map(|policy| {
                let mut c = asking(policy, retries);
                while c.deadline().unwrap() < at(30) {
                    let now = c.deadline().unwrap();
                    let _ = c.timeout(now);
                }
                let _ = receive(
                    &mut c,
                    Message::Mra(peer_mra(MraMessage::Req, code)),
                    at(30),
                );
                run(&mut c, REQ, |_| None).1
            });
            // The wait of an MRA for an early send begins with the next classic send, in addition
            // to the time until then. Any other wait begins with the MRA.
            let interval = 4_608;
            let wait = ((1 << (code - 8)) + 512).min(60_000);
            let all = (u64::from(retries) + 1) * interval;
            assert_eq!(classic, all.max(30 + wait + u64::from(retries) * interval));
            let deferred = all.max(wait + u64::from(retries) * interval);
            let expected = if retries == 0 { classic } else { deferred };
            assert_eq!(fast, expected, "retries {retries}, code {code}");
        }
    }
}

/// Tests that an MRA after the first classic retry is not taken as one for an early send.
#[test]
fn an_mra_for_a_later_send_counts_at_once() {
    let mut c = asking(FAST, 15);
    while c.deadline().unwrap() <= at(4_608) {
        let now = c.deadline().unwrap();
        let _ = c.timeout(now);
    }
    assert_eq!(c.deadline(), Some(at(2 * 4_608)));
    let _ = receive(
        &mut c,
        Message::Mra(peer_mra(MraMessage::Req, 22)),
        at(4_700),
    );
    assert_eq!(c.deadline(), Some(at(4_700 + 16_384 + 512)));
}

/// Tests that a REP is sent again before the wait of an MRA is over, because the RTU may have been
/// sent and lost since.
#[test]
fn a_rep_resumes_after_each_mra() {
    // The first MRA is for an early send or for the first classic retry, and the second for the
    // next retry.
    for policy in POLICIES {
        let mut c = answering(policy);
        let mra = Message::Mra(peer_mra(MraMessage::Rep, 24));
        if policy == FAST {
            let first = c.deadline().unwrap();
            assert!(is_sent(&c.timeout(first), Outgoing::Rep));
            let _ = receive(&mut c, mra, at(30));
        }
        while c.deadline().unwrap() < at(4_096) {
            let now = c.deadline().unwrap();
            let _ = c.timeout(now);
        }
        assert!(is_sent(&c.timeout(at(4_096)), Outgoing::Rep));
        c.set_retry_policy(FAST);
        let _ = receive(&mut c, mra, at(4_100));
        let (sends, _) = run(&mut c, REP, |_| None);
        assert!((4_612..5_300).contains(&sends[0]), "{policy:?} {sends:?}");
        // In total there are no more early sends than without an MRA.
        assert!(
            sends.len() <= 14 + usize::from(EARLY_SENDS),
            "{policy:?} {sends:?}"
        );
    }
}

/// Tests that the gaps between early sends of a REP double after an MRA.
#[test]
fn a_rep_that_resumes_is_sent_at_gaps_that_double() {
    let mut c = answering(FAST);
    let first = c.deadline().unwrap();
    let _ = c.timeout(first);
    let _ = receive(&mut c, Message::Mra(peer_mra(MraMessage::Rep, 24)), at(30));
    let (sends, _) = run(&mut c, REP, |_| None);
    let early: Vec<_> = sends.into_iter().take_while(|send| *send < 4_096).collect();
    assert!((2..=3).contains(&early.len()), "{early:?}");
    assert!((542..700).contains(&early[0]), "{early:?}");
    for pair in early.windows(2) {
        assert!(
            (pair[0] * 7 / 4..pair[0] * 5 / 2).contains(&pair[1]),
            "{early:?}"
        );
    }
}

/// Tests that the gaps after the first early send are no shorter than the time before it.
#[test]
fn gaps_are_no_shorter_than_the_first_wait() {
    let first = Duration::from_millis(400);
    for policy in [RetryPolicy::After(first), RetryPolicy::Overtaken(first)] {
        let (sends, _) = run(&mut asking(policy, 15), REQ, |_| None);
        assert_eq!(sends[0], 400, "{policy:?}");
        assert!(sends[1] >= 800, "{policy:?} {sends:?}");
    }
}

/// Tests that the limit of the total time holds for each kind of request, whatever the peer asks
/// for.
#[test]
fn no_mra_puts_off_the_deadline() {
    let mut tuning = Tuning::NONE;
    tuning.set(Tunable::Deadline, 10_000).unwrap();
    let limits = tuning.limits();
    for policy in POLICIES {
        for code in [None, Some(8), Some(20), Some(24), Some(31)] {
            let mut c = active();
            c.set_limits(&limits);
            c.set_retry_policy(policy);
            let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
            assert_eq!(run(&mut c, REQ, |_| code).1, 10_000, "{policy:?} {code:?}");
            let mut c = passive_with(&peer_req(), &limits);
            c.set_retry_policy(policy);
            let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
            assert_eq!(run(&mut c, REP, |_| code).1, 10_000, "{policy:?} {code:?}");
        }
        let mut c = Situation::EstablishedActive.connection();
        c.set_limits(&limits);
        c.set_retry_policy(policy);
        let _ = c.disconnect(&[], at(0)).unwrap();
        let dreq = (Outgoing::Dreq, MraMessage::Other);
        assert_eq!(run(&mut c, dreq, |_| None).1, 10_000);
    }
    // The limit may be shorter than one interval, or longer than all of them.
    for (ms, end) in [(500, 500), (3_600_000, 16 * 4_608)] {
        tuning.set(Tunable::Deadline, ms).unwrap();
        let mut c = active();
        c.set_limits(&tuning.limits());
        let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
        assert_eq!(run(&mut c, REQ, |_| None).1, end);
    }
}

/// Tests that the largest limit of the total time is effective, and that a greater one still is a
/// limit.
#[test]
fn the_longest_deadlines() {
    let longest = Duration::from_millis(Tunable::Deadline.max().into());
    for (total, end) in [
        (longest, longest.as_micros() / 1_000),
        (Duration::from_secs(4_400), 4_294_967),
        (Duration(u64::MAX - 1), 4_294_967),
        (Duration::MAX, 16 * ((1 << 20) + 512)),
    ] {
        let mut c = active();
        c.set_limits(&Limits {
            total,
            ..Limits::DEFAULT
        });
        let params = ConnectParams {
            remote_cm_response_timeout: 28,
            ..connect_params()
        };
        let _ = c.connect(&params, &[], at(0)).unwrap();
        assert_eq!(run(&mut c, REQ, |_| None).1, end, "{total:?}");
    }
}

/// Tests the effect of the largest values of the other tunables.
#[test]
fn the_largest_values() {
    let mut tuning = Tuning::NONE;
    for tunable in Tunable::ALL {
        tuning.set(tunable, tunable.max()).unwrap();
    }
    let most = Tunable::ALL.map(Tunable::max);
    assert_eq!(
        most,
        [31, 15, 3_600_000, 31, 10_000, 2_048, 1, 60_000, 7_200]
    );
    assert_eq!(tuning.limits().total, Duration::from_secs(3_600));
    assert_eq!(tuning.response_timeout().get(), 31);
    assert_eq!(tuning.max_retries(), 15);
    assert_eq!(tuning.early_retry(), Some(Duration::from_millis(10_000)));
    assert_eq!(tuning.parking(), 2_048);
    assert_eq!(tuning.limits().keepalive, Some(Duration::from_secs(7_200)));
    let code = |value| {
        let mut tuning = Tuning::NONE;
        tuning.set(Tunable::Timewait, value).unwrap();
        tuning.limits()
    };
    // The time wait is that of the connection (code 31), unless a shorter one is set.
    for (value, wait) in [(0, 1), (8, 1), (12, 16), (22, 1 << 14), (31, 1 << 23)] {
        let mut req = peer_req();
        req.primary.local_ack_timeout = 31;
        let mut c = passive_with(&req, &code(value));
        let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
        let _ = c.destroy(DestroyCause::User, at(0));
        assert_eq!(c.deadline(), Some(at(wait)), "{value}");
    }
}

/// Tests that a policy of no time is one of a millisecond, and that the request ends.
#[test]
fn a_pace_of_zero_advances() {
    for make in [
        RetryPolicy::Hold,
        RetryPolicy::After,
        RetryPolicy::Overtaken,
    ] {
        let mut c = asking(make(Duration::ZERO), 15);
        let mut steps = 0;
        while c.deadline().unwrap() < at(4_608) {
            let now = c.deadline().unwrap();
            assert!(now >= at(1));
            let _ = c.timeout(now);
            assert!(c.deadline().unwrap() > now);
            steps += 1;
        }
        assert!(steps < 30, "{steps}");
    }
}

/// Tests that the timers of connections that start together expire at different times.
#[test]
fn each_connection_has_gaps_of_its_own() {
    let mut firsts: Vec<_> = (0..100)
        .map(|id| {
            let mut c = <Connection>::new(id, OWN_GUID, OWN_TID);
            c.set_retry_policy(FAST);
            let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
            c.deadline()
        })
        .collect();
    firsts.sort();
    firsts.dedup();
    assert!(firsts.len() > 20, "{}", firsts.len());
}
