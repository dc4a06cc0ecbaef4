// SPDX-License-Identifier: GPL-2.0

//! The nodes of a simulation, and what their users do.

use cmnode::{Environment, EpId, Listener};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::{AcceptParams, ConnectParams, DestroyCause, RetryPolicy, State, Tunable},
    errno::Errno,
    qp::QpType,
    reject::Reason,
    service_id::{PortSpace, ServiceId},
    sidr::ResolveParams,
    time::{Duration, Instant, TimeCode},
};

use crate::{
    observer::Observer,
    rules::{Rule, Stage, Violation, Watch},
    script::{Dial, Plant, Setup, Side, Tag, Verb},
};

/// The port that all nodes listen on.
const PORT: u16 = 4791;

/// The shortest time after which a node that sends requests early does so.
const EARLY: Duration = Duration::from_millis(20);

/// The seconds between two questions of a node that asks its peers whether they have a connection.
const KEEPALIVE: u64 = 60;

/// The other LID of a node, as its peers see it, and one of nobody.
const PEER_LID: u16 = 1;
const NO_LID: u16 = 99;

/// One node.
pub type Node = cmnode::Node<Observer>;

/// An endpoint of a node.
pub type Endpoint = cmnode::Endpoint<Watch>;

fn addr(gid: Gid, port: u16) -> SockAddr {
    SockAddr::v4(gid.to_v4().unwrap_or_default(), port)
}

/// Creates a node that has just started for the `epoch`-th time. Numbers of endpoints start at
/// `first_ep`.
pub fn start(index: usize, epoch: u32, first_ep: EpId, setup: Setup) -> Node {
    let last = u8::try_from(index).map_or(255, |i| i + 1);
    let key = match setup.plant {
        Some(Plant::SameIds) => [1, 2],
        _ => [setup.seed, (u64::from(last) << 32) | u64::from(epoch)],
    };
    let gid = Gid::from_v4([10, 0, 0, last]);
    let guid = 0x0200_0000_0000_0000 | u64::from(last);
    let mut node = Node::new(Observer::new(index, setup), gid, guid, key, first_ep);
    node.is_ib = setup.infiniband;
    node.linger = setup.linger;
    node.plant = setup.plant;
    let early = match setup.early >> index & 1 {
        0 => 0,
        _ => EARLY.as_micros() / 1000,
    };
    for (tunable, value) in [
        (Tunable::EarlyRetry, early),
        (
            Tunable::Keepalive,
            u64::from(setup.keepalive >> index & 1) * KEEPALIVE,
        ),
        (Tunable::Parking, setup.parking as u64),
    ] {
        let set = node.tuning.set(tunable, value as u32);
        set.expect("a simulation has small numbers");
    }
    let listeners = [(PortSpace::Tcp, QpType::ANY), (PortSpace::Udp, QpType::UD)];
    for (space, qp_type) in listeners {
        node.listen(Listener {
            addr: addr(gid, PORT),
            service_id: ServiceId::from_ip(space, PORT).0,
            afonly: true,
            backlog: setup.backlog as u32,
            qp_type,
        });
    }
    node
}

/// The queue pair that serves the calls of `tag`.
pub fn service_qpn(tag: Tag) -> u32 {
    0x1_0000 + u32::from(tag)
}

/// Returns the owner of an endpoint, and says if it has a user.
pub fn whose(node: &Node, ep: EpId) -> Option<(Tag, Side, bool)> {
    let endpoint = node.endpoints.get(&ep)?;
    let watch = &endpoint.watch;
    Some((watch.tag, watch.side, endpoint.has_user))
}

/// A queue pair number that no endpoint has, and that was free for as long as possible.
fn take_qpn(node: &mut Node) -> u32 {
    let is_connection = |e: &&Endpoint| e.machine.connection().is_some();
    let endpoints = node.endpoints.values().filter(is_connection);
    let used: Vec<u32> = endpoints.map(|e| e.watch.qpn).collect();
    loop {
        node.env.next_qpn += 1;
        let most = node.env.setup.qpns.max(used.len() as u32 + 1);
        let qpn = 16 + node.env.next_qpn % most;
        if !used.contains(&qpn) {
            return qpn;
        }
    }
}

/// A user connects to the node at `to`, or asks it for a datagram service.
pub fn connect(node: &mut Node, tag: Tag, to: Gid, dial: &Dial) -> Option<EpId> {
    let (src, dst) = (addr(node.gid, 1024), addr(to, PORT));
    let timeout = TimeCode::new(dial.response_timeout).to_duration();
    let interval = match dial.datagram {
        true => timeout,
        // The longest that the answer to a request may take.
        false => {
            let life_time = TimeCode::new(dial.packet_life_time).to_duration();
            life_time.saturating_mul(2) + timeout
        }
    };
    let watch = Watch::new(tag, Side::Active, dial.max_cm_retries, interval);
    let mut watch = watch
        .sending_early(node.tuning.early_retry().is_some())
        .asking_peer(node.tuning.limits().keepalive.is_some());
    watch.is_reached = true;
    let data = tag.to_be_bytes();
    if dial.datagram {
        let params = ResolveParams {
            timeout,
            max_cm_retries: dial.max_cm_retries,
            ..ResolveParams::new(0, 0xffff)
        };
        watch.resolve(node.now);
        return node.resolve(src, dst, &params, &data, watch).ok();
    }
    watch.qpn = take_qpn(node);
    let params = ConnectParams {
        local_qpn: watch.qpn,
        transport: dial.transport,
        packet_life_time: dial.packet_life_time,
        remote_cm_response_timeout: dial.response_timeout,
        local_cm_response_timeout: dial.response_timeout,
        max_cm_retries: dial.max_cm_retries,
        ..cmnode::connect_params()
    };
    node.connect(src, dst, &params, &data, watch).ok()
}

/// The user of `ep` does something. `has_data`: the peer has sent some.
///
/// # Errors
///
/// The errors of the verb.
pub fn act(node: &mut Node, ep: EpId, verb: Verb, has_data: bool) -> Result<(), Errno> {
    match verb {
        Verb::Accept => accept(node, ep),
        Verb::Reject => node.reject(ep, Reason::CONSUMER_DEFINED, b"no"),
        Verb::Disconnect => node.disconnect(ep),
        Verb::Notify if has_data => {
            let peer = node.endpoints.get(&ep).map(|endpoint| endpoint.peer);
            node.env.confirmed.extend(peer);
            node.notify(ep)
        }
        Verb::Notify | Verb::Nothing => Ok(()),
        Verb::Propose => propose(node, ep, PEER_LID),
        Verb::ProposeElsewhere => propose(node, ep, NO_LID),
        Verb::Destroy => {
            node.destroy(ep, DestroyCause::User);
            Ok(())
        }
    }
}

/// Proposes to the peer of `ep` an alternate path to this LID.
fn propose(node: &mut Node, ep: EpId, dlid: u16) -> Result<(), Errno> {
    let now = node.now;
    // The LAP is sent within the call.
    let endpoint = node.endpoints.get_mut(&ep).ok_or(Errno::ENOENT)?;
    let before = endpoint.watch.propose(now);
    let result = node.load_alternate(ep, dlid);
    if let (Err(_), Some(endpoint)) = (result, node.endpoints.get_mut(&ep)) {
        endpoint.watch.proposals = before;
    }
    result
}

fn accept(node: &mut Node, ep: EpId) -> Result<(), Errno> {
    let Some(endpoint) = node.endpoints.get(&ep) else {
        return Ok(());
    };
    let watch = &endpoint.watch;
    let (side, is_connection) = (watch.side, endpoint.machine.connection().is_some());
    let (stage, qpn) = match side {
        Side::Active => (Stage::Connected, watch.qpn),
        Side::Passive if is_connection => (Stage::Accepted, take_qpn(node)),
        Side::Passive => (Stage::Over, service_qpn(watch.tag)),
    };
    let params = AcceptParams {
        local_qpn: qpn,
        responder_resources: 1,
        initiator_depth: 1,
        rnr_retry_count: 7,
        ..AcceptParams::default()
    };
    match side {
        Side::Active => node.accept(ep, None, &[])?,
        Side::Passive => node.accept(ep, Some(&params), b"yes")?,
    }
    if let Some(endpoint) = node.endpoints.get_mut(&ep) {
        endpoint.watch.stage = stage;
        endpoint.watch.qpn = qpn;
    }
    Ok(())
}

/// The link address of the sender of a request is known.
pub fn reached(node: &mut Node, ep: EpId) {
    if let Some(endpoint) = node.endpoints.get_mut(&ep).filter(|e| !e.is_destroyed) {
        endpoint.watch.is_reached = true;
        node.offer(ep, None);
    }
}

/// Returns the estimates of a node that sends early, which change all the time.
fn retry_policy_at(node: &Node) -> RetryPolicy {
    match (
        node.tuning.early_retry(),
        node.now.as_micros() / 100_000 % 4,
    ) {
        (None, _) => RetryPolicy::Classic,
        (_, 0) => RetryPolicy::Overtaken(EARLY),
        (_, 1) => RetryPolicy::After(Duration::from_millis(300)),
        (_, 2) => RetryPolicy::Hold(EARLY),
        _ => RetryPolicy::After(EARLY),
    }
}

/// The timer of an endpoint has run out, if it was neither set anew meanwhile, nor stopped.
pub fn timeout(node: &mut Node, ep: EpId, deadline: Instant) {
    let policy = retry_policy_at(node);
    let is_planted = node.plant == Some(Plant::NoRepTimer);
    let Some(endpoint) = node.endpoints.get_mut(&ep) else {
        return;
    };
    let state = endpoint.machine.connection().map(|machine| machine.state());
    let is_deaf = is_planted && state == Some(State::RepSent);
    if endpoint.machine.deadline() == Some(deadline) && !is_deaf {
        endpoint.machine.set_retry_policy(policy);
        node.timeout(ep);
    }
}

/// S3, S9: nobody asks for too long, and no table has more entries than its endpoints account for.
///
/// # Errors
///
/// The rule that is broken.
pub fn judge_tables(node: &Node) -> Result<(), Violation> {
    let (mut ids, mut remote_ids, mut sidr_requests) = (0, 0, 0);
    let (mut waiting, mut waiting_sidr) = (0, 0);
    for endpoint in node.endpoints.values() {
        let is_sidr = endpoint.machine.resolution().is_some();
        if is_sidr {
            endpoint.watch.on_time(None, node.now)?;
        }
        let is_waiting = Observer::is_waiting(endpoint);
        ids += usize::from(!is_sidr | endpoint.listener.is_none());
        remote_ids += usize::from(endpoint.remote_ids.is_some());
        remote_ids += usize::from(endpoint.is_confirmed);
        sidr_requests += usize::from(endpoint.sidr_request.is_some());
        waiting += usize::from(is_waiting);
        waiting_sidr += usize::from(is_waiting & is_sidr);
    }
    let (tables, setup) = (&node.tables, &node.env.setup);
    let sizes = (
        tables.comm_ids.len(),
        tables.remote_ids.len(),
        tables.sidr_requests.len(),
    );
    let requests = waiting - waiting_sidr;
    let room = setup.backlog + setup.parking;
    let expected = (ids, remote_ids, sidr_requests);
    if sizes == expected && requests <= room && waiting_sidr <= setup.backlog {
        return Ok(());
    }
    let what = format!(
        "node {}: {sizes:?} communication ids, ids of peers and SIDR requests, expected \
         {expected:?}; {requests} and {waiting_sidr} requests wait, at most {room} and {} may",
        node.env.index, setup.backlog,
    );
    Err(Violation {
        rule: Rule::S9,
        what,
    })
}
