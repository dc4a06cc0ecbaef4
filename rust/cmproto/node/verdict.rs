// SPDX-License-Identifier: GPL-2.0

//! Decisions whether an endpoint accepts a message that names it.

use super::{
    answer::{Answer, Response},
    tables::{Peer, RemoteIds},
};
use crate::{
    cm::{Connection, Inline, RetransmitMemory},
    dropped::Dropped,
    origin::Origin,
    reject::Reason,
    sidr::Resolution,
    wire::{Message, Rep},
};

/// A view of the exchange that an endpoint is engaged in: a connection or a resolution.
#[derive(Debug)]
pub enum ExchangeView<'a, B = Inline> {
    /// Neither of them.
    None,
    /// A connection, with the origin of its peer's messages.
    Connection(&'a Connection<B>, Origin),
    /// A service id resolution, with the origin of its peer's messages.
    Resolution(&'a Resolution, Origin),
}

/// The result for a message that names an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint's connection or resolution receives the message.
    Deliver,
    /// The message is the first REP or RTU of the connection, which receives it if
    /// [`claim_rep`](super::claim_rep) or [`confirm`](super::confirm) succeeds with these ids of
    /// the peer.
    Claim(RemoteIds),
    /// The endpoint does not accept the message. The response of the node is given.
    Nobody(Response),
}

/// Decides whether an endpoint accepts a message from `origin` that names it.
pub fn judge<B: RetransmitMemory>(
    exchange: &ExchangeView<'_, B>,
    origin: Origin,
    message: &Message<'_>,
) -> Verdict {
    let stranger = Verdict::Nobody(Response::Drop(Dropped::Stranger));
    match (exchange, message) {
        (ExchangeView::Resolution(_, peer), Message::SidrRep(_)) if *peer != origin => stranger,
        (ExchangeView::Resolution(..), Message::SidrRep(_)) => Verdict::Deliver,
        // The communication id in the SIDR_REP is not that of a resolution.
        (_, Message::SidrRep(_)) => Verdict::Nobody(nobody(message)),
        // A stranger gets no answer, so that it does not even learn that there is no such
        // connection.
        (ExchangeView::Connection(_, peer), _) if *peer != origin => stranger,
        (ExchangeView::Connection(connection, _), Message::Rep(rep)) => {
            judge_rep(connection, origin, rep, message)
        }
        (ExchangeView::Connection(connection, _), _) if connection.is_for(message) => match message
        {
            Message::Rtu(_) if connection.wants_rtu() => {
                Verdict::Claim(RemoteIds::of(connection, origin))
            }
            _ => Verdict::Deliver,
        },
        (ExchangeView::None | ExchangeView::Connection(..) | ExchangeView::Resolution(..), _) => {
            Verdict::Nobody(nobody(message))
        }
    }
}

/// Decides about a REP from the connection's peer. `message` is the same REP.
fn judge_rep<B: RetransmitMemory>(
    connection: &Connection<B>,
    origin: Origin,
    rep: &Rep<'_>,
    message: &Message<'_>,
) -> Verdict {
    // The connection has given up or was destroyed.
    if connection.is_closed() && !connection.is_for(message) {
        return Verdict::Nobody(nobody(message));
    }
    if !connection.wants_rep() {
        return Verdict::Deliver;
    }
    // The REP is a late copy of one that was refused. Its sender has given up by now.
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

/// Returns the response to a message whose receiver does not exist.
///
/// A REP and a DREQ are answered, because their sender waits for an answer: its connection is gone,
/// or was never requested. All else is dropped.
pub fn nobody(message: &Message<'_>) -> Response {
    match message {
        Message::Rep(rep) => Response::Answer(Answer::reject_rep(rep, Reason::INVALID_COMM_ID)),
        Message::Dreq(dreq) => Response::Answer(Answer::confirm(dreq)),
        _ => Response::Drop(Dropped::Unknown),
    }
}
