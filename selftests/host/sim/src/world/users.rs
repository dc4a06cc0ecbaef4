// SPDX-License-Identifier: GPL-2.0

//! The users: their events, and their reactions.

use cmnode::EpId;
use cmproto::{time::Duration, ucma_abi::CmEvent};

use super::{Happening, World};
use crate::{
    node::{self, service_qpn},
    rules::{Rule, Stage},
    script::{Moment, Side, Verb},
};

impl World {
    /// The user of an endpoint is told something.
    pub(super) fn tell(&mut self, node: usize, ep: EpId, event: CmEvent, status: i32) {
        let Some(whose) = self.nodes.get(node) else {
            return;
        };
        let Some(endpoint) = whose.endpoints.get(&ep) else {
            return;
        };
        let is_datagram = endpoint.machine.resolution().is_some();
        let watch = &endpoint.watch;
        let (tag, side, qpn) = (watch.tag, watch.side, watch.qpn);
        let counts = &mut self.counts;
        let moment = match event {
            CmEvent::ConnectRequest | CmEvent::ConnectResponse => Moment::Asked,
            CmEvent::Established => {
                match is_datagram {
                    true => counts.resolved += 1,
                    false => counts.established += 1,
                }
                Moment::Connected
            }
            CmEvent::Rejected => {
                counts.rejected += 1;
                Moment::Ended
            }
            CmEvent::Unreachable => {
                counts.unreachable += 1;
                Moment::Ended
            }
            CmEvent::Disconnected => {
                counts.disconnected += 1;
                Moment::Ended
            }
            _ => return,
        };
        // S1: an answer is the answer to the question.
        if event == CmEvent::Established && is_datagram && !self.tainted {
            let expected = service_qpn(tag);
            if qpn != expected {
                let what = format!("#{tag}: {expected} is resolved to {qpn}");
                self.break_rule(Rule::S1, what);
            }
        }
        if (event, side) == (CmEvent::Unreachable, Side::Passive) {
            self.plans.entry(tag).or_default().too_late = true;
        }
        self.log(|| format!("#{tag}: {side:?} user at node {node} is told {event:?} ({status})"));
        self.schedule(node, ep, moment);
    }

    /// Plans what the user of `ep` does at `moment`.
    pub(super) fn schedule(&mut self, node: usize, ep: EpId, moment: Moment) {
        let Some((tag, side, _)) = self.nodes.get(node).and_then(|n| node::whose(n, ep)) else {
            return;
        };
        let plan = self.plans.entry(tag).or_default();
        let now = self.now;
        let acts = plan
            .acts
            .iter()
            .filter(|act| (act.side, act.when) == (side, moment));
        let mut acts: Vec<_> = acts.map(|act| (act.after, act.verb)).collect();
        if acts.is_empty() {
            match moment {
                Moment::Asked => acts.push((Duration::ZERO, Verb::Accept)),
                Moment::Ended => acts.push((Duration::ZERO, Verb::Destroy)),
                Moment::Created | Moment::Connected => {}
            }
        }
        for (after, verb) in acts {
            self.at(now + after, Happening::Act { node, ep, verb });
        }
    }

    pub(super) fn act(&mut self, index: usize, ep: EpId, verb: Verb) {
        let peer = self.partner(index, ep);
        let has_data =
            peer.is_some_and(|(node, ep)| self.stage(node, ep) == Some(Stage::Connected));
        let before = self.stage(index, ep);
        let Some(node) = self.node_now(index) else {
            return;
        };
        let Some((tag, side, true)) = node::whose(node, ep) else {
            return;
        };
        let result = node::act(node, ep, verb, has_data);
        self.log(|| {
            let result = result.map_or_else(|errno| errno.name().into(), |()| String::from("ok"));
            format!("#{tag}: {side:?} user at node {index} does {verb:?}: {result}")
        });
        // The active side is connected by its own doing.
        let answers = side == Side::Active && before == Some(Stage::Asked);
        if answers && self.stage(index, ep) == Some(Stage::Connected) {
            self.schedule(index, ep, Moment::Connected);
        }
        self.after(index, Some(ep));
    }

    fn stage(&self, node: usize, ep: EpId) -> Option<Stage> {
        Some(self.nodes.get(node)?.endpoints.get(&ep)?.watch.stage)
    }
}
