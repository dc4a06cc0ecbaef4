// SPDX-License-Identifier: GPL-2.0

//! Tables by which a node finds its endpoints.

use crate::{
    cm::{Connection, RetransmitMemory},
    origin::Origin,
};

/// A peer, as identified by its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The CA GUID in the peer's messages.
    pub guid: u64,
    /// The address that the peer's messages come from. It is a part of the identity, so that no
    /// peer can use the ids of another one by sending its GUID.
    pub origin: Origin,
}

/// The kind of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    CommId,
    Qpn,
}

/// The key of a peer's communication id or QPN.
///
/// Keys are compared field by field. The field that differs most often is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteKey {
    value: u32,
    kind: Kind,
    peer: Peer,
}

impl RemoteKey {
    /// Creates the key of the communication id `comm_id` of `peer`.
    pub const fn comm_id(peer: Peer, comm_id: u32) -> Self {
        Self {
            value: comm_id,
            kind: Kind::CommId,
            peer,
        }
    }

    /// Creates the key of the queue pair `qpn` of `peer`.
    pub const fn qpn(peer: Peer, qpn: u32) -> Self {
        Self {
            value: qpn,
            kind: Kind::Qpn,
            peer,
        }
    }

    /// Returns the peer that has the id.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the communication id or QPN.
    pub const fn value(&self) -> u32 {
        self.value
    }

    /// Returns whether the id is a QPN.
    pub fn is_qpn(&self) -> bool {
        self.kind == Kind::Qpn
    }
}

/// The ids of a peer, which belong to one connection as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteIds {
    /// The peer.
    pub peer: Peer,
    /// The communication id of the peer.
    pub comm_id: u32,
    /// The QPN of the peer, or its end-to-end context.
    pub qpn: u32,
}

impl RemoteIds {
    /// Returns the ids of the connection's peer, whose messages come from `origin`. They are known
    /// from its REQ or REP.
    pub fn of<B: RetransmitMemory>(connection: &Connection<B>, origin: Origin) -> Self {
        Self {
            peer: Peer {
                guid: connection.remote_ca_guid(),
                origin,
            },
            comm_id: connection.remote_comm_id(),
            qpn: connection.remote_qpn(),
        }
    }

    /// Returns the key of the communication id.
    pub const fn comm_id_key(&self) -> RemoteKey {
        RemoteKey::comm_id(self.peer, self.comm_id)
    }

    /// Returns the key of the QPN.
    pub const fn qpn_key(&self) -> RemoteKey {
        RemoteKey::qpn(self.peer, self.qpn)
    }
}

/// Lookup in the tables of a node.
pub trait Tables {
    /// A handle of an endpoint.
    type Endpoint;

    /// Finds the endpoint with a communication id of this node, which is that of a connection or
    /// the request id of a SIDR_REQ.
    fn by_comm_id(&self, comm_id: u32) -> Option<Self::Endpoint>;

    /// Finds the endpoint whose connection has an id of a peer.
    fn by_remote(&self, key: &RemoteKey) -> Option<Self::Endpoint>;
}

/// The table of the peers' ids, to change it. `E` is a handle of an endpoint.
pub trait RemoteTable<E> {
    /// Finds the endpoint whose connection has an id of a peer.
    fn owner(&self, key: &RemoteKey) -> Option<E>;

    /// Enters `key` for `endpoint`. If another endpoint has the key, returns that one and changes
    /// nothing.
    fn enter(&mut self, key: RemoteKey, endpoint: &E) -> Option<E>;

    /// Removes `key`, which was just entered for `endpoint`.
    fn leave(&mut self, key: &RemoteKey, endpoint: &E);
}
