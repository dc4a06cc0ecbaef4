// SPDX-License-Identifier: GPL-2.0

//! Rules that are others on InfiniBand, and those of paths: W2, W15, W18, W19.

use crate::{
    packet::{infiniband_icrc, Gid},
    rule::Rule::{self, W1, W15, W17, W18, W19, W2},
    testing::{
        from_a, from_b, lid, mad, port_gid, rep, req, req_infiniband, set, set_bytes, set_path,
        Scene, A, B, C, DREQ_TID, QPNS, TID,
    },
};
use cm_script::wire::{address, Kind, Mad};

/// The offsets of the parts of an ERF record.
const LRH: usize = 16;
const GRH: usize = 24;
const BTH: usize = 24;

fn changed(name: &str, value: u64) -> Mad {
    let mut mad = req_infiniband();
    set(&mut mad, Kind::Req, name, value);
    mad
}

fn sent(mad: &Mad) -> Scene {
    Scene::infiniband().a(mad)
}

/// A REQ for a path that leaves the subnet, and its packet's GIDs.
fn leaving() -> (Mad, Gid, Gid) {
    let mut far = port_gid(B);
    far[7] = 9;
    let mut mad = changed("subnet_local", 0);
    set(&mut mad, Kind::Req, "local_lid", 0xffff);
    set(&mut mad, Kind::Req, "remote_lid", 0xffff);
    set_bytes(&mut mad, Kind::Req, "remote_gid", &far);
    (mad, port_gid(A), far)
}

#[test]
fn a_whole_exchange_is_fine() {
    let exchange = |scene: Scene| {
        scene
            .a(&req_infiniband())
            .b(&rep())
            .a(&from_a(Kind::Rtu, TID, &[]))
            .after(1500)
            .disconnected()
    };
    exchange(Scene::infiniband()).is_fine();
    let verdict = crate::judge(&exchange(Scene::infiniband()).frames, false);
    assert_eq!((verdict.connections, verdict.messages.len()), (1, 5));
    sent(&req_infiniband())
        .global(port_gid(B), port_gid(A))
        .b(&rep())
        .is_fine();
}

#[test]
fn records() {
    // Another type; a raw packet; a header that says it is longer than the record.
    for (at, value) in [(8, 20), (LRH + 1, 1), (LRH + 4, 7)] {
        let mut scene = sent(&changed("qpn", 0));
        scene.frames[0].bytes[at] = value;
        scene.is_fine();
    }
    // Extension headers.
    let mut scene = sent(&changed("qpn", 0));
    scene.frames[0].bytes[8] |= 0x80;
    let more = [0x81, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    scene.frames[0].bytes.splice(16..16, more);
    scene.breaks(&[W17]);
}

#[test]
fn w1_addressing() {
    let qkey = |frame: &mut [u8]| frame[BTH + 15] ^= 1;
    let bad = Scene::infiniband().changed(A, B, &req_infiniband(), qkey);
    bad.breaks(&[W1, W2]);
}

/// A frame that is changed behind its sender's back.
fn w2(scene: Scene, change: fn(&mut [u8]), want: &[Rule]) {
    scene.changed(A, B, &req_infiniband(), change).breaks(want);
}

#[test]
fn w2_crc() {
    let local = Scene::infiniband;
    let global = || Scene::infiniband().global(port_gid(A), port_gid(B));
    for scene in [local, global] {
        w2(scene(), |frame| frame[frame.len() - 3] ^= 0x80, &[W2]);
        w2(scene(), |frame| frame[60 + 48] ^= 4, &[W2]);
        // The variant CRC, which was not captured, and the virtual lane.
        w2(scene(), |frame| *frame.last_mut().unwrap() ^= 0x80, &[]);
        w2(scene(), |frame| frame[LRH] ^= 0x10, &[]);
    }
    // These change a field that a router changes, which is only done with a global route header.
    let version = |frame: &mut [u8]| frame[LRH] ^= 4;
    w2(local(), version, &[W2]);
    w2(global(), version, &[]);
    w2(global(), |frame| frame[GRH + 7] -= 1, &[]);
    w2(global(), |frame| frame[GRH + 3] ^= 1, &[]);
    w2(global(), |frame| frame[GRH] ^= 0x10, &[W2]);
    w2(global(), |frame| frame[GRH + 6] ^= 1, &[W2]);
    w2(local(), |frame| frame[BTH + 4] ^= 1, &[]);
    w2(global(), |frame| frame[BTH + 40 + 4] ^= 1, &[]);
}

#[test]
fn w15_header_of_private_data() {
    for (name, value) in [("ip_version", 1), ("ip_port", 0)] {
        sent(&changed(name, value)).breaks(&[W15]);
    }
    // No header: what was sent to a GID.
    sent(&changed("ip_family", 0)).is_fine();
    let mut bad = req_infiniband();
    bad.0[24 + 141] |= 1;
    sent(&bad).breaks(&[W15]);
    for name in ["ip_src", "ip_dst"] {
        let mut bad = req_infiniband();
        set_bytes(&mut bad, Kind::Req, name, &[0; 16]);
        sent(&bad).breaks(&[W15]);
        set_bytes(
            &mut bad,
            Kind::Req,
            name,
            &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 7],
        );
        sent(&bad).breaks(&[W15]);
    }
}

#[test]
fn w15_an_ip_address_is_that_of_one_port() {
    let second = |src: &str| {
        let mut mad = changed("local", 0xa2);
        set(&mut mad, Kind::Req, "qpn", 0x12);
        set_bytes(
            &mut mad,
            Kind::Req,
            "ip_src",
            &address(src.parse().unwrap()),
        );
        sent(&req_infiniband()).a(&mad)
    };
    second(A).is_fine();
    second("10.0.0.77").is_fine();
    second(B).breaks(&[W15]);
    let question = |src: &str| {
        let fields = [
            ("request", 5),
            ("pkey", 0xffff),
            ("service", 0x0111_1d2f),
            ("ip_port", 7),
        ];
        let mut mad = mad(Kind::SidrReq, 8, &fields);
        set(&mut mad, Kind::SidrReq, "ip_family", 4);
        set_bytes(
            &mut mad,
            Kind::SidrReq,
            "ip_src",
            &address(src.parse().unwrap()),
        );
        set_bytes(
            &mut mad,
            Kind::SidrReq,
            "ip_dst",
            &address(B.parse().unwrap()),
        );
        sent(&req_infiniband()).a(&mad)
    };
    question(A).is_fine();
    question(B).breaks(&[W15]);
}

#[test]
fn w17_service_of_ipoib() {
    // Its private data has no header.
    let mut mad = changed("service", 0x1000_0000_0106_0123);
    set(&mut mad, Kind::Req, "ip_version", 1);
    sent(&mad).is_fine();
    sent(&changed("service", 0x0100_0106_1d2f)).breaks(&[W17]);
}

#[test]
fn w18_answers_go_back() {
    let asked = || sent(&req_infiniband());
    asked().b(&rep()).is_fine();
    asked().sent(C, A, &rep()).breaks(&[W18]);
    asked().sent(B, C, &rep()).breaks(&[W18]);
    let dreq = from_a(Kind::Dreq, DREQ_TID, &[("qpn", QPNS.1)]);
    let drep = from_b(Kind::Drep, DREQ_TID, &[]);
    let up = asked().b(&rep()).a(&dreq);
    up.sent(B, C, &drep).breaks(&[W18]);
}

#[test]
fn w19_on_roce() {
    for name in ["local_gid", "remote_gid"] {
        let mut bad = req();
        set_bytes(&mut bad, Kind::Req, name, &port_gid(A));
        Scene::new().a(&bad).breaks(&[W19]);
    }
    // LIDs mean nothing.
    let mut other = req();
    set(&mut other, Kind::Req, "local_lid", 0xffff);
    Scene::new().a(&other).is_fine();
}

#[test]
fn w19_local_path() {
    for name in ["local_lid", "remote_lid"] {
        for value in [0, lid(C).into(), 0xffff] {
            sent(&changed(name, value)).breaks(&[W19]);
        }
    }
    sent(&changed("sl", 1)).breaks(&[W19]);
    let other = |path: &str, src: &str, dst: &str| {
        let mut mad = changed("local", 0xa2);
        set(&mut mad, Kind::Req, "qpn", 0x12);
        set_path(&mut mad, path, src, dst);
        mad
    };
    sent(&req_infiniband()).a(&other("", A, B)).is_fine();
    // The GID of another port, in the path and in an answer.
    let mut gid = other("", A, B);
    set_bytes(&mut gid, Kind::Req, "remote_gid", &port_gid(A));
    sent(&req_infiniband()).a(&gid).breaks(&[W19]);
    let answer = sent(&req_infiniband()).global(port_gid(B), port_gid(B));
    answer.b(&rep()).breaks(&[W19]);
    // The alternate path takes other ports, or these, but has no GID of theirs.
    let mut alternate = other("alt_", C, B);
    set(&mut alternate, Kind::Req, "alt_subnet_local", 1);
    sent(&alternate).is_fine();
    set_bytes(&mut alternate, Kind::Req, "alt_local_gid", &port_gid(A));
    sent(&alternate).breaks(&[W19]);
}

/// The subnet administrator, C, tells B of the path from B to A.
fn told(scene: Scene, change: fn(&mut [u8])) -> Scene {
    let mut mad = [0; 256];
    mad[..4].copy_from_slice(&[1, 3, 2, 0x81]);
    mad[17] = 0x35;
    mad[64..80].copy_from_slice(&port_gid(A));
    mad[80..96].copy_from_slice(&port_gid(B));
    mad[97] = u8::try_from(lid(A)).unwrap();
    mad[99] = u8::try_from(lid(B)).unwrap();
    change(&mut mad);
    scene.bytes(C, B, &mad, |_| ())
}

#[test]
fn w19_what_the_subnet_administrator_says() {
    told(Scene::infiniband(), |_| ())
        .a(&req_infiniband())
        .is_fine();
    for name in ["local_gid", "remote_gid"] {
        let mut bad = req_infiniband();
        set_bytes(&mut bad, Kind::Req, name, &[0xfe; 16]);
        sent(&bad).is_fine();
        told(Scene::infiniband(), |_| ()).a(&bad).breaks(&[W19]);
        // One port can have several.
        let more = |mad: &mut [u8]| {
            mad[64..80].fill(0xfe);
            mad[80..96].fill(0xfe);
        };
        let both = told(told(Scene::infiniband(), |_| ()), more);
        both.a(&bad).is_fine();
        // A question, an error, something else, and a path that leaves the subnet.
        for change in [
            |mad: &mut [u8]| mad[3] = 1,
            |mad: &mut [u8]| mad[4] = 3,
            |mad: &mut [u8]| mad[17] = 0x38,
            |mad: &mut [u8]| mad[56 + 47] = 64,
        ] {
            told(Scene::infiniband(), change).a(&bad).is_fine();
        }
    }
}

#[test]
fn w19_path_that_leaves_the_subnet() {
    let (good, src, dst) = leaving();
    let global = || Scene::infiniband().global(src, dst);
    global().a(&good).is_fine();
    sent(&good).breaks(&[W19]);
    Scene::infiniband()
        .global(src, port_gid(C))
        .a(&good)
        .breaks(&[W19]);
    let with = |name, lid| {
        let mut mad = good.clone();
        set(&mut mad, Kind::Req, name, lid);
        mad
    };
    // Its own end may have a LID, by which its router reaches it, and the other end has none.
    global().a(&with("local_lid", lid(A).into())).is_fine();
    for bad in [
        with("local_lid", 0),
        with("local_lid", 0xc000),
        with("remote_lid", lid(B).into()),
    ] {
        global().a(&bad).breaks(&[W19]);
    }
    // One that does not can have a global route header, too.
    let local = Scene::infiniband().global(port_gid(A), port_gid(B));
    local.a(&req_infiniband()).is_fine();
}

/// Omni-Path: the upper half of both LIDs of a packet is 2.
fn long_lids(frame: &mut Vec<u8>) {
    frame[LRH] |= 1;
    let words = u16::from_be_bytes([frame[LRH + 4], frame[LRH + 5]]) + 1;
    frame[LRH + 4..LRH + 6].copy_from_slice(&words.to_be_bytes());
    let at = frame.len() - 6;
    frame.splice(GRH..GRH, [0, 2, 0, 2]);
    // Without a global route header the invariant CRC covers the version and the length.
    let mut packet = frame[LRH..at + 4].to_vec();
    packet.drain(8..12);
    let crc = infiniband_icrc(&packet, 8);
    frame[at + 4..at + 8].copy_from_slice(&crc);
}

/// A REQ between long LIDs.
fn long_req() -> Mad {
    let mut mad = changed("local_lid", 0);
    set(&mut mad, Kind::Req, "remote_lid", 0);
    for (name, node) in [("local_gid", A), ("remote_gid", B)] {
        let gid =
            cmproto::gid::Gid(port_gid(node)).with_opa_lid(0x0002_0000 | u32::from(lid(node)));
        set_bytes(&mut mad, Kind::Req, name, &gid.0);
    }
    mad
}

#[test]
fn w19_long_lids_of_omni_path() {
    let sent = |mad: &Mad| Scene::infiniband().resized(A, B, mad, long_lids);
    sent(&long_req()).is_fine();
    for name in ["local_lid", "remote_lid"] {
        let mut bad = long_req();
        set(&mut bad, Kind::Req, name, lid(A).into());
        sent(&bad).breaks(&[W19]);
    }
    for name in ["local_gid", "remote_gid"] {
        let mut bad = long_req();
        let other = cmproto::gid::Gid(port_gid(A)).with_opa_lid(0x0001_0000 | u32::from(lid(C)));
        set_bytes(&mut bad, Kind::Req, name, &other.0);
        sent(&bad).breaks(&[W19]);
        set_bytes(&mut bad, Kind::Req, name, &port_gid(A));
        sent(&bad).breaks(&[W19]);
    }
    sent(&req_infiniband()).breaks(&[W19]);
    // On InfiniBand no GID is made from a LID.
    Scene::infiniband().a(&long_req()).breaks(&[W19]);
}
