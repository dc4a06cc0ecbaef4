// SPDX-License-Identifier: GPL-2.0

//! Service id resolution: SIDR_REQ and SIDR_REP (IBTA 12.11).

use crate::{
    connection::Sent,
    exchange::{micros, Seen, SLACK},
    packet::Address,
    rule::{Findings, Rule},
};
use cmproto::wire::{Message, SidrRep, SidrReq};
use std::collections::HashMap;

/// Linux sends a request at most so often, and no sooner than after this time code.
const SENDS: usize = 16;
const TIMEOUT: u8 = 20;
/// The time by which a retry may be captured too early, in microseconds.
const EARLY: u64 = 600_000;

/// A resolution.
#[derive(Debug)]
struct Resolution {
    dst: Address,
    service: u64,
    req: Sent,
    rep: Option<Sent>,
}

/// The resolutions of a capture and what is wrong with them.
#[derive(Debug, Default)]
pub struct Resolutions {
    /// By address and request id of who asks.
    all: HashMap<(Address, u32), Resolution>,
    /// The findings.
    pub found: Findings,
}

impl Resolutions {
    /// Returns the number of resolutions.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// A message of a resolution.
    pub fn message(&mut self, seen: &Seen<'_>, message: &Message<'_>) {
        self.found.frame = seen.frame;
        match message {
            Message::SidrReq(req) => self.req(seen, req),
            Message::SidrRep(rep) => self.rep(seen, rep),
            _ => (),
        }
    }

    fn req(&mut self, seen: &Seen<'_>, req: &SidrReq<'_>) {
        let Self { all, found } = self;
        let key = (seen.src, req.request_id);
        let before = all.get_mut(&key);
        let before = before.filter(|r| r.req.tid == seen.header.tid);
        let Some(before) = before else {
            let open = all.get(&key).filter(|r| r.rep.is_none());
            let gone = open.is_none_or(|r| seen.time > r.req.last() + 120_000_000);
            found.check(Rule::W4, gone, "the request id is still in use");
            let resolution = Resolution {
                dst: seen.dst,
                service: req.service_id,
                req: Sent::new(seen),
                rep: None,
            };
            all.insert(key, resolution);
            return;
        };
        let same = before.req.mad == *seen.mad;
        let answered = before.rep.as_ref().map(|rep| rep.times[0]);
        let sent_again = before.req.again(seen);
        let late = !sent_again || before.req.classify(micros(TIMEOUT), EARLY);
        let few = before.req.sends() <= SENDS;
        found.check(Rule::W6, same, "SIDR_REQ differs from the one before");
        found.check(Rule::W5, late, "SIDR_REQ again too soon");
        found.check(Rule::W5, few, "too many SIDR_REQ");
        let open = answered.is_none_or(|at| seen.time < at + SLACK);
        found.check(Rule::W7, open, "SIDR_REQ again after its answer");
    }

    fn rep(&mut self, seen: &Seen<'_>, rep: &SidrRep<'_>) {
        let Self { all, found } = self;
        let Some(asked) = all.get_mut(&(seen.dst, rep.request_id)) else {
            let other = all.keys().any(|(_, id)| *id == rep.request_id);
            let rule = if other { Rule::W18 } else { Rule::W4 };
            found.check(rule, false, "a SIDR_REP for nobody's request");
            return;
        };
        let from = asked.dst == seen.src;
        let same_tid = asked.req.tid == seen.header.tid;
        let service = asked.service == rep.service_id;
        let same = asked.rep.as_ref().is_none_or(|rep| rep.mad == *seen.mad);
        match &mut asked.rep {
            Some(rep) => {
                rep.again(seen);
            }
            none => *none = Some(Sent::new(seen)),
        }
        let few = asked.rep.as_ref().map_or(0, |rep| rep.times.len()) <= asked.req.arrived();
        found.check(Rule::W18, from, "a SIDR_REP from another address");
        found.check(Rule::W3, same_tid, "not the transaction id of the SIDR_REQ");
        found.check(Rule::W17, service, "a SIDR_REP for another service");
        found.check(Rule::W6, same, "SIDR_REP differs from the one before");
        found.check(Rule::W7, few, "more SIDR_REP than SIDR_REQ");
    }
}
