// SPDX-License-Identifier: GPL-2.0

//! Judges a capture as a whole.

use crate::{
    capture::Frame,
    datagram::Resolutions,
    exchange::{Exchanges, Seen},
    message,
    packet::{self, Body, Packet},
    rule::{Findings, Violation},
    subnet::Subnet,
};
use cm_script::wire::{Kind, Mad};
use cmproto::wire;
use std::{collections::BTreeMap, fmt};

/// The result of the checks of a capture.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The number of messages of each kind.
    pub messages: BTreeMap<Kind, usize>,
    /// The number of connection requests.
    pub connections: usize,
    /// The number of resolutions of service ids.
    pub resolutions: usize,
    /// The violations of rules, by frame.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: usize = self.messages.values().sum();
        write!(f, "{total} messages")?;
        for (kind, count) in &self.messages {
            write!(f, ", {count} {}", kind.name())?;
        }
        write!(
            f,
            "; {} connections, {} resolutions; {} violations",
            self.connections,
            self.resolutions,
            self.violations.len()
        )
    }
}

/// The state that is kept while a capture is read.
#[derive(Default)]
struct Judge {
    exchanges: Exchanges,
    resolutions: Resolutions,
    subnet: Subnet,
    found: Findings,
    verdict: Verdict,
}

impl Judge {
    fn packet(&mut self, packet: &Packet) {
        self.exchanges.pass(packet.time);
        let datagram = match &packet.body {
            Body::Mad(datagram) => datagram,
            Body::Data => return self.exchanges.data(packet.dst, packet.qpn),
        };
        self.subnet.administrator(&datagram.mad);
        self.found.frame = packet.frame;
        let Some(mad) = message::envelope(datagram, packet.qpn, &mut self.found) else {
            return;
        };
        let Some(kind) = Kind::of(&Mad(mad)) else {
            return;
        };
        *self.verdict.messages.entry(kind).or_default() += 1;
        let Ok((header, message)) = wire::decode(&mad) else {
            return;
        };
        message::content(&mad, &header, &message, &mut self.found);
        self.subnet.message(packet, &message, &mut self.found);
        let seen = Seen {
            frame: packet.frame,
            time: packet.time,
            src: packet.src,
            dst: packet.dst,
            psn: datagram.psn,
            mad: &mad,
            header,
        };
        self.exchanges.message(&seen, &message);
        self.resolutions.message(&seen, &message);
    }

    fn finish(mut self) -> Verdict {
        self.verdict.connections = self.exchanges.table.all().len();
        self.verdict.resolutions = self.resolutions.len();
        let found = [self.found, self.exchanges.found, self.resolutions.found];
        self.verdict.violations = found.into_iter().flat_map(|found| found.all).collect();
        self.verdict.violations.sort_by_key(|v| (v.frame, v.rule));
        self.verdict
    }
}

/// Judges frames in the order in which they were captured.
///
/// `is_lossy` says that frames were lost before they were captured: what was not seen is then not
/// held against anybody. A message that would have come after the end of the capture is not either.
pub fn judge(frames: &[Frame], is_lossy: bool) -> Verdict {
    let mut judge = Judge::default();
    judge.exchanges.is_lossy = is_lossy;
    for packet in frames.iter().filter_map(packet::parse) {
        judge.packet(&packet);
    }
    judge.finish()
}
