// SPDX-License-Identifier: GPL-2.0

//! Messages that make a connection: REQ, MRA, REP, RTU.

use super::{micros, repeated, repeats, Exchanges, Seen, EARLY, LONGEST_WAIT, SLACK, UNLIMITED};
use crate::{
    connection::{Connection, End, Mra, Sent},
    due::Wants,
    rule::Rule,
};
use cmproto::wire::{self, Rep, Req};

/// No side waits longer than this after an MRA.
const LONGEST_MRA: u64 = 60_000_000;
/// A connection of which nothing was heard for this long may be gone without a trace.
const FORGOTTEN: u64 = 120_000_000;

impl Exchanges {
    pub(super) fn req(&mut self, seen: &Seen<'_>, req: &Req<'_>) {
        let same = self.table.with_id(seen.src, req.local_comm_id);
        let same = same.into_iter().find(|(at, end)| {
            let connection = &self.table.all()[*at];
            let same = connection.req.mad == *seen.mad || connection.closed().is_none();
            *end == End::Active && connection.req.tid == seen.header.tid && same
        });
        if let Some((at, _)) = same {
            self.req_again(seen, at);
            return;
        }
        self.reuse(seen, req.local_comm_id);
        let sent = Sent::new(seen);
        let rival = self.rival(seen, End::Active, (req.local_ca_guid, req.local_qpn));
        let mut connection = Connection::new(req, sent, seen.src, seen.dst);
        connection.is_stale = rival.is_some();
        let at = self.table.add(connection);
        if let Some(rival) = rival {
            self.table.get(rival).stale_claim = Some(seen.time);
            self.expect(at, Wants::Stale, seen.time + SLACK);
            self.expect(rival, Wants::Ends, seen.time + SLACK);
        }
        self.expect_req(seen, at);
    }

    /// The next REQ, or an end of it. Three may be lost on the way.
    fn expect_req(&mut self, seen: &Seen<'_>, at: usize) {
        let connection = self.table.get(at);
        let wait = micros(connection.terms.passive_timeout);
        if connection.req.sends() <= connection.terms.retries {
            self.expect(at, Wants::Req, seen.time + 3 * wait + SLACK);
        }
    }

    fn req_again(&mut self, seen: &Seen<'_>, at: usize) {
        self.dues.settle(at, Wants::Req);
        let connection = self.table.get(at);
        connection.last = seen.time;
        let terms = connection.terms;
        let answered = connection.rep.as_ref().and_then(|rep| rep.times.first());
        let ended = [End::Active, End::Passive]
            .into_iter()
            .filter_map(|end| connection.rej[end].as_ref()?.times.first());
        let answered = answered.into_iter().chain(ended).min().copied();
        let mra = connection.mra_req.last().copied();
        let limits = (terms.retries, micros(terms.passive_timeout));
        repeated(&mut self.found, seen, "REQ", &mut connection.req, limits);
        if let Some(answered) = answered {
            let on_time = seen.time < answered + SLACK;
            self.check(Rule::W7, on_time, "REQ again after its answer");
            return;
        }
        if let Some(mra) = mra {
            let since = seen.time.saturating_sub(mra.time);
            let wait = micros(mra.timeout).min(LONGEST_MRA);
            // An MRA for an early send counts from the first send that is not.
            let req = &self.table.get(at).req;
            let first = req.times[0] + micros(terms.passive_timeout);
            let early = req.early > 0 && mra.time < first && seen.time < first + SLACK;
            let patient = early || since < SLACK || since + EARLY >= wait;
            self.check(
                Rule::W8,
                patient,
                "REQ again before the MRA's time was over",
            );
            self.expect(at, Wants::Mra, seen.time + SLACK);
        } else {
            self.expect_req(seen, at);
        }
    }

    /// A new connection takes an id of its sender: not one that is still in use.
    fn reuse(&mut self, seen: &Seen<'_>, comm: u32) {
        let before = self.table.with_id(seen.src, comm);
        let Some(&(at, _)) = before.first() else {
            return;
        };
        let connection = self.table.get(at);
        match connection.closed() {
            Some(closed) => {
                let wait = micros(connection.terms.ack_timeout);
                let over = seen.time + EARLY >= closed + wait;
                self.check(Rule::W16, over, "the id is still in time wait");
            }
            None => {
                let gone = seen.time > connection.last + FORGOTTEN;
                self.check(Rule::W4, gone, "the id is still in use");
            }
        }
    }

    /// The connection that is alive and has the queue pair that the sender names, at the same end.
    fn rival(&self, seen: &Seen<'_>, end: End, (guid, qpn): (u64, u32)) -> Option<usize> {
        let with = self.table.with_qpn(seen.src, qpn);
        let found = with.into_iter().find(|(at, side)| {
            let connection = &self.table.all()[*at];
            *side == end
                && connection.names[end].guid == guid
                && connection.names[end.other()].addr == seen.dst
                && connection.is_alive()
                && seen.time < connection.last + FORGOTTEN
        });
        found.map(|(at, _)| at)
    }

    pub(super) fn tid_of_req(&mut self, seen: &Seen<'_>, at: usize) {
        let same = self.table.get(at).req.tid == seen.header.tid;
        self.check(Rule::W3, same, "another transaction id than the REQ has");
    }

    pub(super) fn mra_of_req(
        &mut self,
        seen: &Seen<'_>,
        (at, end): (usize, End),
        mra: &wire::Mra<'_>,
    ) {
        self.check(Rule::W8, end == End::Passive, "an MRA for one's own REQ");
        self.tid_of_req(seen, at);
        self.table.learn(at, mra.local_comm_id);
        self.dues.settle(at, Wants::Mra);
        self.dues.settle(at, Wants::Req);
        let connection = self.table.get(at);
        connection.mra_req.push(Mra {
            time: seen.time,
            timeout: mra.service_timeout,
        });
        let few = connection.mra_req.len() <= connection.req.arrived();
        let decided = connection.rep.as_ref().map(|rep| rep.times[0]);
        self.check(Rule::W8, few, "more MRAs than REQs");
        let open = decided.is_none_or(|at| seen.time < at + SLACK);
        self.check(Rule::W9, open, "an MRA for a REQ that got its REP");
    }

    pub(super) fn mra_of_rep(
        &mut self,
        seen: &Seen<'_>,
        (at, end): (usize, End),
        mra: &wire::Mra<'_>,
    ) {
        self.check(Rule::W8, end == End::Active, "an MRA for one's own REP");
        self.tid_of_req(seen, at);
        self.dues.settle(at, Wants::Rep);
        let connection = self.table.get(at);
        connection.mra_rep.push(Mra {
            time: seen.time,
            timeout: mra.service_timeout,
        });
        // The RTU may be lost, so that the REP is sent early again.
        if let Some(rep) = &mut connection.rep {
            rep.resumed = Some(seen.time);
        }
        let reps = connection.rep.as_ref().map_or(0, Sent::arrived);
        let few = connection.mra_rep.len() <= reps;
        self.check(Rule::W8, few, "more MRAs than REPs");
    }

    pub(super) fn rep(&mut self, seen: &Seen<'_>, (at, end): (usize, End), rep: &Rep<'_>) {
        if end == End::Active || rep.local_comm_id == 0 {
            self.found
                .breaks(Rule::W4, "a REP to one's own REQ, or without id");
            return;
        }
        self.tid_of_req(seen, at);
        self.table.learn(at, rep.local_comm_id);
        self.dues.settle(at, Wants::Req);
        self.dues.settle(at, Wants::Mra);
        self.dues.settle(at, Wants::Rep);
        let connection = self.table.get(at);
        let terms = connection.terms;
        let is_stale = connection.is_stale;
        let rejected = connection.rej[End::Passive].is_some();
        let ready = connection.rtu.as_ref().map(|rtu| rtu.times[0]);
        let over = [&connection.dreq[End::Active], &connection.rej[End::Active]];
        let over = over.into_iter().flatten().map(|sent| sent.times[0]).min();
        let first = connection.rep.is_none();
        // An MRA makes the wait longer; a REQ again may call for it sooner.
        let wait = match connection.req.times.len() {
            1 => micros(terms.active_timeout),
            _ => 0,
        };
        if first {
            connection.names[End::Passive].guid = rep.local_ca_guid;
            let qpn = match terms.xrc {
                true => rep.local_eecn,
                false => rep.local_qpn,
            };
            let rival = self.rival(seen, End::Passive, (rep.local_ca_guid, qpn));
            if rival.is_some_and(|rival| rival != at) {
                self.expect(at, Wants::Stale, seen.time + SLACK);
            }
            self.table.learn_qpn(at, qpn);
        }
        self.check(Rule::W9, !rejected, "a REP for a REQ that was rejected");
        self.check(
            Rule::W11,
            !is_stale,
            "a REP for a REQ with the QPN of another",
        );
        let sent = &mut self.table.get(at).rep;
        let again = repeats(&mut self.found, seen, "REP", sent, (terms.retries, wait));
        let times = sent.as_ref().map_or(0, Sent::sends);
        let answered = ready.into_iter().chain(over).min();
        match answered {
            Some(time) => {
                let in_time = seen.time < time + SLACK;
                self.check(Rule::W7, in_time, "REP again after its answer");
                if again && over.is_none() {
                    self.expect(at, Wants::Rtu, seen.time + SLACK);
                }
            }
            None if times <= terms.retries => {
                let wait = micros(terms.active_timeout).min(LONGEST_WAIT);
                let patience = self
                    .table
                    .get(at)
                    .mra_rep
                    .last()
                    .map_or(0, |mra| micros(mra.timeout));
                let until = seen.time + 3 * wait + patience + SLACK;
                self.expect(at, Wants::Rep, until);
            }
            None => (),
        }
    }

    pub(super) fn rtu(&mut self, seen: &Seen<'_>, (at, end): (usize, End)) {
        self.check(Rule::W4, end == End::Active, "an RTU for one's own REP");
        let known = self.table.get(at).rep.is_some() || self.is_lossy;
        self.check(Rule::W4, known, "an RTU without a REP");
        self.tid_of_req(seen, at);
        self.dues.settle(at, Wants::Rep);
        self.dues.settle(at, Wants::Rtu);
        let sent = &mut self.table.get(at).rtu;
        repeats(&mut self.found, seen, "RTU", sent, UNLIMITED);
    }
}
