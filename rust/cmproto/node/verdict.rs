// SPDX-License-Identifier: GPL-2.0

//! Whether an endpoint takes a message that names it.

use super::{
    answer::{Answer, Response},
    tables::{Peer, RemoteIds},
};
use crate::{
    cm::Connection,
    dropped::Dropped,
    origin::Origin,
    reject::Reason,
    sidr::Resolution,
    wire::{Message, Rep},
};

/// What an endpoint is engaged in.
#[derive(Clone, Copy, Debug)]
pub enum Conversation<'a> {
    /// Nothing that a message could be for.
    None,
    /// A connection, with the peer that its messages come from.
    Connection(&'a Connection, Origin),
    /// A service id resolution, with the peer that its messages come from.
    Resolution(&'a Resolution, Origin),
}

/// What becomes of a message that names an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint's connection or resolution receives it.
    Deliver,
    /// A REP that is to be the connection's first. Its connection receives it once
    /// [`claim_rep`](super::claim_rep) has given it these names.
    Claim(RemoteIds),
    /// The endpoint does not take it.
    Nobody(Response),
}

/// Decides whether an endpoint takes a message from `origin` that names it.
pub fn judge(conversation: &Conversation<'_>, origin: Origin, message: &Message<'_>) -> Verdict {
    let stranger = Verdict::Nobody(Response::Drop(Dropped::Stranger));
    match (conversation, message) {
        (Conversation::Resolution(_, peer), Message::SidrRep(_)) if *peer != origin => stranger,
        (Conversation::Resolution(..), Message::SidrRep(_)) => Verdict::Deliver,
        // To a communication id that is not that of a resolution.
        (_, Message::SidrRep(_)) => Verdict::Nobody(nobody(message)),
        // A stranger learns nothing, not even that there is no such connection.
        (Conversation::Connection(_, peer), _) if *peer != origin => stranger,
        (Conversation::Connection(connection, _), Message::Rep(rep)) => {
            judge_rep(connection, origin, rep, message)
        }
        (Conversation::Connection(connection, _), _) if connection.is_for(message) => {
            Verdict::Deliver
        }
        (Conversation::None | Conversation::Connection(..) | Conversation::Resolution(..), _) => {
            Verdict::Nobody(nobody(message))
        }
    }
}

/// Decides about a REP from the connection's peer, which `message` is.
fn judge_rep(
    connection: &Connection,
    origin: Origin,
    rep: &Rep<'_>,
    message: &Message<'_>,
) -> Verdict {
    // It has given up, or was ended.
    if connection.is_closed() && !connection.is_for(message) {
        return Verdict::Nobody(nobody(message));
    }
    if !connection.wants_rep() {
        return Verdict::Deliver;
    }
    // A late copy of a REP that was refused: its sender has given up by now.
    if connection.has_refused(rep) {
        let answer = Answer::reject_rep(rep, Reason::STALE_CONN);
        return Verdict::Nobody(Response::Answer(answer));
    }
    Verdict::Claim(RemoteIds {
        peer: Peer {
            guid: rep.local_ca_guid,
            origin,
        },
        comm_id: rep.local_comm_id,
        qpn: connection.rep_qpn(rep),
    })
}

/// Decides about a message whose receiver does not exist.
///
/// A REP and a DREQ are answered, because their sender would wait for an answer: its connection is
/// gone, or was never asked for. All else is dropped.
pub fn nobody(message: &Message<'_>) -> Response {
    match message {
        Message::Rep(rep) => Response::Answer(Answer::reject_rep(rep, Reason::INVALID_COMM_ID)),
        Message::Dreq(dreq) => Response::Answer(Answer::confirm(dreq)),
        Message::Req(_)
        | Message::Mra(_)
        | Message::Rej(_)
        | Message::Rtu(_)
        | Message::Drep(_)
        | Message::SidrReq(_)
        | Message::SidrRep(_)
        | Message::Lap(_)
        | Message::Apr(_) => Response::Drop(Dropped::Unknown),
    }
}
