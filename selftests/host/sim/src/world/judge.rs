// SPDX-License-Identifier: GPL-2.0

//! The rules that take more than one node to judge: those about pairs, and about the end.

use cmnode::EpId;
use cmproto::{
    cm::{Connection, State},
    time::Duration,
    wire::Transport,
};

use super::{Happening, World};
use crate::{
    node::{self, Endpoint},
    rules::{Rule, Violation},
    script::Verb,
};

/// Time for any answer.
const SOON: Duration = Duration::from_millis(1);

impl World {
    /// An endpoint that has a connection.
    fn connection(&self, index: usize, ep: EpId) -> Option<(&Endpoint, &Connection)> {
        let endpoint = self.nodes.get(index)?.endpoints.get(&ep)?;
        Some((endpoint, endpoint.machine.connection()?))
    }

    /// The endpoint at the other end of `ep`'s connection, if it still exists.
    pub(super) fn partner(&self, index: usize, ep: EpId) -> Option<(usize, EpId)> {
        let (endpoint, machine) = self.connection(index, ep)?;
        let mut nodes = self.nodes.iter();
        let number = nodes.position(|n| n.origin() == endpoint.peer)?;
        let comm_ids = &self.nodes.get(number)?.tables.comm_ids;
        let other = comm_ids.get(machine.remote_comm_id())?;
        let (_, others) = self.connection(number, other)?;
        (others.remote_comm_id() == machine.local_comm_id()).then_some((number, other))
    }

    /// S1, S2: an established connection and its other end.
    pub(super) fn judge_pair(&mut self, index: usize, ep: EpId) {
        let judgement = self.pair(index, ep);
        self.judge(judgement);
    }

    fn pair(&self, index: usize, ep: EpId) -> Result<(), Violation> {
        if self.tainted {
            return Ok(());
        }
        let Some((endpoint, machine)) = self.connection(index, ep) else {
            return Ok(());
        };
        if machine.state() != State::Established {
            // The other end may be established, and this one have just been rejected.
            return match self.partner(index, ep) {
                Some((node, other)) if self.is_established(node, other) => self.pair(node, other),
                _ => Ok(()),
            };
        }
        let Some(peer) = self.nodes.iter().find(|n| n.origin() == endpoint.peer) else {
            return Ok(());
        };
        if let Some(with) = peer.env.rejected.get(&machine.remote_comm_id()) {
            if *with == 0 || *with == machine.local_comm_id() {
                return endpoint
                    .watch
                    .violation(Rule::S2, "established, and the other end was rejected");
            }
        }
        let Some((node, other)) = self.partner(index, ep) else {
            return Ok(());
        };
        let Some((other, others)) = self.connection(node, other) else {
            return Ok(());
        };
        let own = machine;
        let agree = own.remote_qpn() == others.local_qpn()
            && own.local_qpn() == others.remote_qpn()
            && own.service_id() == others.service_id()
            && endpoint.watch.side != other.watch.side
            && endpoint.watch.tag == other.watch.tag;
        if others.state() == State::Established && !agree {
            return endpoint
                .watch
                .violation(Rule::S1, "the two ends do not agree");
        }
        Ok(())
    }

    pub(super) fn is_established(&self, node: usize, ep: EpId) -> bool {
        let connection = self.connection(node, ep);
        connection.is_some_and(|(_, machine)| machine.state() == State::Established)
    }

    /// S3, S4: all that the script began is over. Everybody disconnects.
    pub(super) fn settle(&mut self) {
        self.log(|| "everybody disconnects".into());
        for index in 0..self.nodes.len() {
            for ep in self.endpoints(index) {
                let Some((endpoint, machine)) = self.connection(index, ep) else {
                    continue;
                };
                let on_time = endpoint.watch.on_time(Some(machine.state()), self.now);
                self.judge(on_time);
                if !self.is_established(index, ep) {
                    continue;
                }
                let partner = self.partner(index, ep);
                let has_peer = partner.is_some_and(|(node, ep)| self.is_established(node, ep));
                if !has_peer {
                    self.counts.half_open += 1;
                    self.judge_half_open(index, ep);
                }
                self.judge_alternate(index, ep);
                if !self.has_other_end(index, ep) {
                    self.orphans.push((index, ep));
                }
            }
        }
        self.at(self.now + SOON, Happening::Settled);
        for index in 0..self.nodes.len() {
            for ep in self.endpoints(index) {
                if self.is_established(index, ep) {
                    self.act(index, ep, Verb::Disconnect);
                }
            }
        }
    }

    /// S3: both ends know the outcome of the LAPs of either, unless it was given up.
    fn judge_alternate(&mut self, index: usize, ep: EpId) {
        let is_over = |world: &Self, (index, ep): (usize, EpId)| {
            let (endpoint, machine) = world.connection(index, ep)?;
            let is_known = !machine.has_lap() && !endpoint.watch.proposals.is_given_up;
            is_known.then_some(endpoint.paths.alternate.is_some())
        };
        let partner = self.partner(index, ep);
        let partner = partner.filter(|(node, ep)| self.is_established(*node, *ep));
        let Some(partner) = partner else {
            return;
        };
        if let (Some(own), Some(other)) = (is_over(self, (index, ep)), is_over(self, partner)) {
            self.counts.loaded += u64::from(own);
            if own != other {
                let what = format!("an end at node {index} alone has an alternate path: {own}");
                self.break_rule(Rule::S3, what);
            }
        }
    }

    /// Returns true if the peer's node has an endpoint with the communication id that `ep` knows.
    fn has_other_end(&self, index: usize, ep: EpId) -> bool {
        let Some((endpoint, machine)) = self.connection(index, ep) else {
            return false;
        };
        let peer = self.nodes.iter().find(|n| n.origin() == endpoint.peer);
        let id = machine.remote_comm_id();
        peer.is_some_and(|node| node.tables.comm_ids.get(id).is_some())
    }

    /// Returns the number of failures of the network or of nodes.
    fn troubles(&self) -> u64 {
        let counts = &self.counts;
        counts.lost + counts.late + counts.corrupted + counts.restarts
    }

    /// The peer of `ep` is asked whether it has the connection.
    pub(super) fn ask(&mut self, node: usize, ep: EpId) {
        if !self.has_other_end(node, ep) {
            let troubles = self.troubles();
            let answered = Happening::Answered { node, ep, troubles };
            self.at(self.now + SOON, answered);
        }
    }

    /// S4: a side that asks its peer whether it has the connection is told so if the peer has not.
    pub(super) fn judge_answer(&mut self, node: usize, ep: EpId, troubles: u64) {
        if troubles == self.troubles() && self.is_established(node, ep) {
            self.break_rule(Rule::S4, "a peer that has restarted is not known".into());
        }
        self.counts.recognized += 1;
    }

    /// S4: a connection whose peer has it, too, is not ended by what others claim.
    pub(super) fn judge_lost(&mut self, node: usize, ep: EpId) {
        let other = self.partner(node, ep);
        let has_it = other.is_some_and(|(node, ep)| self.is_established(node, ep));
        if has_it && !self.tainted {
            self.break_rule(Rule::S4, "ended, and the peer has the connection".into());
        }
    }

    /// S4: whose other end does not exist is told so as soon as it disconnects.
    pub(super) fn judge_orphans(&mut self) {
        for (index, ep) in std::mem::take(&mut self.orphans) {
            let connection = self.connection(index, ep);
            let waits = connection.filter(|(_, machine)| machine.state() == State::DreqSent);
            if let Some((endpoint, _)) = waits {
                let what = "a DREQ to nobody is not answered";
                let judgement = endpoint.watch.violation(Rule::S4, what);
                self.judge(judgement);
            }
        }
    }

    /// S4: half a connection has an excuse.
    fn judge_half_open(&mut self, index: usize, ep: EpId) {
        let Some((endpoint, _)) = self.connection(index, ep) else {
            return;
        };
        let tag = endpoint.watch.tag;
        let Some(plan) = self.plans.get(&tag) else {
            return;
        };
        // The target of XRC says nothing when it goes.
        let is_xrc = plan
            .dial
            .is_some_and(|dial| dial.transport == Transport::Xrc);
        if self.perfect && !is_xrc && !plan.too_late {
            let what = "half a connection, although no message was lost, late or repeated";
            let judgement = endpoint.watch.violation(Rule::S4, what);
            self.judge(judgement);
        }
    }

    /// S8, S9: nothing is left.
    pub(super) fn judge_end(&mut self) {
        for node in &self.nodes {
            let judgement = node::judge_tables(node);
            let tables = &node.tables;
            let left = (
                node.endpoints.len(),
                tables.comm_ids.len(),
                tables.remote_ids.len(),
            );
            let judgement = judgement.and_then(|()| match left {
                (0, 0, 0) => Ok(()),
                (endpoints, ids, names) => Err(Violation {
                    rule: if endpoints > 0 { Rule::S8 } else { Rule::S9 },
                    what: format!(
                        "node {} ends with {endpoints} endpoints, {ids} communication ids, {names} \
                         names of peers",
                        node.env.index
                    ),
                }),
            });
            if let Err(violation) = judgement {
                self.violation.get_or_insert(violation);
            }
        }
    }
}
