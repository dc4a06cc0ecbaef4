// SPDX-License-Identifier: GPL-2.0

//! A storm in progress: the events of all hosts, in the order of their times.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
    mem,
};

use cmnode::{connect_params, EpId, Machine};
use cmproto::{
    cm::{AcceptParams, ConnectParams, DestroyCause, Tuning},
    origin::Origin,
    time::Instant,
    ucma_abi::CmEvent,
};
use fastrand::Rng;

use super::{
    cost::{Costs, Sizes},
    host::{addr, gid, Host, Packet, Work, PORT},
    report::Report,
    scenario::Condition,
    surroundings::{Effect, Watch},
    Config,
};

/// No storm takes as long in simulated time, in nanoseconds.
const END: u64 = 3_600_000_000_000;

/// Something that happens at some time.
#[derive(Debug)]
pub(super) enum Event {
    /// The application of a host begins.
    Begin(u32),
    /// A processor is free.
    Run(u32),
    Arrive(u32, Packet),
    Timer(u32, EpId, Instant),
    /// The application of a host reads a request.
    Read(u32),
    /// A queue pair has noticed that its peer is gone.
    Broken(u32, EpId),
}

struct Entry {
    when: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.when, self.number).cmp(&(other.when, other.number))
    }
}

/// A storm in progress. Times are in nanoseconds.
pub(super) struct World<'a> {
    pub(super) config: &'a Config,
    pub(super) costs: Costs,
    sizes: Sizes,
    tuning: Tuning,
    pub(super) now: u64,
    queue: BinaryHeap<Reverse<Entry>>,
    number: u64,
    pub(super) hosts: Vec<Host>,
    by_origin: HashMap<Origin, u32>,
    rng: Rng,
    /// Connections without an outcome, of all hosts.
    pub(super) opening: u64,
    pub(super) is_restarted: bool,
    pub(super) is_closing: bool,
    pub(super) report: Report,
}

impl<'a> World<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        let hosts = 0..config.plan.hosts();
        let tuning = config.tuning();
        let mut world = Self {
            config,
            costs: Costs::measured(config.policy),
            sizes: Sizes::measured(config.policy),
            tuning,
            now: 0,
            queue: BinaryHeap::new(),
            number: 0,
            by_origin: hosts
                .clone()
                .map(|host| (Origin::of_gid(gid(host)), host))
                .collect(),
            hosts: hosts
                .map(|host| Host::new(host, 0, 0, &tuning, config))
                .collect(),
            rng: Rng::with_seed(config.seed),
            opening: 0,
            is_restarted: false,
            is_closing: false,
            report: Report::default(),
        };
        for host in 0..config.plan.hosts() {
            if world.is_dead_from_start(host) {
                world.hosts[host as usize].is_alive = false;
                continue;
            }
            let at = world.rng.u64(0..=config.spread);
            let begun = config.plan.peers(host, 0).len();
            world.opening += begun as u64;
            world.hosts[host as usize].app.opening = begun as u32;
            world.at(at, Event::Begin(host));
        }
        world
    }

    pub(super) fn at(&mut self, when: u64, event: Event) {
        let number = self.number;
        self.number += 1;
        let when = when.max(self.now);
        self.queue.push(Reverse(Entry {
            when,
            number,
            event,
        }));
    }

    /// Returns the time of the first tick of a host that is not before `at`. The ticks of hosts are
    /// apart.
    fn next_tick(&self, index: u32, at: u64) -> u64 {
        let tick = self.config.tick.max(1);
        let phase = u64::from(index).wrapping_mul(0x9e37_79b9) % tick;
        at.saturating_sub(phase)
            .div_ceil(tick)
            .saturating_mul(tick)
            .saturating_add(phase)
    }

    pub(super) fn host(&mut self, host: u32) -> &mut Host {
        &mut self.hosts[host as usize]
    }

    /// Lets everything happen.
    pub(super) fn run(mut self) -> Report {
        while let Some(Reverse(entry)) = self.queue.pop() {
            if entry.when > END {
                break;
            }
            self.now = entry.when;
            self.happen(entry.event);
        }
        self.finish()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Begin(host) => self.begin(host),
            Event::Run(host) => self.work(host),
            Event::Arrive(host, packet) => {
                let room = self.config.receive_queue;
                let to = self.host(host);
                if !to.is_alive {
                    return;
                }
                if to.received.len() >= room {
                    self.report.overflowed += 1;
                    return;
                }
                to.received.push_back(packet);
                self.wake(host);
            }
            Event::Timer(host, ep, deadline) => {
                let endpoint = self.host(host).node.endpoints.get(&ep);
                if endpoint.is_some_and(|own| own.machine.deadline() == Some(deadline)) {
                    let work = Work::Timer { ep, deadline };
                    self.host(host).kernel.push_back(work);
                    self.wake(host);
                }
            }
            Event::Read(host) => self.call(host, Work::Accept),
            Event::Broken(host, ep) => self.broken(host, ep),
        }
    }

    /// Lets the application of a host do something.
    pub(super) fn call(&mut self, host: u32, work: Work) {
        self.host(host).user.push_back(work);
        self.wake(host);
    }

    fn wake(&mut self, index: u32) {
        let host = self.host(index);
        if !host.is_busy && host.is_alive {
            host.is_busy = true;
            self.work(index);
        }
    }

    /// Lets the processor of a host do the next work.
    fn work(&mut self, index: u32) {
        let now = self.now;
        let sizes = self.sizes;
        let host = self.host(index);
        let next = host.next_work().filter(|_| host.is_alive);
        let Some((work, is_received)) = next else {
            host.is_busy = false;
            return;
        };
        host.node.now = Instant::from_micros(now / 1_000);
        let mut took = self.execute(index, work, is_received);
        let effects = mem::take(&mut self.host(index).node.env.effects);
        for effect in effects {
            took = self.carry_out(index, effect, took);
        }
        let window = self.config.policy.window();
        let host = self.host(index);
        if host.node.env.outstanding < window {
            host.kernel.extend(host.held.pop_front());
        }
        host.weigh(&sizes, now);
        self.at(now + took.max(1), Event::Run(index));
        self.after_first_work(index);
    }

    /// Executes a work, and returns how long it takes, without what it results in.
    fn execute(&mut self, index: u32, work: Work, is_received: bool) -> u64 {
        let (costs, policy) = (self.costs, self.config.policy);
        let host = self.host(index);
        let is_full = host.node.env.outstanding >= policy.window();
        match work {
            Work::Message(packet) if is_received && policy.hands_over() => {
                host.kernel.push_back(Work::Message(packet));
                costs.messages(1)
            }
            Work::Message(packet) => {
                host.node.receive(packet.from, &packet.mad);
                costs.messages(u64::from(is_received))
            }
            Work::Timer { ep, deadline } => {
                let endpoint = host.node.endpoints.get(&ep);
                if endpoint.is_some_and(|own| own.machine.deadline() == Some(deadline)) {
                    host.node.timeout(ep);
                }
                costs.timer()
            }
            Work::Connect { to, asked } if is_full => {
                let asked = asked.or(Some(self.now));
                self.host(index).held.push_back(Work::Connect { to, asked });
                costs.timer()
            }
            Work::Connect { to, asked } => {
                self.connect(index, to, asked.unwrap_or(self.now));
                costs.opening()
            }
            Work::Accept => self.accept(index),
            Work::Establish(ep) => {
                self.establish(index, ep);
                costs.timer()
            }
            Work::Disconnect(ep) if is_full => {
                host.held.push_back(Work::Disconnect(ep));
                costs.timer()
            }
            Work::Disconnect(ep) => {
                let _ = host.node.disconnect(ep);
                costs.closing()
            }
            Work::Confirm(ep) => {
                let _ = host.node.disconnect(ep);
                self.destroy(index, ep);
                costs.closing()
            }
            Work::Destroy(ep) => {
                self.destroy(index, ep);
                costs.timer()
            }
        }
    }

    /// Carries out what a node asks for, after the host has worked for `took`; returns how long it
    /// has worked then.
    fn carry_out(&mut self, index: u32, effect: Effect, took: u64) -> u64 {
        match effect {
            Effect::Send { to, mad } => {
                let took = took + self.costs.messages(1);
                self.send(index, to, mad, self.now + took);
                took
            }
            Effect::Timer { ep, deadline } => {
                let at = deadline.as_micros().saturating_mul(1_000);
                self.at(self.next_tick(index, at), Event::Timer(index, ep, deadline));
                took
            }
            Effect::Tell { ep, event } => {
                let took = took
                    + match event {
                        CmEvent::ConnectRequest
                        | CmEvent::ConnectResponse
                        | CmEvent::Established => self.costs.opening(),
                        _ => self.costs.closing(),
                    };
                self.tell(index, ep, event, self.now + took);
                took
            }
        }
    }

    fn send(&mut self, from: u32, to: Origin, mad: Box<[u8; 256]>, when: u64) {
        self.report.messages += 1;
        let Some(to) = self.by_origin.get(&to).copied() else {
            return;
        };
        if self.config.wire.loses(&mut self.rng) {
            self.report.lost += 1;
            return;
        }
        let mut own = self.hosts[from as usize].link;
        let other = &mut self.hosts[to as usize].link;
        let at = self.config.wire.pass(when, &mut own, other);
        self.hosts[from as usize].link = own;
        let from = Origin::of_gid(gid(from));
        self.at(at, Event::Arrive(to, Packet { from, mad }));
    }

    fn connect(&mut self, index: u32, to: u32, asked: u64) {
        let host = self.host(index);
        let params = ConnectParams {
            local_qpn: host.take_qpn(),
            remote_cm_response_timeout: host.node.tuning.response_timeout().get(),
            max_cm_retries: host.node.tuning.max_retries(),
            ..connect_params()
        };
        let watch = Watch {
            to: Some(to),
            asked,
            ..Watch::default()
        };
        let (src, dst) = (addr(index, 1024), addr(to, PORT));
        let connected = host.node.connect(src, dst, &params, &[], watch);
        if connected.is_err() {
            self.failed(index, to);
        }
    }

    /// Accepts the request whose turn it is.
    fn accept(&mut self, index: u32) -> u64 {
        let costs = self.costs;
        let host = self.host(index);
        let Some(ep) = host.node.next_request(host.listener) else {
            return costs.timer();
        };
        if let Some(endpoint) = host.node.endpoints.get_mut(&ep) {
            endpoint.watch.is_unread = false;
        }
        let params = AcceptParams {
            local_qpn: host.take_qpn(),
            responder_resources: 1,
            initiator_depth: 1,
            rnr_retry_count: 7,
            ..AcceptParams::default()
        };
        if host.node.accept(ep, Some(&params), &[]).is_err() {
            self.destroy(index, ep);
        }
        costs.opening()
    }

    fn establish(&mut self, index: u32, ep: EpId) {
        if self.host(index).node.accept(ep, None, &[]).is_ok() {
            self.set_open(index, ep);
            self.opened(index, ep);
        }
    }

    pub(super) fn set_open(&mut self, index: u32, ep: EpId) {
        let host = self.host(index);
        if let Some(endpoint) = host.node.endpoints.get_mut(&ep) {
            if !endpoint.watch.is_open {
                endpoint.watch.is_open = true;
                host.open += 1;
            }
        }
    }

    fn destroy(&mut self, index: u32, ep: EpId) {
        let (policy, now) = (self.config.policy, self.now);
        let host = self.host(index);
        let endpoint = host.node.endpoints.get(&ep);
        if endpoint.is_some_and(|own| own.watch.is_open) {
            host.forget_open(policy, now);
        }
        host.node.destroy(ep, DestroyCause::User);
    }

    /// Returns whether the peer of an end has lost the connection, and `None` if there is no end.
    pub(super) fn is_orphan(&self, index: u32, ep: EpId) -> Option<bool> {
        let endpoint = self.hosts[index as usize].node.endpoints.get(&ep)?;
        let Machine::Connection(machine) = &endpoint.machine else {
            return None;
        };
        let peer = self.by_origin.get(&endpoint.peer)?;
        let other = &self.hosts[*peer as usize].node.tables.comm_ids;
        Some(other.get(machine.remote_comm_id()).is_none())
    }

    /// Creates a host anew, which has forgotten all.
    pub(super) fn crash(&mut self, index: u32) {
        let (config, tuning) = (self.config, self.tuning);
        let old = self.host(index);
        let epoch = u32::from(config.condition == Condition::Restart);
        let next_ep = old.node.next_ep();
        let mut new = Host::new(index, epoch, next_ep, &tuning, config);
        new.is_alive = false;
        new.link = old.link;
        new.peak = old.peak;
        // An event that says that the processor is free is still to come.
        new.is_busy = old.is_busy;
        new.app.wave = old.app.wave;
        new.app.done = old.app.done;
        *old = new;
    }

    /// Returns the connected ends at other hosts whose peer is `host`.
    pub(super) fn ends_of_peers(&self, host: u32) -> Vec<(u32, EpId)> {
        let origin = Origin::of_gid(gid(host));
        let mut ends = Vec::new();
        for (index, other) in (0..).zip(&self.hosts) {
            let of_host = other.node.endpoints.iter();
            let of_host = of_host.filter(|(_, own)| own.peer == origin && own.watch.is_open);
            ends.extend(of_host.map(|(ep, _)| (index, *ep)));
        }
        ends
    }
}
