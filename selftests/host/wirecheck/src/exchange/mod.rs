// SPDX-License-Identifier: GPL-2.0

//! Messages of connections as steps of their exchange.

mod close;
mod open;
mod paths;

use crate::{
    connection::{End, Sent, Table},
    due::{Due, Dues, Wants},
    packet::Address,
    rule::{Findings, Rule},
};
use cm_script::wire::{Mad, MAD_LEN};
use cmproto::{
    cm::EARLY_SENDS,
    wire::{Header, Message, MraMessage},
};

/// The delay of an emulated machine that is accepted, in microseconds: for answers, and for what
/// was on its way.
pub const SLACK: u64 = 2_000_000;
/// The time by which a retry may be captured too early, because the one before it was late.
const EARLY: u64 = 600_000;
/// No side waits longer for an answer than this, whatever it was told; Linux itself does not.
const LONGEST_WAIT: u64 = 8_000_000;

/// Any number of repetitions, at any time.
const UNLIMITED: (usize, u64) = (usize::MAX - 1, 0);

/// Returns the time that a time code stands for, in microseconds, as Linux rounds it.
pub const fn micros(code: u8) -> u64 {
    match code {
        0..=8 => 1_000,
        9..=31 => 1_000 << (code - 8),
        _ => 0,
    }
}

/// A message that was captured.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The number of its frame.
    pub frame: usize,
    /// When it was captured, in microseconds.
    pub time: u64,
    /// The source of the message.
    pub src: Address,
    /// The destination of the message.
    pub dst: Address,
    /// The sequence number of its packet.
    pub psn: u32,
    /// All of it.
    pub mad: &'a [u8; MAD_LEN],
    /// The header.
    pub header: Header,
}

/// The connections of a capture and what is wrong with them.
#[derive(Debug, Default)]
pub struct Exchanges {
    /// Frames were lost before they were captured, so that what is missing may have been sent.
    pub is_lossy: bool,
    /// The connections.
    pub table: Table,
    /// The findings.
    pub found: Findings,
    dues: Dues,
}

impl Exchanges {
    fn check(&mut self, rule: Rule, holds: bool, text: impl Into<String>) {
        self.found.check(rule, holds, text);
    }

    fn expect(&mut self, at: usize, wants: Wants, until: u64) {
        if !self.is_lossy {
            self.dues.push(Due {
                at,
                wants,
                until,
                frame: self.found.frame,
            });
        }
    }

    /// Time has come to `now`, in microseconds.
    pub fn pass(&mut self, now: u64) {
        for due in self.dues.overdue(now) {
            self.found.frame = due.frame;
            self.found.breaks(due.wants.rule(), due.wants.missing());
        }
    }

    /// Data for a queue pair.
    pub fn data(&mut self, dst: Address, qpn: u32) {
        if let Some(&(at, end)) = self.table.with_qpn(dst, qpn).first() {
            self.table.get(at).data[end] = true;
            if end == End::Passive {
                self.dues.settle(at, Wants::Rep);
            }
        }
    }

    /// A message of a connection.
    pub fn message(&mut self, seen: &Seen<'_>, message: &Message<'_>) {
        self.found.frame = seen.frame;
        if let Message::Req(req) = message {
            return self.req(seen, req);
        }
        let Some(ids) = Mad(*seen.mad).ids() else {
            return;
        };
        match message {
            // The sender knows neither, so the connection cannot be found.
            Message::Rej(_) if ids == (0, 0) => {
                return self.found.breaks(Rule::W13, "a REJ without ids");
            }
            Message::Mra(mra) if mra.message == MraMessage::Reserved => {
                return self.found.breaks(Rule::W8, "an MRA for no message");
            }
            _ => (),
        }
        let Some(it) = self.find(seen, ids) else {
            return;
        };
        match message {
            Message::Mra(mra) if mra.message == MraMessage::Req => self.mra_of_req(seen, it, mra),
            Message::Mra(mra) if mra.message == MraMessage::Other => self.mra_of_lap(seen, it),
            Message::Mra(mra) => self.mra_of_rep(seen, it, mra),
            Message::Rej(rej) => self.rej(seen, it, rej),
            Message::Rep(rep) => self.rep(seen, it, rep),
            Message::Rtu(_) => self.rtu(seen, it),
            Message::Dreq(dreq) => self.dreq(seen, it, dreq.remote_qpn_eecn),
            Message::Drep(_) => self.drep(seen, it),
            Message::Lap(lap) => self.lap(seen, it, lap),
            Message::Apr(_) => self.apr(seen, it),
            _ => (),
        }
    }

    /// The connection in which the sender has the first id and the receiver the second, and which
    /// end the sender is. An id that is not known yet fits any.
    fn find(&mut self, seen: &Seen<'_>, (local, remote): (u32, u32)) -> Option<(usize, End)> {
        let by_remote = self.table.with_id(seen.dst, remote);
        let by_remote = by_remote.into_iter().map(|(at, end)| (at, end.other()));
        let fits = |table: &Table, (at, end): (usize, End)| {
            let connection = &table.all()[at];
            let (mine, other) = (connection.names[end], connection.names[end.other()]);
            mine.addr == seen.src
                && other.addr == seen.dst
                && (local == 0 || mine.comm.is_none_or(|id| id == local))
                && (remote == 0 || other.comm.is_none_or(|id| id == remote))
        };
        let found = by_remote.chain(self.table.with_id(seen.src, local));
        let mut found = found.filter(|pair| fits(&self.table, *pair));
        if let Some(found) = found.next() {
            self.table.get(found.0).last = seen.time;
            return Some(found);
        }
        let text = format!("ids {local:#x} and {remote:#x}");
        let rule = match self.table.knows(local, remote) {
            true => (Rule::W18, "are those of other addresses"),
            false => (Rule::W4, "belong to no connection"),
        };
        self.found.breaks(rule.0, format!("{text} {}", rule.1));
        None
    }
}

/// Returns true if this repeats a message. If so, checks that it may be repeated and that it is the
/// same.
///
/// `wait` is the least time between two sends, in microseconds.
fn repeats(
    found: &mut Findings,
    seen: &Seen<'_>,
    name: &str,
    sent: &mut Option<Sent>,
    limits: (usize, u64),
) -> bool {
    let Some(sent) = sent else {
        *sent = Some(Sent::new(seen));
        return false;
    };
    repeated(found, seen, name, sent, limits);
    true
}

/// Checks that a message may be repeated, and that it is the same.
fn repeated(
    found: &mut Findings,
    seen: &Seen<'_>,
    name: &str,
    sent: &mut Sent,
    (retries, wait): (usize, u64),
) {
    let at = sent.mad.iter().zip(seen.mad).position(|(a, b)| a != b);
    if let Some(at) = at {
        found.breaks(
            Rule::W6,
            format!("{name} differs from the one before in byte {at}"),
        );
    }
    let since = seen.time.saturating_sub(sent.last());
    if !sent.again(seen) {
        return;
    }
    if !sent.classify(wait.min(LONGEST_WAIT), EARLY) {
        let (since, wait) = (since / 1000, wait / 1000);
        found.breaks(
            Rule::W5,
            format!("{name} again after {since} ms, not {wait}"),
        );
    }
    // If there is no least time, early ones are not told apart.
    let early = match wait {
        0 => usize::from(EARLY_SENDS),
        _ => 0,
    };
    let (sends, most) = (sent.sends(), retries.saturating_add(1 + early));
    found.check(
        Rule::W5,
        sends <= most,
        format!("{name} number {sends} of {most}"),
    );
}
