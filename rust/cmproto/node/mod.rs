// SPDX-License-Identifier: GPL-2.0

//! The decisions of a node: the endpoint that a message is for, and the response to a message that
//! is for none (IBTA volume 1, 12.9 and 12.11).
//!
//! A [`Connection`](crate::cm::Connection) or a [`Resolution`](crate::sidr::Resolution) knows only
//! itself. A node has many of them, and tables to find them. The caller owns the tables
//! ([`Tables`], [`RemoteTable`]) and the endpoints, with locks of its choice; the decisions are
//! made here, so that the module and the programs that test the protocol on a host make the same
//! ones.
//!
//! # The path of a message
//!
//! 1. [`route`] finds the endpoint that the message names, or returns the response of the node.
//! 2. [`judge`] decides, with the lock of the endpoint held, whether the endpoint's connection or
//!    resolution accepts the message. A message from any other sender than the peer is dropped.
//! 3. The first REP of a connection has the peer's ids. [`claim_rep`] enters them into the tables,
//!    and detects duplicates and stale connections. The first RTU confirms the ids in the REQ, of
//!    which [`confirm`] enters the QPN.
//! 4. A REQ or SIDR_REQ names no endpoint. [`request`] and [`sidr_request`] find out whether it is
//!    a duplicate, and otherwise whether it may be offered to a listener. If it may, an endpoint
//!    is created for it ([`Acceptor`]).
//! 5. A message that no endpoint accepts results in a [`Response`]: it is dropped for a reason, or
//!    answered with an [`Answer`], as far as the [`AnswerBudget`] allows.
//! 6. A request or an answer that waits for the address of its sender has one of the
//!    [`ResolutionPlaces`].
//! 7. The first RTU is a [`Confirmation`] by its source, too, which is sent [`Unasked`] messages
//!    from then on as the state machines want to, and whose requests have a high [`Priority`] at a
//!    listener whose backlog is full.

mod acceptor;
mod answer;
mod budget;
mod claim;
mod offer;
mod priority;
mod request;
mod resolution;
mod route;
mod sidr;
mod source;
mod tables;
mod verdict;

#[cfg(test)]
mod tests;

pub use self::{
    acceptor::{Acceptor, Entry, KnownSidr, ReqAcceptor, SidrAcceptor},
    answer::{Answer, Response},
    budget::AnswerBudget,
    claim::{claim, claim_rep, confirm, Conflict, Refused},
    offer::{Admission, Declined, Offer},
    priority::{Asker, Priority, SeenRequest},
    request::{request, Refusal, Request, RequestEnd},
    resolution::{ResolutionPlaces, ResolutionProgress},
    route::{route, Route},
    sidr::{sidr_request, SidrRequest},
    source::{Confirmation, Unasked},
    tables::{Peer, RemoteIds, RemoteKey, RemoteTable, Tables},
    verdict::{judge, nobody, ExchangeView, Verdict},
};
