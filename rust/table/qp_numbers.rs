// SPDX-License-Identifier: GPL-2.0

//! The queue pair numbers that programs connect with.
//!
//! A program may name a number that no queue pair has, and a queue pair may end before its
//! connection. When somebody else gets such a number with a queue pair, connections with the number
//! must not be in its way: they are found here.
//!
//! Lock order: a shard lock is of the class "table shard", the spin lock of a slot is a leaf. While
//! either is held, no other lock is taken and nothing is allocated.

use super::sharded::{new_sharded, Sharded};
use crate::kext::counted::CountedArc;
use atomics::Presence;
use containers::{impl_has_link, Link, Tree};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_spinlock,
    prelude::*,
    sync::{Arc, SpinLock},
};

/// Number of shards, a power of two.
const SHARDS: usize = 16;

/// A number of a device, as a user claims it. The claims of all users to a number are side by side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    number: u32,
    device: u32,
    user: u32,
}

/// A claim that is in the table, or was before it was removed.
struct Entry<T> {
    link: Link<Key>,
    table: Arc<QpNumbers<T>>,
    key: Key,
    claimant: T,
}

impl_has_link! {
    impl{T} HasLink<Key> for Entry<T> { self.link }
}

type Claims<T> = Tree<CountedArc<Entry<T>>, Key>;

/// The table of claims to queue pair numbers.
#[pin_data]
pub(crate) struct QpNumbers<T> {
    #[pin]
    shards: Sharded<Claims<T>, SHARDS>,
    /// The number of claims, so that no lock need be taken if there are none.
    presence: Presence,
}

/// A claim to a queue pair number, which ends when this is dropped, at the latest.
pub(crate) struct QpNumberClaim<T>(CountedArc<Entry<T>>);

/// The place of an object's claim, which belongs to nobody's lock.
#[pin_data]
pub(crate) struct ClaimSlot<T> {
    #[pin]
    claim: SpinLock<Option<QpNumberClaim<T>>>,
}

impl<T> ClaimSlot<T> {
    /// Creates an initialiser for a slot without a claim.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            claim <- new_spinlock!(None, "rdma_cm_claim"),
        })
    }

    /// Puts a claim into the slot, in the place of the one that is there.
    pub(crate) fn put(&self, claim: QpNumberClaim<T>) {
        let before = self.claim.lock().replace(claim);
        drop(before);
    }

    /// Ends the claim in the slot.
    pub(crate) fn clear(&self) {
        let claim = self.claim.lock().take();
        drop(claim);
    }
}

impl<T> QpNumbers<T> {
    /// Creates an empty table. Fails with [`ENOMEM`].
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                shards <- new_sharded!(Tree::new(), "rdma_cm_qp_numbers"),
                presence: Presence::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether anybody claims the number, at whatever device.
    #[inline]
    pub(crate) fn is_claimed(&self, number: u32) -> bool {
        // A claim that is made at the same time sees the queue pair of the one who asks here.
        !self.presence.is_empty_or_told() && self.has_claim(number)
    }

    fn has_claim(&self, number: u32) -> bool {
        let least = Key {
            number,
            device: 0,
            user: 0,
        };
        self.shards.shard(u64::from(number)).is_some_and(|shard| {
            let claims = shard.lock();
            let found = claims.lower_bound(&least);
            found.is_some_and(|(key, _)| key.number == number)
        })
    }

    /// Removes a claim to the number of a device that is of none of these two users, and returns
    /// whose it was.
    pub(crate) fn take_other(&self, number: u32, device: u32, users: [u32; 2]) -> Option<T>
    where
        T: Clone,
    {
        let mut key = Key {
            number,
            device,
            user: 0,
        };
        let mut claims = self.shards.shard(u64::from(number))?.lock();
        let taken = loop {
            let (found, entry) = claims.lower_bound(&key)?;
            if (found.number, found.device) != (number, device) {
                return None;
            }
            if !users.contains(&found.user) {
                let entry = (*entry).clone();
                break claims.remove(&entry)?;
            }
            key.user = found.user.checked_add(1)?;
        };
        drop(claims);
        self.presence.remove();
        Some(taken.claimant.clone())
    }
}

impl<T> QpNumberClaim<T> {
    /// Claims a number of a device for `claimant`, which is of the user `user`. Fails with
    /// [`ENOMEM`].
    pub(crate) fn new(
        table: &Arc<QpNumbers<T>>,
        number: u32,
        device: u32,
        user: u32,
        claimant: T,
    ) -> Result<Self> {
        let key = Key {
            number,
            device,
            user,
        };
        let entry = Entry {
            link: Link::new(),
            table: table.clone(),
            key,
            claimant,
        };
        let entry = CountedArc::new(entry, GFP_KERNEL_ACCOUNT)?;
        table.presence.add();
        if let Some(shard) = table.shards.shard(u64::from(number)) {
            // A new entry is in no table yet.
            let _ = shard.lock().insert(key, entry.clone());
        }
        Ok(QpNumberClaim(entry))
    }
}

impl<T> Drop for QpNumberClaim<T> {
    fn drop(&mut self) {
        let (table, number) = (&self.0.table, self.0.key.number);
        if let Some(shard) = table.shards.shard(u64::from(number)) {
            let removed = shard.lock().remove(&self.0);
            if removed.is_some() {
                table.presence.remove();
            }
        }
    }
}
