// SPDX-License-Identifier: GPL-2.0

//! The applications of a storm, and the accidents of their hosts.

use cmnode::EpId;
use cmproto::ucma_abi::CmEvent;

use super::{
    host::Work,
    report::Report,
    scenario::{Condition, Scenario},
    world::{Event, World},
};

impl World<'_> {
    /// Returns whether a host is dead, and has never done anything.
    pub(super) fn is_dead_from_start(&self, host: u32) -> bool {
        let plan = &self.config.plan;
        self.config.condition == Condition::Dead
            && plan.scenario != Scenario::Server
            && plan.is_victim(host)
    }

    /// Lets the application of a host begin a wave, after its host has started again if it was down.
    pub(super) fn begin(&mut self, index: u32) {
        let plan = self.config.plan;
        self.host(index).is_alive = true;
        let wave = self.host(index).app.wave;
        for to in plan.peers(index, wave) {
            self.call(index, Work::Connect { to, asked: None });
        }
        self.look(index);
    }

    /// A client of a server that is to die has sent its request.
    pub(super) fn after_first_work(&mut self, index: u32) {
        let plan = &self.config.plan;
        let dies = self.config.condition == Condition::Dead
            && plan.scenario == Scenario::Server
            && plan.is_victim(index);
        if dies && self.host(index).is_alive {
            self.opening -= u64::from(self.host(index).app.opening);
            self.crash(index);
            self.look_at_all();
        }
    }

    /// The user of an end is told something at the time `when`.
    pub(super) fn tell(&mut self, index: u32, ep: EpId, event: CmEvent, when: u64) {
        let delay = self.config.accept_delay;
        let Some(endpoint) = self.host(index).node.endpoints.get(&ep) else {
            return;
        };
        let to = endpoint.watch.to;
        match (event, to) {
            (CmEvent::ConnectRequest, _) => self.at(when + delay, Event::Read(index)),
            (CmEvent::ConnectResponse, _) => self.call(index, Work::Establish(ep)),
            (CmEvent::Established, _) => {
                self.set_open(index, ep);
                self.notice_orphan(index, ep);
            }
            (CmEvent::Disconnected, None) => self.call(index, Work::Confirm(ep)),
            (CmEvent::Disconnected, Some(to)) => {
                self.call(index, Work::Destroy(ep));
                self.ended(index, ep, to);
            }
            (CmEvent::Rejected | CmEvent::Unreachable | CmEvent::ConnectError, to) => {
                let was_open = endpoint.watch.is_open;
                self.call(index, Work::Destroy(ep));
                match to {
                    Some(to) if was_open => self.ended(index, ep, to),
                    Some(to) => self.failed(index, to),
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// A connection that a host has begun is open.
    pub(super) fn opened(&mut self, index: u32, ep: EpId) {
        let now = self.now;
        let host = self.host(index);
        let Some(endpoint) = host.node.endpoints.get(&ep) else {
            return;
        };
        let took = now.saturating_sub(endpoint.watch.asked);
        host.app.open.insert(ep);
        self.report.took.push((took / 1_000) as u32);
        self.notice_orphan(index, ep);
        self.outcome(index);
        let half = self.report.took.len() as u64 * 2 >= self.config.plan.connections();
        if self.config.condition == Condition::Restart && half && !self.is_restarted {
            self.restart();
        }
    }

    /// A connection that a host has begun could not be made.
    pub(super) fn failed(&mut self, index: u32, to: u32) {
        match self.is_dead_from_start(to) {
            true => self.report.unreachable += 1,
            false => self.report.failed += 1,
        }
        self.outcome(index);
    }

    fn outcome(&mut self, index: u32) {
        self.opening -= 1;
        self.host(index).app.opening -= 1;
        self.look(index);
    }

    /// A connection that a host has begun is over.
    fn ended(&mut self, index: u32, ep: EpId, to: u32) {
        let host = self.host(index);
        if !host.app.open.remove(&ep) {
            return;
        }
        if !host.app.is_closing {
            // The peer has gone: its application is connected to again.
            host.app.opening += 1;
            self.opening += 1;
            self.report.again += 1;
            return self.call(index, Work::Connect { to, asked: None });
        }
        self.look(index);
    }

    /// Lets the application of a host go on if all connections are open, or all are closed.
    fn look(&mut self, index: u32) {
        let (now, plan) = (self.now, self.config.plan);
        let app = &mut self.host(index).app;
        if app.opening > 0 {
            return;
        }
        if plan.scenario != Scenario::Waves {
            // They are closed when all are open.
            if !app.is_closing {
                app.done = Some(now);
            }
            return self.look_at_all();
        }
        if !app.is_closing {
            return self.close(index);
        }
        if app.open.is_empty() && app.done.is_none() {
            app.is_closing = false;
            app.wave += 1;
            if app.wave >= plan.waves() {
                app.done = Some(now);
                return;
            }
            let begun = plan.peers(index, app.wave).len() as u32;
            app.opening = begun;
            self.opening += u64::from(begun);
            self.begin(index);
        }
    }

    fn close(&mut self, index: u32) {
        let app = &mut self.host(index).app;
        app.is_closing = true;
        let open: Vec<EpId> = app.open.iter().copied().collect();
        for ep in &open {
            self.call(index, Work::Disconnect(*ep));
        }
        if open.is_empty() {
            self.look(index);
        }
    }

    /// Closes all connections when all are open.
    fn look_at_all(&mut self) {
        if self.opening > 0 || self.is_closing || self.config.plan.scenario == Scenario::Waves {
            return;
        }
        self.is_closing = true;
        for index in 0..self.config.plan.hosts() {
            if self.host(index).is_alive {
                self.close(index);
            }
        }
    }

    /// Lets a tenth of the hosts restart.
    fn restart(&mut self) {
        self.is_restarted = true;
        let plan = self.config.plan;
        for index in (0..plan.hosts()).filter(|host| plan.is_victim(*host)) {
            let app = &self.host(index).app;
            let (wave, is_done) = (app.wave, app.done.is_some());
            self.opening -= u64::from(app.opening);
            self.crash(index);
            let notice = self.now + self.config.notice;
            for (other, ep) in self.ends_of_peers(index) {
                self.at(notice, Event::Broken(other, ep));
            }
            // The application of a host that was done in waves has nothing to do any more.
            let begun = match is_done && plan.scenario == Scenario::Waves {
                true => 0,
                false => plan.peers(index, wave).len() as u32,
            };
            self.host(index).app.opening = begun;
            self.opening += u64::from(begun);
            self.at(self.now + self.config.boot, Event::Begin(index));
        }
    }

    /// The queue pair of a connection whose peer has lost it notices that after a while.
    fn notice_orphan(&mut self, index: u32, ep: EpId) {
        if self.is_restarted && self.is_orphan(index, ep) == Some(true) {
            let notice = self.now + self.config.notice;
            self.at(notice, Event::Broken(index, ep));
        }
    }

    /// A queue pair has noticed that its peer is gone.
    pub(super) fn broken(&mut self, index: u32, ep: EpId) {
        let endpoint = self.host(index).node.endpoints.get(&ep);
        let Some(endpoint) = endpoint.filter(|own| own.watch.is_open && own.has_user) else {
            return;
        };
        let to = endpoint.watch.to;
        self.call(index, Work::Destroy(ep));
        if let Some(to) = to {
            self.ended(index, ep, to);
        }
    }

    /// Returns the results.
    pub(super) fn finish(mut self) -> Report {
        let hosts = &self.hosts;
        let report = &mut self.report;
        report.left = hosts.iter().map(|host| host.left()).sum();
        report.unfinished = self.opening;
        report.peak = hosts.iter().map(|host| host.peak).max().unwrap_or(0);
        let sum: u64 = hosts.iter().map(|host| host.peak).sum();
        report.mean_peak = sum / hosts.len().max(1) as u64;
        let done = hosts.iter().filter_map(|host| host.app.done);
        report.done = done.map(|done| done / 1_000).collect();
        report.took.sort_unstable();
        report.done.sort_unstable();
        self.report
    }
}
