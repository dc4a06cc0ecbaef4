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
    fn a_dreq_that_names_another_queue_pair_is_not_its_peers() {
        for (why, c) in over() {
            let dreq = Dreq {
                remote_qpn_eecn: c.local_qpn() ^ 1,
                ..peer_dreq()
            };
            // The message is for this connection, which drops it.
            assert_eq!((why, c.is_for(&Message::Dreq(dreq))), (why, true));
        }
    }
}
