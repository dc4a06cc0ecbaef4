// SPDX-License-Identifier: GPL-2.0

//! The set of the endpoints that are attached to a device.
//!
//! The link of a member lies in the endpoint, so that it takes no memory to join.

use super::sharded::{new_sharded, Shard, Sharded};
use crate::kext::delay;
use containers::{Counted, HasLink, Link, Tree};
use kernel::{prelude::*, sync::Mutex};

/// The number of an endpoint, by which it is found in its shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

/// The link of an endpoint, by which it is a member of one device. It lies in the endpoint.
pub(crate) type MemberLink = Link<Number>;

/// A counted reference to an endpoint.
pub(crate) trait Member: Counted<Target: HasLink<Number>> + Clone {}

impl<T: Counted<Target: HasLink<Number>> + Clone> Member for T {}

/// The endpoints of a shard.
struct Set<T: Member> {
    /// The endpoints, by number.
    tree: Tree<T, Number>,
    /// Set when the device is being removed: no endpoint is added from then on.
    closed: bool,
}

/// The place of an endpoint in the order of shards and numbers.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    shard: usize,
    number: u64,
}

impl Place {
    /// The first place.
    pub(crate) const FIRST: Self = Place {
        shard: 0,
        number: 0,
    };

    /// Returns the next place.
    pub(crate) fn after(self) -> Self {
        Place {
            number: self.number.saturating_add(1),
            ..self
        }
    }
}

/// The set of the endpoints that are attached to a device.
#[pin_data]
pub(crate) struct Members<T: Member> {
    #[pin]
    shards: Sharded<Set<T>, 16>,
}

impl<T: Member> Members<T> {
    /// Creates an empty set.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- new_sharded!(
                Set {
                    tree: Tree::new(),
                    closed: false,
                },
                "rdma_cm_members"
            ),
        })
    }

    /// Adds the endpoint with the number `number`. Fails with `ENODEV` if the device is being
    /// removed.
    pub(crate) fn join(&self, number: u64, endpoint: &T) -> Result {
        let member = endpoint.clone();
        let refused = {
            let mut set = self.shards.shard(number).ok_or(ENODEV)?.lock();
            if set.closed {
                return Err(ENODEV);
            }
            // An endpoint joins one device only, and once.
            set.tree.insert(Number(number), member)
        };
        drop(refused);
        Ok(())
    }

    /// Removes the endpoint with the number `number`.
    pub(crate) fn leave(&self, number: u64, endpoint: &T::Target) {
        let shard = self.shards.shard(number);
        let removed = shard.and_then(|shard| shard.lock().tree.remove(endpoint));
        drop(removed);
    }

    /// Returns whether the device is being removed.
    pub(crate) fn is_closed(&self) -> bool {
        self.shards.all().iter().any(|shard| shard.lock().closed)
    }

    /// Makes [`Members::join`] fail from now on.
    pub(crate) fn close(&self) {
        for shard in self.shards.all() {
            shard.lock().closed = true;
        }
    }

    /// Returns the first endpoint from `place` on, and its place.
    pub(crate) fn from(&self, place: Place) -> Option<(Place, T)> {
        let Place {
            mut shard,
            mut number,
        } = place;
        loop {
            if let Some((number, member)) = first_from(self.shards.all().get(shard)?, number) {
                return Some((Place { shard, number }, member));
            }
            shard = shard.saturating_add(1);
            number = 0;
        }
    }

    /// Calls `visit` for each endpoint, without a lock. Endpoints that are added or removed
    /// meanwhile may be missed.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&T)) {
        let mut next = Place::FIRST;
        while let Some((at, member)) = self.from(next) {
            delay::point();
            visit(&member);
            next = at.after();
        }
    }

    /// Calls `visit` for each endpoint, without a lock, and removes it. The set must be closed.
    pub(crate) fn drain(&self, mut visit: impl FnMut(&T)) {
        for shard in self.shards.all() {
            while let Some((number, member)) = first_from(shard, 0) {
                delay::point();
                visit(&member);
                // It may have left already.
                self.leave(number, &member);
            }
        }
    }
}

/// Returns the first endpoint of a shard whose number is not below `number`.
fn first_from<T: Member>(shard: &Mutex<Shard<Set<T>>>, number: u64) -> Option<(u64, T)> {
    let set = shard.lock();
    let (Number(number), member) = set.tree.lower_bound(&Number(number))?;
    Some((number, (*member).clone()))
}
