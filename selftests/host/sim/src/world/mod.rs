// SPDX-License-Identifier: GPL-2.0

//! Nodes, users, a network and a clock, and what happens among them.
//!
//! A simulation has three parts. Until [`SETTLE`] the script is played. Then the network is
//! perfect, and users that are still connected disconnect. At [`CLOSE`] every endpoint is
//! destroyed, and when nothing is left to happen no table may have an entry.

mod judge;
mod users;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use cmnode::EpId;
use cmproto::{
    origin::Origin,
    time::{Duration, Instant},
    wire::{self, Attribute, Message, MAD_LEN},
};

use crate::{
    counts::Counts,
    network::Network,
    node::{self, Endpoint, Node},
    observer::Effect,
    rules::{Rule, Violation},
    script::{name, Act, Call, Dial, Fate, Moment, Script, Step, Tag, Verb, Which},
};

/// When everybody disconnects: all that the script says is over by then, with all its timeouts.
pub const SETTLE: Instant = Instant::from_micros(900_000_000);
/// When everybody destroys.
pub const CLOSE: Instant = Instant::from_micros(1_200_000_000);
/// Time that a message takes.
const WAY: Duration = Duration::from_micros(10);
/// No simulation has as many steps by far.
const STEPS: u64 = 1_000_000;

/// Something that happens at some time.
#[derive(Debug)]
enum Happening {
    Connect(Call),
    Restart(usize),
    Arrive(usize),
    Timer {
        node: usize,
        ep: EpId,
        deadline: Instant,
    },
    Reached {
        node: usize,
        ep: EpId,
    },
    Act {
        node: usize,
        ep: EpId,
        verb: Verb,
    },
    /// The question whether the peer has a connection is answered, if nothing was lost or late
    /// since there was so much of that.
    Answered {
        node: usize,
        ep: EpId,
        troubles: u64,
    },
    Settle,
    /// A user that disconnected without a peer has been told so.
    Settled,
    Close,
}

/// A message on its way.
#[derive(Debug)]
struct Packet {
    tag: Tag,
    from: usize,
    to: usize,
    mad: Box<[u8; MAD_LEN]>,
}

/// The actions of the users of a tag.
#[derive(Debug, Default)]
struct Plan {
    acts: Vec<Act>,
    /// Messages sent so far, of each kind by each node.
    sent: BTreeMap<(usize, Attribute), u16>,
    dial: Option<Dial>,
    /// The passive side gave up before the active user answered, and said nothing.
    too_late: bool,
}

/// A simulation in progress.
pub struct World {
    now: Instant,
    queue: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    happenings: Vec<Option<Happening>>,
    packets: Vec<Packet>,
    nodes: Vec<Node>,
    plans: BTreeMap<Tag, Plan>,
    cuts: Vec<(Instant, Instant, [usize; 2])>,
    network: Network,
    counts: Counts,
    /// The number of restarts of nodes.
    epochs: u32,
    /// Nothing unusual has happened to any message or node.
    perfect: bool,
    /// A corrupt message was believed.
    tainted: bool,
    /// Halves of connections whose other end did not exist when everybody disconnected.
    orphans: Vec<(usize, EpId)>,
    violation: Option<Violation>,
    trace: Option<Vec<String>>,
}

/// The result of a simulation.
#[derive(Debug)]
pub struct Outcome {
    pub counts: Counts,
    pub violation: Option<Violation>,
    pub trace: Vec<String>,
    pub network: Network,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(script: &Script, network: Network, trace: bool) -> Self {
        let setup = script.setup;
        let nodes = (0..usize::from(setup.nodes)).map(|i| node::start(i, 0, 0, setup));
        let mut world = Self {
            now: Instant::ZERO,
            queue: BinaryHeap::new(),
            happenings: Vec::new(),
            packets: Vec::new(),
            nodes: nodes.collect(),
            plans: BTreeMap::new(),
            cuts: Vec::new(),
            network,
            counts: Counts {
                worlds: 1,
                ..Counts::default()
            },
            epochs: 0,
            perfect: true,
            tainted: false,
            orphans: Vec::new(),
            violation: None,
            trace: trace.then(Vec::new),
        };
        for step in &script.steps {
            world.take_step(step);
        }
        world.at(SETTLE, Happening::Settle);
        world.at(CLOSE, Happening::Close);
        world
    }

    fn take_step(&mut self, step: &Step) {
        match *step {
            Step::Connect(call) => {
                self.plans.entry(call.tag).or_default().dial = Some(call.dial);
                self.at(Instant::ZERO + call.at, Happening::Connect(call));
            }
            Step::Act(act) => self.plans.entry(act.tag).or_default().acts.push(act),
            Step::Network(..) => {}
            Step::Cut { at, until, between } => {
                let (from, until) = (Instant::ZERO + at, Instant::ZERO + until);
                self.cuts.push((from, until, between));
            }
            Step::Restart { at, node } => {
                self.at(Instant::ZERO + at, Happening::Restart(node));
            }
        }
    }

    fn at(&mut self, when: Instant, happening: Happening) {
        let number = self.happenings.len();
        self.happenings.push(Some(happening));
        self.queue.push(Reverse((when, number as u64, number)));
    }

    fn log(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let now = self.now.as_micros();
            trace.push(format!(
                "{:>6}.{:06} {}",
                now / 1_000_000,
                now % 1_000_000,
                what()
            ));
        }
    }

    fn judge(&mut self, judgement: Result<(), Violation>) {
        if let Err(violation) = judgement {
            self.violation.get_or_insert(violation);
        }
    }

    /// Lets everything happen, up to the first broken rule.
    pub fn run(mut self) -> Outcome {
        while let Some(Reverse((when, _, number))) = self.queue.pop() {
            self.now = when;
            self.counts.steps += 1;
            if self.counts.steps > STEPS {
                self.break_rule(Rule::S9, "it never ends".into());
            }
            if let Some(happening) = self.happenings.get_mut(number).and_then(Option::take) {
                self.happen(happening);
            }
            if self.violation.is_some() {
                break;
            }
        }
        if self.violation.is_none() {
            self.judge_end();
        }
        if let Some(violation) = self.violation.clone() {
            self.log(|| violation.to_string());
        }
        self.counts.reused += self.nodes.iter().map(|n| n.env.reused).sum::<u64>();
        Outcome {
            counts: self.counts,
            violation: self.violation,
            trace: self.trace.unwrap_or_default(),
            network: self.network,
        }
    }

    fn break_rule(&mut self, rule: Rule, what: String) {
        self.judge(Err(Violation { rule, what }));
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Connect(call) => {
                let (tag, from, to, dial) = (call.tag, call.from, call.to, call.dial);
                self.counts.connections += 1;
                self.log(|| format!("#{tag}: node {from} connects to node {to}"));
                let (Some(peer), Some(node)) =
                    (self.nodes.get(to).map(|n| n.gid), self.nodes.get_mut(from))
                else {
                    return;
                };
                node.now = now;
                if let Some(ep) = node::connect(node, tag, peer, &dial) {
                    self.schedule(from, ep, Moment::Created);
                    self.after(from, Some(ep));
                }
            }
            Happening::Restart(index) => self.restart(index),
            Happening::Arrive(number) => self.arrive(number),
            Happening::Timer { node, ep, deadline } => {
                if let Some(node) = self.node_now(node) {
                    node::timeout(node, ep, deadline);
                }
                self.after(node, Some(ep));
            }
            Happening::Reached { node, ep } => {
                if let Some(node) = self.node_now(node) {
                    node::reached(node, ep);
                }
                self.after(node, Some(ep));
            }
            Happening::Act { node, ep, verb } => self.act(node, ep, verb),
            Happening::Answered { node, ep, troubles } => self.judge_answer(node, ep, troubles),
            Happening::Settle => self.settle(),
            Happening::Settled => self.judge_orphans(),
            Happening::Close => {
                for index in 0..self.nodes.len() {
                    for ep in self.endpoints(index) {
                        self.act(index, ep, Verb::Destroy);
                    }
                }
            }
        }
    }

    fn endpoints(&self, node: usize) -> Vec<EpId> {
        let node = self.nodes.get(node);
        node.map_or(Vec::new(), |n| n.endpoints.keys().copied().collect())
    }

    /// A node, with the time that it is.
    fn node_now(&mut self, index: usize) -> Option<&mut Node> {
        let node = self.nodes.get_mut(index)?;
        node.now = self.now;
        Some(node)
    }

    fn restart(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else {
            return;
        };
        self.epochs += 1;
        self.counts.restarts += 1;
        self.counts.reused += node.env.reused;
        self.perfect = false;
        // Numbers of endpoints go on, so that what was meant for an old one finds nothing.
        *node = node::start(index, self.epochs, node.next_ep(), node.env.setup);
        self.log(|| format!("node {index} restarts"));
    }

    /// Carries out what `node` asks for, and judges what has changed: at most its endpoint `ep`.
    fn after(&mut self, index: usize, ep: Option<EpId>) {
        let Some(node) = self.node_now(index) else {
            return;
        };
        let effects = std::mem::take(&mut node.env.effects);
        let violation = node.env.violation.take();
        let judgement = node::judge_tables(node);
        self.judge(violation.map_or(Ok(()), Err));
        self.judge(judgement);
        for effect in effects {
            match effect {
                Effect::Send { tag, kind, to, mad } => self.send(index, tag, kind, to, mad),
                Effect::Timer { ep, deadline } => {
                    let node = index;
                    self.at(
                        deadline.max(self.now),
                        Happening::Timer { node, ep, deadline },
                    );
                }
                Effect::Reach { ep } => {
                    let reach = self
                        .nodes
                        .get(index)
                        .map_or(Duration::ZERO, |n| n.env.setup.reach);
                    self.schedule(index, ep, Moment::Created);
                    self.at(self.now + reach, Happening::Reached { node: index, ep });
                }
                Effect::Ask { ep } => self.ask(index, ep),
                Effect::Lost { ep } => self.judge_lost(index, ep),
                Effect::Tell { ep, event, status } => self.tell(index, ep, event, status),
            }
        }
        if let Some(ep) = ep {
            self.judge_pair(index, ep);
        }
    }

    fn send(
        &mut self,
        from: usize,
        tag: Tag,
        kind: Attribute,
        to: Origin,
        mad: Box<[u8; MAD_LEN]>,
    ) {
        let Some(to) = self.nodes.iter().position(|node| node.origin() == to) else {
            return;
        };
        self.counts.messages += 1;
        let sent = &mut self.plans.entry(tag).or_default().sent;
        let nth = sent.entry((from, kind)).or_default();
        let which = Which {
            tag,
            from,
            kind,
            nth: *nth,
        };
        *nth += 1;
        let now = self.now;
        let is_cut = |cut: &(Instant, Instant, [usize; 2])| {
            (cut.0..cut.1).contains(&now) && cut.2.contains(&from) && cut.2.contains(&to)
        };
        let fate = if now >= SETTLE {
            Fate::PLAIN
        } else if self.cuts.iter().any(is_cut) {
            Fate::Lost
        } else {
            self.network.fate(which)
        };
        self.log(|| format!("#{tag}: node {from} sends {} to node {to}", name(kind)));
        if fate != Fate::PLAIN {
            self.perfect = false;
            self.log(|| format!("    {}", Step::Network(which, fate)));
        }
        let mut packet = Packet { tag, from, to, mad };
        let (first, second) = match fate {
            Fate::Lost => {
                self.counts.lost += 1;
                return;
            }
            Fate::Late(by) => (by, None),
            Fate::Twice(first, second) => (first, Some(second)),
            Fate::Corrupt(bits) => {
                self.counts.corrupted += 1;
                for bit in bits {
                    if let Some(byte) = packet.mad.get_mut(usize::from(bit / 8)) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
                self.tainted = true;
                (Duration::ZERO, None)
            }
        };
        self.counts.late += u64::from(!first.is_zero());
        self.counts.duplicated += u64::from(second.is_some());
        let number = self.packets.len();
        self.packets.push(packet);
        for by in [Some(first), second].into_iter().flatten() {
            self.at(now + WAY + by, Happening::Arrive(number));
        }
    }

    fn arrive(&mut self, number: usize) {
        let Some(packet) = self.packets.get(number) else {
            return;
        };
        let (to, tag) = (packet.to, packet.tag);
        let Some(source) = self.nodes.get(packet.from).map(Node::origin) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(to) else {
            return;
        };
        node.now = self.now;
        node.env.tag = tag;
        node.receive(source, &packet.mad);
        if self.trace.is_some() {
            let what = match wire::decode(&packet.mad) {
                Ok((_, message)) => name(message.attribute()),
                Err(error) => format!("{error:?}"),
            };
            self.log(|| format!("#{tag}: {what} arrives at node {to}"));
        }
        // Its endpoint is looked up again: a stale connection may be another's business.
        let eps: Vec<EpId> = self.touched(number);
        self.after(to, None);
        for ep in eps {
            self.judge_pair(to, ep);
        }
    }

    /// The endpoints that a message can have changed.
    fn touched(&self, number: usize) -> Vec<EpId> {
        let Some(packet) = self.packets.get(number) else {
            return Vec::new();
        };
        let Some(node) = self.nodes.get(packet.to) else {
            return Vec::new();
        };
        let Ok((_, message)) = wire::decode(&packet.mad) else {
            return Vec::new();
        };
        let id = match message {
            Message::Rep(m) => m.remote_comm_id,
            Message::Rtu(m) => m.remote_comm_id,
            Message::Dreq(m) => m.remote_comm_id,
            Message::Drep(m) => m.remote_comm_id,
            Message::Rej(m) => m.remote_comm_id,
            Message::Lap(m) => m.remote_comm_id,
            Message::Apr(m) => m.remote_comm_id,
            _ => 0,
        };
        let named = node.tables.comm_ids.get(id);
        let same_tag = |(ep, e): (&EpId, &Endpoint)| {
            (e.watch.tag == packet.tag && Some(*ep) != named).then_some(*ep)
        };
        let same_tag = node.endpoints.iter().filter_map(same_tag);
        same_tag.chain(named).collect()
    }
}
