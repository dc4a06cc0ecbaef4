// SPDX-License-Identifier: GPL-2.0

//! Rules of service id resolution.

use crate::{
    rule::Rule::{W14, W15, W17, W18, W3, W4, W5, W6, W7},
    testing::{mad, set, set_bytes, Scene, A, B, C, TID},
};
use cm_script::wire::{address, Kind, Mad};

const SERVICE: u64 = 0x0111_1d2f;

fn sidr_req() -> Mad {
    let fields = [("request", 5), ("pkey", 0xffff), ("service", SERVICE)];
    let mut mad = mad(Kind::SidrReq, TID, &fields);
    set(&mut mad, Kind::SidrReq, "ip_family", 4);
    set(&mut mad, Kind::SidrReq, "ip_port", 0x1234);
    set_bytes(
        &mut mad,
        Kind::SidrReq,
        "ip_src",
        &address(A.parse().unwrap()),
    );
    set_bytes(
        &mut mad,
        Kind::SidrReq,
        "ip_dst",
        &address(B.parse().unwrap()),
    );
    mad
}

fn sidr_rep() -> Mad {
    let fields = [
        ("request", 5),
        ("qpn", 0x33),
        ("service", SERVICE),
        ("qkey", 1),
    ];
    mad(Kind::SidrRep, TID, &fields)
}

fn changed(name: &str, value: u64) -> Mad {
    let mut mad = sidr_rep();
    set(&mut mad, Kind::SidrRep, name, value);
    mad
}

#[test]
fn question_and_answer() {
    Scene::new().a(&sidr_req()).b(&sidr_rep()).is_fine();
    Scene::new()
        .a(&sidr_req())
        .b(&changed("request", 6))
        .breaks(&[W4]);
    Scene::new()
        .a(&sidr_req())
        .b(&changed("tid", 6))
        .breaks(&[W3]);
    Scene::new()
        .a(&sidr_req())
        .b(&changed("service", SERVICE + 1))
        .breaks(&[W17]);
    Scene::new()
        .a(&sidr_req())
        .b(&changed("qpn", 0))
        .breaks(&[W17]);
    Scene::new()
        .a(&sidr_req())
        .b(&changed("info_len", 73))
        .breaks(&[W15]);
    Scene::new()
        .a(&sidr_req())
        .sent(C, A, &sidr_rep())
        .breaks(&[W18]);
    Scene::new()
        .a(&sidr_req())
        .sent(B, C, &sidr_rep())
        .breaks(&[W18]);
    let mut bad = sidr_rep();
    set_bytes(&mut bad, Kind::SidrRep, "info", &[1]);
    Scene::new().a(&sidr_req()).b(&bad).breaks(&[W14]);
}

#[test]
fn repetitions() {
    let again = |ms| Scene::new().a(&sidr_req()).after(ms).a(&sidr_req());
    again(4096).b(&sidr_rep()).is_fine();
    again(1000).is_fine();
    let again = || again(4096).after(1000).a(&sidr_req());
    again().breaks(&[W5]);
    let mut many = Scene::new();
    for _ in 0..17 {
        many = many.after(4096).a(&sidr_req());
    }
    many.breaks(&[W5]);
    let mut other = sidr_req();
    set(&mut other, Kind::SidrReq, "pkey", 0x7fff);
    Scene::new()
        .a(&sidr_req())
        .after(4096)
        .a(&other)
        .breaks(&[W6]);
    let answered = || Scene::new().a(&sidr_req()).b(&sidr_rep());
    answered().after(5000).a(&sidr_req()).breaks(&[W7]);
    answered().b(&sidr_rep()).breaks(&[W7]);
    let mut new = sidr_req();
    set(&mut new, Kind::SidrReq, "tid", 7);
    Scene::new().a(&sidr_req()).a(&new).breaks(&[W4]);
    answered().a(&new).is_fine();
}
