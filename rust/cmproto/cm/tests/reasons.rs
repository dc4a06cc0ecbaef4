// SPDX-License-Identifier: GPL-2.0

//! Tests of all reasons of a REJ, in both directions.

use super::*;

#[test]
fn every_reason_can_be_given() {
    for code in 0..=u16::MAX {
        let mut c = Situation::MraReqSent.connection();
        assert_eq!(c.reject_reason(), None);
        let _ = c.reject(Reason(code), b"ari", b"data", at(1)).unwrap();
        assert_eq!(c.reject_reason(), Some(Reason(code)));
        let mad = encoded(&c, Outgoing::Rej);
        let Ok((_, Message::Rej(rej))) = wire::decode(&mad) else {
            panic!("no REJ");
        };
        assert_eq!((rej.reason, rej.message), (code, RejMessage::Req));
        assert_eq!((rej.ari_len, &rej.ari[..4]), (3, &b"ari\0"[..]));
        assert_eq!(rej.private_data[..5], *b"data\0");
    }
}

#[test]
fn every_reason_is_understood() {
    for code in 0..=u16::MAX {
        let reason = Reason(code);
        for situation in [Situation::ReqSent, Situation::RepSent, Situation::DreqSent] {
            // Before the REP, the sender of a REJ for a timeout cannot be known.
            if situation == Situation::ReqSent && reason == Reason::TIMEOUT {
                continue;
            }
            let mut c = situation.connection();
            let rej = Rej {
                remote_comm_id: OWN_ID,
                ..peer_rej(&c, reason)
            };
            let mut actions = receive(&mut c, Message::Rej(rej), at(1));
            let told = Action::Deliver(Event::RejReceived { reason });
            assert_eq!((code, actions.any(|action| action == told)), (code, true));
            // A connection that may have been established is in time wait.
            let waits = situation == Situation::DreqSent || reason == Reason::STALE_CONN;
            assert_eq!((code, c.state() == State::Timewait), (code, waits));
        }
    }
}
