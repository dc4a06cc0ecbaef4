// SPDX-License-Identifier: GPL-2.0

//! How the peers answer: how fast, how many requests they leave unanswered, and since when they have
//! said nothing. From that follows how soon a request is sent early.
//!
//! Peers are told apart by a hash of where they are, so that what is kept here is bounded whatever comes in.
//! Two peers may share a slot; that makes early sends of the one a little sooner or later, and nothing
//! else. All is atomic, and nothing depends on the order of two variables: there is no lock.

use crate::core::Core;
use cmproto::{
    cm::{Pace, RoundTrip, Waiting},
    origin::Origin,
    time::{Duration, Instant},
    wire::Attribute,
};
use kernel::sync::{
    atomic::{Atomic, Relaxed},
    Arc,
};

/// Number of slots: what [`Origin::bucket`] tells apart.
const SLOTS: usize = 256;

/// What is known of the peers of a slot.
struct Slot {
    trip: Atomic<u64>,
    /// When one of them was heard last, in microseconds of the module's clock.
    heard: Atomic<u64>,
    unanswered: Atomic<u32>,
    /// For each kind of request, when the latest that has been answered was sent, on the same clock.
    latest: [Atomic<u64>; KINDS],
}

/// Kinds of requests.
const KINDS: usize = 4;

impl Slot {
    /// What stands for the kind of a request.
    fn latest(&self, message: Attribute) -> Option<&Atomic<u64>> {
        let [req, rep, dreq, sidr_req] = &self.latest;
        match message {
            Attribute::Req => Some(req),
            Attribute::Rep => Some(rep),
            Attribute::Dreq => Some(dreq),
            Attribute::SidrReq => Some(sidr_req),
            Attribute::Mra
            | Attribute::Rej
            | Attribute::Rtu
            | Attribute::Drep
            | Attribute::SidrRep
            | Attribute::Lap
            | Attribute::Apr => None,
        }
    }

    /// Whether a later request of the same kind has been answered.
    fn has_overtaken(&self, waiting: Waiting) -> bool {
        self.latest(waiting.message)
            .is_some_and(|latest| latest.load(Relaxed) > waiting.since.as_micros())
    }
}

/// What is known of all peers.
pub(crate) struct Peers {
    key: [u64; 2],
    slots: [Slot; SLOTS],
}

impl Peers {
    /// Nothing is known of any peer. The random numbers tell them apart ([`Origin::bucket`]).
    pub(crate) fn new(key: [u64; 2]) -> Self {
        Peers {
            key,
            slots: [const {
                Slot {
                    trip: Atomic::new(0),
                    heard: Atomic::new(0),
                    unanswered: Atomic::new(0),
                    latest: [const { Atomic::new(0) }; KINDS],
                }
            }; SLOTS],
        }
    }

    /// The slot of a bucket ([`Origin::bucket`]).
    fn of(&self, bucket: u8) -> Option<&Slot> {
        self.slots.get(usize::from(bucket))
    }

    fn slot(&self, peer: &Origin) -> Option<&Slot> {
        self.of(peer.bucket(self.key))
    }

    /// A message of a connection has come from its peer.
    pub(super) fn heard(&self, peer: &Origin, now: Instant) {
        if let Some(slot) = self.slot(peer) {
            slot.heard.store(now.as_micros(), Relaxed);
        }
    }

    /// The peer has answered a request that had `waited`, at `now`.
    ///
    /// Of two answers at the same time one may be forgotten.
    pub(super) fn answered(&self, peer: &Origin, waited: Waiting, now: Instant) {
        let Some(slot) = self.slot(peer) else {
            return;
        };
        let trip = RoundTrip::from(slot.trip.load(Relaxed));
        let after = now.saturating_duration_since(waited.since);
        slot.trip
            .store(trip.answered(after, waited.hurried).into(), Relaxed);
        if let Some(latest) = slot.latest(waited.message) {
            let since = waited.since.as_micros();
            if since > latest.load(Relaxed) {
                latest.store(since, Relaxed);
            }
        }
    }

    /// The peer has said at `now` that it has a request that is `waiting`, and was sent early in vain.
    pub(super) fn outlasted(&self, peer: &Origin, waiting: Waiting, now: Instant) {
        if let Some(slot) = self.slot(peer) {
            let trip = RoundTrip::from(slot.trip.load(Relaxed));
            let after = now.saturating_duration_since(waiting.since);
            slot.trip.store(trip.outlasted(after).into(), Relaxed);
        }
    }

    /// The pace of a request to the peer that is new or has been `waiting`, not faster than `floor`.
    pub(crate) fn pace(
        &self,
        peer: &Origin,
        waiting: Option<Waiting>,
        floor: Duration,
        now: Instant,
    ) -> Pace {
        let Some(slot) = self.slot(peer) else {
            return Pace::Classic;
        };
        let heard = Instant(slot.heard.load(Relaxed));
        Pace::of(
            slot.unanswered.load(Relaxed),
            now.saturating_duration_since(heard),
            RoundTrip::from(slot.trip.load(Relaxed)),
            floor,
            waiting.is_some_and(|waiting| slot.has_overtaken(waiting)),
        )
    }
}

/// A request that waits for its answer, and counts as such until it is dropped.
pub(crate) struct Unanswered {
    core: Arc<Core>,
    bucket: u8,
}

impl Unanswered {
    /// A request was sent to `peer`.
    pub(super) fn new(core: &Arc<Core>, peer: &Origin) -> Self {
        let bucket = peer.bucket(core.peers.key);
        if let Some(slot) = core.peers.of(bucket) {
            slot.unanswered.fetch_add(1, Relaxed);
        }
        Unanswered {
            core: core.clone(),
            bucket,
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(slot) = self.core.peers.of(self.bucket) {
            slot.unanswered.fetch_sub(1, Relaxed);
        }
    }
}
