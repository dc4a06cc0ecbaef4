// SPDX-License-Identifier: GPL-2.0

//! The tables of a node, as in `rust/table`.

use std::collections::BTreeMap;

use cmproto::{
    ids::CommIdKey,
    node::{self, RemoteIds, RemoteKey, RemoteTable},
    origin::Origin,
};

/// Number of an endpoint or a listener, never used twice.
pub type EpId = u32;

/// Returns the key of a hash of peers of the node with this key.
///
/// A hash tells peers apart only if its key is like two random numbers, which the module draws. The
/// keys of nodes are small numbers, such as a seed.
pub(crate) fn hash_key(key: [u64; 2]) -> [u64; 2] {
    // The output function of SplitMix64.
    let mixed = |n: u64| {
        let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    };
    let [first, second] = key;
    let first = mixed(first.wrapping_add(0x9e37_79b9_7f4a_7c15));
    [first, mixed(first ^ second)]
}

/// Communication ids, which messages of the peers are looked up by.
#[derive(Debug)]
pub struct CommIds {
    key: [u64; 2],
    next: u32,
    /// Ids that are taken; those that find nothing yet are reserved.
    table: BTreeMap<u32, Option<EpId>>,
}

impl CommIds {
    /// Creates a table whose ids depend on `key`.
    pub fn new(key: [u64; 2]) -> Self {
        Self {
            key,
            next: 0,
            table: BTreeMap::new(),
        }
    }

    /// Reserves the next id that is free.
    pub(crate) fn reserve(&mut self) -> u32 {
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
    pub(crate) fn publish(&mut self, id: u32, ep: EpId) {
        if let Some(entry) = self.table.get_mut(&id) {
            *entry = Some(ep);
        }
    }

    /// Returns the endpoint that has the id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<EpId> {
        *self.table.get(&id)?
    }

    pub(crate) fn free(&mut self, id: u32) {
        self.table.remove(&id);
    }

    /// Returns the number of ids that are taken.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether no id is taken.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// The peers' communication ids and queue pairs that are in use.
#[derive(Debug, Default)]
pub struct RemoteIdTable(BTreeMap<RemoteKey, EpId>);

impl RemoteIdTable {
    /// Removes the ids of a peer if they are `ep`'s.
    pub(crate) fn release(&mut self, ids: &RemoteIds, ep: EpId) {
        self.leave(&ids.comm_id_key(), &ep);
        self.leave(&ids.qpn_key(), &ep);
    }

    /// Returns the number of entries: two for each connection that is confirmed, one for others.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl RemoteTable<EpId> for RemoteIdTable {
    #[inline]
    fn owner(&self, key: &RemoteKey) -> Option<EpId> {
        self.0.get(key).copied()
    }

    fn enter(&mut self, key: RemoteKey, ep: &EpId) -> Option<EpId> {
        let owner = self.owner(&key);
        if owner.is_none() {
            self.0.insert(key, *ep);
        }
        owner
    }

    fn leave(&mut self, key: &RemoteKey, ep: &EpId) {
        if self.0.get(key) == Some(ep) {
            self.0.remove(key);
        }
    }
}

/// All tables of a node that messages are looked up in.
#[derive(Debug)]
pub struct Tables {
    pub comm_ids: CommIds,
    pub remote_ids: RemoteIdTable,
    /// The endpoints of SIDR_REQs that wait for an answer, or whose answer is remembered, by
    /// sender and request id.
    pub sidr_requests: BTreeMap<(Origin, u32), EpId>,
}

impl node::Tables for Tables {
    type Endpoint = EpId;

    fn by_comm_id(&self, comm_id: u32) -> Option<EpId> {
        self.comm_ids.get(comm_id)
    }

    fn by_remote(&self, key: &RemoteKey) -> Option<EpId> {
        self.remote_ids.owner(key)
    }
}
