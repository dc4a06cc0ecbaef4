// SPDX-License-Identifier: GPL-2.0

//! The ways to peers from a port for which there are address handles that others can use.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked, nothing is allocated and no
//! handle is destroyed while it is held.

use super::ah::{AhLink, AhSpec, Handle};
use crate::kext::delay;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// What tells ways from a port apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    flow_label: u32,
    dgid: [u8; 16],
    link: AhLink,
    hop_limit: u8,
    traffic_class: u8,
    sl: u8,
    static_rate: u8,
    /// The address of the own GID's entry, which is no other's as long as the handle has it; 0 if none.
    sgid: usize,
}

impl Way {
    /// The way that `spec` describes.
    pub(super) fn of(spec: &AhSpec<'_>) -> Self {
        Way {
            flow_label: spec.flow_label,
            dgid: spec.dgid.0,
            link: spec.link,
            hop_limit: spec.hop_limit,
            traffic_class: spec.traffic_class,
            sl: spec.sl,
            static_rate: spec.static_rate,
            sgid: spec.sgid.map_or(0, |sgid| sgid.as_raw().addr()),
        }
    }
}

/// A handle, and by how many it is used.
///
/// # Invariants
///
/// There is at least one user.
struct Used {
    handle: Arc<Handle>,
    users: usize,
}

/// The ways from a port.
#[pin_data]
pub(super) struct Ways {
    #[pin]
    used: Mutex<RBTree<Way, Used>>,
}

impl Ways {
    /// No ways.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            used <- new_mutex!(RBTree::new(), "rdma_cm_ways"),
        })
    }

    /// The handle for `way`, if there is one. The caller is a user of it until it calls
    /// [`leave`](Self::leave).
    pub(super) fn join(&self, way: &Way) -> Option<Arc<Handle>> {
        let mut ways = self.used.lock();
        let used = ways.get_mut(way)?;
        used.users = used.users.saturating_add(1);
        Some(used.handle.clone())
    }

    /// Lets others use the handle for `way`, or gives back that of somebody who was faster. The caller
    /// is a user of it.
    ///
    /// Fails with [`ENOMEM`].
    pub(super) fn add(&self, way: Way, handle: Arc<Handle>) -> Result<Arc<Handle>> {
        let room = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        delay::point();
        let mut ways = self.used.lock();
        if let Some(used) = ways.get_mut(&way) {
            used.users = used.users.saturating_add(1);
            let used = used.handle.clone();
            // Before what we have made goes.
            drop(ways);
            return Ok(used);
        }
        let used = Used {
            handle: handle.clone(),
            users: 1,
        };
        ways.insert(room.into_node(way, used));
        Ok(handle)
    }

    /// There is another user of the handle for `way`, which has one.
    pub(super) fn count(&self, way: &Way) {
        if let Some(used) = self.used.lock().get_mut(way) {
            used.users = used.users.saturating_add(1);
        }
    }

    /// There is one user less. The handle goes with the last.
    pub(super) fn leave(&self, way: &Way) {
        let mut ways = self.used.lock();
        let Some(used) = ways.get_mut(way) else {
            return;
        };
        used.users = used.users.saturating_sub(1);
        // INVARIANT: The last one leaves, and the entry with it.
        let last = (used.users == 0).then(|| ways.remove_node(way));
        drop(ways);
        // May sleep, and takes other locks.
        drop(last);
    }
}
