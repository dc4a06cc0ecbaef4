// SPDX-License-Identifier: GPL-2.0

//! Tests of the question whether a peer still has a connection.

use super::*;
use crate::{
    node::{judge, nobody, ExchangeView, Response, Verdict},
    origin::Origin,
};

/// Returns the DREQ that a connection sends if it challenges its peer at `ms`.
fn challenge(c: &mut Connection, ms: u64) -> Option<[u8; MAD_LEN]> {
    let before = c.state();
    let mut actions = c.stale_peer(at(ms));
    assert_eq!(c.state(), before);
    let sent = actions.next();
    assert_eq!(actions.next(), None);
    sent.map(|action| match action {
        Action::Send(message) => encoded(c, message),
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_challenge_is_a_dreq_for_a_queue_pair_that_the_peer_does_not_have() {
    for situation in [Situation::EstablishedActive, Situation::EstablishedPassive] {
        let mut c = situation.connection();
        let mad = challenge(&mut c, 0).unwrap();
        let Ok((hdr, Message::Dreq(dreq))) = wire::decode(&mad) else {
            panic!("no DREQ");
        };
        assert_eq!((dreq.local_comm_id, dreq.remote_comm_id), (OWN_ID, PEER_ID));
        assert_eq!(dreq.remote_qpn_eecn, 0x00ff_ffff ^ PEER_QPN);
        assert_eq!(hdr.tid, OWN_TID);
        assert!(dreq.private_data.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_peer_is_challenged_once_a_second_and_as_long_as_there_are_claims() {
    let mut c = Situation::EstablishedPassive.connection();
    let times = (0..3_500).filter(|ms| challenge(&mut c, *ms).is_some());
    assert_eq!(times.collect::<Vec<_>>(), [0, 1_000, 2_000, 3_000]);
    assert!(challenge(&mut c, 1_000_000).is_some());
    assert_eq!(c.deadline(), None);
}

#[test]
fn only_an_answer_to_a_challenge_ends_a_connection() {
    for situation in [Situation::EstablishedActive, Situation::EstablishedPassive] {
        let mut c = situation.connection();
        let before = c.clone();
        let drep = Message::Drep(peer_drep());
        let counted = receive(&mut c, drep, at(0));
        assert!(counted.eq([Action::Count(Counter::Unexpected(Attribute::Drep))]));
        assert_eq!(c, before);
        let _ = challenge(&mut c, 0).unwrap();
        // It may come late.
        let mut actions = receive(&mut c, drep, at(70_000));
        assert!(actions.any(|action| action == Action::Deliver(Event::DrepReceived)));
        assert_eq!(c.state(), State::Timewait);
    }
}

#[test]
fn a_challenge_changes_nothing_else() {
    // The RTU can still be repeated, with its private data.
    let mut c = Situation::EstablishedActive.connection();
    let rtu = encoded(&c, Outgoing::Rtu);
    let _ = challenge(&mut c, 0).unwrap();
    let mut actions = receive(&mut c, Message::Rep(peer_rep()), at(1));
    assert!(actions.any(|action| action == Action::Send(Outgoing::Rtu)));
    assert_eq!(encoded(&c, Outgoing::Rtu), rtu);
    // The user can disconnect, and so can the peer.
    let _ = c.clone().disconnect(b"dreq", at(2)).unwrap();
    let mut actions = receive(&mut c, Message::Dreq(peer_dreq()), at(2));
    assert!(actions.contains(Action::Deliver(Event::DreqReceived)));
    assert!(actions.all(|action| action != Action::Timer));
}

/// Tests the handling of a challenge at the peer, which is an endpoint of this crate, too.
#[test]
fn silence_says_that_the_connection_exists() {
    const ORIGIN: Origin = Origin::of_gid(Gid([2; 16]));
    for situation in Situation::ALL {
        let mut c = situation.connection();
        let challenge = Message::Dreq(Dreq {
            remote_qpn_eecn: 0x00ff_ffff ^ c.local_qpn(),
            ..peer_dreq()
        });
        let verdict = judge(&ExchangeView::Connection(&c, ORIGIN), ORIGIN, &challenge);
        let before = c.clone();
        let confirmed = match verdict {
            Verdict::Nobody(response) => {
                assert_eq!(response, nobody(&challenge));
                matches!(response, Response::Answer(_))
            }
            _ => receive(&mut c, challenge, at(1)).contains(Action::Send(Outgoing::Drep)),
        };
        assert_eq!(c.state(), before.state());
        // A connection without a peer does not have this one.
        let exists = matches!(
            situation,
            Situation::RepRcvd
                | Situation::MraRepSent
                | Situation::EstablishedActive
                | Situation::ReqRcvd
                | Situation::MraReqSent
                | Situation::RepSent
                | Situation::MraRepRcvd
                | Situation::EstablishedPassive
                | Situation::DreqSent
                | Situation::DreqRcvd
        );
        assert_eq!((situation, confirmed), (situation, !exists));
        assert!(!exists || c == before);
    }
}
