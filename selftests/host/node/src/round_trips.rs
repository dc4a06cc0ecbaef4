// SPDX-License-Identifier: GPL-2.0

//! Round-trip times of peers, as in `rust/table/round_trips.rs`.

use std::collections::BTreeMap;

use cmproto::{
    cm::{RetryPolicy, RoundTrip, Waiting},
    origin::Origin,
    time::{Duration, Instant},
    wire::Attribute,
};

use crate::tables::hash_key;

/// The statistics of the peers of a slot.
#[derive(Clone, Debug, Default)]
struct Slot {
    trip: RoundTrip,
    last_received: Instant,
    in_flight: u32,
    /// For each kind of request, the time when the latest one that was answered was sent.
    latest: BTreeMap<Attribute, Instant>,
}

/// The round-trip times of all peers of a node.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    key: [u64; 2],
    slots: BTreeMap<u8, Slot>,
}

impl RoundTrips {
    /// Creates the table of a node with this key.
    pub fn new(key: [u64; 2]) -> Self {
        Self {
            key: hash_key(key),
            slots: BTreeMap::new(),
        }
    }

    fn slot(&mut self, peer: &Origin) -> &mut Slot {
        self.slots.entry(peer.bucket(self.key)).or_default()
    }

    /// Returns the policy of a request to the peer, which is new or was `waiting`. Its retries come
    /// no earlier than after `early_retry`; `None` stands for no early retries.
    pub fn retry_policy(
        &mut self,
        peer: &Origin,
        waiting: Option<Waiting>,
        early_retry: Option<Duration>,
        now: Instant,
    ) -> RetryPolicy {
        let Some(early_retry) = early_retry else {
            return RetryPolicy::Classic;
        };
        let slot = self.slot(peer);
        let is_later = |waiting: Waiting| {
            let latest = slot.latest.get(&waiting.message);
            latest.is_some_and(|latest| *latest > waiting.since)
        };
        RetryPolicy::of(
            slot.in_flight,
            now.saturating_duration_since(slot.last_received),
            slot.trip,
            early_retry,
            waiting.is_some_and(is_later),
        )
    }

    /// Records that a message of the peer has changed its request from `before` to `after`.
    pub fn received(
        &mut self,
        peer: &Origin,
        before: Option<Waiting>,
        after: Option<Waiting>,
        now: Instant,
    ) {
        let slot = self.slot(peer);
        slot.last_received = now;
        match (before, after) {
            (Some(waited), None) => {
                let took = now.saturating_duration_since(waited.since);
                slot.trip = slot.trip.answered(took, waited.ambiguous);
                let latest = slot.latest.entry(waited.message).or_default();
                *latest = waited.since.max(*latest);
            }
            (Some(before), Some(after)) if before.ambiguous && !after.ambiguous => {
                let took = now.saturating_duration_since(after.since);
                slot.trip = slot.trip.acknowledged(took);
            }
            _ => {}
        }
    }

    /// Counts a request in flight if there is one `after` a step and was none before, or not.
    pub fn count(&mut self, peer: &Origin, before: Option<Waiting>, after: Option<Waiting>) {
        let slot = self.slot(peer);
        slot.in_flight += u32::from(after.is_some());
        slot.in_flight -= u32::from(before.is_some());
    }
}
