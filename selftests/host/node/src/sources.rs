// SPDX-License-Identifier: GPL-2.0

//! Sources of requests, in slots as in `rust/table/sources.rs`.

use std::collections::BTreeMap;

use cmproto::{
    node::{Confirmation, Priority, SeenRequest, Unasked},
    origin::Origin,
    time::Instant,
};

use crate::tables::hash_key;

/// The sources of requests of a node.
///
/// Slots that nothing has happened to are not stored.
#[derive(Debug)]
pub struct Sources {
    key: [u64; 2],
    slots: BTreeMap<usize, (Confirmation, Unasked)>,
    /// The last requests that found a backlog full.
    requests: BTreeMap<usize, SeenRequest>,
}

impl Sources {
    /// Creates an empty table. The hash of sources depends on `key`.
    pub(crate) fn new(key: [u64; 2]) -> Self {
        Self {
            key: hash_key(key),
            slots: BTreeMap::new(),
            requests: BTreeMap::new(),
        }
    }

    /// Returns the hash of a source, and its slot.
    fn slot(&mut self, source: &Origin) -> (u64, &mut (Confirmation, Unasked)) {
        let hash = source.hash(self.key);
        let slot = self.slots.entry(Confirmation::slot(hash));
        (hash, slot.or_default())
    }

    /// Records that the source has confirmed a request.
    pub(crate) fn confirm(&mut self, source: &Origin, now: Instant) {
        let (hash, (confirmation, _)) = self.slot(source);
        *confirmation = Confirmation::new(hash, now);
    }

    /// Returns whether the source may be sent a message that it has not asked for.
    pub(crate) fn may_send_unasked(&mut self, source: &Origin, now: Instant) -> bool {
        let (hash, (confirmation, unasked)) = self.slot(source);
        let next = unasked.add(*confirmation, hash, now);
        *unasked = next.unwrap_or(*unasked);
        next.is_some()
    }

    /// Returns the priority of a request that the source sends with this communication id to a
    /// listener whose backlog is full, and remembers the request.
    pub(crate) fn priority(&mut self, source: &Origin, comm_id: u32, now: Instant) -> Priority {
        let (hash, (confirmation, _)) = self.slot(source);
        let confirmation = *confirmation;
        let (at, request) = SeenRequest::new(hash, comm_id, now);
        let before = self.requests.insert(at, request).unwrap_or_default();
        request.priority(before, confirmation, hash, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cmproto::{addr::Gid, time::Duration};

    fn source(n: u32) -> Origin {
        let [_, b, c, d] = n.to_be_bytes();
        Origin::of_gid(Gid::from_v4([10, b, c, d]))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn neighbours_are_told_apart_whatever_the_key_of_the_node() {
        for seed in 0..200 {
            let mut sources = Sources::new([seed, seed << 32]);
            sources.confirm(&source(1), at(0));
            for ms in 0..100 {
                assert!(sources.may_send_unasked(&source(1), at(ms)));
            }
            // Nobody else has confirmed anything, and so is sent three messages.
            for n in 2..6 {
                let sent = (0..100).filter(|i| sources.may_send_unasked(&source(n), at(i * 100)));
                assert!(sent.count() <= 3, "{seed} {n}");
            }
        }
    }

    #[test]
    fn neighbours_fill_the_slots_evenly() {
        let mut sources = Sources::new([0, 0]);
        (0..4_096).for_each(|n| sources.confirm(&source(n), at(0)));
        // Random numbers fill 1 - 1/e of them.
        assert!(sources.slots.len() > 2_200);
    }

    #[test]
    fn two_sources_of_a_slot_share_what_they_are_sent() {
        let mut sources = Sources::new([1, 1]);
        let slot = |of: &Sources, n| Confirmation::slot(source(n).hash(of.key));
        let other = (2..1_000_000).find(|n| slot(&sources, *n) == slot(&sources, 1));
        let other = other.expect("there are more sources than slots");
        let both = [1, other].map(source);
        let sent = |sources: &mut Sources, from: u64, to| {
            let offered = (from..to).flat_map(|i| both.map(|source| (source, at(i * 100))));
            let sent = offered.filter(|(source, now)| sources.may_send_unasked(source, *now));
            sent.count()
        };
        assert_eq!(sent(&mut sources, 0, 1_000), 3);
        // The one that was the last to confirm a request is sent all, the other one nothing.
        sources.confirm(&both[0], at(100_000));
        sources.confirm(&both[1], at(100_000));
        assert_eq!(sent(&mut sources, 1_000, 1_100), 100);
    }
}
