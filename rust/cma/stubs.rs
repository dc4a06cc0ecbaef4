// SPDX-License-Identifier: GPL-2.0

//! The entries that stand for a wildcard listener at each device.
//!
//! `rdma resource show cm_id` lists what is at a device, and a wildcard listener is at no device.
//! So that an administrator sees it, it has an entry (a stub) at every device. A stub only exists
//! to be listed, except at an iWARP device, where it listens: the requests that come to the iWARP
//! CM are not matched with listeners here.
//!
//! Lock order: the lock is of the class "table shard". While it is held, nothing is locked and
//! nothing is allocated.

use crate::{
    core::Core,
    endpoint::{CmDevice, EndpointRef},
    ib::{iw::IwListener, restrack::IdHead},
    kext::delay,
};
use cmproto::cma::State;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// The key of a listener at a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The number of the listening endpoint.
    number: u64,
    /// The index of the device.
    device: u32,
}

/// The way in which a wildcard listener listens at a device.
pub(super) enum Site {
    /// The listener does not listen there.
    None,
    /// The listener has nothing at the device: it is found for each request by a lookup.
    Matched,
    /// The listener has an object of its own at the iWARP CM.
    Own(IwListener),
}

/// The entry of a listener at a device.
struct Stub {
    // Dropped first, so that no request comes while the rest is dropped.
    _listener: Option<IwListener>,
    _head: Pin<KBox<IdHead>>,
}

/// The per-device entries of all wildcard listeners.
#[pin_data]
pub(crate) struct Stubs {
    #[pin]
    table: Mutex<RBTree<Key, Stub>>,
}

impl Stubs {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_stubs"),
        })
    }

    /// Adds an entry for `listener` at `device`, and makes it listen there if the device is an
    /// iWARP one.
    pub(super) fn show(&self, listener: &EndpointRef, device: &CmDevice, backlog: u32) -> Result {
        let own = match listener.site_at(device, backlog)? {
            Site::None => return Ok(()),
            Site::Matched => None,
            Site::Own(own) => Some(own),
        };
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
        delay::point();
        head.add(&device.device, 0)?;
        let stub = Stub {
            _listener: own,
            _head: head,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(key, stub);
        let before = self.table.lock().insert(node);
        drop(before);
        delay::point();
        // The listener or the device may have ended meanwhile, and may not have found the entry,
        // which keeps the device.
        if listener.inner.lock().state() != State::Listen || device.members.is_closed() {
            self.remove(&key);
        }
        Ok(())
    }

    /// Returns the key of the first entry that is not before `key`.
    fn first_from(&self, key: &Key) -> Option<Key> {
        let table = self.table.lock();
        let first = *table.cursor_lower_bound(key)?.current().0;
        Some(first)
    }

    /// Removes an entry.
    fn remove(&self, key: &Key) {
        let node = self.table.lock().remove_node(key);
        delay::point();
        // This waits for a request that is being handled, and for a netlink dump that reads the
        // entry.
        drop(node);
    }

    /// Removes the entries of the listener with the number `number`.
    pub(crate) fn hide(&self, number: u64) {
        let first = Key { number, device: 0 };
        while let Some(key) = self.first_from(&first).filter(|key| key.number == number) {
            self.remove(&key);
        }
    }

    /// Removes the entries of all listeners at `device`, which must be closed.
    pub(super) fn hide_at(&self, device: &CmDevice) {
        let mut next = Key {
            number: 0,
            device: 0,
        };
        while let Some(key) = self.first_from(&next) {
            if key.device == device.device.index() {
                self.remove(&key);
            }
            // Device indices stay below 2^31.
            next = Key {
                device: key.device.saturating_add(1),
                ..key
            };
        }
    }
}

impl Core {
    /// Adds an entry for a wildcard listener at each device. Fails if the listener cannot listen at
    /// an iWARP device.
    pub(super) fn show_listener(&self, listener: &EndpointRef, backlog: u32) -> Result {
        let failed = self.devices.find_map(|device| {
            let shown = self.stubs.show(listener, device, backlog);
            // At other devices the listener takes requests without an entry.
            device.iwarp_port().and(shown.err())
        });
        failed.map_or(Ok(()), Err)
    }

    /// Adds entries for all wildcard listeners at a new device.
    pub(super) fn show_listeners_at(&self, device: &Arc<CmDevice>) {
        self.listeners.for_each(|listener| {
            if listener.devices.is_wildcard() {
                let _ = self
                    .stubs
                    .show(&listener.endpoint, device, listener.backlog);
            }
        });
    }
}
