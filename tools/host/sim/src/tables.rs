// SPDX-License-Identifier: GPL-2.0

//! The tables of a node, as the module keeps them (`rust/cm/ids.rs` and `rust/cm/remote.rs`).

use std::collections::BTreeMap;

use cmproto::{addr::Gid, ids::CommIdKey};

/// Number of an endpoint, never used twice in a simulation.
pub type EpId = u32;

/// Communication ids: what a peer's message is looked up by.
#[derive(Debug)]
pub struct CommIds {
    key: [u64; 2],
    next: u32,
    /// Ids that are taken; those that find nothing yet are reserved.
    table: BTreeMap<u32, Option<EpId>>,
}

impl CommIds {
    pub fn new(key: [u64; 2]) -> Self {
        Self {
            key,
            next: 0,
            table: BTreeMap::new(),
        }
    }

    /// Reserves the next id that is free.
    pub fn reserve(&mut self) -> u32 {
        loop {
            let id = CommIdKey::new(self.key).permute(self.next);
            self.next += 1;
            if id != 0 && !self.table.contains_key(&id) {
                self.table.insert(id, None);
                return id;
            }
        }
    }

    /// Makes the id find `ep`.
    pub fn publish(&mut self, id: u32, ep: EpId) {
        if let Some(entry) = self.table.get_mut(&id) {
            *entry = Some(ep);
        }
    }

    pub fn get(&self, id: u32) -> Option<EpId> {
        *self.table.get(&id)?
    }

    pub fn free(&mut self, id: u32) {
        self.table.remove(&id);
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }
}

/// A peer: the GUID that it names, and the GID that its messages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    pub guid: u64,
    pub gid: Gid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    CommId,
    Qpn,
}

/// A name that belongs to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    peer: Peer,
    kind: Kind,
    value: u32,
}

/// The entries of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Tracked(Key, Key);

/// What [`Remotes::track`] found.
#[derive(Debug)]
pub enum Track {
    /// Both names were free and are now the endpoint's.
    New(Tracked),
    /// The communication id belongs to some endpoint already.
    Duplicate,
    /// The queue pair belongs to this endpoint's connection.
    Stale(EpId),
}

/// The peers' communication ids and queue pairs that are in use.
#[derive(Debug, Default)]
pub struct Remotes {
    table: BTreeMap<Key, EpId>,
}

impl Remotes {
    /// Enters the peer's communication id and queue pair for `ep`, if both are free.
    pub fn track(&mut self, peer: Peer, comm_id: u32, qpn: u32, ep: EpId) -> Track {
        let key = |kind, value| Key { peer, kind, value };
        let id_key = key(Kind::CommId, comm_id);
        let qpn_key = key(Kind::Qpn, qpn);
        if self.table.contains_key(&id_key) {
            return Track::Duplicate;
        }
        if let Some(owner) = self.table.get(&qpn_key) {
            return Track::Stale(*owner);
        }
        self.table.insert(id_key, ep);
        self.table.insert(qpn_key, ep);
        Track::New(Tracked(id_key, qpn_key))
    }

    fn find(&self, peer: Peer, kind: Kind, value: u32) -> Option<EpId> {
        self.table.get(&Key { peer, kind, value }).copied()
    }

    pub fn by_comm_id(&self, peer: Peer, comm_id: u32) -> Option<EpId> {
        self.find(peer, Kind::CommId, comm_id)
    }

    pub fn by_qpn(&self, peer: Peer, qpn: u32) -> Option<EpId> {
        self.find(peer, Kind::Qpn, qpn)
    }

    /// Removes the entries if they are `ep`'s.
    pub fn untrack(&mut self, tracked: Tracked, ep: EpId) {
        let Tracked(id_key, qpn_key) = tracked;
        for key in [id_key, qpn_key] {
            if self.table.get(&key) == Some(&ep) {
                self.table.remove(&key);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }
}
