// SPDX-License-Identifier: GPL-2.0

//! Tests of what happens to an established connection without a message of its user.

use super::*;

const ESTABLISHED: [Situation; 2] = [Situation::EstablishedActive, Situation::EstablishedPassive];

/// Returns a span of `ms` milliseconds.
fn span(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Returns the events that `actions` deliver.
fn told(actions: Actions) -> Vec<Event> {
    actions
        .filter_map(|action| match action {
            Action::Deliver(event) => Some(event),
            _ => None,
        })
        .collect()
}

/// Returns a connection whose user was told that the link is down, at 200 ms.
fn lost(situation: Situation) -> Connection {
    let mut c = situation.connection();
    let _ = c.link_down(span(200), at(0));
    assert_eq!(told(c.timeout(at(200))), [Event::LinkDown]);
    c
}

#[test]
fn a_link_that_is_down_for_long_enough_ends_a_connection() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        assert_eq!(c.deadline(), None);
        assert!(c.link_down(span(200), at(1_000)).contains(Action::Timer));
        assert_eq!(c.deadline(), Some(at(1_200)));
        let before = c.clone();
        assert!(c.timeout(at(1_199)).is_empty());
        assert_eq!(c, before);
        let actions = c.timeout(at(1_200));
        // A message would be lost.
        assert!(!actions.contains(Action::Send(Outgoing::Dreq)));
        assert_eq!(told(actions), [Event::LinkDown]);
        assert_eq!(c.state(), State::DreqSent);
    }
}

#[test]
fn a_flap_tells_nothing() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        let before = c.qp_attr(QpState::Rts);
        for flap in 0..1_000 {
            let _ = c.link_down(span(200), at(flap * 300));
            assert!(c.timeout(at(flap * 300 + 199)).is_empty());
            assert!(c.link_up().contains(Action::Timer));
            assert_eq!(c.deadline(), None);
            assert!(c.timeout(at(flap * 300 + 250)).is_empty());
        }
        assert_eq!(c.state(), State::Established);
        assert_eq!(c.qp_attr(QpState::Rts), before);
    }
}

#[test]
fn the_link_is_down_since_the_first_news_of_it() {
    let mut c = Situation::EstablishedActive.connection();
    let _ = c.link_down(span(200), at(0));
    assert!(c.link_down(span(200), at(100)).is_empty());
    assert_eq!(c.deadline(), Some(at(200)));
    // Two outages are no long one.
    let _ = c.link_up();
    assert!(c.link_up().is_empty());
    let _ = c.link_down(span(200), at(150));
    assert_eq!(c.deadline(), Some(at(350)));
}

#[test]
fn nothing_but_the_end_of_the_time_wait_follows() {
    let drep = Message::Drep(peer_drep());
    let dreq = Message::Dreq(peer_dreq());
    for situation in ESTABLISHED {
        for answer in [drep, dreq] {
            let mut c = lost(situation);
            let actions = receive(&mut c, answer, at(300));
            // A peer that disconnects, too, is not left without an answer.
            let is_confirmed = actions.contains(Action::Send(Outgoing::Drep));
            assert_eq!(is_confirmed, answer == dreq);
            assert_eq!(told(actions), []);
            assert_eq!(c.state(), State::Timewait);
            assert_eq!(told(c.timeout(at(100_000))), [Event::TimewaitExit]);
            assert!(c.is_closed());
        }
        let mut c = lost(situation);
        let rej = Message::Rej(peer_rej(&c, Reason::STALE_CONN));
        assert_eq!(told(receive(&mut c, rej, at(300))), []);
        // Without an answer it ends, too.
        let mut c = lost(situation);
        let mut events = Vec::new();
        let mut sends = 0;
        while let Some(deadline) = c.deadline() {
            let actions = c.timeout(deadline);
            sends += usize::from(actions.contains(Action::Send(Outgoing::Dreq)));
            events.extend(told(actions));
        }
        assert_eq!(events, [Event::TimewaitExit]);
        assert_eq!(sends, 15);
    }
}

#[test]
fn the_user_may_disconnect_or_go_after_that() {
    for situation in ESTABLISHED {
        let mut c = lost(situation);
        assert!(c.disconnect(&[], at(201)).is_err());
        assert!(c.confirm_disconnect(&[], at(201)).is_err());
        let actions = c.destroy(DestroyCause::User, at(202));
        assert_eq!(told(actions), []);
        assert_eq!(c.state(), State::Timewait);
        assert_eq!(told(c.timeout(at(100_000))), []);
        assert!(c.is_closed());
    }
}

#[test]
fn what_ends_a_connection_ends_the_wait_for_its_link() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        let _ = c.link_down(span(200), at(0));
        let dreq = receive(&mut c, Message::Dreq(peer_dreq()), at(100));
        assert!(dreq.contains(Action::Timer));
        assert_eq!(told(dreq), [Event::DreqReceived]);
        assert_eq!(c.deadline(), None);
        assert!(c.timeout(at(200)).is_empty());
        let mut c = situation.connection();
        let _ = c.link_down(span(200), at(0));
        let _ = c.disconnect(&[], at(100)).unwrap();
        assert!(!c.is_link_down());
        assert!(c.deadline().is_some_and(|deadline| deadline > at(200)));
    }
}

#[test]
fn a_challenge_and_a_link_do_not_disturb_each_other() {
    let mut c = Situation::EstablishedPassive.connection();
    assert!(c
        .stale_peer(at(0))
        .contains(Action::Send(Outgoing::Challenge)));
    let _ = c.link_down(span(5_000), at(0));
    assert!(c.stale_peer(at(999)).is_empty());
    assert!(!c.stale_peer(at(1_000)).is_empty());
    assert_eq!(c.deadline(), Some(at(5_000)));
    let _ = c.link_up();
    let actions = receive(&mut c, Message::Drep(peer_drep()), at(1_500));
    assert_eq!(told(actions), [Event::DrepReceived]);
}

/// Returns the times up to `end` at which the timer of a connection sends a question, in
/// milliseconds.
fn questions(c: &mut Connection, end: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(deadline) = c.deadline().filter(|deadline| *deadline <= at(end)) {
        let before = c.clone();
        assert!(c
            .timeout(Instant(deadline.as_micros().saturating_sub(1)))
            .is_empty());
        assert_eq!(*c, before);
        let mut actions = c.timeout(deadline);
        assert!(actions.contains(Action::Timer));
        assert_eq!(
            actions.next(),
            Some(Action::Send(Outgoing::Challenge)),
            "{deadline:?}"
        );
        times.push(deadline.as_micros() / 1_000);
        assert_eq!(c.state(), State::Established);
    }
    times
}

/// Returns established connections whose limits are to ask the peer every 8 s. The transition is
/// made at 1 s: by an RTU, by data before it, and by a REP.
fn asking() -> [Connection; 3] {
    let limits = Limits {
        keepalive: Some(Duration::from_secs(8)),
        ..Limits::DEFAULT
    };
    let [mut rtu, mut data] = [0, 1].map(|_| {
        let mut c = Situation::RepSent.connection();
        c.set_limits(&limits);
        c
    });
    let mut rep = Situation::RepRcvd.connection();
    rep.set_limits(&limits);
    assert!(receive(&mut rtu, Message::Rtu(peer_rtu()), at(1_000)).contains(Action::Timer));
    assert!(data
        .notify_established(at(1_000))
        .unwrap()
        .contains(Action::Timer));
    assert!(rep
        .establish(&[], at(1_000))
        .unwrap()
        .contains(Action::Timer));
    [rtu, data, rep]
}

#[test]
fn a_peer_is_asked_once_in_an_interval_from_when_the_connection_is_established() {
    for mut c in asking() {
        let times = questions(&mut c, 81_000);
        let gaps = core::iter::once(&1_000)
            .chain(&times)
            .zip(&times)
            .map(|(a, b)| b - a);
        // Up to a quarter is left out.
        assert!(gaps.clone().all(|gap| (6_000..=8_000).contains(&gap)));
        assert!((10..=13).contains(&times.len()));
    }
}

#[test]
fn connections_that_were_made_at_once_do_not_ask_at_once() {
    let first = |id| {
        let mut c = Connection::<Inline>::new(id, 0, 0);
        c.state = State::Established;
        let _ = c.set_keepalive(Some(Duration::from_secs(1_024)), at(0));
        c.deadline().unwrap().as_micros() / 1_000_000
    };
    assert_eq!(first(0), 1_024);
    assert_eq!(first(0x80), 1_024 - 128);
    assert_eq!(first(0xff), 1_024 - 255);
    assert_eq!(first(0x1234_5600), 1_024);
}

#[test]
fn who_has_lost_the_connection_ends_it_and_silence_does_not() {
    for mut c in asking() {
        // An answer that nobody has asked for.
        assert_eq!(
            told(receive(&mut c, Message::Drep(peer_drep()), at(1_001))),
            []
        );
        assert_eq!(questions(&mut c, 3_600_000).len() / 100, 4);
        assert_eq!(
            told(receive(&mut c, Message::Drep(peer_drep()), at(3_600_000))),
            [Event::DrepReceived]
        );
        assert_eq!(c.state(), State::Timewait);
        assert_eq!(told(c.timeout(at(3_700_000))), [Event::TimewaitExit]);
    }
}

#[test]
fn an_interval_that_changes_holds_at_once() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        assert_eq!(c.deadline(), None);
        let seconds = |s| Some(Duration::from_secs(s));
        assert!(c.set_keepalive(seconds(8), at(0)).contains(Action::Timer));
        let first = c.deadline().unwrap();
        assert!(c
            .set_keepalive(seconds(4), at(1_000))
            .contains(Action::Timer));
        assert!(c.deadline().unwrap() < first);
        assert!(c.set_keepalive(None, at(2_000)).contains(Action::Timer));
        assert_eq!(c.deadline(), None);
        assert!(c.timeout(at(100_000)).is_empty());
    }
    // Before, it says what will be.
    for situation in Situation::ALL {
        let mut c = situation.connection();
        let deadline = c.deadline();
        if c.state() != State::Established {
            assert!(c.set_keepalive(Some(span(8_000)), at(0)).is_empty());
            assert_eq!(c.deadline(), deadline);
        }
    }
    let mut c = Situation::RepRcvd.connection();
    let _ = c.set_keepalive(Some(span(8_000)), at(0));
    let _ = c.establish(&[], at(1_000)).unwrap();
    assert!(c
        .deadline()
        .is_some_and(|at| at >= Instant(7_000_000) && at <= Instant(9_000_000)));
}

#[test]
fn a_claim_and_the_interval_ask_once_a_second() {
    let mut c = Situation::EstablishedPassive.connection();
    let _ = c.set_keepalive(Some(Duration::from_secs(1)), at(0));
    let due = c.deadline().unwrap();
    assert_eq!(due, at(1_000));
    let _ = c.stale_peer(at(100));
    assert_eq!(c.deadline(), Some(due));
    let actions = c.timeout(due);
    assert!(actions.eq([Action::Timer]));
    assert_eq!(questions(&mut c, 5_000), [2_000, 3_000, 4_000, 5_000]);
}

#[test]
fn questions_and_a_link_do_not_disturb_each_other() {
    for mut c in asking() {
        let due = c.deadline().unwrap();
        let _ = c.link_down(span(200), at(1_100));
        assert_eq!(c.deadline(), Some(at(1_300)));
        let _ = c.link_up();
        assert_eq!(c.deadline(), Some(due));
        let _ = c.link_down(span(20_000), at(1_100));
        assert_eq!(c.deadline(), Some(due));
        assert!(c.timeout(due).contains(Action::Send(Outgoing::Challenge)));
        let asked = questions(&mut c, 21_099);
        assert!((1..=2).contains(&asked.len()));
        while c.state() == State::Established {
            let deadline = c.deadline().unwrap();
            let _ = c.timeout(deadline);
            assert!(deadline <= at(21_100));
        }
        assert_eq!(c.state(), State::DreqSent);
    }
}
