// SPDX-License-Identifier: GPL-2.0

//! The tables that a node finds its endpoints by.

use crate::origin::Origin;

/// A peer, as far as its messages tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The GUID of its channel adapter, as it says.
    pub guid: u64,
    /// Where its messages come from. It counts, too, so that nobody takes the names of others.
    pub origin: Origin,
}

/// The kind of a name that a peer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    CommId,
    Qpn,
}

/// A communication id or a queue pair number of a peer.
///
/// Keys are compared field by field. What differs most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteKey {
    value: u32,
    kind: Kind,
    peer: Peer,
}

impl RemoteKey {
    /// The communication id `comm_id` of `peer`.
    pub const fn comm_id(peer: Peer, comm_id: u32) -> Self {
        Self {
            value: comm_id,
            kind: Kind::CommId,
            peer,
        }
    }

    /// The queue pair `qpn` of `peer`.
    pub const fn qpn(peer: Peer, qpn: u32) -> Self {
        Self {
            value: qpn,
            kind: Kind::Qpn,
            peer,
        }
    }

    /// The peer that uses the name.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The communication id or queue pair number.
    pub const fn value(&self) -> u32 {
        self.value
    }

    /// Whether it is the number of a queue pair.
    pub fn is_qpn(&self) -> bool {
        self.kind == Kind::Qpn
    }
}

/// The names of a peer that belong to one connection as long as that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteIds {
    /// The peer.
    pub peer: Peer,
    /// Its communication id.
    pub comm_id: u32,
    /// Its queue pair, or EE context.
    pub qpn: u32,
}

impl RemoteIds {
    /// The key of the communication id.
    pub const fn comm_id_key(&self) -> RemoteKey {
        RemoteKey::comm_id(self.peer, self.comm_id)
    }

    /// The key of the queue pair.
    pub const fn qpn_key(&self) -> RemoteKey {
        RemoteKey::qpn(self.peer, self.qpn)
    }
}

/// The tables of a node, to look something up in.
pub trait Tables {
    /// A handle of an endpoint.
    type Endpoint;

    /// Finds the endpoint that has a communication id of this node: that of a connection, or the
    /// request id of a SIDR_REQ.
    fn by_comm_id(&self, comm_id: u32) -> Option<Self::Endpoint>;

    /// Finds the endpoint whose connection has a name of a peer.
    fn by_remote(&self, key: &RemoteKey) -> Option<Self::Endpoint>;
}

/// The table of the peers' names, to enter some. `E` is a handle of an endpoint.
pub trait RemoteTable<E> {
    /// Finds the endpoint whose connection has a name of a peer.
    fn owner(&self, key: &RemoteKey) -> Option<E>;

    /// Enters `key` for `endpoint`. If another endpoint has it, returns that one and changes nothing.
    fn enter(&mut self, key: RemoteKey, endpoint: &E) -> Option<E>;

    /// Takes `key` out, if it is `endpoint`'s.
    fn leave(&mut self, key: &RemoteKey, endpoint: &E);
}
