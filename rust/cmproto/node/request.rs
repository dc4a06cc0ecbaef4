// SPDX-License-Identifier: GPL-2.0

//! The checks of a REQ, in their order.

use super::{
    acceptor::{Acceptor, ReqAcceptor},
    answer::{Answer, Response},
    claim::Refused,
    offer::Declined,
    tables::{Peer, RemoteIds},
};
use crate::{
    addr::Gid, cm::DestroyCause, dropped::Dropped, origin::Origin, qp::QpType, reject::Reason,
    wire::Req,
};

/// The result of the checks of a REQ.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<E, L> {
    /// A repeated REQ of this endpoint's connection, for
    /// [`duplicate_req`](crate::cm::Connection::duplicate_req).
    Duplicate(E),
    /// A new request, with the endpoint that was created for it and the listener whose consumer it
    /// is offered to.
    New(E, L),
    /// The REQ is refused.
    Refused(Refused<E>),
    /// There is nothing to do: the same REQ is being handled already, or the device is gone.
    Nothing,
}

/// The reason why a REQ does not become a connection request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The REQ is rejected for this reason.
    Reject(Reason),
    /// The REQ is dropped, and the peer will retry: there is no memory or no room.
    Drop,
    /// The REQ is dropped, because its sender cannot be reached.
    Unreachable,
}

impl From<Declined> for Refusal {
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::NoRoom => Self::Drop,
            Declined::OverLimit => Self::Reject(Reason::NO_RESOURCES),
            Declined::Refused | Declined::Gone => Self::Reject(Reason::CONSUMER_DEFINED),
        }
    }
}

impl Refusal {
    /// Returns the response to a REQ for which no endpoint was created.
    fn response<N: ReqAcceptor>(self, node: &N, req: &Req<'_>) -> Response {
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

/// Returns the GID for the additional rejection information of a REJ for a wrong GID (IBTA
/// 12.6.7.2).
fn right_gid<N: ReqAcceptor>(node: &N, reason: Reason) -> Option<Gid> {
    match reason {
        Reason::INVALID_GID => node.port_gid(),
        Reason::INVALID_ALT_GID => node.local_gid(),
        _ => None,
    }
}

/// The end of an endpoint whose request was not accepted by the listener's consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEnd {
    /// The reason to reject the request with, before the endpoint is destroyed.
    pub reject: Option<Reason>,
    /// The cause to destroy the endpoint with.
    pub cause: DestroyCause,
    /// The counter of dropped messages that the request counts for, if any.
    pub dropped: Option<Dropped>,
}

impl RequestEnd {
    /// Returns the end of an endpoint whose REQ the consumer has not taken.
    pub fn req(declined: Declined) -> Self {
        let overload = Self {
            reject: None,
            cause: DestroyCause::NoMemory,
            dropped: Some(Dropped::Overload),
        };
        match declined {
            Declined::NoRoom => overload,
            Declined::OverLimit => Self {
                reject: Some(Reason::NO_RESOURCES),
                ..overload
            },
            // The end of the endpoint rejects the REQ by itself.
            Declined::Refused | Declined::Gone => Self {
                reject: None,
                cause: DestroyCause::User,
                dropped: None,
            },
        }
    }
}

/// Decides about a REQ from `origin`.
///
/// A REQ may be a duplicate, come from a peer that has lost its old connection (IBTA 12.9.8.3.1),
/// be refused by a check, or become a connection request.
pub fn request<N: ReqAcceptor>(
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
        None => take(node, req, &ids).map_err(|refusal| (refusal, None)),
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

/// The endpoint that was created for a request and its listener, or `None` if there is nothing to
/// do.
pub(super) type Taken<N> = Option<(<N as Acceptor>::Endpoint, <N as Acceptor>::Listener)>;

/// Checks a REQ that is neither a duplicate nor from a stale peer, creates its endpoint, and enters
/// the communication id of the peer.
fn take<N: ReqAcceptor>(node: &mut N, req: &Req<'_>, ids: &RemoteIds) -> Result<Taken<N>, Refusal> {
    let listener = check(node, req)?;
    let child = node.create(&listener)?;
    // If the id was entered meanwhile, another task is handling the same REQ at this moment.
    if node.enter(ids.comm_id_key(), &child).is_some() {
        node.discard(child);
        return Ok(None);
    }
    Ok(node.publish(&child, ids).then_some((child, listener)))
}

/// Checks a REQ before anything is allocated for it.
fn check<N: ReqAcceptor>(node: &mut N, req: &Req<'_>) -> Result<N::Listener, Refusal> {
    if !node.find_reply_path() {
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
    let listener = node.listener().ok_or(Declined::Refused)?;
    node.check_backlog(&listener)?;
    if !node.find_neighbour() {
        return Err(Refusal::Unreachable);
    }
    match QpType::of_receiver(req.transport) {
        Some(qp_type) if node.takes_qp(&listener, qp_type) => Ok(listener),
        _ => Err(Refusal::Reject(Reason::CONSUMER_DEFINED)),
    }
}
