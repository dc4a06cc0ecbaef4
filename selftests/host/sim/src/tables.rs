// SPDX-License-Identifier: GPL-2.0

//! The tables of a node, as the module keeps them (`rust/table/comm_ids.rs` and `rust/table/remote_ids.rs`).

use std::collections::BTreeMap;

use cmproto::{
    ids::CommIdKey,
    node::{RemoteIds, RemoteKey, RemoteTable},
};

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

/// The peers' communication ids and queue pairs that are in use.
#[derive(Debug, Default)]
pub struct Remotes {
    table: BTreeMap<RemoteKey, EpId>,
}

impl Remotes {
    pub fn get(&self, key: &RemoteKey) -> Option<EpId> {
        self.table.get(key).copied()
    }

    /// Removes the entries if they are `ep`'s.
    pub fn release_remote_ids(&mut self, ids: &RemoteIds, ep: EpId) {
        self.leave(&ids.comm_id_key(), &ep);
        self.leave(&ids.qpn_key(), &ep);
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }
}

impl RemoteTable<EpId> for Remotes {
    fn owner(&self, key: &RemoteKey) -> Option<EpId> {
        self.get(key)
    }

    fn enter(&mut self, key: RemoteKey, ep: &EpId) -> Option<EpId> {
        let owner = self.get(&key);
        if owner.is_none() {
            self.table.insert(key, *ep);
        }
        owner
    }

    fn leave(&mut self, key: &RemoteKey, ep: &EpId) {
        if self.table.get(key) == Some(ep) {
            self.table.remove(key);
        }
    }
}
