// SPDX-License-Identifier: GPL-2.0

//! Rules of a message by itself: W1, W2, W12 to W15, W17.

use crate::{
    rule::Rule::{W1, W12, W13, W14, W15, W17, W2, W4},
    testing::{from_a, from_b, mad, rep, req, set, set_bytes, Scene, A, B, GUIDS, IDS, TID},
};
use cm_script::wire::Kind;

/// The offsets of the parts of an IPv4 frame.
const BTH: usize = 42;
const DETH: usize = 54;

#[test]
fn a_whole_exchange_is_fine() {
    Scene::new().established().disconnected().is_fine();
}

#[test]
fn w1_header() {
    for (name, value) in [("base_version", 2), ("class_version", 1), ("method", 0x83)] {
        let mut bad = req();
        set(&mut bad, Kind::Req, name, value);
        Scene::new().a(&bad).breaks(&[W1]);
    }
    let mut bad = req();
    set(&mut bad, Kind::Req, "status", 1);
    Scene::new().a(&bad).breaks(&[W1]);
    let mut bad = req();
    set(&mut bad, Kind::Req, "attribute", 0x1b);
    Scene::new().a(&bad).breaks(&[W1]);
    // A datagram of another class is nobody's business here.
    let mut other = req();
    set(&mut other, Kind::Req, "class", 3);
    Scene::new().a(&other).is_fine();
}

#[test]
fn w1_length_and_addressing() {
    Scene::new()
        .bytes(A, B, &req().0[..252], |_| ())
        .breaks(&[W1]);
    // These are covered by the CRC too.
    let change = |at: usize| match at {
        0 => |frame: &mut [u8]| frame[DETH + 3] ^= 1,
        1 => |frame: &mut [u8]| frame[DETH + 7] = 2,
        _ => |frame: &mut [u8]| frame[BTH + 7] = 2,
    };
    for at in 0..3 {
        Scene::new()
            .changed(A, B, &req(), change(at))
            .breaks(&[W1, W2]);
    }
}

#[test]
fn w2_crc() {
    let flip = |frame: &mut [u8]| *frame.last_mut().unwrap() ^= 0x80;
    Scene::new().changed(A, B, &req(), flip).breaks(&[W2]);
    // The changes of a router do not count.
    let hop = |frame: &mut [u8]| frame[22] -= 1;
    Scene::new().changed(A, B, &req(), hop).is_fine();
}

#[test]
fn w4_ids_of_a_request() {
    let mut bad = req();
    set(&mut bad, Kind::Req, "local", 0);
    Scene::new().a(&bad).breaks(&[W4]);
}

/// A REJ of the REQ for this reason, with information of this length.
fn rej(reason: u64, len: u64, ari: u64) -> cm_script::wire::Mad {
    let fields = [
        ("remote", IDS.0),
        ("reason", reason),
        ("ari_len", len),
        ("ari_guid", ari),
    ];
    mad(Kind::Rej, TID, &fields)
}

#[test]
fn w12_reasons() {
    for (reason, len, ari) in [
        (3, 0, 0),
        (8, 0, 0),
        (10, 0, 0),
        (12, 16, 5),
        (28, 0, 0),
        (35, 0, 0),
    ] {
        Scene::new().a(&req()).b(&rej(reason, len, ari)).is_fine();
    }
    for (reason, len, ari) in [
        (0, 0, 0),
        (2, 0, 0),
        (34, 0, 0),
        (36, 0, 0),
        // Information that is missing, empty, or not asked for.
        (12, 0, 0),
        (12, 16, 0),
        (4, 0, 0),
        (28, 8, 5),
    ] {
        Scene::new()
            .a(&req())
            .b(&rej(reason, len, ari))
            .breaks(&[W12]);
    }
}

#[test]
fn w12_timeout_names_its_sender() {
    let timeout = |guid| {
        let fields = [
            ("reason", 4),
            ("message", 2),
            ("ari_len", 8),
            ("ari_guid", guid),
        ];
        from_b(Kind::Rej, TID, &fields)
    };
    Scene::new()
        .a(&req())
        .b(&rep())
        .b(&timeout(GUIDS.1))
        .is_fine();
    Scene::new()
        .a(&req())
        .b(&rep())
        .b(&timeout(GUIDS.0))
        .breaks(&[W12]);
}

#[test]
fn w13_rejected_message() {
    let with = |message, local, remote| {
        let fields = [
            ("reason", 28),
            ("message", message),
            ("local", local),
            ("remote", remote),
        ];
        mad(Kind::Rej, TID, &fields)
    };
    Scene::new().a(&req()).b(&with(0, IDS.1, IDS.0)).is_fine();
    Scene::new()
        .a(&req())
        .b(&rep())
        .a(&with(1, IDS.0, IDS.1))
        .is_fine();
    Scene::new().a(&req()).a(&with(2, IDS.0, 0)).is_fine();
    // The REQ is decided, there is no REP, the code is reserved, there is no id at all.
    Scene::new()
        .a(&req())
        .b(&rep())
        .b(&with(0, IDS.1, IDS.0))
        .breaks(&[W13]);
    Scene::new()
        .a(&req())
        .a(&with(1, IDS.0, IDS.1))
        .breaks(&[W13]);
    Scene::new()
        .a(&req())
        .b(&rep())
        .b(&with(3, IDS.1, IDS.0))
        .breaks(&[W13]);
    Scene::new().a(&req()).b(&with(2, 0, 0)).breaks(&[W13]);
}

#[test]
fn w14_reserved_bits() {
    let mut bad = req();
    bad.set_reserved(Kind::Req);
    Scene::new().a(&bad).breaks(&[W14]);
    let mut bad = from_a(Kind::Rtu, TID, &[]);
    set(&mut bad, Kind::Rtu, "attr_mod", 1);
    Scene::new().a(&req()).b(&rep()).a(&bad).breaks(&[W14]);
    let mut ece = req();
    set(&mut ece, Kind::Req, "attr_mod", 1);
    Scene::new().a(&ece).is_fine();
}

#[test]
fn w14_private_data_of_nobody() {
    let mut bad = from_a(Kind::Rtu, TID, &[]);
    set_bytes(&mut bad, Kind::Rtu, "private", &[0, 0, 1]);
    Scene::new().a(&req()).b(&rep()).a(&bad).breaks(&[W14]);
    for (reason, wrong) in [(8, true), (10, true), (28, false), (35, false)] {
        let mut rej = rej(reason, 0, 0);
        set_bytes(&mut rej, Kind::Rej, "private", &[1]);
        let want: &[_] = if wrong { &[W14] } else { &[] };
        Scene::new().a(&req()).b(&rej).breaks(want);
    }
    let mut rej = rej(12, 16, 5);
    rej.0[24 + 12 + 16] = 1;
    Scene::new().a(&req()).b(&rej).breaks(&[W14]);
}

#[test]
fn w15_lengths() {
    let scene = Scene::new().a(&req()).b(&rej(12, 73, 5));
    scene.breaks(&[W12, W15]);
}

#[test]
fn w15_header_of_private_data() {
    for (name, value) in [("ip_version", 1), ("ip_family", 5), ("ip_port", 0)] {
        let mut bad = req();
        set(&mut bad, Kind::Req, name, value);
        Scene::new().a(&bad).breaks(&[W15]);
    }
    for name in ["ip_src", "ip_dst"] {
        for byte in [0, 15] {
            let mut bad = req();
            let field = Kind::Req.field(name).unwrap();
            let mut bytes = bad.bytes(field).to_vec();
            bytes[byte] ^= 8;
            set_bytes(&mut bad, Kind::Req, name, &bytes);
            Scene::new().a(&bad).breaks(&[W15]);
        }
    }
    let mut bad = req();
    bad.0[24 + 141] |= 1;
    // The table has no field there.
    Scene::new().a(&bad).breaks(&[W15]);
}

#[test]
fn w17_numbers() {
    for (name, value) in [
        ("qpn", 1),
        ("service", 0x0100_0106_1d2f),
        ("service", 0x0106_0000),
        ("service", 0x0107_0001),
        ("service", 0x0200_0000_0000_0001),
        ("mtu", 0),
        ("mtu", 6),
        ("transport", 2),
    ] {
        let mut bad = req();
        set(&mut bad, Kind::Req, name, value);
        Scene::new().a(&bad).breaks(&[W17]);
    }
    let mut bad = rep();
    set(&mut bad, Kind::Rep, "qpn", 0);
    Scene::new().a(&req()).b(&bad).breaks(&[W17]);
}
