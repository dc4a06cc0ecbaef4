// SPDX-License-Identifier: GPL-2.0

//! Tests of LAPs and APRs.

use super::*;
use crate::{cm::RetransmitBuffer, path::Path, time::TimeCode};

const ESTABLISHED: [Situation; 2] = [Situation::EstablishedActive, Situation::EstablishedPassive];

const STATUSES: [AprStatus; 6] = [
    AprStatus::NotSupported,
    AprStatus::Rejected,
    AprStatus::IsCurrent,
    AprStatus::WrongQpn,
    AprStatus::WrongLid,
    AprStatus::UnknownGid,
];

const OTHER: Path = Path {
    service_id: 0,
    packet_life_time: 18,
    ..alternate::ALTERNATE
};

fn lap_header(tid: u64) -> Header {
    Header::new(Attribute::Lap, tid)
}

fn take(c: &mut Connection, tid: u64, path: Result<(), AprStatus>) -> Received {
    c.receive_lap(&lap_header(tid), &peer_lap(), path)
}

/// Returns a message that the connection has sent, with its header.
fn sent(c: &Connection, outgoing: Outgoing) -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    c.encode_along(outgoing, Some(&OTHER), &mut mad).unwrap();
    mad
}

fn tid(mad: &[u8; MAD_LEN]) -> u64 {
    wire::decode(mad).unwrap().0.tid
}

fn status(mad: &[u8; MAD_LEN]) -> u8 {
    match wire::decode(mad) {
        Ok((_, Message::Apr(apr))) => apr.status,
        _ => panic!(),
    }
}

/// Answers the last LAP of the connection.
fn answer(c: &mut Connection, status: u8) -> Actions {
    let hdr = Header::new(Attribute::Apr, tid(&sent(c, Outgoing::Lap)));
    c.receive(&hdr, &Message::Apr(peer_apr(status)), at(0))
}

fn loads(c: &Connection) -> Option<(u32, u8)> {
    let attr = c.qp_attr(QpState::Rts).unwrap();
    let load = qp_attr_mask::ALT_PATH | qp_attr_mask::PATH_MIG_STATE;
    (attr.qp_attr_mask == load).then_some((attr.path_mig_state, attr.alt_timeout))
}

#[test]
fn a_path_is_loaded_and_the_peer_is_told() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        assert!(c.wants_lap(&lap_header(7), &peer_lap()));
        let got = take(&mut c, 7, Ok(()));
        assert!(got.is_loaded);
        let apr = sent(&c, Outgoing::Apr);
        assert_eq!((tid(&apr), status(&apr)), (7, 0));
        let Ok((_, Message::Apr(apr))) = wire::decode(&apr) else {
            panic!()
        };
        assert_eq!((apr.local_comm_id, apr.remote_comm_id), (OWN_ID, PEER_ID));
        assert_eq!(loads(&c), Some((1, peer_lap().alternate_local_ack_timeout)));
        assert_eq!(c.migrate(), Ok(true));
    }
}

#[test]
fn a_path_that_is_refused_changes_nothing() {
    for situation in ESTABLISHED {
        for why in STATUSES {
            let mut c = situation.connection();
            let before = c.qp_attr(QpState::Rts);
            let got = take(&mut c, 7, Err(why));
            assert!(!got.is_loaded);
            assert_eq!(status(&sent(&c, Outgoing::Apr)), why as u8);
            assert_eq!(c.qp_attr(QpState::Rts), before);
            assert_eq!(c.migrate(), Ok(false));
        }
    }
    assert_eq!(STATUSES.map(|status| status as u8), [2, 3, 5, 6, 7, 8]);
}

#[test]
fn a_refusal_has_a_status() {
    for (why, status) in [
        (Unusable::NotSupported, AprStatus::NotSupported),
        (Unusable::NoResources, AprStatus::Rejected),
        (Unusable::NoPartition, AprStatus::Rejected),
        (Unusable::UnknownGid, AprStatus::UnknownGid),
        (Unusable::WrongLid, AprStatus::WrongLid),
    ] {
        assert_eq!(AprStatus::from(why), status);
    }
}

#[test]
fn another_queue_pair_has_no_path() {
    let mut c = Situation::EstablishedPassive.connection();
    let lap = Lap {
        remote_qpn_eecn: OWN_QPN + 1,
        ..peer_lap()
    };
    assert!(!c.wants_lap(&lap_header(7), &lap));
    assert!(!c.receive_lap(&lap_header(7), &lap, Ok(())).is_loaded);
    assert_eq!(status(&sent(&c, Outgoing::Apr)), AprStatus::WrongQpn as u8);
}

#[test]
fn a_repeated_lap_gets_the_same_answer() {
    for (first, again) in [
        (Ok(()), Err(AprStatus::IsCurrent)),
        (Err(AprStatus::UnknownGid), Ok(())),
    ] {
        let mut c = Situation::EstablishedPassive.connection();
        let _ = take(&mut c, 7, first);
        let (before, apr) = (c.clone(), sent(&c, Outgoing::Apr));
        assert!(!c.wants_lap(&lap_header(7), &peer_lap()));
        assert!(!take(&mut c, 7, again).is_loaded);
        assert_eq!(c, before);
        assert_eq!(sent(&c, Outgoing::Apr), apr);
        // Another one is another question.
        assert!(c.wants_lap(&lap_header(8), &peer_lap()));
        let _ = take(&mut c, 8, again);
        assert_ne!(sent(&c, Outgoing::Apr), apr);
    }
}

#[test]
fn a_lap_says_what_it_wants() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        let _ = c.load_alternate(lap_params(), at(0)).unwrap();
        let mad = sent(&c, Outgoing::Lap);
        let (hdr, Message::Lap(lap)) = wire::decode(&mad).unwrap() else {
            panic!()
        };
        assert_eq!(hdr.tid, OWN_TID + 1);
        assert_eq!((lap.local_comm_id, lap.remote_comm_id), (OWN_ID, PEER_ID));
        assert_eq!(lap.remote_qpn_eecn, PEER_QPN);
        assert_eq!(lap.remote_cm_response_timeout, 20);
        let timeout = TimeCode::ack_timeout(15, 18).get();
        let path = ReqPath {
            local_ack_timeout: timeout,
            ..OTHER.to_req()
        };
        assert_eq!(lap.path(), path);
        let mut without = [0; MAD_LEN];
        assert!(c.encode(Outgoing::Lap, &mut without).is_err());
    }
}

#[test]
fn the_peer_accepts_or_refuses() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        let before = c.qp_attr(QpState::Rts);
        let _ = c.load_alternate(lap_params(), at(0)).unwrap();
        assert!(c.has_lap());
        // Until then the old attributes hold.
        assert_eq!(c.qp_attr(QpState::Rts), before);
        for refusal in [1, 2, 5, 13, 255] {
            let actions = answer(&mut c, refusal);
            assert!({ actions }.any(|a| a == Action::EndLap { is_loaded: false }));
            assert!(!c.has_lap());
            assert_eq!((c.deadline(), c.qp_attr(QpState::Rts)), (None, before));
            let last = tid(&{
                let _ = c.load_alternate(lap_params(), at(0)).unwrap();
                sent(&c, Outgoing::Lap)
            });
            // The answer to an earlier one says nothing.
            let hdr = Header::new(Attribute::Apr, last - 1);
            let _ = c.receive(&hdr, &Message::Apr(peer_apr(0)), at(0));
            assert!(c.has_lap());
        }
        let actions = answer(&mut c, 0);
        assert!({ actions }.any(|a| a == Action::EndLap { is_loaded: true }));
        assert_eq!(loads(&c), Some((1, 19)));
        assert_eq!(c.deadline(), None);
    }
}

#[test]
fn a_timeout_is_no_shorter_than_that_of_the_primary_path() {
    let mut c = Situation::EstablishedActive.connection();
    let params = LapParams {
        packet_life_time: 3,
        ..lap_params()
    };
    let _ = c.load_alternate(params, at(0)).unwrap();
    let _ = answer(&mut c, 0);
    assert_eq!(loads(&c), Some((1, c.ack_timeout.get())));
}

#[test]
fn a_lap_is_sent_again_until_it_is_given_up() {
    for situation in ESTABLISHED {
        let mut c = situation.connection();
        let _ = c.load_alternate(lap_params(), at(0)).unwrap();
        let mad = sent(&c, Outgoing::Lap);
        let mut sends = 1;
        while c.has_lap() {
            let now = c.deadline().unwrap();
            assert_eq!(
                millis(now),
                sends * millis(at(0) + c.schedule.unpacked().interval())
            );
            let actions = c.timeout(now);
            if { actions }.any(|a| a == Action::Send(Outgoing::Lap)) {
                assert_eq!(sent(&c, Outgoing::Lap), mad);
                sends += 1;
            }
        }
        assert_eq!(sends, 1 + u64::from(c.schedule.unpacked().retries()));
        assert_eq!((c.deadline(), c.state()), (None, State::Established));
        assert!(c.load_alternate(lap_params(), at(0)).is_ok());
    }
}

#[test]
fn an_mra_makes_the_wait_longer() {
    let mut c = Situation::EstablishedActive.connection();
    let _ = c.load_alternate(lap_params(), at(0)).unwrap();
    let before = c.deadline().unwrap();
    let mra = Message::Mra(peer_mra(MraMessage::Other, 24));
    let _ = receive(&mut c, mra, at(10));
    let wait = c.limits.after_mra(Duration::MAX);
    assert_eq!(c.deadline(), Some(at(10) + wait));
    assert!(at(10) + wait > before);
    assert!(c.timeout(before).is_empty());
    // One for each send.
    assert!(
        receive(&mut c, mra, at(20)).contains(Action::Count(Counter::Duplicate(Attribute::Mra)))
    );
    assert_eq!(c.deadline(), Some(at(10) + wait));
}

#[test]
fn the_peer_is_watched_meanwhile() {
    let mut c = Situation::EstablishedActive.connection();
    let second = Duration::from_secs(1);
    let _ = c.set_keepalive(Some(second), at(0));
    let _ = c.load_alternate(lap_params(), at(0)).unwrap();
    assert_eq!(c.deadline(), Some(at(1_000)));
    assert!(c
        .timeout(at(1_000))
        .contains(Action::Send(Outgoing::Challenge)));
    assert!(c.has_lap());
    let _ = answer(&mut c, 0);
    assert_eq!(c.deadline(), Some(at(2_000)));
    let _ = c.load_alternate(lap_params(), at(1_000)).unwrap();
    let _ = c.link_down(Duration::from_millis(100), at(1_000));
    assert!(c
        .timeout(at(1_100))
        .contains(Action::Deliver(Event::LinkDown)));
    assert!(!c.has_lap());
}

#[test]
fn the_end_of_a_connection_is_that_of_its_lap() {
    let mut c = Situation::EstablishedActive.connection();
    let _ = c.load_alternate(lap_params(), at(0)).unwrap();
    let _ = c.disconnect(b"bye", at(0)).unwrap();
    assert!(!c.has_lap());
    let hdr = Header::new(Attribute::Apr, OWN_TID + 1);
    let late = Message::Apr(peer_apr(0));
    let unexpected = Action::Count(Counter::Unexpected(Attribute::Apr));
    assert!(c.receive(&hdr, &late, at(0)).contains(unexpected));
    let mut c = Situation::EstablishedPassive.connection();
    let _ = c.load_alternate(lap_params(), at(0)).unwrap();
    let _ = receive(&mut c, Message::Dreq(peer_dreq()), at(0));
    assert_eq!(c.deadline(), None);
    assert!(c.receive(&hdr, &late, at(0)).contains(unexpected));
    assert_eq!(c.migrate(), Err(crate::errno::Errno::EINVAL));
}

/// The private data of an RTU is sent again even if a LAP came in between.
#[test]
fn an_rtu_keeps_its_data() {
    let mut c = Situation::RepRcvd.connection();
    let _ = c.establish(b"rtu", at(0)).unwrap();
    let rtu = encoded(&c, Outgoing::Rtu);
    let _ = c.load_alternate(lap_params(), at(0)).unwrap();
    let _ = take(&mut c, 7, Ok(()));
    assert_eq!(encoded(&c, Outgoing::Rtu), rtu);
}

#[test]
fn a_way_is_that_of_all_packets() {
    assert_eq!(OTHER.check_new_alternate(&OTHER), Err(AprStatus::IsCurrent));
    let same = Path {
        rate: 9,
        packet_life_time: 1,
        hop_limit: 64,
        ..OTHER
    };
    assert_eq!(OTHER.check_new_alternate(&same), Err(AprStatus::IsCurrent));
    for other in [
        Path { slid: 9, ..OTHER },
        Path { dlid: 9, ..OTHER },
        Path {
            sgid: OTHER.dgid,
            ..OTHER
        },
        Path {
            dgid: OTHER.sgid,
            ..OTHER
        },
        Path { sl: 3, ..OTHER },
        Path {
            hop_limit: 0,
            ..OTHER
        },
        Path {
            flow_label: 1,
            ..OTHER
        },
        Path {
            traffic_class: 1,
            ..OTHER
        },
    ] {
        assert_eq!(OTHER.check_new_alternate(&other), Ok(()));
    }
    // Without a global header these fields are nowhere.
    let local = |flow_label| Path {
        hop_limit: 0,
        flow_label,
        ..OTHER
    };
    let check = local(1).check_new_alternate(&local(2));
    assert_eq!(check, Err(AprStatus::IsCurrent));
}

#[test]
fn laps_need_no_more_memory_than_a_request() {
    let req = size_of::<ConnectParams>();
    assert!(size_of::<crate::cm::lap::Laps>() <= req);
    assert_eq!(size_of::<RetransmitBuffer>().max(368), 368);
}

/// One of two ends, whose path has the number of the LAP that has brought it.
struct Side {
    machine: Connection,
    path: u8,
    proposed: u8,
}

/// A message on its way to an end: the LAP with the sender's path, or an APR.
type OnWay = (usize, [u8; MAD_LEN], u8);

impl Side {
    fn carry_out(&mut self, me: usize, actions: Actions, way: &mut Vec<OnWay>) {
        for action in actions {
            match action {
                Action::Send(message) => {
                    way.push((1 - me, sent(&self.machine, message), self.proposed));
                }
                Action::EndLap { is_loaded: true } => self.path = self.proposed,
                _ => {}
            }
        }
    }
}

/// Both ends ask for another path at a time, over a network that loses, repeats and reorders: both
/// have the same path in the end.
#[test]
fn two_ends_agree() {
    let mut seed: u32 = 1;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (seed >> 16) as usize % below
    };
    for _ in 0..20_000 {
        let mut passive = Situation::EstablishedPassive.connection();
        (passive.local_comm_id, passive.remote_comm_id) = (PEER_ID, Some(OWN_ID));
        (passive.local_qpn, passive.remote_qpn) = (PEER_QPN, OWN_QPN);
        let machines = [Situation::EstablishedActive.connection(), passive];
        let mut sides = machines.map(|machine| Side {
            machine,
            path: 0,
            proposed: 0,
        });
        let mut way: Vec<OnWay> = Vec::new();
        let mut now = 0;
        let mut next = 1;
        let mut steps = 0;
        loop {
            steps += 1;
            let is_busy = steps < 30;
            let waits = sides.iter().any(|side| side.machine.has_lap());
            if !is_busy && way.is_empty() && !waits {
                break;
            }
            let me = random(2);
            let side = &mut sides[me];
            match random(4) {
                0 if is_busy && next < 6 => {
                    if let Ok(actions) = side.machine.load_alternate(lap_params(), at(now)) {
                        side.proposed = next;
                        next += 1;
                        side.carry_out(me, actions, &mut way);
                    }
                }
                1 if side.machine.has_lap() && way.len() < 4 => {
                    let due = side.machine.deadline().unwrap();
                    now = now.max(millis(due) + 1);
                    // The peer never gives up while there is something to agree on.
                    if is_busy || way.is_empty() {
                        let actions = side.machine.timeout(at(now));
                        side.carry_out(me, actions, &mut way);
                    }
                }
                _ if !way.is_empty() => {
                    let n = random(way.len());
                    let (to, mad, path) = match random(8) {
                        0 if is_busy => way[n],
                        1 if is_busy => {
                            way.swap_remove(n);
                            continue;
                        }
                        _ => way.swap_remove(n),
                    };
                    let side = &mut sides[to];
                    let (hdr, message) = wire::decode(&mad).unwrap();
                    let had_lap = side.machine.has_lap();
                    let actions = match &message {
                        Message::Lap(lap) => {
                            let got = side.machine.receive_lap(&hdr, lap, Ok(()));
                            if got.is_loaded {
                                side.path = path;
                            }
                            got.actions
                        }
                        message => side.machine.receive(&hdr, message, at(now)),
                    };
                    side.carry_out(to, actions, &mut way);
                    // No copy of a LAP outlives its exchange.
                    if had_lap && !side.machine.has_lap() {
                        way.retain(|(other, mad, _)| {
                            let hdr = wire::decode(mad).unwrap().0;
                            *other == to || hdr.attr_id == Attribute::Apr
                        });
                    }
                }
                _ => {}
            }
        }
        assert_eq!(sides[0].path, sides[1].path);
    }
}
