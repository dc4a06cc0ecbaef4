// SPDX-License-Identifier: GPL-2.0

//! What a node needs to take requests.

use super::tables::{RemoteIds, RemoteTable};
use crate::{addr::Gid, cm::QpType, errno::Errno, sidr::Resolution};

/// One request that has come in, and what its node has to take it. It is asked in the order of
/// [`request`](super::request) or [`sidr_request`](super::sidr_request), so that what is cheap comes
/// first.
pub trait Passive {
    /// A handle of an endpoint.
    type Endpoint;
    /// Who hears the request.
    type Listener;

    /// Finds out how the sender of the request is answered; false if the request was for an address that
    /// the node does not have.
    fn find_sender(&mut self) -> bool;

    /// Whether anybody listens for the service, whatever the address.
    fn is_served(&self, service_id: u64) -> bool;

    /// Finds out who hears the request.
    ///
    /// # Errors
    ///
    /// `EINVAL` if nobody does.
    fn listener(&mut self) -> Result<Self::Listener, Errno>;

    /// Whether the listener's consumer would take one more request now, be it to be parked.
    ///
    /// # Errors
    ///
    /// Those of [`Backlog::room`](crate::ucma::backlog::Backlog::room), or what else the consumer says.
    fn room(&mut self, listener: &Self::Listener) -> Result<(), Errno>;

    /// Creates an endpoint for the request, which no message finds yet.
    ///
    /// # Errors
    ///
    /// Those of the node; `EINVAL` if the request is not one that the listener could accept.
    fn create(&mut self, listener: &Self::Listener) -> Result<Self::Endpoint, Errno>;

    /// Ends an endpoint that was created in vain. Its peer is told nothing.
    fn discard(&mut self, endpoint: Self::Endpoint);
}

/// What a node needs to take a REQ.
pub trait PassiveReq: Passive + RemoteTable<<Self as Passive>::Endpoint> {
    /// Whether the port that the REQ came in at has a partition.
    fn has_pkey(&self, pkey: u16) -> bool;

    /// Whether connections may have alternate paths, which on RoCE there are none of.
    fn has_alternate_paths(&self) -> bool;

    /// The first GID of the port that the REQ came in at.
    fn port_gid(&self) -> Option<Gid>;

    /// The GID that the REQ was sent to.
    fn local_gid(&self) -> Option<Gid>;

    /// Whether queue pairs of this type may be connected to the listener.
    fn takes_qp(&self, listener: &Self::Listener, qp_type: QpType) -> bool;

    /// Finds out whether the sender can be reached: now, or after its address is resolved.
    ///
    /// # Errors
    ///
    /// It cannot, or there are too many to be resolved.
    fn reach(&mut self) -> Result<(), Errno>;

    /// Makes messages find the endpoint, which has these names of its peer now. False if it has lost its
    /// device meanwhile; then it has given them back.
    fn publish(&mut self, endpoint: &Self::Endpoint, ids: &RemoteIds) -> bool;
}

/// What is known of a SIDR_REQ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // It lives on the stack, for one call.
pub enum KnownSidr<E> {
    /// Nothing: it is new.
    Nothing,
    /// The user of this endpoint has not answered.
    Asked(E),
    /// This was the answer.
    Answered(Resolution),
}

/// What became of an endpoint that was to stand for a SIDR_REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It does.
    New,
    /// Another endpoint does already.
    Duplicate,
    /// It has lost its device meanwhile, and stands for nothing.
    Gone,
}

/// What a node needs to take a SIDR_REQ.
pub trait PassiveSidr: Passive {
    /// Looks up whether a request with the number of this one has come from its sender before.
    fn known(&self) -> KnownSidr<Self::Endpoint>;

    /// Whether datagram queue pairs may serve for the listener.
    fn takes_datagrams(&self, listener: &Self::Listener) -> bool;

    /// Makes the endpoint stand for the request, in place of an answer to another one with its number.
    fn enter(&mut self, endpoint: &Self::Endpoint) -> Entry;
}
