// SPDX-License-Identifier: GPL-2.0

//! Messages that end a connection: REJ, DREQ, DREP.

use super::{micros, repeats, Exchanges, Seen, SLACK, UNLIMITED};
use crate::{
    connection::{End, Sent},
    due::Wants,
    rule::Rule,
};
use cmproto::{
    qp::low24,
    reject::Reason,
    wire::{Rej, RejMessage},
};

/// The shortest time between two questions whether the other end has the connection, in
/// microseconds, but for the time that a capture may be off.
const QUESTIONS: u64 = 900_000;

impl Exchanges {
    pub(super) fn rej(&mut self, seen: &Seen<'_>, (at, end): (usize, End), rej: &Rej<'_>) {
        let ids = (rej.local_comm_id, rej.remote_comm_id);
        let connection = self.table.get(at);
        let had_rep = connection.rep.is_some();
        let had_rtu = connection.rtu.is_some();
        let guid = connection.names[end].guid;
        let fits = match (rej.message, end) {
            (RejMessage::Req, End::Passive) => !had_rep && ids.1 != 0,
            (RejMessage::Rep, End::Active) => had_rep && ids.0 != 0 && ids.1 != 0,
            // A REP that was repeated can be rejected by who does not know it any more.
            (RejMessage::Other, _) => ids.0 != 0 || had_rep,
            _ => false,
        };
        let text = format!(
            "{:?} rejected by the {end:?} end with ids {ids:#x?}",
            rej.message
        );
        self.check(Rule::W13, fits || self.is_lossy, text);
        if rej.reason == Reason::TIMEOUT.0 && guid != 0 {
            let named = rej.information() == guid.to_be_bytes();
            self.check(
                Rule::W12,
                named,
                "REJ 4 with another GUID than the sender's",
            );
        }
        if !had_rtu {
            self.tid_of_req(seen, at);
        }
        if end == End::Passive && ids.0 != 0 {
            self.table.learn(at, ids.0);
        }
        let is_stale = rej.reason == Reason::STALE_CONN.0;
        let claimed = self.table.get(at).is_stale;
        if end == End::Passive && claimed {
            self.check(
                Rule::W11,
                is_stale,
                "a stale REQ got another reason than 10",
            );
        }
        if is_stale {
            self.dues.settle(at, Wants::Stale);
        }
        let sent = &mut self.table.get(at).rej[end];
        // A second reason is one of another message, or of who has forgotten the first.
        if sent.as_ref().is_none_or(|sent| sent.mad == *seen.mad) {
            repeats(&mut self.found, seen, "REJ", sent, UNLIMITED);
        }
        self.dues.settle_all(at);
    }

    pub(super) fn dreq(&mut self, seen: &Seen<'_>, (at, end): (usize, End), qpn: u32) {
        let connection = self.table.get(at);
        let terms = connection.terms;
        let had_rep = connection.rep.is_some();
        let of_req = connection.req.tid == seen.header.tid;
        let want = connection.names[end.other()].qpn;
        let other_tid = connection.dreq[end]
            .as_ref()
            .is_some_and(|sent| sent.tid != seen.header.tid);
        let answered = connection.drep[end.other()].is_some();
        self.check(Rule::W4, had_rep || self.is_lossy, "a DREQ without a REP");
        // Linux makes the transaction ids of an end from its communication id.
        self.check(
            Rule::W3,
            !of_req || end == End::Active,
            "a DREQ in a transaction of the other end",
        );
        self.check(Rule::W3, !other_tid, "a second DREQ in another transaction");
        if had_rep && !terms.xrc && qpn == low24(!want) {
            self.question(seen, (at, end));
            return;
        }
        if had_rep && !terms.xrc {
            let text = format!("DREQ for QPN {qpn:#x}, not {want:#x}");
            self.check(Rule::W17, qpn == want, text);
        }
        let wait = micros(terms.passive_timeout.min(terms.active_timeout));
        let sent = &mut self.table.get(at).dreq[end];
        let limits = (terms.retries, wait);
        let again = !other_tid && repeats(&mut self.found, seen, "DREQ", sent, limits);
        if again && answered {
            self.expect(at, Wants::Drep(end.other()), seen.time + SLACK);
        }
        for wants in [Wants::Rep, Wants::Rtu, Wants::Ends] {
            self.dues.settle(at, wants);
        }
    }

    /// A DREQ for a QPN that the other end does not have, by which it is asked whether it has the
    /// connection.
    fn question(&mut self, seen: &Seen<'_>, (at, end): (usize, End)) {
        let question = self.table.get(at).question[end].replace(Sent::new(seen));
        if let Some(before) = question {
            let since = seen.time.saturating_sub(before.last());
            let text = format!("asked again after {} ms", since / 1_000);
            self.check(Rule::W5, since >= QUESTIONS, text);
            self.check(Rule::W6, before.mad == *seen.mad, "another question");
        }
        self.dues.settle(at, Wants::Ends);
    }

    pub(super) fn drep(&mut self, seen: &Seen<'_>, (at, end): (usize, End)) {
        let connection = self.table.get(at);
        let asked = connection.dreq[end.other()]
            .as_ref()
            .or(connection.question[end.other()].as_ref())
            .map(|sent| sent.tid);
        match asked {
            Some(tid) => {
                let same = tid == seen.header.tid;
                self.check(Rule::W3, same, "another transaction id than the DREQ has");
            }
            None if self.is_lossy => (),
            None => self.found.breaks(Rule::W10, "a DREP without a DREQ"),
        }
        let sent = &mut self.table.get(at).drep[end];
        let before = sent.as_ref().is_none_or(|sent| sent.mad == *seen.mad);
        self.found
            .check(Rule::W6, before, "a DREP that differs from the one before");
        if before {
            repeats(&mut self.found, seen, "DREP", sent, UNLIMITED);
        }
        self.dues.settle(at, Wants::Drep(end));
        self.dues.settle(at, Wants::Ends);
    }
}
