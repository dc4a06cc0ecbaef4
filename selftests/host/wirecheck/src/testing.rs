// SPDX-License-Identifier: GPL-2.0

//! Captures made by hand.

use crate::{
    capture::Frame,
    judge,
    packet::{infiniband_icrc, Gid},
    rule::Rule,
};
use cm_script::{
    guest::frame::{build, Way},
    wire::{address, gid, Kind, Mad},
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

/// The ids of the two ends of the usual connection.
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

/// Returns a REQ with another id, queue pair and transaction.
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
    set_bytes(&mut mad, Kind::Req, "local_gid", &gid(ip(A)));
    set_bytes(&mut mad, Kind::Req, "remote_gid", &gid(ip(B)));
    mad
}

/// On InfiniBand, the LID of the port with an address.
pub fn lid(text: &str) -> u16 {
    match ip(text) {
        IpAddr::V4(v4) => u16::from(v4.octets()[3]),
        IpAddr::V6(_) => 0,
    }
}

/// On InfiniBand, the GID of the port with an address.
pub fn port_gid(text: &str) -> Gid {
    let [a, b] = lid(text).to_be_bytes();
    [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, a, b]
}

/// The usual REQ, on InfiniBand.
pub fn req_infiniband() -> Mad {
    let mut mad = req();
    set(&mut mad, Kind::Req, "subnet_local", 1);
    set_path(&mut mad, "", A, B);
    mad
}

/// Sets LIDs and GIDs of a path: "alt_", or "" for the primary one.
pub fn set_path(mad: &mut Mad, path: &str, src: &str, dst: &str) {
    for (name, of) in [("local", src), ("remote", dst)] {
        let field = |what: &str| format!("{path}{name}_{what}");
        set(mad, Kind::Req, &field("lid"), lid(of).into());
        set_bytes(mad, Kind::Req, &field("gid"), &port_gid(of));
    }
}

/// An ERF record with a packet of InfiniBand; with a global route header where there are GIDs.
fn infiniband(src: &str, dst: &str, gids: Option<(Gid, Gid)>, psn: u32, mad: &[u8]) -> Vec<u8> {
    let transport = [&[0x64, 0, 0xff, 0xff, 0, 0, 0, 1], &psn.to_be_bytes()[..]].concat();
    let datagram = [0x80, 1, 0, 0, 0, 0, 0, 1];
    let rest = [&transport[..], &datagram, mad].concat();
    let global = match gids {
        Some((src, dst)) => {
            let len = u16::try_from(rest.len() + 4).expect("short").to_be_bytes();
            [&[0x60, 0, 0, 0, len[0], len[1], 0x1b, 64], &src[..], &dst].concat()
        }
        None => Vec::new(),
    };
    let words = (8 + global.len() + rest.len() + 4) / 4;
    let mut packet = vec![0, if gids.is_some() { 3 } else { 2 }];
    for word in [lid(dst), u16::try_from(words).expect("short"), lid(src)] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(global);
    let bth = packet.len();
    packet.extend(rest);
    let crc = infiniband_icrc(&packet, bth);
    let header = [0, 0, 0, 0, 0, 0, 0, 0, 21, 4, 0, 0, 0, 0, 0, 0];
    [&header[..], &packet, &crc, &[0, 0]].concat()
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
    is_infiniband: bool,
    /// On InfiniBand, of the packets that follow.
    gids: Option<(Gid, Gid)>,
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

    /// An empty one of InfiniBand.
    pub fn infiniband() -> Self {
        Self {
            is_infiniband: true,
            ..Self::default()
        }
    }

    /// The packets that follow have global route headers with these GIDs, as they come.
    pub fn global(mut self, src: Gid, dst: Gid) -> Self {
        self.gids = Some((src, dst));
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

    /// A message whose frame gets another length afterwards.
    pub fn resized(self, src: &str, dst: &str, mad: &Mad, change: fn(&mut Vec<u8>)) -> Self {
        let mut scene = self.sent(src, dst, mad);
        change(&mut scene.frames.last_mut().expect("it was sent").bytes);
        scene
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
        let (link, mut bytes) = match self.is_infiniband {
            true => (Linktype(197), infiniband(src, dst, self.gids, psn, mad)),
            false => (Linktype::ETHERNET, build(&way, psn, mad)),
        };
        change(&mut bytes);
        self.frames.push(Frame {
            number: self.frames.len() + 1,
            time: self.now,
            link,
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
        set_bytes(&mut other, Kind::Req, "local_gid", &gid(ip(C)));
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
