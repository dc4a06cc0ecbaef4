// SPDX-License-Identifier: GPL-2.0

//! Small things of the public interface that no other test uses.

use cmproto::{
    addr::{Gid, SockAddr},
    errno::Errno,
    listen::{ListenView, RequestView},
    private_data::Header,
    sidr,
    time::{Duration, Instant, TimeCode},
};

#[test]
fn spans_of_time() {
    assert_eq!(Duration::from_millis(3).as_micros(), 3_000);
    assert!(Duration::ZERO.is_zero() && !Duration::from_micros(1).is_zero());
    let mut sum = Duration::MAX;
    sum += Duration::from_micros(1);
    assert_eq!(sum, Duration::MAX);
    let mut sum = Duration::from_micros(1);
    sum += Duration::from_micros(2);
    assert_eq!(sum.as_micros(), 3);
    assert_eq!(u8::from(TimeCode::new(200)), 31);
    assert_eq!(Instant::ZERO + Duration::MAX, Instant::MAX);
}

#[test]
fn names_of_errors() {
    for error in Errno::ALL {
        assert_eq!(error.name(), format!("{error:?}"));
    }
}

#[test]
fn a_header_without_an_address() {
    assert!(Header::AfIb.is_empty());
    assert_eq!(Header::AfIb.len(), 0);
    let v4 = |addr| SockAddr::v4(addr, 7);
    let ib = SockAddr::Ib {
        pkey: 0,
        flowinfo: 0,
        gid: Gid([1; 16]),
        sid: 7,
        sid_mask: 0,
        scope_id: 0,
    };
    // The flags say if it is received without an interface, and with one.
    for (addr, alone, on_interface) in [
        (v4([0; 4]), false, true),
        (v4([10, 0, 0, 1]), false, false),
        (ib, true, true),
    ] {
        let listener = ListenView {
            addr: &addr,
            afonly: false,
            bound_if: 0,
            port: Some(1),
        };
        let heard = |interface| {
            listener.accepts(&RequestView {
                header: &Header::AfIb,
                interface,
                port: 1,
            })
        };
        assert_eq!(
            (heard(None), heard(Some(1))),
            (alone, on_interface),
            "{addr:?}"
        );
    }
}

#[test]
fn resolutions() {
    assert!(sidr::Status::SUCCESS.is_success());
    assert!(!sidr::Status(1).is_success());
    let resolution = sidr::Resolution::new(1, 2);
    assert!(!resolution.is_answered() && !resolution.is_closed());
}

#[test]
fn addresses_that_differ() {
    let v6 = |last, scope_id| {
        let mut addr = [0; 16];
        (addr[0], addr[1], addr[15]) = (0xfe, 0x80, last);
        SockAddr::V6 {
            addr,
            port: 1,
            flowinfo: 0,
            scope_id,
        }
    };
    assert!(v6(1, 3).same_address(&v6(1, 3).with_port(2)));
    assert!(!v6(1, 3).same_address(&v6(2, 3)));
    assert!(!v6(1, 3).same_address(&v6(1, 4)));
}
