// SPDX-License-Identifier: GPL-2.0

//! The names of a peer, which belong to one connection at a time.
//!
//! A request whose (CA GUID, communication id) is known is a duplicate; one whose (CA GUID, QPN) is
//! known comes from a peer that lost the old connection, which is then stale (IBTA 12.9.8.3.1).

use super::{
    answer::{Answer, Response},
    tables::{RemoteIds, RemoteTable},
};
use crate::{cm::Connection, dropped::Dropped, reject::Reason, wire::Rep};

/// Whose the names of a peer are that cannot be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict<E> {
    /// The communication id belongs to some endpoint already.
    Duplicate,
    /// The queue pair belongs to this endpoint's connection.
    Stale(E),
}

/// Enters the names of a peer for `endpoint`: both or neither.
///
/// # Errors
///
/// Whose they are.
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

/// Why a request or a reply has no effect, and what is to be done about it, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<E> {
    /// What the node does about the message.
    pub response: Response,
    /// The endpoint whose connection has the queue pair that the message's sender claims. Its peer may
    /// have lost that connection, and is asked with
    /// [`stale_peer`](crate::cm::Connection::stale_peer).
    pub stale: Option<E>,
}

impl<E> Refused<E> {
    /// A message that is dropped.
    pub(super) const fn drop(why: Dropped) -> Self {
        Self {
            response: Response::Drop(why),
            stale: None,
        }
    }
}

/// Enters the names in a REP for `endpoint`, for whose connection [`judge`](super::judge) has found it
/// to be the first. If that succeeds, the connection receives it. If not, the connection knows, so that
/// copies of the REP fare no better.
///
/// # Errors
///
/// What to do about the REP instead.
pub fn claim_rep<E>(
    table: &mut impl RemoteTable<E>,
    ids: &RemoteIds,
    endpoint: &E,
    connection: &mut Connection,
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
