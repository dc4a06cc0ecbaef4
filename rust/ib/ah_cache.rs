// SPDX-License-Identifier: GPL-2.0

//! A cache of the address handles of a port that connections of a user share.
//!
//! Lock order: the lock has the class "table shard"; while it is held, no other lock is taken,
//! nothing is allocated and no handle is destroyed.

use super::ah::{AhLink, AhSpec, Handle};
use crate::kext::{bug, delay, users::UserRef};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// The key of an address handle: its address vector without the port, and its user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AhKey {
    flow_label: u32,
    dgid: [u8; 16],
    link: AhLink,
    hop_limit: u8,
    traffic_class: u8,
    sl: u8,
    static_rate: u8,
    /// The address of the source GID's entry, or 0 if there is none. The handle holds a reference
    /// to the entry, so that the address is not reused.
    sgid: usize,
    /// The address of the account of the user, or 0 for parts of the kernel. The handle has a
    /// charge to the account, so that the address is not reused.
    user: usize,
}

impl AhKey {
    /// Returns the key of the address vector `spec` for a user.
    pub(super) fn of(spec: &AhSpec<'_>, user: Option<&UserRef>) -> Self {
        AhKey {
            flow_label: spec.flow_label,
            dgid: spec.dgid.0,
            link: spec.link,
            hop_limit: spec.hop_limit,
            traffic_class: spec.traffic_class,
            sl: spec.sl,
            static_rate: spec.static_rate,
            sgid: spec.sgid.map_or(0, |sgid| sgid.as_raw().addr()),
            user: user.map_or(0, UserRef::address),
        }
    }
}

/// An address handle and its number of users.
///
/// # Invariants
///
/// `users` is at least 1.
struct Used {
    handle: Arc<Handle>,
    users: usize,
}

/// The address handles of a port that connections share.
#[pin_data]
pub(super) struct AhCache {
    #[pin]
    used: Mutex<RBTree<AhKey, Used>>,
}

impl AhCache {
    /// Creates an initialiser for an empty cache.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            used <- new_mutex!(RBTree::new(), "rdma_cm_ah_cache"),
        })
    }

    /// Returns the handle for `key`, if there is one, and counts the caller as a user.
    ///
    /// The caller must call [`leave`](Self::leave) in the end.
    pub(super) fn join(&self, key: &AhKey) -> Option<Arc<Handle>> {
        let mut entries = self.used.lock();
        let used = entries.get_mut(key)?;
        used.users = used.users.saturating_add(1);
        Some(used.handle.clone())
    }

    /// Adds a handle for `key`, or returns the one that another task has added meanwhile.
    ///
    /// The caller is counted as a user of the result. Fails with [`ENOMEM`].
    pub(super) fn add(&self, key: AhKey, handle: Arc<Handle>) -> Result<Arc<Handle>> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        delay::point();
        let mut entries = self.used.lock();
        if let Some(used) = entries.get_mut(&key) {
            used.users = used.users.saturating_add(1);
            let used = used.handle.clone();
            // Unlock before the unused handle is destroyed.
            drop(entries);
            return Ok(used);
        }
        let used = Used {
            handle: handle.clone(),
            users: 1,
        };
        entries.insert(reservation.into_node(key, used));
        Ok(handle)
    }

    /// Uncounts a user of the handle for `key`; the last one removes it from the cache.
    pub(super) fn leave(&self, key: &AhKey) {
        let mut entries = self.used.lock();
        let Some(used) = entries.get_mut(key) else {
            drop(entries);
            return bug::missing("address handles");
        };
        used.users = used.users.saturating_sub(1);
        // INVARIANT: The entry is removed with its last user.
        let last = (used.users == 0).then(|| entries.remove_node(key));
        drop(entries);
        // This may sleep and take other locks.
        drop(last);
    }
}
