// SPDX-License-Identifier: GPL-2.0

//! Messages of connections as steps of their exchange.

mod close;
mod open;

use crate::{
    connection::{End, Sent, Table},
    due::{Due, Dues, Wants},
    packet::Address,
    rule::{Rule, Violation},
};
use cm_script::wire::MAD_LEN;
use cmproto::{
    cm::EARLY_SENDS,
    wire::{Header, Message, MraMessage},
};

/// How late an emulated machine may be, in microseconds: for answers, and for what was on its way.
pub const SLACK: u64 = 2_000_000;
/// How much sooner than its time a retry may be captured, because the one before it was late.
const EARLY: u64 = 600_000;
/// No side waits longer for an answer than this, whatever it was told; Linux itself does not.
const LONGEST_WAIT: u64 = 8_000_000;

/// What a time code stands for, in microseconds, as Linux rounds it.
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
    /// Where it comes from.
    pub src: Address,
    /// Where it goes to.
    pub dst: Address,
    /// The sequence number of its packet.
    pub psn: u32,
    /// All of it.
    pub mad: &'a [u8; MAD_LEN],
    /// Its header.
    pub header: Header,
}

/// The connections of a capture and what is wrong with them.
#[derive(Debug, Default)]
pub struct Exchanges {
    /// Frames were lost before they were captured, so that what is missing may have been sent.
    pub is_lossy: bool,
    /// The connections.
    pub table: Table,
    /// What was found.
    pub found: Vec<Violation>,
    dues: Dues,
}

impl Exchanges {
    fn break_rule(&mut self, frame: usize, rule: Rule, text: impl Into<String>) {
        let text = text.into();
        self.found.push(Violation { rule, frame, text });
    }

    fn check(&mut self, seen: &Seen<'_>, rule: Rule, holds: bool, text: &str) {
        if !holds {
            self.break_rule(seen.frame, rule, text);
        }
    }

    fn expect(&mut self, seen: &Seen<'_>, at: usize, wants: Wants, until: u64) {
        if !self.is_lossy {
            self.dues.push(Due {
                at,
                wants,
                until,
                frame: seen.frame,
            });
        }
    }

    /// Time has come to `now`, in microseconds.
    pub fn pass(&mut self, now: u64) {
        for due in self.dues.overdue(now) {
            self.break_rule(due.frame, due.wants.rule(), due.wants.missing());
        }
    }

    /// Data for a queue pair.
    pub fn data(&mut self, dst: Address, qpn: u32) {
        if let Some(&(at, end)) = self.table.with_qpn(dst, qpn).first() {
            self.table.get(at).data[end as usize] = true;
            if end == End::Passive {
                self.dues.settle(at, Wants::Rep);
            }
        }
    }

    /// A message of a connection.
    pub fn message(&mut self, seen: &Seen<'_>, message: &Message<'_>) {
        match message {
            Message::Req(req) => self.req(seen, req),
            Message::Mra(mra) => {
                let ids = (mra.local_comm_id, mra.remote_comm_id);
                match mra.message {
                    MraMessage::Req => self.mra_of_req(seen, ids, mra.service_timeout),
                    MraMessage::Rep => self.mra_of_rep(seen, ids, mra.service_timeout),
                    _ => self.break_rule(seen.frame, Rule::W8, "an MRA for no message"),
                }
            }
            Message::Rej(rej) => self.rej(seen, rej),
            Message::Rep(rep) => self.rep(seen, rep),
            Message::Rtu(rtu) => self.rtu(seen, (rtu.local_comm_id, rtu.remote_comm_id)),
            Message::Dreq(dreq) => {
                let ids = (dreq.local_comm_id, dreq.remote_comm_id);
                self.dreq(seen, ids, dreq.remote_qpn_eecn);
            }
            Message::Drep(drep) => self.drep(seen, (drep.local_comm_id, drep.remote_comm_id)),
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
            let (mine, other) = (connection.name(end), connection.name(end.other()));
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
        self.break_rule(seen.frame, rule.0, format!("{text} {}", rule.1));
        None
    }

    /// Whether this repeats a message; then whether it may, and whether it is the same.
    ///
    /// `wait` is the least time between two sends, in microseconds.
    fn repeats(
        &mut self,
        seen: &Seen<'_>,
        name: &str,
        sent: &mut Option<Sent>,
        (retries, wait): (usize, u64),
    ) -> bool {
        let Some(sent) = sent else {
            *sent = Some(Sent::new(seen));
            return false;
        };
        if sent.mad != *seen.mad {
            let at = sent.mad.iter().zip(seen.mad).position(|(a, b)| a != b);
            let text = format!(
                "{name} differs from the one before in byte {}",
                at.unwrap_or(0)
            );
            self.break_rule(seen.frame, Rule::W6, text);
        }
        let since = seen.time.saturating_sub(sent.last());
        if !sent.again(seen) {
            return true;
        }
        if !sent.classify(wait.min(LONGEST_WAIT), EARLY) {
            let text = format!(
                "{name} again after {} ms, not {}",
                since / 1000,
                wait / 1000
            );
            self.break_rule(seen.frame, Rule::W5, text);
        }
        // Where there is no least time, those that come early are not told apart.
        let early = match wait {
            0 => usize::from(EARLY_SENDS),
            _ => 0,
        };
        let most = retries.saturating_add(1 + early);
        if sent.sends() > most {
            let text = format!("{name} number {} of {most}", sent.sends());
            self.break_rule(seen.frame, Rule::W5, text);
        }
        true
    }
}
