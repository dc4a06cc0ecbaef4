// SPDX-License-Identifier: GPL-2.0

//! Captures made by hand.

use crate::{capture::Frame, judge, rule::Rule};
use cm_script::{
    guest::frame::{build, Way},
    wire::{address, Kind, Mad},
};
use pcap_parser::Linktype;
use std::net::IpAddr;

/// The end that asks, the one that is asked, and a stranger.
pub const A: &str = "10.0.0.1";
pub const B: &str = "10.0.0.2";
pub const C: &str = "10.0.0.3";

/// Transaction ids of a REQ and of a DREQ.
pub const TID: u64 = 0x1111;
pub const DREQ_TID: u64 = 0x2222;

/// What the two ends of the usual connection are known by.
pub const IDS: (u64, u64) = (0xa1, 0xb1);
pub const QPNS: (u64, u64) = (0x11, 0x21);
pub const GUIDS: (u64, u64) = (0xaaaa, 0xbbbb);

/// A message with these fields.
pub fn mad(kind: Kind, tid: u64, fields: &[(&str, u64)]) -> Mad {
    let mut mad = Mad::new(kind);
    for (name, value) in fields.iter().chain(&[("tid", tid)]) {
        set(&mut mad, kind, name, *value);
    }
    mad
}

/// Sets a field.
pub fn set(mad: &mut Mad, kind: Kind, name: &str, value: u64) {
    let field = kind.field(name).expect(name);
    mad.set_number(field, value).expect(name);
}

/// Sets bytes.
pub fn set_bytes(mad: &mut Mad, kind: Kind, name: &str, value: &[u8]) {
    let field = kind.field(name).expect(name);
    mad.set_bytes(field, value).expect(name);
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect(text)
}

/// The usual REQ, from A to B.
pub fn req() -> Mad {
    req_as(IDS.0, QPNS.0, TID)
}

/// The same with another id, queue pair and transaction.
pub fn req_as(local: u64, qpn: u64, tid: u64) -> Mad {
    let mut mad = mad(
        Kind::Req,
        tid,
        &[
            ("local", local),
            ("service", 0x0106_1d2f),
            ("guid", GUIDS.0),
            ("qpn", qpn),
            ("remote_timeout", 20),
            ("timeout", 20),
            ("mtu", 3),
            ("retries", 15),
            ("ack_timeout", 17),
            ("ip_family", 4),
            ("ip_port", 0x1234),
        ],
    );
    set_bytes(&mut mad, Kind::Req, "ip_src", &address(ip(A)));
    set_bytes(&mut mad, Kind::Req, "ip_dst", &address(ip(B)));
    mad
}

/// A message from A, or from B, in the usual connection.
pub fn from_a(kind: Kind, tid: u64, more: &[(&str, u64)]) -> Mad {
    let ids = [("local", IDS.0), ("remote", IDS.1)];
    mad(kind, tid, &[&ids[..], more].concat())
}

pub fn from_b(kind: Kind, tid: u64, more: &[(&str, u64)]) -> Mad {
    let ids = [("local", IDS.1), ("remote", IDS.0)];
    mad(kind, tid, &[&ids[..], more].concat())
}

/// The usual REP, from B to A.
pub fn rep() -> Mad {
    from_b(Kind::Rep, TID, &[("qpn", QPNS.1), ("guid", GUIDS.1)])
}

/// A capture.
#[derive(Default)]
pub struct Scene {
    now: u64,
    is_lossy: bool,
    pub frames: Vec<Frame>,
}

impl Scene {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frames were lost.
    pub fn lossy(mut self) -> Self {
        self.is_lossy = true;
        self
    }

    /// Time passes, in milliseconds.
    pub fn after(mut self, ms: u64) -> Self {
        self.now += ms * 1000;
        self
    }

    /// A message.
    pub fn sent(self, src: &str, dst: &str, mad: &Mad) -> Self {
        self.changed(src, dst, mad, |_| ())
    }

    /// The network delivers the last frame again.
    pub fn copied(mut self) -> Self {
        let mut frame = self.frames.last().cloned().expect("a frame");
        frame.number += 1;
        self.frames.push(frame);
        self
    }

    /// From A to B.
    pub fn a(self, mad: &Mad) -> Self {
        self.sent(A, B, mad)
    }

    /// From B to A.
    pub fn b(self, mad: &Mad) -> Self {
        self.sent(B, A, mad)
    }

    /// A message whose frame is changed afterwards.
    pub fn changed(self, src: &str, dst: &str, mad: &Mad, change: fn(&mut [u8])) -> Self {
        self.bytes(src, dst, &mad.0, change)
    }

    /// Any bytes for QP 1.
    pub fn bytes(mut self, src: &str, dst: &str, mad: &[u8], change: fn(&mut [u8])) -> Self {
        let way = Way {
            src_mac: [2; 6],
            dst_mac: [4; 6],
            src: ip(src),
            dst: ip(dst),
        };
        let psn = u32::try_from(self.frames.len()).expect("few frames");
        let mut bytes = build(&way, psn, mad);
        change(&mut bytes);
        self.frames.push(Frame {
            number: self.frames.len() + 1,
            time: self.now,
            link: Linktype::ETHERNET,
            bytes,
        });
        self.now += 100;
        self
    }

    /// REQ, REP, RTU.
    pub fn established(self) -> Self {
        self.a(&req()).b(&rep()).a(&from_a(Kind::Rtu, TID, &[]))
    }

    /// DREQ of A, DREP of B.
    pub fn disconnected(self) -> Self {
        let qpn = [("qpn", QPNS.1)];
        self.a(&from_a(Kind::Dreq, DREQ_TID, &qpn))
            .b(&from_b(Kind::Drep, DREQ_TID, &[]))
    }

    /// Something of others, so that time has passed for the connection before.
    pub fn later(self, ms: u64) -> Self {
        let mut other = req_as(0xc1, 0x31, 0x9999);
        set_bytes(&mut other, Kind::Req, "ip_src", &address(ip(C)));
        self.after(ms).sent(C, B, &other)
    }

    /// The rules that are broken, each once.
    #[track_caller]
    pub fn breaks(&self, want: &[Rule]) {
        let verdict = judge(&self.frames, self.is_lossy);
        let mut rules: Vec<_> = verdict.violations.iter().map(|v| v.rule).collect();
        rules.sort();
        rules.dedup();
        let lines: Vec<_> = verdict.violations.iter().map(ToString::to_string).collect();
        assert_eq!(rules, want, "{lines:#?}");
    }

    /// No rule is broken.
    #[track_caller]
    pub fn is_fine(&self) {
        self.breaks(&[]);
    }
}
