// SPDX-License-Identifier: GPL-2.0

//! Ids of a peer, which belong to one connection at a time.
//!
//! A REQ whose (CA GUID, communication id) is known is a duplicate. A message with a (CA GUID, QPN)
//! that is known comes from a peer that has lost the old connection, which is then stale (IBTA
//! 12.9.8.3.1), or from somebody who only says so. The claimant is rejected, and the peer of the
//! old connection is asked.
//!
//! Anybody can send a REQ with any QPN, so that a REQ enters none. A QPN is entered when a REP or
//! an RTU shows that the peer knows a communication id of this node, or when data arrives.

use super::{
    answer::{Answer, Response},
    tables::{RemoteIds, RemoteTable},
};
use crate::{
    cm::{Connection, RetransmitMemory},
    dropped::Dropped,
    reject::Reason,
    wire::Rep,
};

/// The reason why the ids of a peer cannot be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict<E> {
    /// The communication id belongs to another endpoint.
    Duplicate,
    /// The QPN belongs to the connection of this endpoint.
    Stale(E),
}

/// Enters both ids of a peer for `endpoint`, or neither.
///
/// # Errors
///
/// The conflict with the endpoint that has one of the ids.
pub fn claim<E>(
    table: &mut impl RemoteTable<E>,
    ids: &RemoteIds,
    endpoint: &E,
) -> Result<(), Conflict<E>> {
    if table.enter(ids.comm_id_key(), endpoint).is_some() {
        return Err(Conflict::Duplicate);
    }
    if let Some(owner) = table.enter(ids.qpn_key(), endpoint) {
        table.leave(&ids.comm_id_key(), endpoint);
        return Err(Conflict::Stale(owner));
    }
    Ok(())
}

/// Enters the QPN of a peer for `endpoint`, whose request was confirmed.
///
/// It was confirmed by an RTU, for which [`judge`](super::judge) has returned
/// [`Claim`](super::Verdict::Claim), or by the arrival of data.
///
/// # Errors
///
/// The endpoint whose connection has the QPN, so that the caller calls
/// [`stale_peer`](crate::cm::Connection::stale_peer) on it. An RTU is answered by
/// [`refuse_rtu`](crate::cm::Connection::refuse_rtu) then.
pub fn confirm<E>(table: &mut impl RemoteTable<E>, ids: &RemoteIds, endpoint: &E) -> Result<(), E> {
    match table.enter(ids.qpn_key(), endpoint) {
        Some(owner) => Err(owner),
        None => Ok(()),
    }
}

/// The consequences of a REQ or REP that is refused, to be carried out in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<E> {
    /// The response of the node to the message.
    pub response: Response,
    /// The endpoint whose connection has the QPN of the sender. The peer may have lost that
    /// connection, so that the caller calls [`stale_peer`](crate::cm::Connection::stale_peer) on
    /// it.
    pub stale: Option<E>,
}

impl<E> Refused<E> {
    /// Creates the consequences of a message that is dropped.
    pub(super) const fn drop(why: Dropped) -> Self {
        Self {
            response: Response::Drop(why),
            stale: None,
        }
    }
}

/// Enters the ids in a REP for `endpoint`, after [`judge`](super::judge) has returned
/// [`Claim`](super::Verdict::Claim).
///
/// On success, the connection receives the REP. If the QPN belongs to another connection, the REP
/// is marked as refused in `connection`, so that copies of it are refused, too.
///
/// # Errors
///
/// The consequences of a REP that the connection must not receive.
pub fn claim_rep<E, B: RetransmitMemory>(
    table: &mut impl RemoteTable<E>,
    ids: &RemoteIds,
    endpoint: &E,
    connection: &mut Connection<B>,
    rep: &Rep<'_>,
) -> Result<(), Refused<E>> {
    claim(table, ids, endpoint).map_err(|conflict| match conflict {
        Conflict::Duplicate => Refused::drop(Dropped::Mismatch),
        Conflict::Stale(other) => {
            connection.refuse_rep(rep);
            let answer = Answer::reject_rep(rep, Reason::STALE_CONN);
            Refused {
                response: Response::Answer(answer),
                stale: Some(other),
            }
        }
    })
}
