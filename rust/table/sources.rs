// SPDX-License-Identifier: GPL-2.0

//! Sources of requests: which have confirmed one, what others were sent without having asked, and
//! which requests were the last to find a backlog full.
//!
//! The memory is bounded for any number of sources, and there is no lock, as for the round-trip
//! times.

use cmproto::{
    node::{Confirmation, Priority, SeenRequest, Unasked},
    origin::Origin,
    time::Instant,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The sources of a slot.
struct Slot {
    confirmation: Atomic<u64>,
    unasked: Atomic<u64>,
}

/// The table of all sources.
pub(crate) struct Sources {
    key: [u64; 2],
    slots: [Slot; Confirmation::SLOTS],
    /// The last requests to listeners whose backlog was full.
    requests: [Atomic<u32>; SeenRequest::SLOTS],
}

impl Sources {
    /// Creates an empty table. The random numbers are the key of the hash ([`Origin::hash`]). Fails
    /// with `ENOMEM`.
    pub(crate) fn new(key: [u64; 2]) -> Result<Arc<Self>> {
        let empty = |_| Slot {
            confirmation: Atomic::new(0),
            unasked: Atomic::new(0),
        };
        Arc::init(
            init!(Sources {
                key,
                slots <- pin_init::init_array_from_fn(empty),
                requests <- pin_init::init_array_from_fn(|_| Atomic::new(0)),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the hash of a source, and its slot.
    fn slot(&self, source: &Origin) -> Option<(u64, &Slot)> {
        let hash = source.hash(self.key);
        Some((hash, self.slots.get(Confirmation::slot(hash))?))
    }

    /// Records that the source has confirmed a request.
    pub(crate) fn confirm(&self, source: &Origin, now: Instant) {
        if let Some((hash, slot)) = self.slot(source) {
            let confirmation = Confirmation::new(hash, now);
            slot.confirmation.store(confirmation.into(), Relaxed);
        }
    }

    /// Returns whether the source may be sent a message that it has not asked for.
    pub(crate) fn may_send_unasked(&self, source: &Origin, now: Instant) -> bool {
        let Some((hash, slot)) = self.slot(source) else {
            return false;
        };
        let confirmation = slot.confirmation.load(Relaxed).into();
        let sent = slot.unasked.load(Relaxed);
        let Some(next) = Unasked::from(sent).add(confirmation, hash, now) else {
            return false;
        };
        let next = next.into();
        // One of two messages that are counted at the same time is sent.
        next == sent || slot.unasked.cmpxchg(sent, next, Relaxed).is_ok()
    }

    /// Returns the priority of a request that the source sends with this communication id to a
    /// listener whose backlog is full, and remembers the request.
    pub(crate) fn priority(&self, source: &Origin, comm_id: u32, now: Instant) -> Priority {
        let Some((hash, slot)) = self.slot(source) else {
            return Priority::New;
        };
        let (at, request) = SeenRequest::new(hash, comm_id, now);
        let Some(seen) = self.requests.get(at) else {
            return Priority::New;
        };
        let before = seen.load(Relaxed).into();
        seen.store(request.into(), Relaxed);
        let confirmation = slot.confirmation.load(Relaxed).into();
        request.priority(before, confirmation, hash, now)
    }
}
