// SPDX-License-Identifier: GPL-2.0

//! Tests of messages that name an endpoint, and of answers.

use super::*;

fn rej(reason: Reason) -> Rej<'static> {
    peer_rej(&passive(), reason)
}

#[test]
fn a_message_goes_to_whom_it_names() {
    let mut node = Node::default();
    node.ids.insert(OWN_ID, MINE);
    node.remotes.insert(ids().comm_id_key(), OTHER);
    let sidr_rep = refusal(&sidr_req(), Status::REJECT);
    // Each case has a message, its endpoint, and the response if there is no endpoint.
    let cases = [
        (Message::Rep(peer_rep()), Some(MINE), None),
        (Message::Rtu(peer_rtu()), Some(MINE), None),
        (Message::Mra(peer_mra(MraMessage::Req, 0)), Some(MINE), None),
        (Message::Dreq(peer_dreq()), Some(MINE), None),
        (Message::Drep(peer_drep()), Some(MINE), None),
        (
            Message::Rej(rej(Reason::CONSUMER_DEFINED)),
            Some(MINE),
            None,
        ),
        // A REJ for a timeout names its sender, and not its receiver.
        (Message::Rej(rej(Reason::TIMEOUT)), Some(OTHER), None),
        (Message::SidrRep(sidr_rep), Some(MINE), None),
        (Message::Lap(peer_lap()), Some(MINE), None),
        (Message::Apr(peer_apr(0)), Some(MINE), None),
    ];
    for (message, endpoint, response) in cases {
        let found = match route(&node, PEER, &message) {
            Route::Endpoint(endpoint) => (Some(endpoint), None),
            Route::Nobody(response) => (None, Some(response)),
            Route::Req(_) | Route::SidrReq(_) => (None, None),
        };
        assert_eq!(found, (endpoint, response), "{message:?}");
    }
    // The sender of a REJ for a timeout is identified by its origin, too.
    let gave_up = Message::Rej(rej(Reason::TIMEOUT));
    assert!(matches!(
        route(&node, STRANGER, &gave_up),
        Route::Nobody(Response::Drop(Dropped::Unknown))
    ));
    let req = Message::Req(peer_req());
    assert!(matches!(route(&node, PEER, &req), Route::Req(req) if *req == peer_req()));
    let req = Message::SidrReq(sidr_req());
    assert!(matches!(route(&node, PEER, &req), Route::SidrReq(req) if *req == sidr_req()));
}

#[test]
fn who_waits_for_an_answer_gets_one_from_nobody() {
    let node = Node::default();
    let sidr_rep = refusal(&sidr_req(), Status::REJECT);
    for message in [
        Message::Rep(peer_rep()),
        Message::Rtu(peer_rtu()),
        Message::Mra(peer_mra(MraMessage::Rep, 0)),
        Message::Dreq(peer_dreq()),
        Message::Drep(peer_drep()),
        Message::Rej(rej(Reason::CONSUMER_DEFINED)),
        Message::Rej(rej(Reason::TIMEOUT)),
        Message::SidrRep(sidr_rep),
        Message::Lap(peer_lap()),
        Message::Apr(peer_apr(0)),
    ] {
        let Route::Nobody(response) = route(&node, PEER, &message) else {
            panic!("{message:?} goes somewhere");
        };
        // The endpoint exists, but is engaged in something else or in nothing.
        let question = Resolution::new(OWN_ID, 1);
        for (exchange, is_for_rep) in [
            (<ExchangeView<'_>>::None, false),
            (ExchangeView::Resolution(&question, PEER), true),
        ] {
            let expected = match message {
                Message::SidrRep(_) if is_for_rep => Verdict::Deliver,
                _ => Verdict::Nobody(response),
            };
            assert_eq!(judge(&exchange, PEER, &message), expected);
        }
        let mad = on_the_wire(&response, &message);
        let answered = mad.as_ref().map(|(mad, tid)| {
            assert_eq!(*tid, header(&message).tid);
            wire::decode(mad).unwrap().1
        });
        match (message, answered) {
            (Message::Rep(rep), Some(Message::Rej(rej))) => {
                assert_eq!(rej.message, RejMessage::Rep);
                assert_eq!(Reason(rej.reason), Reason::INVALID_COMM_ID);
                assert_eq!(
                    (rej.local_comm_id, rej.remote_comm_id),
                    (rep.remote_comm_id, rep.local_comm_id)
                );
                assert_eq!((rej.ari_len, rej.ari), (0, &[0; INFO_LEN]));
            }
            (Message::Dreq(dreq), Some(Message::Drep(drep))) => assert_eq!(
                (drep.local_comm_id, drep.remote_comm_id),
                (dreq.remote_comm_id, dreq.local_comm_id)
            ),
            (Message::Rep(_) | Message::Dreq(_), answered) => panic!("answered {answered:?}"),
            (_, answered) => {
                assert_eq!(answered, None);
                assert_eq!(response, Response::Drop(Dropped::Unknown));
            }
        }
    }
}

#[test]
fn a_stranger_learns_nothing() {
    let stranger = Verdict::Nobody(Response::Drop(Dropped::Stranger));
    let resolution = Resolution::new(OWN_ID, 1);
    let sidr_rep = Message::SidrRep(refusal(&sidr_req(), Status::REJECT));
    let asked = <ExchangeView<'_>>::Resolution(&resolution, PEER);
    assert_eq!(judge(&asked, STRANGER, &sidr_rep), stranger);
    assert_eq!(judge(&asked, PEER, &sidr_rep), Verdict::Deliver);
    for situation in Situation::ALL {
        let connection = situation.connection();
        let exchange = ExchangeView::Connection(&connection, PEER);
        for message in [
            Message::Rep(peer_rep()),
            Message::Rtu(peer_rtu()),
            Message::Mra(peer_mra(MraMessage::Rep, 0)),
            Message::Dreq(peer_dreq()),
            Message::Drep(peer_drep()),
            Message::Rej(peer_rej(&connection, Reason::STALE_CONN)),
            Message::Lap(peer_lap()),
            Message::Apr(peer_apr(0)),
        ] {
            let verdict = judge(&exchange, STRANGER, &message);
            assert_eq!(verdict, stranger, "{situation:?} {message:?}");
        }
        let of_another_kind = judge(&exchange, STRANGER, &sidr_rep);
        assert_eq!(of_another_kind, Verdict::Nobody(nobody(&sidr_rep)));
    }
}

/// Tests that a node accepts a message from a connection's peer if [`Connection::is_for`] does,
/// except for the first REP and the first RTU, whose ids have to be claimed.
#[test]
fn a_connection_takes_what_is_for_it() {
    for situation in Situation::ALL {
        let connection = situation.connection();
        let exchange = ExchangeView::Connection(&connection, PEER);
        for message in [
            Message::Rtu(peer_rtu()),
            Message::Mra(peer_mra(MraMessage::Req, 0)),
            Message::Dreq(peer_dreq()),
            Message::Drep(peer_drep()),
            Message::Rej(peer_rej(&connection, Reason::CONSUMER_DEFINED)),
            Message::Rej(peer_rej(&connection, Reason::TIMEOUT)),
        ] {
            let expected = match (connection.is_for(&message), message) {
                (true, Message::Rtu(_)) if connection.wants_rtu() => Verdict::Claim(ids()),
                (true, _) => Verdict::Deliver,
                (false, _) => Verdict::Nobody(nobody(&message)),
            };
            let verdict = judge(&exchange, PEER, &message);
            assert_eq!(verdict, expected, "{situation:?} {message:?}");
        }
        let rep = Message::Rep(peer_rep());
        let expected = match situation {
            Situation::ReqSent | Situation::MraReqRcvd => Verdict::Claim(ids()),
            Situation::Closed => Verdict::Nobody(nobody(&rep)),
            _ => Verdict::Deliver,
        };
        assert_eq!(judge(&exchange, PEER, &rep), expected, "{situation:?}");
    }
}

#[test]
fn a_connection_that_is_over_still_answers_a_rep_that_it_rejected() {
    let mut connection = Situation::RepRcvd.connection();
    let now = Instant::from_micros(0);
    let _ = connection.reject(Reason::CONSUMER_DEFINED, &[], &[], now);
    assert!(connection.is_closed());
    let rep = Message::Rep(peer_rep());
    let exchange = ExchangeView::Connection(&connection, PEER);
    assert_eq!(judge(&exchange, PEER, &rep), Verdict::Deliver);
    let another = Message::Rep(Rep {
        local_comm_id: PEER_ID + 1,
        ..peer_rep()
    });
    let verdict = judge(&exchange, PEER, &another);
    assert_eq!(verdict, Verdict::Nobody(nobody(&another)));
    let mut destroyed = Situation::ReqSent.connection();
    let _ = destroyed.destroy(DestroyCause::User, now);
    let exchange = ExchangeView::Connection(&destroyed, PEER);
    let verdict = judge(&exchange, PEER, &rep);
    assert_eq!(verdict, Verdict::Nobody(nobody(&rep)));
}

fn claim_first(node: &mut Node, connection: &mut Connection) -> Result<(), Refused<&'static str>> {
    let rep = peer_rep();
    let exchange = ExchangeView::Connection(connection, PEER);
    assert_eq!(
        judge(&exchange, PEER, &Message::Rep(rep)),
        Verdict::Claim(ids())
    );
    claim_rep(node, &ids(), &MINE, connection, &rep)
}

#[test]
fn names_belong_to_one_connection() {
    let mut node = Node::default();
    assert_eq!(claim(&mut node, &ids(), &MINE), Ok(()));
    let both = BTreeMap::from([(ids().comm_id_key(), MINE), (ids().qpn_key(), MINE)]);
    assert_eq!(node.remotes, both);
    assert_eq!(claim(&mut node, &ids(), &OTHER), Err(Conflict::Duplicate));
    let same_qp = RemoteIds {
        comm_id: PEER_ID + 1,
        ..ids()
    };
    let stale = Err(Conflict::Stale(MINE));
    assert_eq!(claim(&mut node, &same_qp, &OTHER), stale);
    // The failed claims have entered nothing.
    assert_eq!(node.remotes, both);
    // The same numbers of another node, or from another origin, are other ids.
    for peer in [
        Peer {
            guid: PEER_GUID + 1,
            ..peer()
        },
        Peer {
            origin: STRANGER,
            ..peer()
        },
    ] {
        let elsewhere = RemoteIds { peer, ..ids() };
        assert_eq!(claim(&mut node, &elsewhere, &OTHER), Ok(()));
    }
    // A communication id and a QPN with the same value are different ids.
    let crossed = RemoteIds {
        comm_id: PEER_QPN,
        qpn: PEER_ID,
        ..ids()
    };
    assert_eq!(claim(&mut node, &crossed, &OTHER), Ok(()));
    assert_eq!(node.remotes.len(), 8);
}

#[test]
fn the_first_rep_brings_the_names() {
    let mut node = Node::default();
    let mut connection = Situation::ReqSent.connection();
    let before = connection.clone();
    assert_eq!(claim_first(&mut node, &mut connection), Ok(()));
    assert_eq!((node.remotes.len(), &connection), (2, &before));

    // Another endpoint has the communication id already: the REP is a duplicate that was sent to
    // the wrong endpoint.
    let mut node = Node::default();
    node.remotes.insert(ids().comm_id_key(), OTHER);
    let duplicate = Refused {
        response: Response::Drop(Dropped::Mismatch),
        stale: None,
    };
    assert_eq!(claim_first(&mut node, &mut connection), Err(duplicate));
    assert_eq!(connection, before);
}

#[test]
fn a_rep_for_a_queue_pair_in_use_is_refused_for_good() {
    let mut node = Node::default();
    node.remotes.insert(ids().qpn_key(), OTHER);
    let mut connection = Situation::ReqSent.connection();
    let refused = claim_first(&mut node, &mut connection).unwrap_err();
    assert_eq!(refused.stale, Some(OTHER));
    assert_eq!(node.remotes.len(), 1);
    let rep = Message::Rep(peer_rep());
    let (mad, _) = on_the_wire(&refused.response, &rep).unwrap();
    let (_, Message::Rej(rej)) = wire::decode(&mad).unwrap() else {
        panic!("it is no REJ");
    };
    assert_eq!(
        (rej.message, Reason(rej.reason)),
        (RejMessage::Rep, Reason::STALE_CONN)
    );
    assert_eq!((rej.local_comm_id, rej.remote_comm_id), (OWN_ID, PEER_ID));
    // A copy of the REP is refused, too, even when the QPN is free again.
    node.remotes.clear();
    let exchange = ExchangeView::Connection(&connection, PEER);
    let again = judge(&exchange, PEER, &rep);
    assert_eq!(again, Verdict::Nobody(refused.response));
    // The REP does not count as dropped.
    let Response::Answer(answer) = refused.response else {
        panic!("it is dropped");
    };
    assert_eq!((answer.dropped(), answer.is_repeated()), (None, false));
}

#[test]
fn an_rtu_brings_the_queue_pair() {
    let mut node = Node::default();
    node.remotes.insert(ids().comm_id_key(), MINE);
    let mut connection = Situation::RepSent.connection();
    let conversation = ExchangeView::Connection(&connection, PEER);
    let rtu = Message::Rtu(peer_rtu());
    assert_eq!(judge(&conversation, PEER, &rtu), Verdict::Claim(ids()));
    assert_eq!(confirm(&mut node, &ids(), &MINE), Ok(()));
    let both = BTreeMap::from([(ids().comm_id_key(), MINE), (ids().qpn_key(), MINE)]);
    assert_eq!(node.remotes, both);
    let now = Instant::from_micros(0);
    let _ = connection.receive(&header(&rtu), &rtu, now);
    assert_eq!(connection.state(), State::Established);
    // The next RTU is a copy.
    let conversation = ExchangeView::Connection(&connection, PEER);
    assert_eq!(judge(&conversation, PEER, &rtu), Verdict::Deliver);

    // The first of two requests with the same queue pair to be confirmed gets it.
    assert_eq!(confirm(&mut node, &ids(), &OTHER), Err(MINE));
    assert_eq!(node.remotes, both);
    let mut late = Situation::RepSent.connection();
    let actions = late.refuse_rtu(now);
    assert!(actions.contains(Action::Send(Outgoing::Rej)));
    let mut mad = [0; MAD_LEN];
    late.encode(Outgoing::Rej, &mut mad).unwrap();
    let (_, Message::Rej(rej)) = wire::decode(&mad).unwrap() else {
        panic!("it is no REJ");
    };
    assert_eq!(Reason(rej.reason), Reason::STALE_CONN);
    assert_eq!((rej.local_comm_id, rej.remote_comm_id), (OWN_ID, PEER_ID));
}

#[test]
fn a_wrong_gid_is_answered_with_a_right_one() {
    let gid = Gid([9; 16]);
    for (gid, len) in [(Some(gid), 16), (None, 0)] {
        let answer = Answer::reject_req(&peer_req(), Reason::INVALID_GID, gid);
        let req = Message::Req(peer_req());
        let (mad, _) = on_the_wire(&Response::Answer(answer), &req).unwrap();
        let (_, Message::Rej(rej)) = wire::decode(&mad).unwrap() else {
            panic!("it is no REJ");
        };
        assert_eq!(rej.message, RejMessage::Req);
        assert_eq!((rej.local_comm_id, rej.remote_comm_id), (0, PEER_ID));
        assert_eq!(rej.information().len(), len);
        assert!(rej.information().iter().all(|byte| *byte == 9));
    }
}

#[test]
fn what_is_answered_is_counted_as_what_it_is() {
    let rep = |reason| Answer::reject_rep(&peer_rep(), reason);
    let req = |reason| Answer::reject_req(&peer_req(), reason, None);
    for (answer, dropped, is_repeated) in [
        (rep(Reason::INVALID_COMM_ID), Some(Dropped::Unknown), false),
        (rep(Reason::STALE_CONN), None, false),
        (req(Reason::NO_RESOURCES), Some(Dropped::Overload), false),
        (req(Reason::INVALID_SERVICE_ID), None, false),
        (Answer::confirm(&peer_dreq()), None, true),
    ] {
        let counted = (answer.dropped(), answer.is_repeated());
        assert_eq!(counted, (dropped, is_repeated), "{answer:?}");
    }
}
