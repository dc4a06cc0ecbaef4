// SPDX-License-Identifier: GPL-2.0

//! Rules of an exchange: W3, W4, W11, W16 to W18.

use crate::{
    rule::Rule::{W10, W11, W16, W17, W18, W3, W4, W5, W6, W7, W8, W9},
    testing::{
        from_a, from_b, mad, rep, req, req_as, set, Scene, A, B, C, DREQ_TID, GUIDS, IDS, QPNS, TID,
    },
};
use cm_script::wire::Kind;

#[test]
fn w3_transactions() {
    let mut other = rep();
    set(&mut other, Kind::Rep, "tid", 7);
    Scene::new().a(&req()).b(&other).breaks(&[W3]);
    let rtu = from_a(Kind::Rtu, 7, &[]);
    Scene::new().a(&req()).b(&rep()).a(&rtu).breaks(&[W3]);
    let mra = from_b(Kind::Mra, 7, &[("timeout", 20)]);
    Scene::new().a(&req()).b(&mra).breaks(&[W3]);
    let rej = mad(Kind::Rej, 7, &[("remote", IDS.0), ("reason", 28)]);
    Scene::new().a(&req()).b(&rej).breaks(&[W3]);
}

#[test]
fn w3_transactions_of_a_disconnect() {
    let qpn = [("qpn", QPNS.1)];
    let dreq = |tid| from_a(Kind::Dreq, tid, &qpn);
    let drep = |tid| from_b(Kind::Drep, tid, &[]);
    let up = || Scene::new().established();
    up().a(&dreq(TID)).is_fine();
    let other = from_b(Kind::Dreq, TID, &[("qpn", QPNS.0)]);
    up().b(&other).breaks(&[W3]);
    up().a(&dreq(DREQ_TID)).b(&drep(TID)).breaks(&[W3]);
    up().a(&dreq(DREQ_TID))
        .after(5000)
        .a(&dreq(7))
        .breaks(&[W3]);
}

#[test]
fn both_may_disconnect_at_a_time() {
    Scene::new()
        .established()
        .a(&from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]))
        .b(&from_b(Kind::Dreq, 7, &[("qpn", QPNS.0)]))
        .b(&from_b(Kind::Drep, DREQ_TID, &[]))
        .a(&from_a(Kind::Drep, 7, &[]))
        .is_fine();
}

#[test]
fn an_end_is_asked_at_most_once_a_second_and_need_not_answer() {
    let question = from_a(Kind::Dreq, DREQ_TID, &[("qpn", 0x00ff_ffff ^ QPNS.1)]);
    let drep = from_b(Kind::Drep, DREQ_TID, &[]);
    let asked = || {
        (0..40).fold(Scene::new().established(), |scene, _| {
            scene.after(1_000).a(&question)
        })
    };
    asked().later(9_000).is_fine();
    asked().b(&drep).is_fine();
    asked()
        .after(10)
        .a(&from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]))
        .b(&drep)
        .is_fine();
    asked().after(800).a(&question).breaks(&[W5]);
    Scene::new().established().b(&drep).breaks(&[W10]);
}

#[test]
fn w4_ids_belong_together() {
    let stranger = mad(Kind::Rtu, TID, &[("local", IDS.0), ("remote", 0x77)]);
    Scene::new().a(&req()).b(&rep()).a(&stranger).breaks(&[W4]);
    let mut nobody = rep();
    set(&mut nobody, Kind::Rep, "remote", 0x77);
    Scene::new().a(&req()).b(&nobody).breaks(&[W4]);
    let dreq = from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]);
    Scene::new().a(&dreq).breaks(&[W4]);
    let rtu = from_a(Kind::Rtu, TID, &[]);
    Scene::new().a(&req()).a(&rtu).breaks(&[W4]);
    // A second connection with the id of the first.
    let second = req_as(IDS.0, 0x12, 7);
    Scene::new().established().a(&second).breaks(&[W4]);
}

#[test]
fn w10_drep_for_nothing() {
    let drep = from_b(Kind::Drep, DREQ_TID, &[]);
    Scene::new().established().b(&drep).breaks(&[W10]);
}

#[test]
fn w11_stale_request() {
    let second = || req_as(0xa2, QPNS.0, 7);
    let rej = |reason| mad(Kind::Rej, 7, &[("remote", 0xa2), ("reason", reason)]);
    let dreq = from_b(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.0)]);
    let up = || Scene::new().established().after(100).a(&second());
    up().b(&rej(10)).b(&dreq).later(9000).is_fine();
    // No answer; the wrong one; the old connection goes on; it is accepted.
    up().b(&dreq).later(9000).breaks(&[W11]);
    up().b(&rej(28)).b(&dreq).later(1000).breaks(&[W11]);
    up().b(&rej(10)).later(9000).breaks(&[W11]);
    let ids = [
        ("local", 0xb2),
        ("remote", 0xa2),
        ("qpn", 0x22),
        ("guid", GUIDS.1),
    ];
    let accepted = mad(Kind::Rep, 7, &ids);
    up().b(&dreq).b(&accepted).breaks(&[W11]);
    // The QPN of a connection that has ended is free.
    let ids = [
        ("local", 0xb2),
        ("remote", 0xa2),
        ("qpn", 0x22),
        ("guid", GUIDS.1),
    ];
    Scene::new()
        .established()
        .disconnected()
        .a(&second())
        .b(&mad(Kind::Rep, 7, &ids))
        .is_fine();
}

#[test]
fn w11_stale_reply() {
    let second = req_as(0xa2, 0x12, 7);
    let ids = [
        ("local", 0xb2),
        ("remote", 0xa2),
        ("qpn", QPNS.1),
        ("guid", GUIDS.1),
    ];
    let rep = mad(Kind::Rep, 7, &ids);
    let up = || Scene::new().established().a(&second).b(&rep);
    let fields = [
        ("local", 0xa2),
        ("remote", 0xb2),
        ("message", 1),
        ("reason", 10),
    ];
    up().a(&mad(Kind::Rej, 7, &fields)).later(9000).is_fine();
    let rtu = mad(Kind::Rtu, 7, &[("local", 0xa2), ("remote", 0xb2)]);
    up().a(&rtu).later(9000).breaks(&[W11]);
}

#[test]
fn w16_time_wait() {
    let over = || Scene::new().established().disconnected();
    let second = req_as(IDS.0, 0x12, 7);
    over().after(100).a(&second).is_fine();
    // Time code 17 is half a second; 22 are 16 seconds.
    let mut long = req();
    set(&mut long, Kind::Req, "ack_timeout", 22);
    let over = || {
        let rtu = from_a(Kind::Rtu, TID, &[]);
        Scene::new().a(&long).b(&rep()).a(&rtu).disconnected()
    };
    over().after(9000).a(&second).breaks(&[W16]);
    over().after(17_000).a(&second).is_fine();
}

#[test]
fn w17_queue_pair_of_a_disconnect() {
    let dreq = from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.0)]);
    Scene::new().established().a(&dreq).breaks(&[W17]);
}

#[test]
fn w18_answers_go_back() {
    Scene::new().a(&req()).sent(C, A, &rep()).breaks(&[W18]);
    Scene::new().a(&req()).sent(B, C, &rep()).breaks(&[W18]);
    let drep = from_b(Kind::Drep, DREQ_TID, &[]);
    let dreq = from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]);
    let up = Scene::new().established().sent(A, B, &dreq);
    up.sent(B, C, &drep).breaks(&[W18]);
}

#[test]
fn w9_one_decision() {
    let rej = mad(Kind::Rej, TID, &[("remote", IDS.0), ("reason", 28)]);
    Scene::new().a(&req()).b(&rej).b(&rep()).breaks(&[W9]);
    let mra = from_b(Kind::Mra, TID, &[("timeout", 20)]);
    let decided = Scene::new().established().after(5000);
    decided.b(&mra).breaks(&[W9]);
}

#[test]
fn alternate_paths() {
    const LAP_TID: u64 = 9;
    let lap = |tid, lid| from_a(Kind::Lap, tid, &[("qpn", QPNS.1), ("alt_remote_lid", lid)]);
    let apr = |tid, status| from_b(Kind::Apr, tid, &[("ap_status", status)]);
    let mra = |tid| from_b(Kind::Mra, tid, &[("message", 2), ("timeout", 20)]);
    let asked = || Scene::new().established().a(&lap(LAP_TID, 5));
    asked().b(&apr(LAP_TID, 0)).is_fine();
    // Both ask, and are asked again.
    asked()
        .b(&from_b(Kind::Lap, 7, &[("qpn", QPNS.0)]))
        .after(5_000)
        .a(&lap(LAP_TID, 5))
        .b(&mra(LAP_TID))
        .b(&apr(LAP_TID, 3))
        .a(&from_a(Kind::Apr, 7, &[]))
        .a(&lap(LAP_TID + 1, 6))
        .b(&apr(LAP_TID + 1, 0))
        .is_fine();
    asked().after(5_000).a(&lap(LAP_TID, 6)).breaks(&[W6]);
    asked().b(&apr(LAP_TID + 1, 0)).breaks(&[W3]);
    asked().b(&mra(LAP_TID + 1)).breaks(&[W8]);
    let answered = asked().b(&apr(LAP_TID, 0));
    answered.b(&apr(LAP_TID, 3)).breaks(&[W6]);
    let up = || Scene::new().established();
    up().b(&apr(LAP_TID, 0)).breaks(&[W7]);
    up().a(&lap(TID, 5)).breaks(&[W3]);
    up().a(&from_a(Kind::Lap, LAP_TID, &[("qpn", QPNS.0)]))
        .breaks(&[W17]);
}
