// SPDX-License-Identifier: GPL-2.0

//! How a wildcard listener shows at each device.
//!
//! `rdma resource show cm_id` lists what is at a device, and a wildcard listener is at none. So that
//! an administrator sees it, a stub stands for it at every device. A stub is nothing but what is
//! shown.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked and nothing is allocated
//! while it is held.

use super::device::CmDevice;
use crate::{core::Core, endpoint::Endpoint, ib::restrack::IdHead};
use cmproto::cma::State;
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// A listener at a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The listener's number.
    number: u64,
    /// The device's index.
    device: u32,
}

/// All stubs.
#[pin_data]
pub(crate) struct Stubs {
    #[pin]
    table: Mutex<RBTree<Key, Pin<KBox<IdHead>>>>,
}

impl Stubs {
    /// There are none yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_stubs"),
        })
    }

    /// Shows `listener` at `device`.
    pub(super) fn show(&self, listener: &Endpoint, device: &CmDevice) -> Result {
        let key = Key {
            number: listener.number,
            device: device.device.index(),
        };
        let (src, dst) = {
            let inner = listener.inner.lock();
            (inner.src, inner.dst)
        };
        let head = IdHead::new(listener.ps.number(), listener.qp_type);
        let head = KBox::pin_init(head, GFP_KERNEL_ACCOUNT)?;
        head.own_as(&listener.head);
        head.set_addresses(&src, &dst);
        head.set_state(State::Listen as u32);
        head.add(&device.device, 0)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(key, head);
        let before = self.table.lock().insert(node);
        drop(before);
        // The listener may have ended meanwhile, before it could have found the stub.
        if listener.inner.lock().state != State::Listen {
            self.hide(listener.number);
        }
        Ok(())
    }

    /// Removes the first stub for which `wanted` says so; false if there is none.
    fn remove_first(&self, wanted: impl Fn(&Key) -> bool) -> bool {
        let mut table = self.table.lock();
        let Some(key) = table.keys().find(|key| wanted(key)).copied() else {
            return false;
        };
        let node = table.remove_node(&key);
        drop(table);
        // Waits for whoever looks at the stub through netlink.
        drop(node);
        true
    }

    /// Hides the listener with this number.
    pub(crate) fn hide(&self, number: u64) {
        while self.remove_first(|key| key.number == number) {}
    }

    /// Hides all listeners at `device`.
    pub(super) fn hide_at(&self, device: &CmDevice) {
        let index = device.device.index();
        while self.remove_first(|key| key.device == index) {}
    }
}

impl Core {
    /// Shows a wildcard listener at all devices.
    pub(super) fn show_listener(&self, listener: &Endpoint) {
        let shown: Option<()> = self.devices.find_map(|device| {
            // It listens there all the same.
            let _ = self.stubs.show(listener, device);
            None
        });
        debug_assert!(shown.is_none());
    }

    /// Shows all wildcard listeners at a new device.
    pub(super) fn show_listeners_at(&self, device: &Arc<CmDevice>) {
        self.listeners.for_each(|listener| {
            if listener.device.is_none() {
                let _ = self.stubs.show(&listener.endpoint, device);
            }
        });
    }
}
