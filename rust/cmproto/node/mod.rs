// SPDX-License-Identifier: GPL-2.0

//! A node of the communication manager: which of its endpoints a message is for, and what becomes of
//! a message that is for none (IBTA volume 1, 12.9 and 12.11).
//!
//! A [`Connection`](crate::cm::Connection) or a [`Resolution`](crate::sidr::Resolution) knows only
//! itself. A node has many of them, and tables by which they are found. The caller keeps these
//! ([`Tables`], [`RemoteTable`]) and its endpoints, under whatever locks it likes; the decisions are
//! here. So the module and the programs that test the protocol on a host decide alike.
//!
//! # The way of a message
//!
//! 1. [`route`] finds the endpoint that the message names, or says what the node itself does about it.
//! 2. [`judge`] decides, under the lock of the endpoint, whether the endpoint's conversation takes the
//!    message: from a stranger it takes none.
//! 3. The first REP of a connection brings the peer's names. [`claim_rep`] enters them into the
//!    tables, and finds duplicates and stale connections.
//! 4. A REQ or SIDR_REQ names no endpoint. [`request`] and [`sidr_request`] find out whether it came
//!    before, and else whether it may become a request to a listener, for which they have an endpoint
//!    created ([`Passive`]).
//! 5. What nobody takes is a [`Response`]: dropped for a reason, or answered with an [`Answer`].

mod answer;
mod claim;
mod passive;
mod request;
mod route;
mod sidr;
mod tables;
mod verdict;

#[cfg(test)]
mod tests;

pub use self::{
    answer::{Answer, Response},
    claim::{claim, claim_rep, Conflict, Refused},
    passive::{Entry, KnownSidr, Passive, PassiveReq, PassiveSidr},
    request::{request, Refusal, Request, Unwanted},
    route::{route, Route},
    sidr::{sidr_request, SidrRequest},
    tables::{Peer, RemoteIds, RemoteKey, RemoteTable, Tables},
    verdict::{judge, nobody, Conversation, Verdict},
};
