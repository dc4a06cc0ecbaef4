// SPDX-License-Identifier: GPL-2.0

//! How a wildcard listener shows at each device.
//!
//! `rdma resource show cm_id` lists what is at a device, and a wildcard listener is at none. So that
//! an administrator sees it, a stub stands for it at every device. It is nothing but what is shown,
//! except at an iWARP device, where it listens: requests that come to the iWARP CM are not matched
//! here.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked and nothing is allocated
//! while it is held.

use super::device::CmDevice;
use crate::{
    core::Core,
    endpoint::EndpointRef,
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

/// A listener at a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The listener's number.
    number: u64,
    /// The device's index.
    device: u32,
}

/// How a wildcard listener listens at a device.
pub(super) enum Site {
    /// Not at all.
    None,
    /// Requests that come to the device are matched with all listeners.
    Matched,
    /// By itself.
    Own(IwListener),
}

/// What stands for a listener at a device.
struct Stub {
    // Dropped first: no request comes any more.
    _listener: Option<IwListener>,
    _head: Pin<KBox<IdHead>>,
}

/// All stubs.
#[pin_data]
pub(crate) struct Stubs {
    #[pin]
    table: Mutex<RBTree<Key, Stub>>,
}

impl Stubs {
    /// There are none yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_stubs"),
        })
    }

    /// Shows `listener` at `device`, and lets it listen there.
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
        delay::point();
        // Waits for a request that is being handled, and for whoever looks at the stub through netlink.
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
    /// Shows a wildcard listener at all devices. Fails if it cannot listen at one that speaks iWARP.
    pub(super) fn show_listener(&self, listener: &EndpointRef, backlog: u32) -> Result {
        let failed = self.devices.find_map(|device| {
            let shown = self.stubs.show(listener, device, backlog);
            // At others it listens all the same.
            device.iwarp_port().and(shown.err())
        });
        failed.map_or(Ok(()), Err)
    }

    /// Shows all wildcard listeners at a new device.
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
