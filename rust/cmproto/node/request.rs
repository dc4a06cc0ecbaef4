// SPDX-License-Identifier: GPL-2.0

//! What a REQ must pass, and in which order.

use super::{
    answer::{Answer, Response},
    claim::{claim, Conflict, Refused},
    passive::{Passive, PassiveReq},
    tables::{Peer, RemoteIds},
};
use crate::{
    addr::Gid,
    cm::{DestroyCause, QpType},
    dropped::Dropped,
    errno::Errno,
    origin::Origin,
    reject::Reason,
    wire::Req,
};

/// What becomes of a REQ.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<E, L> {
    /// It is the REQ of this endpoint's connection, and has arrived again:
    /// [`duplicate_req`](crate::cm::Connection::duplicate_req).
    Duplicate(E),
    /// It is a new request. This endpoint was created for it, and is offered to this listener's consumer.
    New(E, L),
    /// It has no effect.
    Refused(Refused<E>),
    /// It is being handled already, or its device has gone. There is nothing to do.
    Nothing,
}

/// Why a REQ does not become a connection request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer is told.
    Reject(Reason),
    /// The peer is told nothing and tries again: there is no memory, or no room.
    Drop,
    /// The peer cannot be told.
    Unreachable,
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ENOMEM => Self::Drop,
            // As many requests are parked as may be.
            Errno::ENOSPC => Self::Reject(Reason::NO_RESOURCES),
            _ => Self::Reject(Reason::CONSUMER_DEFINED),
        }
    }
}

impl Refusal {
    /// What is done about a REQ for which no endpoint was made.
    fn response<N: PassiveReq>(self, node: &N, req: &Req<'_>) -> Response {
        match self {
            Self::Reject(reason) => {
                let gid = right_gid(node, reason);
                Response::Answer(Answer::reject_req(req, reason, gid))
            }
            Self::Drop => Response::Drop(Dropped::Overload),
            Self::Unreachable => Response::Drop(Dropped::Unreachable),
        }
    }
}

/// The GID that whoever named a wrong one is told of (IBTA 12.6.7.2).
fn right_gid<N: PassiveReq>(node: &N, reason: Reason) -> Option<Gid> {
    match reason {
        Reason::INVALID_GID => node.port_gid(),
        Reason::INVALID_ALT_GID => node.local_gid(),
        _ => None,
    }
}

/// What is done with an endpoint whose request the listener's consumer does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwanted {
    /// The reason to reject the request with, before the endpoint ends.
    pub reject: Option<Reason>,
    /// How the endpoint ends.
    pub cause: DestroyCause,
    /// What the request counts as among those that are dropped.
    pub dropped: Option<Dropped>,
}

impl Unwanted {
    /// What is done when the consumer has refused a REQ with `errno`, or the sender cannot be reached.
    pub fn req(errno: Errno) -> Self {
        match Refusal::from(errno) {
            Refusal::Reject(reason) if reason == Reason::NO_RESOURCES => Self {
                reject: Some(reason),
                ..Self::OVERLOAD
            },
            // As the end of the endpoint says to its peer.
            Refusal::Reject(_) => Self {
                reject: None,
                cause: DestroyCause::User,
                dropped: None,
            },
            Refusal::Drop | Refusal::Unreachable => Self::OVERLOAD,
        }
    }

    const OVERLOAD: Self = Self {
        reject: None,
        cause: DestroyCause::NoMemory,
        dropped: Some(Dropped::Overload),
    };
}

/// Decides what becomes of a REQ that has come from `origin`: whether it came before, comes from a peer
/// that lost its old connection (IBTA 12.9.8.3.1), or may become a connection request.
pub fn request<N: PassiveReq>(
    node: &mut N,
    origin: Origin,
    req: &Req<'_>,
) -> Request<N::Endpoint, N::Listener> {
    let ids = RemoteIds {
        peer: Peer {
            guid: req.local_ca_guid,
            origin,
        },
        comm_id: req.local_comm_id,
        qpn: req.local_qpn,
    };
    if let Some(known) = node.owner(&ids.comm_id_key()) {
        return Request::Duplicate(known);
    }
    let taken = match node.owner(&ids.qpn_key()) {
        Some(other) => Err((Refusal::Reject(Reason::STALE_CONN), Some(other))),
        None => take(node, req, &ids),
    };
    match taken {
        Ok(Some((child, listener))) => Request::New(child, listener),
        Ok(None) => Request::Nothing,
        Err((refusal, stale)) => Request::Refused(Refused {
            response: refusal.response(node, req),
            stale,
        }),
    }
}

/// The endpoint that was created for a request and who hears it, if there is something to hear.
pub(super) type Taken<N> = Option<(<N as Passive>::Endpoint, <N as Passive>::Listener)>;

/// Makes a connection request of a REQ that is neither a duplicate nor from a stale peer.
fn take<N: PassiveReq>(
    node: &mut N,
    req: &Req<'_>,
    ids: &RemoteIds,
) -> Result<Taken<N>, (Refusal, Option<N::Endpoint>)> {
    let listener = check(node, req).map_err(|refusal| (refusal, None))?;
    let child = node
        .create(&listener)
        .map_err(|errno| (errno.into(), None))?;
    match claim(node, ids, &child) {
        Ok(()) if node.publish(&child, ids) => Ok(Some((child, listener))),
        Ok(()) => Ok(None),
        // The same REQ is being handled at this moment.
        Err(Conflict::Duplicate) => {
            node.discard(child);
            Ok(None)
        }
        Err(Conflict::Stale(other)) => {
            node.discard(child);
            Err((Refusal::Reject(Reason::STALE_CONN), Some(other)))
        }
    }
}

/// Checks a REQ before anything is allocated for it.
fn check<N: PassiveReq>(node: &mut N, req: &Req<'_>) -> Result<N::Listener, Refusal> {
    if !node.find_sender() {
        return Err(Refusal::Drop);
    }
    if !node.is_served(req.service_id) {
        return Err(Refusal::Reject(Reason::INVALID_SERVICE_ID));
    }
    if !node.has_pkey(req.pkey) {
        return Err(Refusal::Reject(Reason::INVALID_GID));
    }
    if !req.alternate.is_empty() && !node.has_alternate_paths() {
        return Err(Refusal::Reject(Reason::INVALID_ALT_GID));
    }
    let listener = node.listener()?;
    node.room(&listener)?;
    node.reach().map_err(|_| Refusal::Unreachable)?;
    match QpType::of_receiver(req.transport) {
        Some(qp_type) if node.takes_qp(&listener, qp_type) => Ok(listener),
        _ => Err(Refusal::Reject(Reason::CONSUMER_DEFINED)),
    }
}
