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
///
/// It has few fields, so that two keys are compared in few steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AhKey {
    dgid: [u64; 2],
    link: u64,
    /// The flow label, the hop limit, the traffic class, the service level and the static rate.
    header: u64,
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
        let [g0, g1, g2, g3, g4, g5, g6, g7, interface @ ..] = spec.dgid.0;
        let link = match spec.link {
            AhLink::Roce {
                dmac: [a, b, c, d, e, f],
            } => {
                let [start, end] = [[a, b, c, d], [e, f, 1, 0]].map(u32::from_ne_bytes);
                u64::from(start) << 32 | u64::from(end)
            }
            AhLink::Ib { dlid, path_bits } => u64::from(dlid) << 8 | u64::from(path_bits),
        };
        let bytes = [
            spec.hop_limit,
            spec.traffic_class,
            spec.sl,
            spec.static_rate,
        ];
        AhKey {
            dgid: [
                u64::from_ne_bytes([g0, g1, g2, g3, g4, g5, g6, g7]),
                u64::from_ne_bytes(interface),
            ],
            link,
            header: u64::from(spec.flow_label) << 32 | u64::from(u32::from_ne_bytes(bytes)),
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
