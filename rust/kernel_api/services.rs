// SPDX-License-Identifier: GPL-2.0

//! The services of those who speak of messages: who hears a service id at a device.
//!
//! Kernel consumers of the InfiniBand CM listen on a service id, without an address. A listener can be
//! shared by consumers that have the same handler.
//!
//! Lock order: the lock is of the class "table shard"; nothing is locked and nothing is allocated
//! while it is held.

use super::KernelId;
use crate::endpoint::Endpoint;
use cmproto::ibcm;
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// A service id at a device, by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    service_id: u64,
    device: u32,
}

/// A listener.
struct Entry {
    id: Arc<KernelId>,
    /// What those have in common who share it; none if nobody shares it.
    name: Option<usize>,
    /// How many have it.
    shares: u32,
}

/// An entry that exists, and the only handle by which it is removed.
pub(crate) struct Service(Key);

impl Service {
    /// The service id, in host order.
    pub(crate) fn id(&self) -> u64 {
        self.0.service_id
    }
}

/// How a listener was entered.
pub(crate) enum Entered {
    /// It has the service.
    New(Service),
    /// Another one has it already, and has one more share now.
    Shared(Arc<KernelId>),
}

/// All services.
#[pin_data]
pub(crate) struct Services {
    #[pin]
    table: Mutex<RBTree<Key, Entry>>,
    /// How many there are, so that a host without any does not look.
    len: Atomic<u32>,
    next: Atomic<u64>,
}

impl Services {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(RBTree::new(), "rdma_cm_services"),
            len: Atomic::new(0),
            next: Atomic::new(ibcm::ASSIGN),
        })
    }

    /// A service id that nobody else is given.
    pub(crate) fn assign(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    /// Enters `id` as the listener on a service id at the device with this index, or finds one
    /// of the same name.
    ///
    /// Fails with `EBUSY` if somebody else has the service.
    pub(crate) fn enter(
        &self,
        service_id: u64,
        device: u32,
        id: &Arc<KernelId>,
        name: Option<usize>,
    ) -> Result<Entered> {
        let key = Key { service_id, device };
        let entry = Entry {
            id: id.clone(),
            name,
            shares: 1,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(key, entry);
        let mut table = self.table.lock();
        if let Some(known) = table.get_mut(&key) {
            let found = if name.is_some() && known.name == name {
                known.shares = known.shares.saturating_add(1);
                Ok(Entered::Shared(known.id.clone()))
            } else {
                Err(EBUSY)
            };
            drop(table);
            drop(node);
            return found;
        }
        let _ = table.insert(node);
        drop(table);
        self.len.fetch_add(1, Relaxed);
        Ok(Entered::New(Service(key)))
    }

    /// Takes one share from a service, and removes it with the last. Returns it if others have it
    /// still.
    pub(crate) fn release(&self, service: Service) -> Option<Service> {
        let mut table = self.table.lock();
        if let Some(entry) = table.get_mut(&service.0).filter(|entry| entry.shares > 1) {
            entry.shares = entry.shares.saturating_sub(1);
            return Some(service);
        }
        let node = table.remove_node(&service.0);
        drop(table);
        self.len.fetch_sub(1, Relaxed);
        drop(node);
        None
    }

    /// Who hears a service id at the device with this index.
    pub(crate) fn find(&self, service_id: u64, device: u32) -> Option<Arc<Endpoint>> {
        if self.len.load(Relaxed) == 0 {
            return None;
        }
        let key = Key { service_id, device };
        let table = self.table.lock();
        table.get(&key).map(|entry| entry.id.endpoint().clone())
    }

    /// Whether anybody hears a service id, at the device with this index or at any.
    pub(crate) fn has(&self, service_id: u64, device: Option<u32>) -> bool {
        if self.len.load(Relaxed) == 0 {
            return false;
        }
        let first = Key {
            service_id,
            device: device.unwrap_or(0),
        };
        let table = self.table.lock();
        table.cursor_lower_bound(&first).is_some_and(|cursor| {
            let (key, _) = cursor.current();
            key.service_id == service_id && device.is_none_or(|device| device == key.device)
        })
    }
}
