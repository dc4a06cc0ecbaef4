// SPDX-License-Identifier: GPL-2.0

//! Round-trip times of peers, in slots as in `rust/table/round_trips.rs`.

use std::collections::BTreeMap;

use cmproto::{
    cm::{Heard, LatestAnswered, RetryPolicy, RoundTrip, Waiting},
    origin::Origin,
    time::{Duration, Instant},
};

use crate::tables::hash_key;

/// The statistics of the peers of a slot.
#[derive(Clone, Debug, Default)]
struct Slot {
    trip: RoundTrip,
    last_received: Instant,
    in_flight: u32,
    /// For each kind of request, the time when the latest one that was answered was sent.
    latest: [LatestAnswered; LatestAnswered::KINDS],
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
        let has_overtaken = |waiting: Waiting| {
            let latest = LatestAnswered::place(waiting.message).map(|place| slot.latest[place]);
            latest.is_some_and(|latest| latest.has_overtaken(waiting))
        };
        RetryPolicy::of(
            slot.in_flight,
            now.saturating_duration_since(slot.last_received),
            slot.trip,
            early_retry,
            waiting.is_some_and(has_overtaken),
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
        let Some(heard) = Heard::of(before, after) else {
            return;
        };
        slot.trip = slot.trip.heard(heard, now);
        if let Heard::Answered(waited) = heard {
            if let Some(place) = LatestAnswered::place(waited.message) {
                slot.latest[place] = slot.latest[place].answered(waited);
            }
        }
    }

    /// Counts a request in flight if there is one `after` a step and was none before, or not.
    pub fn count(&mut self, peer: &Origin, before: Option<Waiting>, after: Option<Waiting>) {
        let slot = self.slot(peer);
        slot.in_flight += u32::from(after.is_some());
        slot.in_flight -= u32::from(before.is_some());
    }
}
