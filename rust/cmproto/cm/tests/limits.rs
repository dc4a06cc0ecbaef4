// SPDX-License-Identifier: GPL-2.0

//! Tests of limits other than the default ones, on both sides.

use super::*;
use crate::time::TimeCode;

const STRICT: Limits = Limits {
    passive_retries: 1,
    passive_interval: Duration::from_millis(100),
    mra_wait: Duration::from_millis(10),
    timewait: TimeCode::new(8),
    total: Duration::MAX,
    keepalive: None,
};

#[test]
fn the_default_is_the_default() {
    assert_eq!(Limits::default(), Limits::DEFAULT);
    assert_ne!(STRICT, Limits::DEFAULT);
}

#[test]
fn of_the_active_side() {
    let mut c = active();
    c.set_limits(&STRICT);
    let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
    // The wait for the MRA, 10 ms at most, ends later than the current interval, at 4608 ms.
    let mra = Message::Mra(peer_mra(MraMessage::Req, 31));
    let _ = receive(&mut c, mra, at(4_600));
    assert_eq!(c.deadline(), Some(at(4_610)));
    // The time wait is limited to code 8, which is 1 ms.
    let rej = Message::Rej(peer_rej(&c, Reason::STALE_CONN));
    let _ = receive(&mut c, rej, at(5_000));
    assert_eq!(c.state(), State::Timewait);
    assert_eq!(c.deadline(), Some(at(5_001)));
}

#[test]
fn of_the_passive_side() {
    let mut c = passive_with(&peer_req(), &STRICT);
    let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
    assert_eq!(c.deadline(), Some(at(100)));
    let mra = Message::Mra(peer_mra(MraMessage::Rep, 31));
    let _ = receive(&mut c, mra, at(95));
    assert_eq!(c.deadline(), Some(at(105)));
    let _ = c
        .reject(Reason::CONSUMER_DEFINED, &[], &[], at(99))
        .unwrap();
    assert_eq!(c.deadline(), Some(at(100)));
}

#[test]
fn a_schedule_says_what_it_is() {
    let code = TimeCode::new;
    let schedule = Schedule::active(code(16), code(20), 255);
    assert_eq!(schedule.interval(), Duration::from_millis(4_608));
    assert_eq!(schedule.retries(), 15);
    let schedule = Schedule::passive(code(31), 7, &STRICT);
    assert_eq!(schedule.interval(), Duration::from_millis(100));
    assert_eq!(schedule.retries(), 1);
}

#[test]
fn numbers_of_others() {
    // The numbers are those of `enum ib_qp_type`.
    let types = [QpType::RC, QpType::UC, QpType::XRC_INI, QpType::XRC_TGT];
    assert_eq!(types.map(|kind| kind.0), [2, 3, 9, 10]);
    // The service timeout is that of Linux. A parked request is repeated after 16.4 s.
    assert_eq!(Connection::SERVICE_TIMEOUT, 24);
    assert_eq!(Connection::PARKING_TIMEOUT, 22);
}

#[test]
fn both_sides_know_the_service() {
    assert_eq!(active().service_id(), 0);
    assert_eq!(Situation::ReqSent.connection().service_id(), SERVICE);
    assert_eq!(passive().service_id(), SERVICE);
}
