// SPDX-License-Identifier: GPL-2.0

//! Which cells of the state table the messages of a peer have come to.

use super::{Arrived, Node};
use cmproto::{
    cm::{Connection, State},
    reject::Reason,
    wire::{Message, MraMessage, Rej},
};
use std::collections::BTreeSet;

/// Rows and situations, as `Documentation/transitions.rst` names them.
pub type Cells = BTreeSet<(&'static str, &'static str)>;

/// The situation of a connection, which this end has asked for or not.
fn situation(machine: &Connection, is_active: bool) -> &'static str {
    match machine.state() {
        State::Idle if machine.is_closed() => "Closed",
        State::Idle => "Fresh",
        State::Listen => "Listen",
        State::ReqSent => "ReqSent",
        State::ReqRcvd => "ReqRcvd",
        State::MraReqSent => "MraReqSent",
        State::MraReqRcvd => "MraReqRcvd",
        State::RepSent => "RepSent",
        State::RepRcvd => "RepRcvd",
        State::MraRepSent => "MraRepSent",
        State::MraRepRcvd => "MraRepRcvd",
        State::Established if is_active => "EstablishedActive",
        State::Established => "EstablishedPassive",
        State::DreqSent => "DreqSent",
        State::DreqRcvd => "DreqRcvd",
        State::Timewait => "Timewait",
        State::SidrReqSent => "SidrReqSent",
        State::SidrReqRcvd => "SidrReqRcvd",
    }
}

/// The communication ids in a message: the receiver's and the sender's.
fn ids(message: &Message<'_>) -> Option<(u32, u32)> {
    Some(match message {
        Message::Rep(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Rtu(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Rej(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Mra(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Dreq(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Drep(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Lap(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Apr(m) => (m.remote_comm_id, m.local_comm_id),
        Message::Req(_) | Message::SidrReq(_) | Message::SidrRep(_) => return None,
    })
}

/// The rows of a message that names `machine` as its receiver, and `sender` as its sender. Before
/// the peer is known, everybody may be it, and nobody is.
fn rows(machine: &Connection, message: &Message<'_>, sender: u32) -> Vec<&'static str> {
    let known = machine.remote_comm_id() != 0;
    let (is_peer, is_stranger) = match machine.remote_comm_id() == sender {
        true => (true, false),
        false => (!known, true),
    };
    let (row, of_a_stranger) = match message {
        Message::Rep(_) if known => ("REP", Some("REP of a stranger")),
        Message::Rep(_) => ("REP", None),
        Message::Rtu(_) => ("RTU", Some("RTU of a stranger")),
        Message::Rej(rej) => match Reason(rej.reason) {
            Reason::STALE_CONN => ("REJ, stale", None),
            Reason::TIMEOUT => ("REJ, timeout", Some("REJ, timeout, of a stranger")),
            _ => ("REJ, consumer defined", None),
        },
        Message::Mra(mra) => match mra.message {
            MraMessage::Req => ("MRA of a REQ", None),
            MraMessage::Rep => ("MRA of a REP", None),
            MraMessage::Other => ("MRA of a LAP", None),
            MraMessage::Reserved => ("MRA of nothing known", None),
        },
        Message::Dreq(m) if m.remote_qpn_eecn != machine.local_qpn() => {
            ("DREQ of another queue pair", None)
        }
        Message::Dreq(_) => ("DREQ", None),
        Message::Drep(_) => ("DREP", None),
        Message::Lap(_) => ("LAP", None),
        Message::Apr(_) => ("APR", None),
        Message::Req(_) | Message::SidrReq(_) | Message::SidrRep(_) => return Vec::new(),
    };
    let own = is_peer.then_some(row);
    let strangers = of_a_stranger.filter(|_| is_stranger);
    own.into_iter().chain(strangers).collect()
}

fn guid(rej: &Rej<'_>) -> u64 {
    rej.ari.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

impl Node {
    /// The cells that messages have come to so far.
    pub fn seen(&self) -> &Cells {
        &self.seen
    }

    /// Notes which cell a message comes to that is not a request.
    pub(super) fn note(&mut self, arrived: &Arrived<'_>, message: &Message<'_>) {
        let Some((receiver, sender)) = ids(message) else {
            return;
        };
        let mut seen = Vec::new();
        for object in &self.objects {
            let Some(conn) = object.conn.as_ref().filter(|c| c.peer == arrived.from) else {
                continue;
            };
            let machine = &conn.machine;
            let rows = match message {
                // Its sender is known by other things than the receiver's id.
                Message::Rej(rej)
                    if Reason(rej.reason) == Reason::TIMEOUT
                        && machine.remote_comm_id() == sender =>
                {
                    match guid(rej) == machine.remote_ca_guid() {
                        true => vec!["REJ, timeout"],
                        false => vec!["REJ, timeout, of a stranger"],
                    }
                }
                _ if machine.local_comm_id() == receiver => rows(machine, message, sender),
                _ => continue,
            };
            let place = situation(machine, conn.is_active);
            seen.extend(rows.into_iter().map(|row| (row, place)));
        }
        self.seen.extend(seen);
    }

    /// Notes that a request comes to the connection of `index`, for what is said in `row`.
    pub(super) fn note_request(&mut self, index: usize, row: &'static str) {
        let Some(conn) = self.conn(index) else {
            return;
        };
        let place = situation(&conn.machine, conn.is_active);
        self.seen.insert((row, place));
    }
}
