// SPDX-License-Identifier: GPL-2.0

//! The cells of the state table that the messages of a peer have come to.

use super::Node;
use crate::wire::Mad;
use cmnode::Endpoint;
use cmproto::{
    cm::{Connection, State},
    origin::Origin,
    reject::Reason,
    wire::{self, Message, MraMessage, Rej, MAD_LEN},
};
use std::collections::BTreeSet;

/// Rows and situations, as `Documentation/transitions.rst` names them.
pub type Cells = BTreeSet<(&'static str, String)>;

/// The situation of a connection, which this end has asked for or not.
fn situation(machine: &Connection, is_active: bool) -> String {
    match machine.state() {
        State::Idle if machine.is_closed() => "Closed".into(),
        State::Idle => "Fresh".into(),
        State::Established if is_active => "EstablishedActive".into(),
        State::Established => "EstablishedPassive".into(),
        state => format!("{state:?}"),
    }
}

/// The rows of a message that names `machine` as its receiver, and `sender` as its sender. Before
/// the peer is known, every sender may be the peer, and none is.
fn rows(
    machine: &Connection,
    message: &Message<'_>,
    sender: u32,
    is_ib: bool,
) -> Vec<&'static str> {
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
        Message::Lap(_) if is_ib => ("LAP", None),
        Message::Lap(_) => ("LAP over RoCE", None),
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

/// The cell of a row that an endpoint is in, if it has a connection.
pub(super) fn cell<W>(row: &'static str, endpoint: &Endpoint<W>) -> Option<(&'static str, String)> {
    let machine = endpoint.machine.connection()?;
    Some((row, situation(machine, endpoint.listener.is_none())))
}

impl Node {
    /// The cells that messages have come to so far.
    pub fn seen(&self) -> &Cells {
        &self.0.env.seen
    }

    /// Notes which cells a message comes to that is not a request.
    pub(super) fn note(&mut self, from: Origin, mad: &[u8; MAD_LEN]) {
        let Ok((_, message)) = wire::decode(mad) else {
            return;
        };
        let Some((sender, receiver)) = Mad(*mad).ids() else {
            return;
        };
        let node = &mut self.0;
        for endpoint in node.endpoints.values().filter(|e| e.peer == from) {
            let Some(machine) = endpoint.machine.connection() else {
                continue;
            };
            let rows = match &message {
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
                _ if machine.local_comm_id() == receiver => {
                    rows(machine, &message, sender, node.is_ib)
                }
                _ => continue,
            };
            let cells = rows.into_iter().filter_map(|row| cell(row, endpoint));
            node.env.seen.extend(cells);
        }
    }
}
