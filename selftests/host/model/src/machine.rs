// SPDX-License-Identifier: GPL-2.0

//! The real state machine and its messages, each value known by a number.
//!
//! A connection has far fewer values than a pair of nodes has states. The real code works out the
//! effect of an input on a value once; from then on it is looked up.

use cmproto::{
    addr::Gid,
    cm::{
        AcceptParams, Action, Actions, ConnectParams, Connection, DestroyCause, Event, Limits,
        Outgoing, State,
    },
    errno::Errno,
    node::{self, Answer, ExchangeView, Verdict},
    origin::Origin,
    reject::Reason,
    time::{Duration, Instant},
    wire::{self, Header, Message, ReqPath, Transport, MAD_LEN},
};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The address of the peer's messages: each node has one.
pub const PEER: Origin = Origin::of_gid(Gid([2; 16]));

/// When everything happens.
pub const NOW: Instant = Instant::MAX;

/// The number of a value of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u16);

/// The number of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Msg(pub u8);

/// A set of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Msgs(u128);

impl Msgs {
    pub fn add(&mut self, msg: Msg) {
        self.0 |= 1 << msg.0;
    }

    pub fn has(self, msg: Msg) -> bool {
        self.0 >> msg.0 & 1 == 1
    }

    pub fn iter(self) -> impl Iterator<Item = Msg> {
        (0..128).map(Msg).filter(move |msg| self.has(*msg))
    }
}

/// An input of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// With this own QPN.
    Accept(u32),
    Establish,
    Reject,
    Disconnect,
    Confirm,
    PrepareMra,
    Notify,
    Destroy,
    Timeout,
    DuplicateReq,
    StalePeer,
    RefuseRtu,
    Receive(Msg),
}

/// The properties of a connection that its node has to know.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub state: State,
    pub remote_comm_id: u32,
    pub remote_guid: u64,
    pub remote_qpn: u32,
    pub wants_rtu: bool,
    pub closed: bool,
    pub timer: bool,
    /// The connection ends by itself when it is destroyed and hears nothing (S8).
    pub ends_alone: bool,
}

/// The effect of an input.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub next: Value,
    /// Not what a verb refused, which must change nothing.
    pub done: bool,
    pub sends: Vec<Sent>,
    pub events: Vec<Event>,
    pub release_remote_ids: bool,
    pub release: bool,
}

/// A message that was sent, and by which kind of action.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub msg: Msg,
    pub outgoing: Outgoing,
}

#[derive(Default)]
struct Tables {
    values: Vec<(Connection, View)>,
    by_text: HashMap<String, Value>,
    messages: Vec<(usize, [u8; MAD_LEN])>,
    by_bytes: HashMap<(usize, [u8; MAD_LEN]), Msg>,
    outcomes: HashMap<(Value, Input, usize), Outcome>,
    verdicts: HashMap<(Value, Msg), Verdict>,
}

/// All values and messages met so far.
pub struct Machines {
    limits: Limits,
    retries: u8,
    transport: Transport,
    tables: Mutex<Tables>,
}

/// The node that a message for `node` comes from, and the reverse.
pub fn other(node: usize) -> usize {
    1 - node
}

/// Node GUID of a node.
pub fn guid(node: usize) -> u64 {
    0xa0 + node as u64
}

impl Machines {
    /// Connections that send each request `retries` times again.
    pub fn new(retries: u8, transport: Transport) -> Self {
        Self {
            limits: Limits {
                passive_retries: retries,
                passive_interval: Duration::from_millis(8_000),
                mra_wait: Duration::from_millis(60_000),
                ..Limits::DEFAULT
            },
            retries,
            transport,
            tables: Mutex::default(),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn retries(&self) -> u8 {
        self.retries
    }

    /// Values and messages met so far.
    pub fn counts(&self) -> (usize, usize) {
        let tables = self.tables();
        (tables.values.len(), tables.messages.len())
    }

    pub fn view(&self, value: Value) -> View {
        self.tables().values[usize::from(value.0)].1
    }

    /// The node that a message goes to, and its bytes.
    pub fn message_to(&self, msg: Msg) -> (usize, [u8; MAD_LEN]) {
        self.tables().messages[usize::from(msg.0)]
    }

    /// A message as a person reads it.
    pub fn describe(&self, msg: Msg) -> String {
        let tables = self.tables();
        let (to, bytes) = &tables.messages[usize::from(msg.0)];
        let (hdr, message) = wire::decode(bytes).expect("it was encoded here");
        let what = match &message {
            Message::Rej(rej) => format!(
                "REJ({:?}, {}) {:#x}->{:#x}",
                rej.message, rej.reason, rej.local_comm_id, rej.remote_comm_id
            ),
            Message::Req(req) => format!("REQ {:#x} qpn {:#x}", req.local_comm_id, req.local_qpn),
            Message::Rep(rep) => format!(
                "REP {:#x}->{:#x} qpn {:#x}",
                rep.local_comm_id, rep.remote_comm_id, rep.local_qpn
            ),
            _ => format!("{:?}", hdr.attr_id),
        };
        format!("#{} {what} to node {to}", msg.0)
    }

    /// A connection as a person reads it.
    pub fn describe_value(&self, value: Value) -> String {
        let view = self.view(value);
        format!("{:?} with {:#x}", view.state, view.remote_comm_id)
    }

    /// The active side after `connect`.
    pub fn connect(&self, node: usize, comm_id: u32, qpn: u32) -> (Value, Outcome) {
        let mut connection = Connection::new(comm_id, guid(node), 0x100 + u64::from(comm_id));
        connection.set_limits(&self.limits);
        let params = ConnectParams {
            service_id: 0x0106_1234,
            local_qpn: qpn,
            transport: self.transport,
            starting_psn: 1,
            primary: ReqPath {
                local_gid: Gid([1; 16]),
                remote_gid: Gid([2; 16]),
                ..ReqPath::default()
            },
            max_cm_retries: self.retries,
            ..cmnode::connect_params()
        };
        let fresh = connection.clone();
        let result = connection.connect(&params, b"req", NOW);
        let mut tables = self.tables();
        let outcome = self.outcome(&mut tables, node, &fresh, connection, result);
        (outcome.next, outcome)
    }

    /// The passive side of a REQ.
    pub fn from_req(&self, node: usize, comm_id: u32, msg: Msg) -> Option<Value> {
        let mut tables = self.tables();
        let (_, bytes) = tables.messages[usize::from(msg.0)];
        let (hdr, message) = wire::decode(&bytes).ok()?;
        let Message::Req(req) = message else {
            return None;
        };
        let tid = 0x200 + u64::from(comm_id);
        let connection =
            Connection::from_req(comm_id, guid(node), tid, &hdr, &req, &self.limits).ok()?;
        Some(self.number(&mut tables, connection))
    }

    /// An answer that the node `from` gives to a message that no connection takes.
    pub fn answer(&self, from: usize, answer: &Answer) -> Msg {
        let mut bytes = [0; MAD_LEN];
        // One transaction id for all, so that there are fewer messages.
        answer.encode(&Header::new(answer.attribute(), 0x300), &mut bytes);
        self.message(&mut self.tables(), other(from), bytes)
    }

    /// Returns true if a connection takes `message`, whose number is `msg`, from its peer.
    pub fn judge(&self, value: Value, msg: Msg, message: &Message<'_>) -> Verdict {
        let mut tables = self.tables();
        let tables = &mut *tables;
        *tables.verdicts.entry((value, msg)).or_insert_with(|| {
            let connection = &tables.values[usize::from(value.0)].0;
            node::judge(&ExchangeView::Connection(connection, PEER), PEER, message)
        })
    }

    /// A copy of a connection.
    pub fn connection(&self, value: Value) -> Connection {
        self.tables().values[usize::from(value.0)].0.clone()
    }

    /// The number of a connection that its node has changed.
    pub fn renumbered(&self, connection: Connection) -> Value {
        self.number(&mut self.tables(), connection)
    }

    /// Returns the effect of `input` on a connection of `node`.
    pub fn step(&self, node: usize, value: Value, input: Input) -> Outcome {
        let mut tables = self.tables();
        if let Some(known) = tables.outcomes.get(&(value, input, node)) {
            return known.clone();
        }
        let before = tables.values[usize::from(value.0)].0.clone();
        let mut after = before.clone();
        let result = match input {
            Input::Accept(qpn) => {
                let params = AcceptParams {
                    local_qpn: qpn,
                    starting_psn: 2,
                    responder_resources: 1,
                    initiator_depth: 1,
                    target_ack_delay: 15,
                    ..AcceptParams::default()
                };
                after.accept(&params, b"rep", NOW)
            }
            Input::Establish => after.establish(b"rtu", NOW),
            Input::Reject => after.reject(Reason::CONSUMER_DEFINED, &[], b"rej", NOW),
            Input::Disconnect => after.disconnect(b"dreq", NOW),
            Input::Confirm => after.confirm_disconnect(b"drep", NOW),
            Input::PrepareMra => after
                .prepare_mra(Connection::SERVICE_TIMEOUT)
                .map(|()| Actions::default()),
            Input::Notify => after.notify_established(NOW),
            Input::Destroy => Ok(after.destroy(DestroyCause::User, NOW)),
            Input::Timeout => Ok(after.timeout(NOW)),
            Input::DuplicateReq => Ok(after.duplicate_req(NOW)),
            Input::StalePeer => Ok(after.stale_peer(NOW)),
            Input::RefuseRtu => Ok(after.refuse_rtu(NOW)),
            Input::Receive(msg) => {
                let (_, bytes) = tables.messages[usize::from(msg.0)];
                let (hdr, message) = wire::decode(&bytes).expect("it was encoded here");
                Ok(after.receive(&hdr, &message, NOW))
            }
        };
        let outcome = self.outcome(&mut tables, node, &before, after, result);
        tables
            .outcomes
            .insert((value, input, node), outcome.clone());
        outcome
    }

    fn outcome(
        &self,
        tables: &mut Tables,
        node: usize,
        before: &Connection,
        after: Connection,
        result: Result<Actions, Errno>,
    ) -> Outcome {
        let mut outcome = Outcome {
            next: Value(0),
            done: result.is_ok(),
            sends: Vec::new(),
            events: Vec::new(),
            release_remote_ids: false,
            release: false,
        };
        if result.is_err() {
            assert_eq!(*before, after, "a verb that fails changes nothing");
        }
        for action in result.into_iter().flatten() {
            match action {
                // One that is not sent is as good as lost.
                Action::Send(message) | Action::SendUnasked(message) => {
                    let msg = self.encoded(tables, node, &after, message);
                    outcome.sends.push(Sent {
                        msg,
                        outgoing: message,
                    });
                }
                Action::Deliver(event) => outcome.events.push(event),
                Action::ReleaseRemoteIds => outcome.release_remote_ids = true,
                Action::Release => outcome.release = true,
                Action::Timer | Action::EndLap { .. } | Action::Count(_) => {}
            }
        }
        outcome.next = self.number(tables, after);
        outcome
    }

    fn encoded(
        &self,
        tables: &mut Tables,
        node: usize,
        connection: &Connection,
        message: Outgoing,
    ) -> Msg {
        let mut bytes = [0; MAD_LEN];
        connection
            .encode(message, &mut bytes)
            .expect("a message that is to be sent can be written");
        self.message(tables, other(node), bytes)
    }

    fn message(&self, tables: &mut Tables, to: usize, bytes: [u8; MAD_LEN]) -> Msg {
        if let Some(known) = tables.by_bytes.get(&(to, bytes)) {
            return *known;
        }
        let msg = Msg(u8::try_from(tables.messages.len())
            .ok()
            .filter(|n| *n < 128)
            .expect("fewer than 128 messages"));
        tables.messages.push((to, bytes));
        tables.by_bytes.insert((to, bytes), msg);
        msg
    }

    fn number(&self, tables: &mut Tables, connection: Connection) -> Value {
        // All fields are in the text, and all of them decide about equality.
        let text = format!("{connection:?}");
        if let Some(known) = tables.by_text.get(&text) {
            assert_eq!(tables.values[usize::from(known.0)].0, connection);
            return *known;
        }
        let value = Value(u16::try_from(tables.values.len()).expect("few values"));
        let view = View {
            state: connection.state(),
            remote_comm_id: connection.remote_comm_id(),
            remote_guid: connection.remote_ca_guid(),
            remote_qpn: connection.remote_qpn(),
            wants_rtu: connection.wants_rtu(),
            closed: connection.is_closed(),
            timer: connection.deadline().is_some(),
            ends_alone: ends_alone(&connection),
        };
        tables.values.push((connection, view));
        tables.by_text.insert(text, value);
        value
    }
}

/// Returns true if a connection that is destroyed now is released after at most one expiry of its
/// timer.
fn ends_alone(connection: &Connection) -> bool {
    let mut connection = connection.clone();
    let mut quiet = true;
    let mut actions = connection.destroy(DestroyCause::User, NOW);
    if !connection.is_closed() {
        quiet &= actions.all(|action| !matches!(action, Action::Deliver(_)));
        actions = connection.timeout(NOW);
    }
    quiet &= actions.all(|action| !matches!(action, Action::Deliver(_)));
    quiet && connection.is_closed() && connection.deadline().is_none()
}
