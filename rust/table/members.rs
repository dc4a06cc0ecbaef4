// SPDX-License-Identifier: GPL-2.0

//! The set of the endpoints that are attached to a device.

use super::sharded::{new_sharded, Shard, Sharded};
use crate::kext::delay;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Mutex,
};

/// The endpoints of a shard.
struct Set<T> {
    /// The endpoints, by number.
    tree: RBTree<u64, T>,
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

/// The set of the endpoints that are attached to a device. `T` is a reference to an endpoint.
#[pin_data]
pub(crate) struct Members<T> {
    #[pin]
    shards: Sharded<Set<T>, 16>,
}

impl<T: Clone> Members<T> {
    /// Creates an empty set.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- new_sharded!(
                Set {
                    tree: RBTree::new(),
                    closed: false,
                },
                "rdma_cm_members"
            ),
        })
    }

    /// Adds the endpoint with the number `number`. Fails with `ENODEV` if the device is being
    /// removed, and with `ENOMEM`.
    pub(crate) fn join(&self, number: u64, endpoint: &T) -> Result {
        let node =
            RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(number, endpoint.clone());
        let before = {
            let mut set = self.shards.shard(number).ok_or(ENODEV)?.lock();
            if set.closed {
                return Err(ENODEV);
            }
            set.tree.insert(node)
        };
        drop(before);
        Ok(())
    }

    /// Removes the endpoint with the number `number`.
    pub(crate) fn leave(&self, number: u64) {
        let shard = self.shards.shard(number);
        let node = shard.and_then(|shard| shard.lock().tree.remove_node(&number));
        drop(node);
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
                self.leave(number);
            }
        }
    }
}

/// Returns the first endpoint of a shard whose number is not below `number`.
fn first_from<T: Clone>(shard: &Mutex<Shard<Set<T>>>, number: u64) -> Option<(u64, T)> {
    let set = shard.lock();
    let cursor = set.tree.cursor_lower_bound(&number)?;
    let (number, member) = cursor.current();
    Some((*number, member.clone()))
}
