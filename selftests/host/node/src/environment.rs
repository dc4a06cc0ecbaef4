// SPDX-License-Identifier: GPL-2.0

//! The surroundings of a node: its network, its clock and its users.

use cmproto::{
    cm,
    cma::Upcall,
    errno::Errno,
    node::RemoteIds,
    origin::Origin,
    time::Instant,
    wire::{Attribute, Header, Message, MAD_LEN},
};

use crate::{endpoint::Endpoint, node::Node, tables::EpId};

/// A message that has come in.
pub struct Arrived<'a> {
    pub origin: Origin,
    pub mad: &'a [u8; MAD_LEN],
    pub header: &'a Header,
    pub message: &'a Message<'a>,
}

/// Why a state machine takes a step.
pub enum Cause<'a> {
    /// The endpoint was created for a request.
    New,
    /// A call of the user.
    Verb,
    /// The user rejects, or a request is rejected in its place.
    Reject,
    /// The request is parked.
    Park,
    /// The endpoint is destroyed.
    Destroy,
    Timer,
    /// The peer claims to have forgotten the connection.
    StalePeer,
    Message(&'a Arrived<'a>),
}

/// The surroundings of a node.
///
/// All but [`timer`](Self::timer) and [`watch`](Self::watch) are given the node, which they are a
/// part of.
pub trait Environment: Sized {
    /// The data that is kept with each endpoint.
    type Watch;
    /// The data that is remembered from before a step.
    type Before: Default;

    /// Creates what is kept with the endpoint of a received request.
    fn watch(&mut self, request: &Arrived<'_>) -> Self::Watch;

    /// Returns whether the listener's user has not taken the request of an endpoint yet.
    fn is_waiting(endpoint: &Endpoint<Self::Watch>) -> bool;

    /// Sends a message: that of the endpoint `from`, or an answer of the node itself.
    fn send(
        node: &mut Node<Self>,
        from: Option<EpId>,
        to: Origin,
        kind: Attribute,
        mad: &[u8; MAD_LEN],
    );

    /// Calls [`Node::offer`] when the sender's link address is known. `ep` is new.
    fn reach(node: &mut Node<Self>, ep: EpId, request: &Arrived<'_>);

    /// Tells the listener's user of a request, which comes with `request` if it was not delayed.
    fn offer(node: &mut Node<Self>, ep: EpId, request: Option<&Arrived<'_>>);

    /// Takes the event of a connection, or of a resolution, with what the user of the endpoint is to
    /// be told, if anything.
    fn deliver(
        node: &mut Node<Self>,
        ep: EpId,
        event: Option<cm::Event>,
        upcall: Option<&Upcall>,
        cause: &Cause<'_>,
    );

    /// Calls [`Node::timeout`] at `deadline`.
    fn timer(&mut self, _ep: EpId, _deadline: Instant) {}

    /// Sees an endpoint before its state machine takes a step.
    fn before(_node: &mut Node<Self>, _ep: EpId, _cause: &Cause<'_>) -> Self::Before {
        Self::Before::default()
    }

    /// Sees an endpoint after a step, all of whose actions were carried out.
    fn after(
        _node: &mut Node<Self>,
        _ep: EpId,
        _cause: &Cause<'_>,
        _before: Self::Before,
        _result: Result<(), Errno>,
    ) {
    }

    /// Sees that an endpoint does not send a message, as its peer has not asked for it.
    fn withheld(_node: &mut Node<Self>, _ep: EpId) {}

    /// Sees the ids of a peer that a connection is about to have.
    fn claim(_node: &mut Node<Self>, _ids: &RemoteIds) {}
}
