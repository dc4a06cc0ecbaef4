// SPDX-License-Identifier: GPL-2.0

//! The surroundings of a node in a simulation: it notes what the node wants, and judges each step.

use std::collections::{BTreeMap, BTreeSet};

use cmnode::{Arrived, Cause, Environment, EpId, Machine, Tables};
use cmproto::{
    cm::{self, Connection, State},
    cma::Upcall,
    errno::Errno,
    node::{Peer, RemoteIds, RemoteTable},
    origin::Origin,
    time::{Duration, Instant, TimeCode},
    ucma_abi::CmEvent,
    wire::{self, Attribute, Message, MAD_LEN},
};

use crate::{
    node::{Endpoint, Node},
    rules::{is_tracked, Rule, Stage, Violation, Watch},
    script::{Plant, Setup, Side, Tag},
};

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
    /// Call [`timeout`](crate::node::timeout) then.
    Timer { ep: EpId, deadline: Instant },
    /// Call [`reached`](crate::node::reached) when the peer's link address is known.
    Reach { ep: EpId },
    /// The peer of a connection is asked whether it still has that.
    Ask { ep: EpId },
    /// The answer was that it has not.
    Lost { ep: EpId },
    /// The user of an endpoint is told something.
    Tell {
        ep: EpId,
        event: CmEvent,
        status: i32,
    },
}

/// The observer of one node.
#[derive(Debug)]
pub struct Observer {
    pub index: usize,
    pub setup: Setup,
    pub effects: Vec<Effect>,
    pub violation: Option<Violation>,
    /// Communication ids of connections that were rejected, with the peer's or 0.
    pub rejected: BTreeMap<u32, u32>,
    /// The sources that have confirmed a request.
    pub confirmed: BTreeSet<Origin>,
    /// For each source when it was sent a message (1), and when a REQ has come again (-1), without
    /// the first answer to each REQ.
    balances: BTreeMap<Origin, Vec<(Instant, i32)>>,
    /// Requests of one queue pair that came while its last connection was in time wait.
    pub reused: u64,
    pub next_qpn: u32,
    /// The connection that the arriving message was sent for, for the record only.
    pub tag: Tag,
    /// The machine that takes a step as it was before, if that is needed.
    copy: Option<Machine>,
}

impl Observer {
    /// Messages that a source which has confirmed nothing is sent without having asked for them, at
    /// most, and the time in which that is so.
    const UNASKED: i32 = 4;
    const WINDOW: Duration = Duration::from_millis(10_000);

    /// Creates the observer of a node to which nothing has happened.
    pub fn new(index: usize, setup: Setup) -> Self {
        Self {
            index,
            setup,
            effects: Vec::new(),
            violation: None,
            rejected: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            balances: BTreeMap::new(),
            reused: 0,
            next_qpn: 0,
            tag: 0,
            copy: None,
        }
    }

    /// S7: a source that has confirmed nothing is sent a message that is not the first answer to a
    /// request.
    fn answer(&mut self, to: Origin, watch: &Watch, now: Instant) -> Result<(), Violation> {
        let balance = self.balances.entry(to).or_default();
        balance.retain(|(time, _)| now < *time + Self::WINDOW);
        balance.push((now, 1));
        match balance.iter().map(|(_, one)| one).sum::<i32>() > Self::UNASKED {
            true => watch.violation(Rule::S7, format_args!("unasked at {balance:?}")),
            false => Ok(()),
        }
    }

    /// Notes the first rule that is broken.
    fn judge(&mut self, judgement: Result<(), Violation>) {
        if let Err(violation) = judgement {
            self.violation.get_or_insert(violation);
        }
    }
}

/// A number that is the same for the same message, and for hardly any other.
fn digest(mad: &[u8; MAD_LEN]) -> u64 {
    let words = mad.chunks_exact(8);
    words.fold(0x9e37_79b9_7f4a_7c15, |sum, word| {
        let word = word.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
        (sum.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

/// Returns whether a message asks the peer of a connection if that still exists.
fn is_challenge(machine: &Machine, mad: &[u8; MAD_LEN]) -> bool {
    match (machine.connection(), wire::decode(mad)) {
        (Some(machine), Ok((_, Message::Dreq(dreq)))) => {
            dreq.remote_qpn_eecn != machine.remote_qpn()
        }
        _ => false,
    }
}

/// The state of an endpoint before a step.
#[derive(Default)]
pub struct Before {
    /// The state of a connection.
    state: Option<State>,
    /// A LAP waits for its APR.
    has_lap: bool,
    /// The machine was copied.
    is_copied: bool,
    /// The message was applied before.
    is_repeated: bool,
    digest: u64,
}

fn state(endpoint: &Endpoint) -> Option<State> {
    endpoint.machine.connection().map(Connection::state)
}

fn has_lap(endpoint: &Endpoint) -> bool {
    let machine = endpoint.machine.connection();
    machine.is_some_and(Connection::has_lap)
}

/// Returns whether a message of this kind may change a connection whose state stays.
fn changes_no_state(kind: Attribute) -> bool {
    matches!(kind, Attribute::Mra | Attribute::Lap | Attribute::Apr)
}

impl Environment for Observer {
    type Watch = Watch;
    type Before = Before;

    fn watch(&mut self, request: &Arrived<'_>) -> Watch {
        let is_early = self.setup.early >> self.index & 1 == 1;
        let asks = self.setup.keepalive >> self.index & 1 == 1;
        let kind = request.message.attribute();
        match request.message {
            Message::Req(req) => {
                let interval = TimeCode::new(req.local_cm_response_timeout)
                    .to_duration()
                    .min(cm::Limits::DEFAULT.passive_interval);
                let watch = Watch::new(self.tag, Side::Passive, req.max_cm_retries, interval);
                let mut watch = watch.sending_early(is_early).asking_peer(asks);
                watch.apply(kind, digest(request.mad));
                watch
            }
            _ => {
                let mut watch = Watch::new(self.tag, Side::Passive, 0, Duration::ZERO);
                watch.is_reached = true;
                watch.receive(kind);
                watch
            }
        }
    }

    fn is_waiting(endpoint: &Endpoint) -> bool {
        let watch = &endpoint.watch;
        watch.stage == Stage::Asked && watch.side == Side::Passive && endpoint.has_user
    }

    fn timer(&mut self, ep: EpId, deadline: Instant) {
        self.effects.push(Effect::Timer { ep, deadline });
    }

    fn send(node: &mut Node, from: Option<EpId>, to: Origin, kind: Attribute, mad: &[u8; MAD_LEN]) {
        let tag = match from.and_then(|ep| Some((ep, node.endpoints.get_mut(&ep)?))) {
            Some((ep, endpoint)) => {
                let is_unconfirmed =
                    matches!(state(endpoint), Some(State::MraReqSent | State::RepSent))
                        && !node.env.confirmed.contains(&to);
                let watch = &mut endpoint.watch;
                let judgement = match is_challenge(&endpoint.machine, mad) {
                    true => {
                        node.env.effects.push(Effect::Ask { ep });
                        watch.challenge(node.now)
                    }
                    false => {
                        let is_first = watch.is_first_answer(kind);
                        let judgement = watch.send(kind, node.now);
                        match kind {
                            Attribute::Rep | Attribute::Mra if is_unconfirmed && !is_first => {
                                judgement.and(node.env.answer(to, watch, node.now))
                            }
                            _ => judgement,
                        }
                    }
                };
                node.env.judge(judgement);
                if !watch.is_reached {
                    return;
                }
                watch.tag
            }
            None => {
                if kind == Attribute::Drep && node.plant == Some(Plant::NoConfirm) {
                    return;
                }
                node.env.tag
            }
        };
        node.env.effects.push(Effect::Send {
            tag,
            kind,
            to,
            mad: Box::new(*mad),
        });
    }

    fn reach(node: &mut Node, ep: EpId, _: &Arrived<'_>) {
        node.env.effects.push(Effect::Reach { ep });
    }

    fn offer(node: &mut Node, ep: EpId, _: Option<&Arrived<'_>>) {
        tell(node, ep, CmEvent::ConnectRequest, 0);
    }

    fn deliver(
        node: &mut Node,
        ep: EpId,
        event: Option<cm::Event>,
        upcall: Option<&Upcall>,
        cause: &Cause<'_>,
    ) {
        let Some(endpoint) = node.endpoints.get_mut(&ep) else {
            return;
        };
        let machine = endpoint.machine.connection();
        if let (Some(cm::Event::RejReceived { .. }), Some(machine)) = (event, machine) {
            let (local, remote) = (machine.local_comm_id(), machine.remote_comm_id());
            node.env.rejected.insert(local, remote);
        }
        if let Cause::Message(arrived) = cause {
            if let Message::SidrRep(rep) = arrived.message {
                endpoint.watch.qpn = rep.qpn;
            }
        }
        if let Some(upcall) = upcall {
            tell(node, ep, upcall.event, upcall.status);
        }
    }

    fn before(node: &mut Node, ep: EpId, cause: &Cause<'_>) -> Before {
        let now = node.now;
        let Some(endpoint) = node.endpoints.get_mut(&ep) else {
            return Before::default();
        };
        let mut before = Before {
            state: state(endpoint),
            has_lap: has_lap(endpoint),
            ..Before::default()
        };
        let watch = &mut endpoint.watch;
        before.is_copied = match cause {
            Cause::New | Cause::Timer | Cause::StalePeer => false,
            Cause::Verb | Cause::Reject => true,
            Cause::Park => {
                watch.park();
                true
            }
            Cause::Destroy => {
                watch.qpn = 0;
                false
            }
            Cause::Message(arrived) => {
                if let Message::Mra(mra) = arrived.message {
                    let wait = TimeCode::new(mra.service_timeout).to_duration();
                    watch.receive_mra(mra.message, wait, now);
                }
                let kind = arrived.message.attribute();
                match kind {
                    Attribute::Rtu => drop(node.env.confirmed.insert(arrived.origin)),
                    Attribute::Req => {
                        let balance = node.env.balances.entry(arrived.origin).or_default();
                        balance.push((now, -1));
                    }
                    _ => {}
                }
                before.digest = digest(arrived.mad);
                before.is_repeated =
                    kind == Attribute::SidrReq || watch.has_applied(kind, before.digest);
                if !before.is_repeated && kind == Attribute::Dreq {
                    watch.supersede(kind);
                }
                watch.receive(kind);
                before.is_repeated || changes_no_state(kind)
            }
        };
        if before.is_copied {
            node.env.copy = Some(endpoint.machine.clone());
        }
        before
    }

    fn after(
        node: &mut Node,
        ep: EpId,
        cause: &Cause<'_>,
        before: Before,
        result: Result<(), Errno>,
    ) {
        let now = node.now;
        let Some(endpoint) = node.endpoints.get_mut(&ep) else {
            return;
        };
        let after = state(endpoint);
        let has_lap = has_lap(endpoint);
        let (machine, watch) = (&endpoint.machine, &mut endpoint.watch);
        let is_changed = before.is_copied && node.env.copy.as_ref() != Some(machine);
        let judgement = match cause {
            Cause::Verb | Cause::Reject | Cause::Park if result.is_err() => {
                // No other field can be wrong.
                let judgement = match is_changed {
                    true => watch.violation(Rule::Api, "a verb failed, and changed something"),
                    false => Ok(()),
                };
                return node.env.judge(judgement);
            }
            Cause::Reject => {
                watch.stage = Stage::Over;
                Ok(())
            }
            Cause::Destroy => watch.destroyed(machine, now),
            Cause::Message(arrived) => {
                let kind = arrived.message.attribute();
                if kind == Attribute::Drep && before.state == Some(State::Established) {
                    node.env.effects.push(Effect::Lost { ep });
                }
                if after != before.state || changes_no_state(kind) && is_changed {
                    watch.apply(kind, before.digest);
                }
                match before.is_repeated && is_changed {
                    true => watch.violation(
                        Rule::S6,
                        format_args!("a repeated message changed {:?} to {after:?}", before.state),
                    ),
                    false => disconnected(endpoint, arrived.message, before.state),
                }
            }
            Cause::Timer => {
                let is_over = before.has_lap && !has_lap && after == before.state;
                watch.proposals.is_given_up |= is_over;
                Ok(())
            }
            Cause::New | Cause::Verb | Cause::Park | Cause::StalePeer => Ok(()),
        };
        node.env.judge(judgement);
        // No other field can have changed.
        let judgement = match (before.state, endpoint.machine.connection()) {
            (Some(before), Some(machine)) => endpoint
                .watch
                .step(before, machine, now)
                .and_then(|()| names(&node.tables, ep, endpoint, machine)),
            _ => endpoint.watch.on_time(None, now),
        };
        node.env.judge(judgement);
        if let (Cause::Message(arrived), Some(Plant::RepeatedEvent)) = (cause, node.plant) {
            let is_dreq = arrived.message.attribute() == Attribute::Dreq;
            if is_dreq && before.state == Some(State::DreqRcvd) {
                tell(node, ep, CmEvent::Disconnected, 0);
            }
        }
    }

    fn withheld(node: &mut Node, ep: EpId) {
        if let Some(endpoint) = node.endpoints.get_mut(&ep) {
            endpoint.watch.withhold(node.now);
        }
    }

    /// Counts a queue pair that is in use again while its last connection is in time wait.
    fn claim(node: &mut Node, ids: &RemoteIds) {
        let mut machines = node
            .endpoints
            .values()
            .filter_map(|e| e.machine.connection());
        let is_last = |machine: &Connection| {
            machine.state() == State::Timewait
                && (machine.remote_ca_guid(), machine.remote_qpn()) == (ids.peer.guid, ids.qpn)
        };
        node.env.reused += u64::from(machines.any(is_last));
    }
}

/// S4: a side that is told that its peer is gone is not connected any more.
fn disconnected(
    endpoint: &Endpoint,
    message: &Message<'_>,
    before: Option<State>,
) -> Result<(), Violation> {
    let (Message::Dreq(dreq), Some(machine)) = (message, endpoint.machine.connection()) else {
        return Ok(());
    };
    let names_qpn = dreq.remote_qpn_eecn == machine.local_qpn();
    let is_connected = |state| state == Some(State::Established);
    if is_connected(before) && is_connected(state(endpoint)) && names_qpn {
        return endpoint.watch.violation(Rule::S4, "a DREQ did not end it");
    }
    Ok(())
}

fn tell(node: &mut Node, ep: EpId, event: CmEvent, status: i32) {
    let Some(endpoint) = node.endpoints.get_mut(&ep).filter(|e| e.has_user) else {
        return;
    };
    let judgement = endpoint.watch.tell(event, node.now);
    node.env.judge(judgement);
    node.env.effects.push(Effect::Tell { ep, event, status });
}

/// S1, S5: the tables find exactly this endpoint by its own and by its peer's ids.
fn names(
    tables: &Tables,
    ep: EpId,
    endpoint: &Endpoint,
    machine: &Connection,
) -> Result<(), Violation> {
    let watch = &endpoint.watch;
    if tables.comm_ids.get(machine.local_comm_id()) != Some(ep) {
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
    let is_found = |key| tables.remote_ids.owner(&key) == Some(ep);
    let found = [is_found(ids.comm_id_key()), is_found(ids.qpn_key())];
    let state = machine.state();
    let expected = match state {
        // Nobody has confirmed the request, from any sender.
        _ if machine.is_unconfirmed() => [true, false],
        // The DREQ may have overtaken the RTU.
        State::DreqRcvd => [true, endpoint.is_confirmed],
        state => [is_tracked(state); 2],
    };
    if found != expected {
        let [by_id, by_qpn] = found;
        let what = format!(
            "{state:?}, and found by its peer's communication id: {by_id}, queue pair: {by_qpn}"
        );
        return watch.violation(Rule::S5, what);
    }
    Ok(())
}
