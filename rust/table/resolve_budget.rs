// SPDX-License-Identifier: GPL-2.0

//! Limit of the resolutions of senders' addresses that run at a time.
//!
//! One sender may use only half of the budget, so that senders that cannot be reached do not keep
//! others from being answered. Senders are identified by a hash of their origin, so that the memory
//! is bounded for any number of them.

use cmproto::{addr::Gid, origin::Origin};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The purpose of a resolution. Each purpose has a limit of its own.
#[derive(Clone, Copy)]
pub(crate) enum ResolvePurpose {
    /// A REQ or SIDR_REQ.
    Request,
    /// An answer without a connection.
    Answer,
}

impl ResolvePurpose {
    /// Returns the maximum number of resolutions at a time.
    const fn budget(self) -> u32 {
        match self {
            ResolvePurpose::Request => 64,
            ResolvePurpose::Answer => 16,
        }
    }

    /// Returns the maximum number of resolutions at a time for one sender.
    const fn share(self) -> u32 {
        self.budget() / 2
    }
}

/// Number of slots for senders, which is the number of values of [`Origin::bucket`].
const SLOTS: usize = 256;

/// The number of running resolutions for one purpose.
struct Count {
    all: Atomic<u32>,
    by_sender: [Atomic<u32>; SLOTS],
}

impl Count {
    fn new() -> impl Init<Self> {
        init!(Count {
            all: Atomic::new(0),
            by_sender <- pin_init::init_array_from_fn(|_| Atomic::new(0)),
        })
    }

    /// Returns the number for the senders of a bucket ([`Origin::bucket`]).
    fn of(&self, bucket: u8) -> &Atomic<u32> {
        self.by_sender.get(usize::from(bucket)).unwrap_or(&self.all)
    }
}

/// The numbers of running resolutions.
pub(crate) struct ResolveBudget {
    key: [u64; 2],
    requests: Count,
    answers: Count,
}

impl ResolveBudget {
    /// Creates counters with the value 0. The random numbers are the key of the hash
    /// ([`Origin::bucket`]). Fails with `ENOMEM`.
    pub(crate) fn new(key: [u64; 2]) -> Result<Arc<Self>> {
        let budget = init!(ResolveBudget {
            key,
            requests <- Count::new(),
            answers <- Count::new(),
        });
        Arc::init(budget, GFP_KERNEL)
    }

    fn count(&self, purpose: ResolvePurpose) -> &Count {
        match purpose {
            ResolvePurpose::Request => &self.requests,
            ResolvePurpose::Answer => &self.answers,
        }
    }
}

/// Permission for one resolution, which counts as running until this is dropped.
pub(crate) struct ResolvePermit {
    budget: Arc<ResolveBudget>,
    purpose: ResolvePurpose,
    bucket: u8,
}

impl ResolvePermit {
    /// Permits to resolve the address of `sender`, if the limits allow it.
    pub(crate) fn take(
        budget: &Arc<ResolveBudget>,
        purpose: ResolvePurpose,
        sender: &Gid,
    ) -> Option<Self> {
        // The resolution is counted first, so that the drop is right whether or not a limit was
        // reached.
        let count = budget.count(purpose);
        let before = count.all.fetch_add(1, Relaxed);
        let bucket = Origin::of_gid(*sender).bucket(budget.key);
        let own = count.of(bucket).fetch_add(1, Relaxed);
        let permit = ResolvePermit {
            budget: budget.clone(),
            purpose,
            bucket,
        };
        (before < purpose.budget() && own < purpose.share()).then_some(permit)
    }
}

impl Drop for ResolvePermit {
    fn drop(&mut self) {
        let count = self.budget.count(self.purpose);
        count.of(self.bucket).fetch_sub(1, Relaxed);
        count.all.fetch_sub(1, Relaxed);
    }
}
