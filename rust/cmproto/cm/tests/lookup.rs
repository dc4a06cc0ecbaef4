// SPDX-License-Identifier: GPL-2.0

//! Tests of the messages that are for a connection.

use super::*;

fn dreq_of(c: &Connection) -> Dreq<'static> {
    Dreq {
        remote_qpn_eecn: c.local_qpn(),
        ..peer_dreq()
    }
}

/// Returns connections that are over, each for another reason, and not destroyed yet.
fn over() -> [(&'static str, Connection); 5] {
    let mut rejected = Situation::RepSent.connection();
    let rej = peer_rej(&rejected, Reason::CONSUMER_DEFINED);
    let _ = receive(&mut rejected, Message::Rej(rej), at(0));
    let mut refused = Situation::MraRepSent.connection();
    let _ = refused
        .reject(Reason::CONSUMER_DEFINED, &[], &[], at(0))
        .unwrap();
    let mut unanswered = Situation::RepSent.connection();
    while let Some(deadline) = unanswered.deadline() {
        let _ = unanswered.timeout(deadline);
    }
    let mut destroyed = Situation::Detached.connection();
    let _ = destroyed.timeout(destroyed.deadline().unwrap());
    [
        ("time wait is over", Situation::Closed.connection()),
        ("rejected", rejected),
        ("refused", refused),
        ("never answered", unanswered),
        ("destroyed", destroyed),
    ]
}

#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cm_lookup)
)]
mod tests {
    use super::*;

    #[test]
    fn a_dreq_is_for_its_connection_until_that_is_over() {
        for situation in Situation::ALL {
            let c = situation.connection();
            let named = c.remote_comm_id() == PEER_ID;
            let want = named && situation != Situation::Closed;
            let is_for = c.is_for(&Message::Dreq(dreq_of(&c)));
            assert_eq!((situation, is_for), (situation, want));
        }
        for (why, mut c) in over() {
            assert_eq!((why, c.is_closed()), (why, true));
            let dreq = dreq_of(&c);
            assert_eq!((why, c.is_for(&Message::Dreq(dreq))), (why, false));
            // The message has no other effect either.
            let before = c.clone();
            let counted = receive(&mut c, Message::Dreq(dreq), at(1));
            assert!(counted.eq([Action::Count(Counter::Mismatch(Attribute::Dreq))]));
            assert_eq!(c, before);
        }
    }

    #[test]
    fn a_challenge_about_a_connection_that_is_over_is_for_nobody() {
        for (why, c) in over() {
            let dreq = Dreq {
                remote_qpn_eecn: c.local_qpn() ^ 1,
                ..peer_dreq()
            };
            assert_eq!((why, c.is_for(&Message::Dreq(dreq))), (why, false));
        }
    }

    /// An established connection takes no message that does not have both communication ids.
    #[test]
    fn who_does_not_know_both_ids_does_not_reach_a_connection() {
        let established = [Situation::EstablishedActive, Situation::EstablishedPassive];
        for mut c in established.map(Situation::connection) {
            let qpn = c.local_qpn();
            for (own, peer) in [
                (0, PEER_ID),
                (OWN_ID ^ 1, PEER_ID),
                (OWN_ID, 0),
                (OWN_ID, PEER_ID ^ 1),
            ] {
                let mut check = |message: Message<'_>| {
                    let before = c.clone();
                    let kind = message.attribute();
                    assert_eq!((kind, c.is_for(&message)), (kind, false));
                    let counted = receive(&mut c, message, at(1));
                    assert!(counted.eq([Action::Count(Counter::Mismatch(kind))]));
                    assert_eq!(c, before);
                };
                check(Message::Rep(Rep {
                    local_comm_id: peer,
                    remote_comm_id: own,
                    ..peer_rep()
                }));
                check(Message::Rtu(Rtu {
                    local_comm_id: peer,
                    remote_comm_id: own,
                    ..peer_rtu()
                }));
                check(Message::Dreq(Dreq {
                    local_comm_id: peer,
                    remote_comm_id: own,
                    remote_qpn_eecn: qpn,
                    ..peer_dreq()
                }));
                check(Message::Drep(Drep {
                    local_comm_id: peer,
                    remote_comm_id: own,
                    ..peer_drep()
                }));
                for code in 0..4 {
                    check(Message::Mra(Mra {
                        local_comm_id: peer,
                        remote_comm_id: own,
                        ..peer_mra(MraMessage::from_code(code), 31)
                    }));
                }
                for reason in 0..=40 {
                    for message in [RejMessage::Req, RejMessage::Rep, RejMessage::Other] {
                        // The GUID of the peer is that of a REJ for a timeout.
                        check(Message::Rej(Rej {
                            local_comm_id: peer,
                            remote_comm_id: own,
                            message,
                            reason,
                            ari_len: 8,
                            ..peer_rej(&Situation::ReqRcvd.connection(), Reason::TIMEOUT)
                        }));
                    }
                }
            }
        }
    }
}
