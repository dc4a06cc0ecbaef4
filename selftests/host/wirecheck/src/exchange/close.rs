// SPDX-License-Identifier: GPL-2.0

//! Messages that end a connection: REJ, DREQ, DREP.

use super::{micros, Exchanges, Seen, SLACK};
use crate::{connection::End, due::Wants, rule::Rule};
use cmproto::{
    reject::Reason,
    wire::{Rej, RejMessage},
};

impl Exchanges {
    pub(super) fn rej(&mut self, seen: &Seen<'_>, rej: &Rej<'_>) {
        let ids = (rej.local_comm_id, rej.remote_comm_id);
        // Who knows neither cannot be told.
        if ids == (0, 0) {
            self.break_rule(seen.frame, Rule::W13, "a REJ without ids");
            return;
        }
        let Some((at, end)) = self.find(seen, ids) else {
            return;
        };
        let connection = self.table.get(at);
        let had_rep = connection.rep.is_some();
        let had_rtu = connection.rtu.is_some();
        let guid = connection.name(end).guid;
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
        self.check(seen, Rule::W13, fits || self.is_lossy, &text);
        if rej.reason == Reason::TIMEOUT.0 && guid != 0 {
            let named = rej.information() == guid.to_be_bytes();
            self.check(
                seen,
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
                seen,
                Rule::W11,
                is_stale,
                "a stale REQ got another reason than 10",
            );
        }
        if is_stale {
            self.dues.settle(at, Wants::Stale);
        }
        let mut sent = self.table.get(at).rej(end).clone();
        // A second reason is one of another message, or of who has forgotten the first.
        if sent.as_ref().is_none_or(|sent| sent.mad == *seen.mad) {
            self.repeats(seen, "REJ", &mut sent, (usize::MAX - 1, 0));
            *self.table.get(at).rej_mut(end) = sent;
        }
        self.dues.settle_all(at);
    }

    pub(super) fn dreq(&mut self, seen: &Seen<'_>, ids: (u32, u32), qpn: u32) {
        let Some((at, end)) = self.find(seen, ids) else {
            return;
        };
        let connection = self.table.get(at);
        let terms = connection.terms;
        let had_rep = connection.rep.is_some();
        let of_req = connection.req.tid == seen.header.tid;
        let want = connection.name(end.other()).qpn;
        let other_tid = connection
            .dreq(end)
            .as_ref()
            .is_some_and(|sent| sent.tid != seen.header.tid);
        let answered = connection.drep(end.other()).is_some();
        self.check(
            seen,
            Rule::W4,
            had_rep || self.is_lossy,
            "a DREQ without a REP",
        );
        // Linux makes the transaction ids of an end from its communication id.
        self.check(
            seen,
            Rule::W3,
            !of_req || end == End::Active,
            "a DREQ in a transaction of the other end",
        );
        self.check(
            seen,
            Rule::W3,
            !other_tid,
            "a second DREQ in another transaction",
        );
        if had_rep && !terms.xrc {
            let text = format!("DREQ for QPN {qpn:#x}, not {want:#x}");
            self.check(seen, Rule::W17, qpn == want, &text);
        }
        let wait = micros(terms.passive_timeout.min(terms.active_timeout));
        let mut sent = self.table.get(at).dreq_mut(end).take();
        let again = !other_tid && self.repeats(seen, "DREQ", &mut sent, (terms.retries, wait));
        *self.table.get(at).dreq_mut(end) = sent;
        if again && answered {
            self.expect(seen, at, Wants::Drep(end.other()), seen.time + SLACK);
        }
        for wants in [Wants::Rep, Wants::Rtu, Wants::Ends] {
            self.dues.settle(at, wants);
        }
    }

    pub(super) fn drep(&mut self, seen: &Seen<'_>, ids: (u32, u32)) {
        let Some((at, end)) = self.find(seen, ids) else {
            return;
        };
        let connection = self.table.get(at);
        let asked = connection.dreq(end.other()).as_ref().map(|sent| sent.tid);
        match asked {
            Some(tid) => {
                let same = tid == seen.header.tid;
                self.check(
                    seen,
                    Rule::W3,
                    same,
                    "another transaction id than the DREQ has",
                );
            }
            None if self.is_lossy => (),
            None => self.break_rule(seen.frame, Rule::W10, "a DREP without a DREQ"),
        }
        let mut sent = self.table.get(at).drep_mut(end).take();
        let before = sent.as_ref().is_none_or(|sent| sent.mad == *seen.mad);
        self.check(
            seen,
            Rule::W6,
            before,
            "a DREP that differs from the one before",
        );
        if before {
            self.repeats(seen, "DREP", &mut sent, (usize::MAX - 1, 0));
        }
        *self.table.get(at).drep_mut(end) = sent;
        self.dues.settle(at, Wants::Drep(end));
        self.dues.settle(at, Wants::Ends);
    }
}
