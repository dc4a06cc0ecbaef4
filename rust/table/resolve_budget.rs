// SPDX-License-Identifier: GPL-2.0

//! The resolutions of senders' addresses that run at a time.
//!
//! `cmproto::node::ResolutionPlaces` decides how many there are, and which of them is given up for
//! a new one. Senders are identified by a hash of their origin, so that the memory is bounded for
//! any number of them.
//!
//! Lock order: the lock is of the class "table shard". While it is held, no other lock is taken and
//! nothing is allocated or freed.

use crate::kext::random;
use cmproto::{addr::Gid, node::ResolutionPlaces, origin::Origin, time::Instant};
use core::mem;
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// The purpose of a resolution. Each purpose has places of its own.
#[derive(Clone, Copy)]
pub(crate) enum ResolvePurpose {
    /// A REQ or SIDR_REQ.
    Request,
    /// An answer without a connection.
    Answer,
}

/// A resolution, which can be given up.
pub(crate) trait Replaced: Send + Sync {
    /// Gives up the resolution, as another one has got its place. Called without locks.
    fn replaced(&self);
}

/// A place for a resolution.
struct Place {
    /// The number of the permit that has the place, or 0 if it is free.
    permit: u64,
    resolution: Option<Arc<dyn Replaced>>,
}

impl Place {
    const FREE: Self = Place {
        permit: 0,
        resolution: None,
    };
}

/// The resolutions for one purpose.
struct Running {
    places: ResolutionPlaces,
    by_place: [Place; ResolutionPlaces::NUMBER],
    /// The number of the last permit.
    last: u64,
}

impl Running {
    fn new() -> impl Init<Self> {
        init!(Running {
            places: ResolutionPlaces::new(),
            by_place: [Place::FREE; ResolutionPlaces::NUMBER],
            last: 0,
        })
    }

    /// Returns the place of a permit, unless another one has got it.
    fn place_of(&mut self, permit: &ResolvePermit) -> Option<&mut Place> {
        let place = self.by_place.get_mut(permit.place)?;
        (place.permit == permit.number).then_some(place)
    }
}

/// The running resolutions.
#[pin_data]
pub(crate) struct ResolveBudget {
    key: [u64; 2],
    #[pin]
    requests: Mutex<Running>,
    #[pin]
    answers: Mutex<Running>,
}

impl ResolveBudget {
    /// Creates a budget of which nothing is used. The random numbers are the key of the hash
    /// ([`Origin::bucket`]). Fails with `ENOMEM`.
    pub(crate) fn new(key: [u64; 2]) -> Result<Arc<Self>> {
        let budget = pin_init!(ResolveBudget {
            key,
            requests <- new_mutex!(Running::new(), "rdma_cm_resolve_budget"),
            answers <- new_mutex!(Running::new(), "rdma_cm_resolve_budget"),
        });
        Arc::pin_init(budget, GFP_KERNEL)
    }

    fn running(&self, purpose: ResolvePurpose) -> &Mutex<Running> {
        match purpose {
            ResolvePurpose::Request => &self.requests,
            ResolvePurpose::Answer => &self.answers,
        }
    }
}

/// Permission for one resolution, which counts as running until this is dropped or another one gets
/// its place.
pub(crate) struct ResolvePermit {
    budget: Arc<ResolveBudget>,
    purpose: ResolvePurpose,
    place: usize,
    number: u64,
}

impl ResolvePermit {
    /// Permits to resolve the address of `sender`, if the limits allow it. Another resolution may
    /// be given up for it.
    pub(crate) fn take(
        budget: &Arc<ResolveBudget>,
        purpose: ResolvePurpose,
        sender: &Gid,
        now: Instant,
    ) -> Option<Self> {
        let bucket = Origin::of_gid(*sender).bucket(budget.key);
        let mut running = budget.running(purpose).lock();
        let place = running.places.take(bucket, random::u32(), now)?;
        let number = running.last.wrapping_add(1);
        running.last = number;
        let taken = Place {
            permit: number,
            resolution: None,
        };
        let before = mem::replace(running.by_place.get_mut(place)?, taken);
        drop(running);
        if let Some(resolution) = before.resolution {
            resolution.replaced();
        }
        Some(ResolvePermit {
            budget: budget.clone(),
            purpose,
            place,
            number,
        })
    }

    /// Starts the resolution. Returns false if another one has got the place already.
    ///
    /// The resolution is referred to until [`ResolvePermit::release`].
    pub(crate) fn start(&self, resolution: Arc<dyn Replaced>) -> bool {
        let mut running = self.budget.running(self.purpose).lock();
        match running.place_of(self) {
            Some(place) => {
                place.resolution = Some(resolution);
                true
            }
            None => false,
        }
    }

    /// Frees the place, unless another resolution has got it.
    pub(crate) fn release(&self) {
        let mut running = self.budget.running(self.purpose).lock();
        let Some(place) = running.place_of(self) else {
            return;
        };
        let before = mem::replace(place, Place::FREE);
        running.places.leave(self.place);
        // The reference is dropped without the lock.
        drop(running);
        drop(before);
    }
}

impl Drop for ResolvePermit {
    fn drop(&mut self) {
        self.release();
    }
}
