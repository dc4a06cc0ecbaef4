// SPDX-License-Identifier: GPL-2.0

//! The parts of connections, which the events of a trace name.
//!
//! Each event names a part only: an identifier of the RDMA CM, a communication id of the IB CM, or
//! the transaction of a message. A task that sends a message leaves an event of each, one after the
//! other, and so tells which of them belong together.

use super::{
    connection::{Connection, CLIENT, SERVER},
    event::{End, Event, What},
    sets::Sets,
};
use cmproto::reject::Reason;
use std::{
    collections::{HashMap, HashSet},
    mem,
};

/// A part of a connection.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part<'a> {
    Transaction(u64),
    End(End<'a>),
    CommId(u32),
    RemoteCommId(u32),
}

/// An event of a part.
pub(super) enum Seen<'a> {
    Message {
        is_sent: bool,
        port: &'a str,
        tid: u64,
        attribute: u16,
        /// The communication id for which it was sent.
        by: Option<usize>,
    },
    Note(String),
}

/// The last events of a task.
#[derive(Default)]
struct Task<'a> {
    /// The name of the event of an identifier, and the identifier.
    id: Option<(&'a str, usize)>,
    /// The name of the event of a communication id, and the id.
    comm_id: Option<(&'a str, Option<usize>)>,
}

/// The parts of connections, which are joined as events come.
#[derive(Default)]
pub struct Parts<'a> {
    numbers: HashMap<Part<'a>, usize>,
    /// Parts of the same connection.
    connections: Sets,
    /// Parts of the same end.
    ends: Sets,
    /// The identifier of a part.
    pub(super) ids: HashMap<usize, End<'a>>,
    /// The client or the server, to which a part belongs.
    roles: HashMap<usize, usize>,
    tasks: HashMap<&'a str, Task<'a>>,
    /// Requests that were received and are not known to belong to an identifier.
    unclaimed: Vec<usize>,
    pub(super) seen: Vec<(u64, usize, Seen<'a>)>,
    /// The reasons for which the IB CM refuses, by the part.
    pub(super) reasons: HashMap<usize, String>,
}

const REQ: u16 = 0x10;
pub(super) const REJ: u16 = 0x12;

/// Returns the name of a message.
pub(super) fn name(attribute: u16) -> &'static str {
    match attribute {
        REQ => "REQ",
        0x11 => "MRA",
        REJ => "REJ",
        0x13 => "REP",
        0x14 => "RTU",
        0x15 => "DREQ",
        0x16 => "DREP",
        0x17 => "SIDR_REQ",
        0x18 => "SIDR_REP",
        0x19 => "LAP",
        0x1a => "APR",
        _ => "?",
    }
}

/// Tells whether the event of a communication id announces this message.
fn announces(event: &str, attribute: u16) -> bool {
    match event {
        // The answer is repeated.
        "icm_send_dup_req" | "icm_send_dup_rep" => matches!(attribute, 0x11..=0x14),
        event => event
            .strip_prefix("icm_send_")
            .is_some_and(|kind| kind.eq_ignore_ascii_case(name(attribute))),
    }
}

/// Tells whether the event of an identifier announces that of its communication id.
fn leads_to(event: &str, comm_id_event: &str) -> bool {
    match event {
        "cm_disconnect" => matches!(comm_id_event, "icm_send_dreq" | "icm_send_drep"),
        event => event.strip_prefix("cm_") == comm_id_event.strip_prefix("icm_"),
    }
}

/// Returns the call, or the event, that an event of an identifier tells of.
fn note(event: &str, detail: &str, task: &str) -> Option<String> {
    let call = match event {
        "cm_event_handler" => {
            return Some(match detail.split_once(" (") {
                // The status of a refusal is its reason.
                Some(("REJECTED", status)) => {
                    let code = status
                        .trim_end_matches(')')
                        .split_once('/')
                        .map_or("", |(_, code)| code);
                    match code.parse() {
                        Ok(code) => format!("REJECTED: {} ({code})", Reason(code).description()),
                        Err(_) => detail.into(),
                    }
                }
                Some((event, status)) => match status.trim_end_matches(')').split_once('/') {
                    Some((_, "0")) | None => event.into(),
                    Some((_, status)) => format!("{event}, status {status}"),
                },
                None => detail.into(),
            });
        }
        "cm_send_req" | "cm_send_sidr_req" => "connect",
        "cm_send_rep" | "cm_send_sidr_rep" => "accept",
        "cm_send_rej" => "reject",
        "cm_disconnect" => "disconnect",
        "cm_id_destroy" => "destroy",
        _ => return None,
    };
    Some(format!("{call} by {task}"))
}

impl<'a> Parts<'a> {
    fn part(&mut self, part: Part<'a>) -> usize {
        let Self {
            numbers,
            connections,
            ends,
            ..
        } = self;
        *numbers.entry(part).or_insert_with(|| {
            connections.add();
            ends.add()
        })
    }

    /// Makes two parts one end.
    fn unite(&mut self, one: usize, other: usize) {
        self.connections.unite(one, other);
        self.ends.unite(one, other);
    }

    /// Takes an event.
    pub fn take(&mut self, event: Event<'a>) {
        let Event { time, task, what } = event;
        match what {
            What::Cma { name, id, detail } => self.take_id(time, task, name, id, detail),
            What::Icm {
                name,
                local,
                remote,
                state,
                reason,
            } => {
                // Other events have the ids of a message, or are about errors.
                if !name.starts_with("icm_send_") || name.ends_with("_err") {
                    return;
                }
                if name == "icm_send_req" && state == "IDLE" {
                    self.numbers.remove(&Part::CommId(local));
                }
                // A peer's request that is refused has no communication id here.
                let comm_id = (local != 0).then(|| self.part(Part::CommId(local)));
                if let Some(comm_id) = comm_id {
                    if remote != 0 {
                        let remote = self.part(Part::RemoteCommId(remote));
                        self.connections.unite(comm_id, remote);
                    }
                    match name {
                        "icm_send_req" | "icm_send_sidr_req" => self.roles.insert(comm_id, CLIENT),
                        "icm_send_rep" => self.roles.insert(comm_id, SERVER),
                        _ => None,
                    };
                    if !reason.is_empty() {
                        let reason = reason
                            .trim_start_matches("REJ_")
                            .replace('_', " ")
                            .to_lowercase();
                        self.reasons.insert(comm_id, reason);
                    }
                    let id = self.tasks.entry(task).or_default().id.take();
                    if let Some((_, id)) = id.filter(|(event, _)| leads_to(event, name)) {
                        self.unite(id, comm_id);
                    }
                }
                self.tasks.entry(task).or_default().comm_id = Some((name, comm_id));
            }
            What::Mad {
                is_sent,
                port,
                tid,
                attribute,
            } => {
                let transaction = self.part(Part::Transaction(tid));
                let comm_id = self.tasks.entry(task).or_default().comm_id.take();
                let by = comm_id
                    .filter(|(event, _)| is_sent && announces(event, attribute))
                    .and_then(|(_, comm_id)| comm_id);
                if let Some(by) = by {
                    self.connections.unite(transaction, by);
                }
                if !is_sent && matches!(attribute, REQ | 0x17) {
                    self.unclaimed.push(transaction);
                }
                // The end of a connection is another transaction, which has the peer's id.
                if !is_sent && attribute == 0x15 {
                    if let Some(remote) = self.numbers.get(&Part::RemoteCommId(tid as u32)).copied()
                    {
                        self.connections.unite(transaction, remote);
                    }
                }
                let message = Seen::Message {
                    is_sent,
                    port,
                    tid,
                    attribute,
                    by,
                };
                self.seen.push((time, transaction, message));
            }
        }
    }

    fn take_id(&mut self, time: u64, task: &'a str, name: &'a str, id: End<'a>, detail: &'a str) {
        // An event of a device or of a listener, and one of an identifier without addresses.
        if name == "cm_req_handler" || id.dst.ends_with(":0") || !id.src.contains(':') {
            return;
        }
        let end = self.part(Part::End(id));
        self.ids.insert(end, id);
        match (name, detail.split(' ').next()) {
            ("cm_send_req" | "cm_send_sidr_req", _)
            | ("cm_event_handler", Some("ADDR_RESOLVED")) => {
                self.roles.insert(end, CLIENT);
            }
            ("cm_event_handler", Some("CONNECT_REQUEST")) => {
                self.roles.insert(end, SERVER);
            }
            _ => {}
        }
        if let Some(note) = note(name, detail, task) {
            self.seen.push((time, end, Seen::Note(note)));
        }
        if name == "cm_id_destroy" {
            self.numbers.remove(&Part::End(id));
        }
        self.tasks.entry(task).or_default().id = Some((name, end));
    }

    /// Joins what no task has joined: both ends of a connection have each other's addresses, and the
    /// identifier of a request that nobody has answered is made for the last one that came before.
    fn join(&mut self) {
        let mut open: HashMap<(&str, &str), usize> = HashMap::new();
        let mut ids: Vec<(usize, End<'a>)> = self.ids.iter().map(|(end, id)| (*end, *id)).collect();
        ids.sort_unstable_by_key(|(end, _)| *end);
        for (end, id) in &ids {
            open.insert((id.src, id.dst), *end);
        }
        for (end, id) in &ids {
            if let (Some(CLIENT), Some(other)) =
                (self.roles.get(end).copied(), open.get(&(id.dst, id.src)))
            {
                self.connections.unite(*end, *other);
            }
        }
        let mut first: HashMap<usize, u64> = HashMap::new();
        let mut with_messages = HashSet::new();
        for (time, part, seen) in &self.seen {
            first.entry(*part).or_insert(*time);
            if matches!(seen, Seen::Message { .. }) {
                with_messages.insert(self.connections.find(*part));
            }
        }
        let with_id: HashSet<usize> = ids
            .iter()
            .map(|(end, _)| self.connections.find(*end))
            .collect();
        let mut free = mem::take(&mut self.unclaimed);
        free.dedup();
        free.retain(|transaction| !with_id.contains(&self.connections.find(*transaction)));
        for (end, _) in ids {
            let found = self.connections.find(end);
            if self.roles.get(&end) != Some(&SERVER) || with_messages.contains(&found) {
                continue;
            }
            if let Some(last) = free
                .iter()
                .rposition(|transaction| first[transaction] <= first[&end])
            {
                self.connections.unite(free.remove(last), end);
            }
        }
    }

    /// Returns the connections, the first one first.
    pub fn connections(mut self) -> Vec<Connection> {
        self.join();
        let mut order = Vec::new();
        let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
        self.seen.sort_by_key(|(time, ..)| *time);
        for at in 0..self.seen.len() {
            let connection = self.connections.find(self.seen[at].1);
            found
                .entry(connection)
                .or_insert_with(|| {
                    order.push(connection);
                    Vec::new()
                })
                .push(at);
        }
        let roles: Vec<(usize, usize)> = self
            .roles
            .iter()
            .map(|(part, role)| (*part, *role))
            .collect();
        for (part, role) in roles {
            let end = self.ends.find(part);
            self.roles.insert(end, role);
        }
        order
            .iter()
            .filter_map(|connection| self.connection(&found[connection]))
            .collect()
    }

    /// Returns the end to which a part belongs.
    pub(super) fn role(&mut self, part: usize) -> Option<usize> {
        let end = self.ends.find(part);
        self.roles.get(&end).copied()
    }
}
