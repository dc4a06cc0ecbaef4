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
