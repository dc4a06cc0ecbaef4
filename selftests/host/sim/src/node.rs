// SPDX-License-Identifier: GPL-2.0

//! A node: its endpoints, their tables, and what its users can do.
//!
//! This is the module's glue (`rust/cm`, `rust/cma`, `rust/endpoint`) without locks, devices and
//! addresses. What a node wants from the world around it comes out as [`Effect`]s.

use std::collections::BTreeMap;

use cmproto::{
    addr::{Gid, SockAddr},
    bucket::TokenBucket,
    cm::{
        self, AcceptParams, Action, Actions, ConnectParams, Connection, DestroyCause, Outgoing,
        RetryPolicy,
    },
    cma,
    errno::Errno,
    listen::{ListenView, RequestView},
    node::{Admission, Offer, Peer, RemoteIds, RequestEnd},
    origin::Origin,
    private_data::{self, IpHeader, IP_HEADER_LEN},
    reject::Reason,
    service_id::{PortSpace, ServiceId},
    time::{Duration, Instant, TimeCode},
    ucma::backlog::Backlog,
    ucma_abi::CmEvent,
    wire::{Attribute, ReqPath, MAD_LEN},
};

use crate::{
    datagram::Datagram,
    endpoint::Endpoint,
    rules::{is_tracked, Rule, Stage, Violation, Watch},
    script::{Dial, Plant, Setup, Side, Tag, Verb},
    tables::{CommIds, EpId, Remotes},
};

/// The port that all nodes listen on.
const PORT: u16 = 4791;

/// Something that a node asks of the world.
#[derive(Debug)]
pub enum Effect {
    /// Send a message; it belongs to `tag`.
    Send {
        tag: Tag,
        kind: Attribute,
        to: Origin,
        mad: Box<[u8; MAD_LEN]>,
    },
    /// Call [`Node::timeout`] then.
    Timer { ep: EpId, deadline: Instant },
    /// Call [`Node::offer`] when the peer's link address is known.
    Reach { ep: EpId },
    /// The user of an endpoint is told something.
    Tell {
        ep: EpId,
        event: CmEvent,
        status: i32,
    },
}

/// The one service of a node.
#[derive(Debug)]
pub(crate) struct Service;

/// One node.
#[derive(Debug)]
pub struct Node {
    pub index: usize,
    pub gid: Gid,
    pub guid: u64,
    pub ids: CommIds,
    pub remotes: Remotes,
    pub endpoints: BTreeMap<EpId, Endpoint>,
    pub datagrams: BTreeMap<EpId, Datagram>,
    /// Questions that are asked or whose answer is remembered, by source and request id.
    pub(crate) sidr_requests: BTreeMap<(Origin, u32), EpId>,
    /// Communication ids of connections that were rejected, with the peer's or 0.
    pub rejected: BTreeMap<u32, u32>,
    pub effects: Vec<Effect>,
    pub violation: Option<Violation>,
    pub(crate) setup: Setup,
    pub(crate) answers: TokenBucket,
    next_ep: EpId,
    next_qpn: u32,
    /// Requests of one queue pair that came while its last connection was in time wait.
    pub reused: u64,
}

impl Node {
    /// A node that has just started for the `epoch`-th time. Numbers of endpoints start at
    /// `first_ep`.
    pub fn new(index: usize, epoch: u32, first_ep: EpId, setup: Setup) -> Self {
        let last = u8::try_from(index).map_or(255, |i| i + 1);
        let key = match setup.plant {
            Some(Plant::SameIds) => [1, 2],
            _ => [setup.seed, (u64::from(last) << 32) | u64::from(epoch)],
        };
        Self {
            index,
            gid: Gid::from_v4([10, 0, 0, last]),
            guid: 0x0200_0000_0000_0000 | u64::from(last),
            ids: CommIds::new(key),
            remotes: Remotes::default(),
            endpoints: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            sidr_requests: BTreeMap::new(),
            rejected: BTreeMap::new(),
            effects: Vec::new(),
            violation: None,
            setup,
            // As the module has it: 1,000 answers at once, and then one a millisecond.
            answers: TokenBucket::new(Duration::from_millis(1), 1000),
            next_ep: first_ep,
            next_qpn: 0,
            reused: 0,
        }
    }

    /// Where its messages come from.
    pub fn origin(&self) -> Origin {
        Origin::of_gid(self.gid)
    }

    fn addr(gid: Gid, port: u16) -> SockAddr {
        let addr = gid.to_v4().unwrap_or_default();
        SockAddr::v4(addr, port)
    }

    /// What the nodes listen on.
    pub fn service_id() -> u64 {
        ServiceId::from_ip(PortSpace::Tcp, PORT).0
    }

    /// Whose endpoint it is, and whether it has a user.
    pub fn whose(&self, ep: EpId) -> Option<(Tag, Side, bool)> {
        let endpoint = self.endpoints.get(&ep).map(|e| {
            let watch = &e.watch;
            (watch.tag, watch.side, e.has_user)
        });
        let datagram = self.datagrams.get(&ep);
        endpoint.or(datagram.map(|d| (d.tag, d.side, d.has_user)))
    }

    /// The number that the next endpoint will have.
    pub fn next_ep(&self) -> EpId {
        self.next_ep
    }

    pub(crate) fn take_ep(&mut self) -> EpId {
        let ep = self.next_ep;
        self.next_ep += 1;
        ep
    }

    /// Notes the first rule that is broken.
    pub(crate) fn judge(&mut self, judgement: Result<(), Violation>) {
        if let Err(violation) = judgement {
            self.violation.get_or_insert(violation);
        }
    }

    /// A queue pair number that no endpoint has, and that was free for as long as possible.
    fn take_qpn(&mut self) -> u32 {
        let used: Vec<u32> = self.endpoints.values().map(|e| e.qpn).collect();
        loop {
            self.next_qpn += 1;
            let most = self.setup.qpns.max(used.len() as u32 + 1);
            let qpn = 16 + self.next_qpn % most;
            if !used.contains(&qpn) {
                return qpn;
            }
        }
    }

    /// How long a side that sends a REQ like this waits for the answer to a request.
    fn interval(dial: &Dial) -> Duration {
        TimeCode::new(dial.packet_life_time)
            .to_duration()
            .saturating_mul(2)
            + TimeCode::new(dial.response_timeout).to_duration()
    }

    /// A user connects to the node at `to`.
    pub fn connect(&mut self, tag: Tag, to: Gid, dial: &Dial, now: Instant) -> EpId {
        if dial.datagram {
            return self.resolve(tag, to, dial, now);
        }
        let ep = self.take_ep();
        let comm_id = self.ids.reserve();
        let qpn = self.take_qpn();
        let tid = (1 << 32) | u64::from(comm_id);
        let watch = Watch::new(tag, Side::Active, dial.max_cm_retries, Self::interval(dial));
        let mut machine = Connection::new(comm_id, self.guid, tid);
        machine.set_retry_policy(self.retry_policy());
        let mut endpoint = Endpoint::new(
            machine,
            Origin::of_gid(to),
            watch.with_policy(self.retry_policy()),
        );
        endpoint.qpn = qpn;
        endpoint.reached = true;
        endpoint.has_user = true;
        let mut data = [0; IP_HEADER_LEN + 2];
        if let Some((header, user)) = data.split_first_chunk_mut() {
            let _ = IpHeader {
                src: Self::addr(self.gid, 1024),
                dst: Self::addr(to, 0),
            }
            .encode(header);
            user.copy_from_slice(&tag.to_be_bytes());
        }
        let params = ConnectParams {
            service_id: Self::service_id(),
            local_qpn: qpn,
            local_qkey: 0,
            srq: false,
            transport: dial.transport,
            starting_psn: u32::from(tag) << 4,
            responder_resources: 1,
            initiator_depth: 1,
            flow_control: true,
            retry_count: 7,
            rnr_retry_count: 7,
            pkey: 0xffff,
            path_mtu: 3,
            primary: ReqPath {
                local_lid: 0xffff,
                remote_lid: 0xffff,
                local_gid: self.gid,
                remote_gid: to,
                hop_limit: 64,
                ..ReqPath::default()
            },
            packet_life_time: dial.packet_life_time,
            ca_ack_delay: 15,
            remote_cm_response_timeout: dial.response_timeout,
            local_cm_response_timeout: dial.response_timeout,
            max_cm_retries: dial.max_cm_retries,
            vendor_id: 0,
            attr_mod: 0,
        };
        self.endpoints.insert(ep, endpoint);
        self.ids.publish(comm_id, ep);
        let _ = self.verb(ep, now, |machine| machine.connect(&params, &data, now));
        ep
    }

    /// The user of `ep` does something. `has_data`: the peer has sent some.
    ///
    /// # Errors
    ///
    /// Those of the verb.
    pub fn act(&mut self, ep: EpId, verb: Verb, has_data: bool, now: Instant) -> Result<(), Errno> {
        if self.datagrams.contains_key(&ep) {
            return self.act_on_datagram(ep, verb, now);
        }
        let Some(endpoint) = self.endpoints.get(&ep).filter(|e| e.has_user) else {
            return Ok(());
        };
        let side = endpoint.watch.side;
        match verb {
            Verb::Nothing => Ok(()),
            Verb::Destroy => {
                self.end(ep, DestroyCause::User, now);
                Ok(())
            }
            Verb::Accept => {
                let accepted = match side {
                    Side::Active => self.verb(ep, now, |machine| machine.establish(&[], now)),
                    Side::Passive => self.accept(ep, now),
                };
                match accepted {
                    Ok(()) => self.move_on(
                        ep,
                        match side {
                            Side::Active => Stage::Connected,
                            Side::Passive => Stage::Accepted,
                        },
                    ),
                    // As the module does, which leaves no request unanswered.
                    Err(_) => {
                        let _ = self.reject(ep, now);
                    }
                }
                accepted
            }
            Verb::Reject => self.reject(ep, now),
            Verb::Disconnect => self
                .verb(ep, now, |machine| machine.disconnect(&[], now))
                .or_else(|_| self.verb(ep, now, |machine| machine.confirm_disconnect(&[], now))),
            Verb::Notify if !has_data => Ok(()),
            Verb::Notify => self.verb(ep, now, |machine| machine.notify_established(now)),
        }
    }

    fn accept(&mut self, ep: EpId, now: Instant) -> Result<(), Errno> {
        let qpn = self.take_qpn();
        let params = AcceptParams {
            local_qpn: qpn,
            starting_psn: qpn,
            responder_resources: 1,
            initiator_depth: 1,
            target_ack_delay: 15,
            rnr_retry_count: 7,
            ..AcceptParams::default()
        };
        self.verb(ep, now, |machine| machine.accept(&params, b"yes", now))?;
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.qpn = qpn;
        }
        Ok(())
    }

    fn reject(&mut self, ep: EpId, now: Instant) -> Result<(), Errno> {
        self.verb(ep, now, |machine| {
            machine.reject(Reason::CONSUMER_DEFINED, &[], b"no", now)
        })?;
        self.move_on(ep, Stage::Over);
        Ok(())
    }

    fn move_on(&mut self, ep: EpId, stage: Stage) {
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.watch.stage = stage;
        }
    }

    /// Calls a verb of the state machine, and carries out what it asks for.
    fn verb(
        &mut self,
        ep: EpId,
        now: Instant,
        call: impl FnOnce(&mut Connection) -> Result<Actions, Errno>,
    ) -> Result<(), Errno> {
        let endpoint = self.endpoints.get_mut(&ep).ok_or(Errno::ENOENT)?;
        let before = endpoint.machine.clone();
        match call(&mut endpoint.machine) {
            Ok(actions) => {
                self.execute(ep, before.state(), actions, now);
                Ok(())
            }
            Err(errno) => {
                let judgement = endpoint.watch.failed(&before, &endpoint.machine);
                self.judge(judgement);
                Err(errno)
            }
        }
    }

    /// The peer's link address of a connection request is known: its user is asked.
    pub fn offer(&mut self, ep: EpId, now: Instant) {
        if self.datagrams.contains_key(&ep) {
            return self.offer_datagram(ep, now);
        }
        let admitted = self.next_admission();
        let Some(endpoint) = self.endpoints.get_mut(&ep).filter(|e| !e.destroyed) else {
            return;
        };
        endpoint.reached = true;
        endpoint.has_user = admitted.is_ok();
        match admitted {
            Ok(Admission::Parked) => {
                endpoint.watch.park();
                let parked = |machine: &mut Connection| machine.park(Connection::PARKING_TIMEOUT);
                let _ = self.verb(ep, now, parked);
            }
            Ok(Admission::Queued) => {
                let _ = endpoint.machine.prepare_mra(Connection::SERVICE_TIMEOUT);
            }
            Err(declined) => {
                let end = RequestEnd::req(declined);
                if let Some(reason) = end.reject {
                    let _ = self.verb(ep, now, |machine| machine.reject(reason, &[], &[], now));
                }
                return self.end(ep, end.cause, now);
            }
        }
        self.tell(ep, CmEvent::ConnectRequest, 0, now);
    }

    /// How soon the node sends requests early.
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        match self.setup.early >> self.index & 1 {
            0 => RetryPolicy::Classic,
            _ => RetryPolicy::After(Duration::from_millis(20)),
        }
    }

    /// What the node has found out about the peers by now, which changes all the time.
    pub(crate) fn retry_policy_at(&self, now: Instant) -> RetryPolicy {
        let floor = Duration::from_millis(20);
        match (self.retry_policy(), now.as_micros() / 100_000 % 4) {
            (RetryPolicy::Classic, _) => RetryPolicy::Classic,
            (_, 0) => RetryPolicy::Overtaken(floor),
            (_, 1) => RetryPolicy::After(Duration::from_millis(300)),
            (_, 2) => RetryPolicy::Hold(floor),
            _ => RetryPolicy::After(floor),
        }
    }

    /// Where one more connection request would stand in the backlog.
    pub(crate) fn next_admission(&self) -> Offer {
        self.backlog(self.waiting(), self.setup.parking)
    }

    /// Where one more request would stand if so many wait, of which as many as `parking` are parked.
    pub(crate) fn backlog(&self, waiting: usize, parking: usize) -> Offer {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut backlog = Backlog::new();
        backlog.set(number(self.setup.backlog));
        for _ in 0..waiting {
            let _ = backlog.admit(number(parking));
        }
        backlog.next_admission(number(parking))
    }

    /// Who hears a request with this private data.
    pub(crate) fn listener(&self, private_data: &[u8]) -> Option<Service> {
        let header = private_data::Header::decode(private_data).ok()?;
        let listener = ListenView {
            addr: &Self::addr(self.gid, PORT),
            afonly: true,
            bound_if: 0,
            port: None,
        };
        let request = RequestView {
            header: &header,
            interface: Some(1),
            port: 1,
        };
        listener.accepts(&request).then_some(Service)
    }

    /// Connection requests that wait for their user.
    pub fn waiting(&self) -> usize {
        let is_waiting = |e: &&Endpoint| {
            e.has_user && e.watch.side == Side::Passive && e.watch.stage == Stage::Asked
        };
        self.endpoints.values().filter(is_waiting).count()
    }

    /// The timer of an endpoint has run out.
    pub fn timeout(&mut self, ep: EpId, deadline: Instant, now: Instant) {
        let policy = self.retry_policy_at(now);
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return self.datagram_timeout(ep, deadline, now);
        };
        // It was set anew meanwhile, or stopped.
        if endpoint.machine.deadline() != Some(deadline) {
            return;
        }
        let before = endpoint.machine.state();
        let planted = self.setup.plant == Some(Plant::NoRepTimer);
        if planted && before == cm::State::RepSent {
            return;
        }
        endpoint.machine.set_retry_policy(policy);
        let actions = endpoint.machine.timeout(now);
        self.execute(ep, before, actions, now);
    }

    /// Ends an endpoint. Its user hears nothing more.
    pub fn end(&mut self, ep: EpId, cause: DestroyCause, now: Instant) {
        let Some(endpoint) = self.endpoints.get_mut(&ep).filter(|e| !e.destroyed) else {
            return;
        };
        endpoint.destroyed = true;
        endpoint.has_user = false;
        endpoint.qpn = 0;
        let before = endpoint.machine.state();
        let actions = endpoint.machine.destroy(cause, now);
        let judgement = endpoint.watch.destroyed(&endpoint.machine, now);
        self.judge(judgement);
        self.execute(ep, before, actions, now);
        if !self.setup.linger {
            self.bury(ep);
        }
    }

    /// Removes an endpoint, and its communication id with it.
    fn bury(&mut self, ep: EpId) {
        if let Some(endpoint) = self.endpoints.remove(&ep) {
            if let Some(ids) = endpoint.tracked {
                self.remotes.release_remote_ids(&ids, ep);
            }
            self.ids.free(endpoint.machine.local_comm_id());
        }
    }

    /// Carries out what the state machine of `ep` asks for after a step from state `before`.
    pub(crate) fn execute(&mut self, ep: EpId, before: cm::State, actions: Actions, now: Instant) {
        for action in actions {
            match action {
                Action::Send(outgoing) => self.transmit(ep, outgoing, now),
                Action::Timer => {
                    let deadline = self.endpoints.get(&ep).and_then(|e| e.machine.deadline());
                    if let Some(deadline) = deadline {
                        self.effects.push(Effect::Timer { ep, deadline });
                    }
                }
                Action::ReleaseRemoteIds if self.setup.plant == Some(Plant::KeepRemoteIds) => {}
                Action::ReleaseRemoteIds => {
                    let tracked = self.endpoints.get_mut(&ep).and_then(|e| e.tracked.take());
                    if let Some(ids) = tracked {
                        self.remotes.release_remote_ids(&ids, ep);
                    }
                }
                Action::Deliver(event) => self.report(ep, event, now),
                Action::Release | Action::Count(_) => {}
            }
        }
        self.after_step(ep, before, now);
        let is_over = |e: &Endpoint| e.destroyed && e.machine.is_closed();
        if self.endpoints.get(&ep).is_some_and(is_over) {
            self.bury(ep);
        }
    }

    fn transmit(&mut self, ep: EpId, outgoing: Outgoing, now: Instant) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let kind = outgoing.attribute();
        let mut mad = [0; MAD_LEN];
        let judgement = match endpoint.machine.encode(outgoing, &mut mad) {
            Ok(()) => endpoint.watch.send(kind, now),
            Err(_) => endpoint
                .watch
                .violation(Rule::Api, format_args!("{kind:?} cannot be written")),
        };
        if endpoint.reached {
            self.effects.push(Effect::Send {
                tag: endpoint.watch.tag,
                kind,
                to: endpoint.peer,
                mad: Box::new(mad),
            });
        }
        self.judge(judgement);
    }

    /// Turns an event of the IB CM into one of the RDMA CM, and tells the user.
    fn report(&mut self, ep: EpId, event: cm::Event, now: Instant) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        if matches!(event, cm::Event::RejReceived { .. }) {
            let machine = &endpoint.machine;
            let (local, remote) = (machine.local_comm_id(), machine.remote_comm_id());
            self.rejected.insert(local, remote);
        }
        let Some(upcall) = cma::upcall(endpoint.state, event, None) else {
            return;
        };
        if event == cm::Event::RepReceived {
            let _ = endpoint.machine.prepare_mra(Connection::SERVICE_TIMEOUT);
        }
        if let Some(next) = upcall
            .trigger
            .and_then(|trigger| endpoint.state.next(trigger))
        {
            endpoint.state = next;
        }
        self.tell(ep, upcall.event, upcall.status, now);
    }

    pub(crate) fn tell(&mut self, ep: EpId, event: CmEvent, status: i32, now: Instant) {
        let Some(endpoint) = self.endpoints.get_mut(&ep).filter(|e| e.has_user) else {
            return;
        };
        let judgement = endpoint.watch.tell(event, now);
        self.judge(judgement);
        self.effects.push(Effect::Tell { ep, event, status });
    }

    /// Judges an endpoint that has made a step. Nothing else can have changed.
    fn after_step(&mut self, ep: EpId, before: cm::State, now: Instant) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let step = endpoint.watch.step(before, &endpoint.machine, now);
        let names = self.names(ep);
        self.judge(step.and(names));
    }

    /// S1, S5: the tables find exactly this endpoint by its own and by its peer's names.
    fn names(&self, ep: EpId) -> Result<(), Violation> {
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return Ok(());
        };
        let machine = &endpoint.machine;
        let watch = &endpoint.watch;
        if self.ids.get(machine.local_comm_id()) != Some(ep) {
            return watch.violation(Rule::S1, "its communication id does not find it");
        }
        let ids = RemoteIds {
            peer: Peer {
                guid: machine.remote_ca_guid(),
                origin: endpoint.peer,
            },
            comm_id: machine.remote_comm_id(),
            qpn: machine.remote_qpn(),
        };
        let by_id = self.remotes.get(&ids.comm_id_key()) == Some(ep);
        let by_qpn = self.remotes.get(&ids.qpn_key()) == Some(ep);
        let expected = is_tracked(machine.state());
        if (by_id, by_qpn) != (expected, expected) {
            let state = machine.state();
            let what = format!(
                "{state:?}, and found by its peer's communication id: {by_id}, queue pair: {by_qpn}"
            );
            return watch.violation(Rule::S5, what);
        }
        Ok(())
    }

    /// S9: no table has more entries than its endpoints account for.
    pub fn sizes(&self) -> Result<(), Violation> {
        let tracked = self.endpoints.values().filter(|e| e.tracked.is_some());
        let remotes = 2 * tracked.count();
        let asking = self.datagrams.values().filter(|d| d.side == Side::Active);
        let ids = self.endpoints.len() + asking.count();
        let waiting = self.waiting();
        let room = self.setup.backlog + self.setup.parking;
        if self.ids.len() == ids && self.remotes.len() == remotes && waiting <= room {
            return Ok(());
        }
        let what = format!(
            "node {}: {} communication ids, {} names of peers, {waiting} requests that wait; \
             expected {ids}, {remotes}, at most {room}",
            self.index,
            self.ids.len(),
            self.remotes.len(),
        );
        Err(Violation {
            rule: Rule::S9,
            what,
        })
    }
}
