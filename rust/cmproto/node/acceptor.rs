// SPDX-License-Identifier: GPL-2.0

//! Interfaces that a node implements to accept requests.

use super::{
    offer::Declined,
    tables::{RemoteIds, RemoteTable},
};
use crate::{addr::Gid, qp::QpType, sidr::Resolution};

/// A received request, with access to the node that is to accept it.
///
/// The methods are called in the order that [`request`](super::request) and
/// [`sidr_request`](super::sidr_request) need, so that cheap checks come first.
pub trait Acceptor {
    /// A handle of an endpoint.
    type Endpoint;
    /// A listener that the request matches.
    type Listener;

    /// Finds the path by which the sender of the request is answered. Returns false if the request
    /// was sent to an address that the node does not have.
    fn find_reply_path(&mut self) -> bool;

    /// Returns whether there is a listener for the service id on any address.
    fn is_served(&self, service_id: u64) -> bool;

    /// Finds the listener that the request matches, if there is one.
    fn listener(&mut self) -> Option<Self::Listener>;

    /// Checks whether the listener's consumer would accept one more request now, even if only to
    /// park it.
    fn check_backlog(&mut self, listener: &Self::Listener) -> Result<(), Declined>;

    /// Creates an endpoint for the request. Messages do not find it yet.
    ///
    /// # Errors
    ///
    /// [`Declined::NoRoom`] if there is no memory, [`Declined::Refused`] if the listener could not
    /// accept the request.
    fn create(&mut self, listener: &Self::Listener) -> Result<Self::Endpoint, Declined>;

    /// Ends an endpoint that is not needed after all. The peer is told nothing.
    fn discard(&mut self, endpoint: Self::Endpoint);
}

/// The functions of a node that only a REQ needs.
pub trait ReqAcceptor: Acceptor + RemoteTable<<Self as Acceptor>::Endpoint> {
    /// Returns whether the P_Key is in the table of the port that received the REQ.
    fn has_pkey(&self, pkey: u16) -> bool;

    /// Returns whether connections may have alternate paths. On RoCE they may not.
    fn has_alternate_paths(&self) -> bool;

    /// Returns the first GID of the port that received the REQ.
    fn port_gid(&self) -> Option<Gid>;

    /// Returns the GID that the REQ was sent to.
    fn local_gid(&self) -> Option<Gid>;

    /// Returns whether queue pairs of this type may be connected to the listener.
    fn takes_qp(&self, listener: &Self::Listener, qp_type: QpType) -> bool;

    /// Finds the neighbour that leads to the sender, whose address is known or will be resolved.
    /// Returns false if it cannot be resolved because too many addresses are.
    fn find_neighbour(&mut self) -> bool;

    /// Makes the endpoint, for which the communication id of its peer was entered, visible to
    /// messages. Returns false if the endpoint has lost its device meanwhile; the id is removed
    /// again then.
    fn publish(&mut self, endpoint: &Self::Endpoint, ids: &RemoteIds) -> bool;
}

/// The result of the search for an earlier SIDR_REQ with the same request id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A value lives on the stack, for one call.
pub enum KnownSidr<E> {
    /// There was none.
    Nothing,
    /// There was one, for this endpoint, whose user has not responded yet.
    Pending(E),
    /// There was one, which was answered by this resolution.
    Answered(Resolution),
}

/// The result of entering an endpoint for a SIDR_REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The endpoint was entered.
    New,
    /// Another endpoint is there already.
    Duplicate,
    /// The endpoint has lost its device meanwhile, and was not entered.
    Gone,
}

/// The functions of a node that only a SIDR_REQ needs.
pub trait SidrAcceptor: Acceptor {
    /// Finds an earlier request with the same request id from the same sender.
    fn known(&self) -> KnownSidr<Self::Endpoint>;

    /// Returns whether the listener accepts unreliable datagram queue pairs.
    fn takes_datagrams(&self, listener: &Self::Listener) -> bool;

    /// Enters the endpoint for the request. An answer to another request with this request id is
    /// removed.
    fn enter(&mut self, endpoint: &Self::Endpoint) -> Entry;
}
