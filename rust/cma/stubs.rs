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
    alloc::flags::GFP_KERNEL_ACCOUNT,
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
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(key, head);
        let before = self.table.lock().insert(node);
        drop(before);
        // The listener or the device may have ended meanwhile, before it could have found the stub,
        // which keeps the device.
        if listener.inner.lock().state != State::Listen || device.is_closed() {
            self.remove(&key);
        }
        Ok(())
    }

    /// The first stub that is not before `key`.
    fn first_from(&self, key: &Key) -> Option<Key> {
        let table = self.table.lock();
        let first = *table.cursor_lower_bound(key)?.current().0;
        Some(first)
    }

    /// Removes a stub.
    fn remove(&self, key: &Key) {
        let node = self.table.lock().remove_node(key);
        // Waits for whoever looks at the stub through netlink.
        drop(node);
    }

    /// Hides the listener with this number.
    pub(crate) fn hide(&self, number: u64) {
        let first = Key { number, device: 0 };
        while let Some(key) = self.first_from(&first).filter(|key| key.number == number) {
            self.remove(&key);
        }
    }

    /// Hides all listeners at `device`, which must be closed.
    pub(super) fn hide_at(&self, device: &CmDevice) {
        let mut next = Key {
            number: 0,
            device: 0,
        };
        while let Some(key) = self.first_from(&next) {
            if key.device == device.device.index() {
                self.remove(&key);
            }
            // Device numbers stay below 2^31.
            next = Key {
                device: key.device.saturating_add(1),
                ..key
            };
        }
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
