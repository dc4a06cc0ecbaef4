// SPDX-License-Identifier: GPL-2.0

//! How the peers answer: how fast, how many requests they leave unanswered, and since when they have
//! said nothing. From that follows how soon a request is sent early.
//!
//! Peers are told apart by a hash of their GID, so that what is kept here is bounded whatever comes in.
//! Two peers may share a slot; that makes early sends of the one a little sooner or later, and nothing
//! else. All is atomic, and nothing depends on the order of two variables: there is no lock.

use crate::core::Core;
use cmproto::{
    addr::Gid,
    cm::{Pace, RoundTrip},
    time::{Duration, Instant},
};
use kernel::sync::{
    atomic::{Atomic, Relaxed},
    Arc,
};

/// Number of slots; a power of two.
const SLOTS: usize = 256;

/// What is known of the peers of a slot.
struct Slot {
    trip: Atomic<u64>,
    /// When one of them was heard last, in microseconds of the module's clock.
    heard: Atomic<u64>,
    unanswered: Atomic<u32>,
}

/// What is known of all peers.
pub(crate) struct Peers {
    slots: [Slot; SLOTS],
}

/// The slot of a peer.
fn index(peer: &Gid) -> usize {
    let bits = u128::from_be_bytes(peer.0);
    let halves = (bits >> 64) as u64 ^ bits as u64;
    let mixed = halves.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    usize::try_from(mixed).unwrap_or(0) & (SLOTS - 1)
}

impl Peers {
    /// Nothing is known of any peer.
    pub(crate) fn new() -> Self {
        Peers {
            slots: [const {
                Slot {
                    trip: Atomic::new(0),
                    heard: Atomic::new(0),
                    unanswered: Atomic::new(0),
                }
            }; SLOTS],
        }
    }

    fn slot(&self, peer: &Gid) -> Option<&Slot> {
        self.slots.get(index(peer))
    }

    /// A message of a connection has come from its peer.
    pub(super) fn heard(&self, peer: &Gid, now: Instant) {
        if let Some(slot) = self.slot(peer) {
            slot.heard.store(now.as_micros(), Relaxed);
        }
    }

    /// The peer has answered `after` a request was first sent, which was then sent early or not.
    ///
    /// Of two answers at the same time one may be forgotten.
    pub(super) fn answered(&self, peer: &Gid, after: Duration, hurried: bool) {
        if let Some(slot) = self.slot(peer) {
            let trip = RoundTrip::from(slot.trip.load(Relaxed));
            slot.trip
                .store(trip.answered(after, hurried).into(), Relaxed);
        }
    }

    /// The pace of requests to the peer, not faster than `floor`.
    pub(crate) fn pace(&self, peer: &Gid, floor: Duration, now: Instant) -> Pace {
        let Some(slot) = self.slot(peer) else {
            return Pace::Classic;
        };
        let heard = Instant(slot.heard.load(Relaxed));
        Pace::of(
            slot.unanswered.load(Relaxed),
            now.saturating_duration_since(heard),
            RoundTrip::from(slot.trip.load(Relaxed)),
            floor,
        )
    }
}

/// A request that waits for its answer, and counts as such until it is dropped.
pub(crate) struct Unanswered {
    core: Arc<Core>,
    index: usize,
}

impl Unanswered {
    /// A request was sent to `peer`.
    pub(super) fn new(core: &Arc<Core>, peer: &Gid) -> Self {
        let index = index(peer);
        if let Some(slot) = core.peers.slots.get(index) {
            slot.unanswered.fetch_add(1, Relaxed);
        }
        Unanswered {
            core: core.clone(),
            index,
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(slot) = self.core.peers.slots.get(self.index) {
            slot.unanswered.fetch_sub(1, Relaxed);
        }
    }
}
