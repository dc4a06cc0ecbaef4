// SPDX-License-Identifier: GPL-2.0

//! Messages about the alternate path of a connection: LAP, APR, MRA of a LAP.

use super::{micros, repeats, Exchanges, Seen, UNLIMITED};
use crate::{
    connection::{End, Sent},
    rule::Rule,
};
use cmproto::wire::Lap;

impl Exchanges {
    pub(super) fn lap(&mut self, seen: &Seen<'_>, (at, end): (usize, End), lap: &Lap<'_>) {
        let connection = self.table.get(at);
        let terms = connection.terms;
        let had_rep = connection.rep.is_some();
        let of_req = connection.req.tid == seen.header.tid;
        let want = connection.names[end.other()].qpn;
        self.check(Rule::W4, had_rep || self.is_lossy, "a LAP without a REP");
        self.check(Rule::W3, !of_req, "a LAP in the transaction of the REQ");
        if had_rep && !terms.xrc {
            let qpn = lap.remote_qpn_eecn;
            let text = format!("LAP for QPN {qpn:#x}, not {want:#x}");
            self.check(Rule::W17, qpn == want, text);
        }
        let wait = micros(terms.passive_timeout.min(terms.active_timeout));
        let sent = &mut self.table.get(at).lap[end];
        if sent
            .as_ref()
            .is_some_and(|sent| sent.tid != seen.header.tid)
        {
            *sent = None;
        }
        repeats(&mut self.found, seen, "LAP", sent, (terms.retries, wait));
    }

    pub(super) fn apr(&mut self, seen: &Seen<'_>, (at, end): (usize, End)) {
        let connection = self.table.get(at);
        let asked = connection.lap[end.other()].as_ref().map(|sent| sent.tid);
        match asked {
            Some(tid) => {
                let same = tid == seen.header.tid;
                self.check(Rule::W3, same, "another transaction id than the LAP has");
            }
            None if self.is_lossy => (),
            None => self.found.breaks(Rule::W7, "an APR without a LAP"),
        }
        let sent = &mut self.table.get(at).apr[end];
        if sent
            .as_ref()
            .is_some_and(|sent| sent.tid != seen.header.tid)
        {
            *sent = None;
        }
        repeats(&mut self.found, seen, "APR", sent, UNLIMITED);
    }

    pub(super) fn mra_of_lap(&mut self, seen: &Seen<'_>, (at, end): (usize, End)) {
        let connection = self.table.get(at);
        let lap = connection.lap[end.other()].as_ref();
        let is_open = |sent: &Sent| sent.tid == seen.header.tid;
        let fits = lap.is_some_and(is_open) || self.is_lossy;
        self.check(Rule::W8, fits, "an MRA of no LAP");
    }
}
