// SPDX-License-Identifier: GPL-2.0

//! The entries that stand for a wildcard listener at each device.
//!
//! `rdma resource show cm_id` lists what is at a device, and a wildcard listener is at no device.
//! So that an administrator sees it, it has an entry at every device. An entry only exists to be
//! listed, except at an iWARP device, where it listens: the requests that come to the iWARP CM are
//! not matched with listeners here.
//!
//! Lock order: the lock is of the class "table shard". While it is held, nothing is locked and
//! nothing is allocated.

use crate::{
    ib::{iw::IwListener, restrack::RdmaIdPrivate},
    kext::delay,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Mutex,
};

/// The key of a listener at a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The number of the listener.
    listener: u64,
    /// The index of the device.
    device: u32,
}

/// The entry of a listener at a device.
pub(crate) struct DeviceListener {
    // Dropped first, so that no request comes while the rest is dropped.
    _iwarp: Option<IwListener>,
    _id_priv: Pin<KBox<RdmaIdPrivate>>,
}

impl DeviceListener {
    /// Creates an entry that is listed as `id_priv`, with the listener at an iWARP device.
    pub(crate) fn new(id_priv: Pin<KBox<RdmaIdPrivate>>, iwarp: Option<IwListener>) -> Self {
        DeviceListener {
            _iwarp: iwarp,
            _id_priv: id_priv,
        }
    }
}

/// The per-device entries of all wildcard listeners.
#[pin_data]
pub(crate) struct WildcardListeners {
    #[pin]
    table: Mutex<RBTree<Key, DeviceListener>>,
}

impl WildcardListeners {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_wildcards"),
        })
    }

    /// Adds the entry of the listener with the number `listener` at the device with the index
    /// `device`. Fails with [`ENOMEM`].
    ///
    /// The caller must then see whether both are still there, as one that ends at the same time may
    /// not find the entry.
    pub(crate) fn insert(&self, listener: u64, device: u32, entry: DeviceListener) -> Result {
        let key = Key { listener, device };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(key, entry);
        let before = self.table.lock().insert(node);
        drop(before);
        Ok(())
    }

    /// Removes the entry of a listener at a device.
    pub(crate) fn remove(&self, listener: u64, device: u32) {
        self.remove_key(&Key { listener, device });
    }

    fn remove_key(&self, key: &Key) {
        let node = self.table.lock().remove_node(key);
        delay::point();
        // This waits for a request that is being handled, and for a netlink dump that reads the
        // entry.
        drop(node);
    }

    /// Returns the key of the first entry that is not before `key`.
    fn first_from(&self, key: &Key) -> Option<Key> {
        let table = self.table.lock();
        let first = *table.cursor_lower_bound(key)?.current().0;
        Some(first)
    }

    /// Removes the entries of a listener.
    pub(crate) fn remove_listener(&self, listener: u64) {
        let first = Key {
            listener,
            device: 0,
        };
        while let Some(key) = self
            .first_from(&first)
            .filter(|key| key.listener == listener)
        {
            self.remove_key(&key);
        }
    }

    /// Removes the entries of all listeners at a device, to which none is added any more.
    pub(crate) fn remove_device(&self, device: u32) {
        let mut next = Key {
            listener: 0,
            device: 0,
        };
        while let Some(key) = self.first_from(&next) {
            if key.device == device {
                self.remove_key(&key);
            }
            // Device indices stay below 2^31.
            next = Key {
                device: key.device.saturating_add(1),
                ..key
            };
        }
    }
}
