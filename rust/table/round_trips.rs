// SPDX-License-Identifier: GPL-2.0

//! Round-trip times of peers, their requests in flight, and the times of their last messages.
//!
//! The policy of early retries is computed from them. Peers are identified by a hash of their
//! origin, so that the memory is bounded for any number of peers. Two peers may share a slot; then
//! the early retries of the one depend a little on the other, which does no harm. There is no lock:
//! all variables are atomic, and no correctness depends on the order of accesses to two of them.

use cmproto::{
    cm::{Heard, LatestAnswered, RetryPolicy, RoundTrip, Waiting},
    origin::Origin,
    time::{Duration, Instant},
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// Number of slots, which is the number of values of [`Origin::bucket`].
const SLOTS: usize = 256;

/// The statistics of the peers of a slot, in one cache line.
#[repr(align(64))]
struct Slot {
    trip: Atomic<u64>,
    /// The time of the last message from one of the peers, in microseconds of the module's clock.
    last_received: Atomic<u64>,
    /// The number of requests that wait for an answer of one of the peers.
    in_flight: Atomic<u32>,
    /// For each kind of request, the time when the latest one that was answered was sent.
    latest: [Atomic<u64>; LatestAnswered::KINDS],
}

impl Slot {
    /// Returns the time for requests of the kind of this one.
    fn latest(&self, request: Waiting) -> Option<&Atomic<u64>> {
        self.latest.get(LatestAnswered::place(request.message)?)
    }

    /// Returns whether a later request of the same kind was answered.
    fn has_overtaken(&self, waiting: Waiting) -> bool {
        self.latest(waiting)
            .is_some_and(|latest| LatestAnswered::from(latest.load(Relaxed)).has_overtaken(waiting))
    }
}

/// The round-trip times of all peers.
pub(crate) struct RoundTrips {
    key: [u64; 2],
    slots: [Slot; SLOTS],
}

impl RoundTrips {
    /// Creates an empty table. The random numbers are the key of the hash
    /// ([`Origin::bucket`]). Fails with `ENOMEM`.
    pub(crate) fn new(key: [u64; 2]) -> Result<Arc<Self>> {
        let empty = |_| Slot {
            trip: Atomic::new(0),
            last_received: Atomic::new(0),
            in_flight: Atomic::new(0),
            latest: [const { Atomic::new(0) }; LatestAnswered::KINDS],
        };
        Arc::init(
            init!(RoundTrips {
                key,
                slots <- pin_init::init_array_from_fn(empty),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the slot of a bucket ([`Origin::bucket`]).
    fn of(&self, bucket: u8) -> Option<&Slot> {
        self.slots.get(usize::from(bucket))
    }

    fn slot(&self, peer: &Origin) -> Option<&Slot> {
        self.of(peer.bucket(self.key))
    }

    /// Records a message from the peer of a connection at `now`, and the news that it brings of a
    /// request to the peer.
    ///
    /// If two answers are handled at the same time, one of them may not be recorded.
    pub(crate) fn received(&self, peer: &Origin, heard: Option<Heard>, now: Instant) {
        let Some(slot) = self.slot(peer) else {
            return;
        };
        slot.last_received.store(now.as_micros(), Relaxed);
        let Some(heard) = heard else {
            return;
        };
        let trip = RoundTrip::from(slot.trip.load(Relaxed));
        slot.trip.store(trip.heard(heard, now).into(), Relaxed);
        let Heard::Answered(waited) = heard else {
            return;
        };
        if let Some(latest) = slot.latest(waited) {
            let before = LatestAnswered::from(latest.load(Relaxed));
            latest.store(before.answered(waited).into(), Relaxed);
        }
    }

    /// Counts a request that was sent to `peer`.
    pub(crate) fn sent(&self, peer: &Origin) -> InFlight {
        let bucket = peer.bucket(self.key);
        if let Some(slot) = self.of(bucket) {
            slot.in_flight.fetch_add(1, Relaxed);
        }
        InFlight { bucket }
    }

    /// Stops counting a request.
    pub(crate) fn settle(&self, request: InFlight) {
        if let Some(slot) = self.of(request.bucket) {
            slot.in_flight.fetch_sub(1, Relaxed);
        }
    }

    /// Returns the statistics of the peer at `now`.
    pub(crate) fn view(&self, peer: &Origin, now: Instant) -> Option<PeerView> {
        let slot = self.slot(peer)?;
        let last_received = Instant(slot.last_received.load(Relaxed));
        Some(PeerView {
            trip: RoundTrip::from(slot.trip.load(Relaxed)),
            unanswered: slot.in_flight.load(Relaxed),
            silent: (last_received.as_micros() != 0)
                .then(|| now.saturating_duration_since(last_received)),
        })
    }

    /// Returns the policy of a request to the peer, which is new or was `waiting`. Its retries come
    /// no earlier than after `early_retry`, which is in milliseconds; 0 stands for no early
    /// retries.
    pub(crate) fn retry_policy(
        &self,
        peer: &Origin,
        waiting: Option<Waiting>,
        early_retry: u32,
        now: Instant,
    ) -> RetryPolicy {
        let slot = match early_retry {
            0 => None,
            _ => self.slot(peer),
        };
        let Some(slot) = slot else {
            return RetryPolicy::Classic;
        };
        let last_received = Instant(slot.last_received.load(Relaxed));
        RetryPolicy::of(
            slot.in_flight.load(Relaxed),
            now.saturating_duration_since(last_received),
            RoundTrip::from(slot.trip.load(Relaxed)),
            Duration::from_millis(u64::from(early_retry)),
            waiting.is_some_and(|waiting| slot.has_overtaken(waiting)),
        )
    }
}

/// The statistics of the peers of a slot.
pub(crate) struct PeerView {
    pub(crate) trip: RoundTrip,
    /// The number of requests that wait for an answer of one of the peers.
    pub(crate) unanswered: u32,
    /// The time since the last message of one of the peers, if one has come.
    pub(crate) silent: Option<Duration>,
}

/// A request in flight, which is counted until it is given to [`RoundTrips::settle`].
#[must_use]
pub(crate) struct InFlight {
    bucket: u8,
}
