// SPDX-License-Identifier: GPL-2.0

//! Rules of repetitions: W5 to W10.

use crate::{
    rule::Rule::{W10, W5, W6, W7, W8, W9},
    testing::{from_a, from_b, mad, rep, req, set, set_bytes, Scene, DREQ_TID, IDS, QPNS, TID},
};
use cm_script::wire::{Kind, Mad};

/// As often, so many milliseconds apart.
fn times(mut scene: Scene, mad: &Mad, count: usize, ms: u64) -> Scene {
    for _ in 0..count {
        scene = scene.after(ms).a(mad);
    }
    scene
}

fn mra(timeout: u64) -> Mad {
    from_b(Kind::Mra, TID, &[("timeout", timeout)])
}

#[test]
fn w5_request() {
    times(Scene::new(), &req(), 16, 4608).is_fine();
    times(Scene::new(), &req(), 17, 4608).breaks(&[W5]);
    // Some come early, before the first interval is over, and not later.
    times(Scene::new(), &req(), 8, 300).is_fine();
    times(Scene::new(), &req(), 9, 300).breaks(&[W5]);
    let late = Scene::new().a(&req()).after(4608).a(&req());
    late.after(3000).a(&req()).breaks(&[W5]);
    times(Scene::new(), &req(), 3, 3000).is_fine();
    // The last early one may come nearly as late as the one that does not.
    let near = || {
        Scene::new()
            .a(&req())
            .after(3700)
            .a(&req())
            .after(500)
            .a(&req())
    };
    near().is_fine();
    near().after(4608).a(&req()).is_fine();
    near().after(500).a(&req()).breaks(&[W5]);
    let second = near().after(3700).a(&req()).after(500).a(&req());
    second.breaks(&[W5]);
    let two = Scene::new()
        .a(&req())
        .after(3600)
        .a(&req())
        .after(300)
        .a(&req());
    two.after(200).a(&req()).is_fine();
    let short = Scene::new().a(&req()).after(4090).a(&req()).after(3210);
    short.a(&req()).breaks(&[W5]);
    let mut two = req();
    set(&mut two, Kind::Req, "retries", 1);
    times(Scene::new(), &two, 2, 4608).is_fine();
    times(Scene::new(), &two, 3, 4608).breaks(&[W5]);
}

#[test]
fn w5_reply_and_disconnect() {
    Scene::new()
        .a(&req())
        .b(&rep())
        .after(4096)
        .b(&rep())
        .is_fine();
    Scene::new()
        .a(&req())
        .b(&rep())
        .after(4096)
        .b(&rep())
        .after(3000)
        .b(&rep())
        .breaks(&[W5]);
    // A REP is sent early after an MRA, which does not say whether the RTU was lost. The number of
    // early ones stays the same.
    let retried = || Scene::new().a(&req()).b(&rep()).after(4096).b(&rep());
    let resumed = |early: usize| {
        let mra = from_a(Kind::Mra, TID, &[("timeout", 20), ("message", 1)]);
        (0..early).fold(retried().a(&mra), |scene, _| scene.after(300).b(&rep()))
    };
    resumed(7).is_fine();
    resumed(8).breaks(&[W5]);
    let before = Scene::new()
        .a(&req())
        .b(&rep())
        .a(&from_a(Kind::Mra, TID, &[("message", 1)]));
    before
        .after(4096)
        .b(&rep())
        .after(600)
        .b(&rep())
        .breaks(&[W5]);
    let dreq = from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]);
    times(Scene::new().established(), &dreq, 16, 4608).is_fine();
    times(Scene::new().established(), &dreq, 8, 300).is_fine();
    times(Scene::new().established(), &dreq, 9, 300).breaks(&[W5]);
    times(Scene::new().established(), &dreq, 17, 4608).breaks(&[W5]);
}

#[test]
fn w5_copies_of_the_network() {
    Scene::new().a(&req()).copied().b(&rep()).copied().is_fine();
    let twice = Scene::new().a(&req()).copied();
    twice.b(&mra(20)).b(&mra(20)).is_fine();
}

#[test]
fn w6_identical() {
    let mut other = req();
    set(&mut other, Kind::Req, "psn", 1);
    Scene::new().a(&req()).after(4608).a(&other).breaks(&[W6]);
    let mut other = rep();
    set(&mut other, Kind::Rep, "psn", 1);
    Scene::new()
        .a(&req())
        .b(&rep())
        .after(4608)
        .b(&other)
        .breaks(&[W6]);
    let mut other = req();
    set_bytes(&mut other, Kind::Req, "private", &[1]);
    Scene::new().a(&req()).after(4608).a(&other).breaks(&[W6]);
}

#[test]
fn w7_no_longer_than_needed() {
    // Messages that were on their way do not count.
    let up = || Scene::new().a(&req()).b(&rep());
    let rtu = from_a(Kind::Rtu, TID, &[]);
    up().a(&rtu).after(5000).a(&req()).breaks(&[W7]);
    let rej = mad(Kind::Rej, TID, &[("remote", IDS.0), ("reason", 28)]);
    Scene::new()
        .a(&req())
        .b(&rej)
        .after(5000)
        .a(&req())
        .breaks(&[W7]);
    let again = up().a(&rtu).after(5000).b(&rep()).a(&rtu);
    again.breaks(&[W7]);
}

#[test]
fn w7_until_answered() {
    Scene::new().a(&req()).later(12_000).is_fine();
    Scene::new().a(&req()).later(20_000).breaks(&[W7]);
    Scene::new().lossy().a(&req()).later(20_000).is_fine();
    Scene::new().a(&req()).b(&rep()).later(20_000).breaks(&[W7]);
    // It was withdrawn.
    let rej = mad(
        Kind::Rej,
        TID,
        &[("local", IDS.0), ("message", 2), ("reason", 28)],
    );
    Scene::new().a(&req()).a(&rej).later(20_000).is_fine();
    // The last one need not be repeated.
    times(Scene::new(), &req(), 16, 4608)
        .later(60_000)
        .is_fine();
}

#[test]
fn w8_patience() {
    // Time code 22 is 16 seconds.
    let asked = || Scene::new().a(&req()).b(&mra(22));
    asked().after(17_000).a(&req()).b(&mra(22)).is_fine();
    asked().after(4608).a(&req()).b(&mra(22)).breaks(&[W8]);
    // But for an early send, the time of an MRA begins with the next one that is not.
    let early = || Scene::new().a(&req()).after(100).a(&req()).b(&mra(22));
    early().after(4508).a(&req()).b(&mra(22)).is_fine();
    let impatient = early().after(4508).a(&req()).b(&mra(22)).after(4608);
    impatient.a(&req()).b(&mra(22)).breaks(&[W8]);
    asked().b(&mra(22)).breaks(&[W8]);
    let own = mad(Kind::Mra, TID, &[("local", IDS.0), ("timeout", 22)]);
    Scene::new().a(&req()).a(&own).breaks(&[W8]);
    let reserved = from_b(Kind::Mra, TID, &[("message", 3)]);
    Scene::new().a(&req()).b(&reserved).breaks(&[W8]);
    let of_rep = from_a(Kind::Mra, TID, &[("message", 1), ("timeout", 20)]);
    let up = || Scene::new().a(&req()).b(&rep()).a(&of_rep);
    up().is_fine();
    up().a(&of_rep).breaks(&[W8]);
}

#[test]
fn w9_repeated_request_gets_an_mra() {
    let again = || Scene::new().a(&req()).b(&mra(14)).after(4608).a(&req());
    again().b(&mra(14)).later(9000).is_fine();
    again().later(9000).breaks(&[W9]);
    again().b(&rep()).later(1000).is_fine();
    // Nothing was said yet: silence.
    Scene::new()
        .a(&req())
        .after(4608)
        .a(&req())
        .later(9000)
        .is_fine();
}

#[test]
fn w10_repeated_reply_gets_an_rtu() {
    let rtu = from_a(Kind::Rtu, TID, &[]);
    // The RTU was lost behind the capture.
    let again = || Scene::new().established().after(1500).b(&rep());
    again().a(&rtu).later(9000).is_fine();
    again().later(9000).breaks(&[W10]);
}

#[test]
fn w10_repeated_disconnect_gets_a_drep() {
    let dreq = from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]);
    let drep = from_b(Kind::Drep, DREQ_TID, &[]);
    let again = || {
        Scene::new()
            .established()
            .disconnected()
            .after(4608)
            .a(&dreq)
    };
    again().b(&drep).later(9000).is_fine();
    again().later(9000).breaks(&[W10]);
    let other = from_b(Kind::Drep, DREQ_TID, &[("class_specific", 1)]);
    again().b(&other).later(9000).breaks(&[W6]);
}
