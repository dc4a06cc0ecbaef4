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
    kext::{counted::CountedArc, delay},
};
use containers::{impl_has_link, Link, Tree};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
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
#[pin_data]
pub(crate) struct DeviceListener {
    link: Link<Key>,
    // Dropped before the listener, which a driver may be using that was asked for what is listed.
    #[pin]
    id_priv: RdmaIdPrivate,
    iwarp: Option<IwListener>,
}

impl_has_link! {
    impl HasLink<Key> for DeviceListener { self.link }
}

impl DeviceListener {
    /// Creates an entry that is listed as `id_priv`, with the listener at an iWARP device. Fails
    /// with [`ENOMEM`].
    pub(crate) fn new(
        id_priv: impl PinInit<RdmaIdPrivate>,
        iwarp: Option<IwListener>,
    ) -> Result<CountedArc<Self>> {
        let entry = CountedArc::pin_init(
            pin_init!(DeviceListener {
                link: Link::new(),
                id_priv <- id_priv,
                iwarp,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if let Some(iwarp) = &entry.iwarp {
            iwarp.show_at(&entry.id_priv);
        }
        Ok(entry)
    }

    /// Returns the identifier that is listed.
    pub(crate) fn id_priv(&self) -> &RdmaIdPrivate {
        &self.id_priv
    }
}

/// The per-device entries of all wildcard listeners.
#[pin_data]
pub(crate) struct WildcardListeners {
    #[pin]
    table: Mutex<Tree<CountedArc<DeviceListener>, Key>>,
}

/// The entries of a wildcard listener, which are removed when this is dropped. From then on no
/// entry is added.
pub(crate) struct DeviceListeners {
    table: Arc<WildcardListeners>,
    /// The number of the listener.
    listener: u64,
}

impl DeviceListeners {
    /// Creates the handle of the entries of the listener with the number `listener`.
    pub(crate) fn new(table: &Arc<WildcardListeners>, listener: u64) -> Self {
        DeviceListeners {
            table: table.clone(),
            listener,
        }
    }
}

impl Drop for DeviceListeners {
    fn drop(&mut self) {
        delay::point();
        let first = Key {
            listener: self.listener,
            device: 0,
        };
        while let Some((key, entry)) = self.table.first_from(&first) {
            if key.listener != self.listener {
                break;
            }
            self.table.remove(&entry);
        }
    }
}

impl WildcardListeners {
    /// Creates an empty table. Fails with [`ENOMEM`].
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                table <- new_mutex!(Tree::new(), "rdma_cm_wildcards"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds the new entry of the listener with the number `listener` at the device with the index
    /// `device`, in place of the one that is there.
    ///
    /// The caller must then see whether both are still there, as one that ends at the same time may
    /// not find the entry.
    pub(crate) fn insert(&self, listener: u64, device: u32, entry: CountedArc<DeviceListener>) {
        let key = Key { listener, device };
        let mut table = self.table.lock();
        let before = table.get(&key).map(|before| (*before).clone());
        let removed = before.as_ref().and_then(|before| table.remove(before));
        // A new entry is in no table yet.
        let refused = table.insert(key, entry);
        drop(table);
        drop((before, removed, refused));
    }

    /// Removes an entry, if it is still there.
    pub(crate) fn remove(&self, entry: &DeviceListener) {
        let removed = self.table.lock().remove(entry);
        delay::point();
        // This may be the last reference. Its end waits for a request that is being handled, and
        // for a netlink dump that reads the entry.
        drop(removed);
    }

    /// Returns the first entry that is not before `key`, and its key.
    fn first_from(&self, key: &Key) -> Option<(Key, CountedArc<DeviceListener>)> {
        let table = self.table.lock();
        let (key, entry) = table.lower_bound(key)?;
        Some((key, (*entry).clone()))
    }

    /// Removes the entries of all listeners at a device, to which none is added any more.
    pub(crate) fn remove_device(&self, device: u32) {
        let mut next = Key {
            listener: 0,
            device: 0,
        };
        while let Some((key, entry)) = self.first_from(&next) {
            if key.device == device {
                self.remove(&entry);
            }
            // Device indices stay below 2^31.
            next = Key {
                device: key.device.saturating_add(1),
                ..key
            };
        }
    }
}
