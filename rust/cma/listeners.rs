// SPDX-License-Identifier: GPL-2.0

//! The table of listeners, in which the listener of a connection request is found.
//!
//! There are two kinds of listeners for a service id: endpoints that are bound to an address, and
//! consumers of the InfiniBand CM ([`crate::kernel_api::cm`]), which name the service id itself,
//! and a device. At one device, a service id has listeners of one kind only. So both kinds are in
//! one table, and a lock decides which was first.
//!
//! A listener on an address has one entry, whatever the number of devices; which devices it takes
//! requests from is decided when a request arrives. A listener of the InfiniBand CM can be shared
//! by consumers that have the same handler. The entries are ordered by service id, in a red-black
//! tree per shard.
//!
//! Lock order: the shard locks are of the class "table shard". While one is held, nothing is locked
//! and nothing is allocated.

use crate::{
    endpoint::{Endpoint, EndpointRef},
    ib::{device::DeviceTraits, device_filter::DeviceFilter},
    kernel_api::KernelId,
};
use cmproto::{
    addr::SockAddr,
    ibcm,
    listen::{ListenView, RequestView},
    service_id::ServiceId,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// Number of shards; a power of two.
const SHARDS: usize = 16;

/// The identity of a listener for a service id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A consumer of the InfiniBand CM, at the device with this index.
    Messages { device: u32 },
    /// An endpoint that is bound to an address.
    Address {
        /// The network namespace ([`crate::kext::net::Net::hash_key`]).
        net: u64,
        /// The endpoint's number.
        number: u64,
    },
}

/// A service id, and one of its listeners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    service_id: u64,
    who: Who,
}

impl Key {
    /// Returns the lowest key of a listener of the InfiniBand CM.
    fn first_of_messages(service_id: u64) -> Self {
        Key {
            service_id,
            who: Who::Messages { device: 0 },
        }
    }

    /// Returns the lowest key of a listener on an address in a network namespace.
    fn first_of_addresses(service_id: u64, net: u64) -> Self {
        Key {
            service_id,
            who: Who::Address { net, number: 0 },
        }
    }

    /// Returns the next key. Numbers never run out.
    fn after(self) -> Self {
        let who = match self.who {
            Who::Messages { device } => Who::Messages {
                device: device.saturating_add(1),
            },
            Who::Address { net, number } => Who::Address {
                net,
                number: number.saturating_add(1),
            },
        };
        Key { who, ..self }
    }
}

/// A listener on an address, with everything that a request is matched against.
#[derive(Clone)]
pub(crate) struct Listener {
    /// The endpoint that listens.
    pub(crate) endpoint: EndpointRef,
    /// The address that the endpoint is bound to.
    pub(crate) addr: SockAddr,
    /// Set if a wildcard address covers its own address family only.
    pub(crate) afonly: bool,
    /// Index of the interface that the endpoint is bound to; 0 for any.
    pub(crate) bound_if: i32,
    /// The number of requests that an iWARP device queues for the endpoint.
    pub(crate) backlog: u32,
    /// The devices from which the endpoint takes requests.
    pub(crate) devices: DeviceFilter,
    /// The port of the one device that the endpoint is attached to; `None` for a wildcard.
    pub(crate) port: Option<u32>,
}

/// A listener of the InfiniBand CM.
struct Served {
    id: Arc<KernelId>,
    /// The device that it listens at.
    device: DeviceTraits,
    /// Equal for consumers that share the listener; `None` if it is not shared.
    name: Option<usize>,
    /// The number of consumers that share it.
    shares: u32,
}

/// An entry of the table.
enum Entry {
    Messages(Served),
    Address(Listener),
}

/// The handle of a listener on an address. Its entry is removed by this handle only.
pub(crate) struct Listening {
    service_id: u64,
}

/// The handle of a listener of the InfiniBand CM. Its entry is removed by this handle only.
pub(crate) struct Service(Key);

impl Service {
    /// Returns the service id, in host order.
    fn id(&self) -> u64 {
        self.0.service_id
    }
}

/// The outcome of [`Listeners::serve`].
pub(crate) enum Entered {
    /// The listener was added.
    New(Service),
    /// Another listener has the service id already, and has one more share now.
    Shared(Arc<KernelId>),
}

/// Memory for an entry.
pub(crate) struct Room(RBTreeNodeReservation<Key, Entry>);

impl Room {
    /// Allocates memory for an entry. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Ok(Room(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

type Tree = RBTree<Key, Entry>;

/// The destination of a connection request, for which a listener is looked up.
pub(crate) struct Wanted<'a> {
    /// The service id.
    pub(crate) service_id: ServiceId,
    /// The network namespace that the request arrived in ([`crate::kext::net::Net::hash_key`]).
    pub(crate) net: u64,
    /// The device that the request arrived at.
    pub(crate) device: &'a DeviceTraits,
    /// The other fields of the request that a listener is matched against.
    pub(crate) request: RequestView<'a>,
}

/// The table of listeners.
#[pin_data]
pub(crate) struct Listeners {
    #[pin]
    shards: [Mutex<Tree>; SHARDS],
    /// The number of listeners of the InfiniBand CM: a host without any saves the lookup.
    served: Atomic<u32>,
    next_service: Atomic<u64>,
}

impl Listeners {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(|_| {
                new_mutex!(RBTree::new(), "rdma_cm_listeners")
            }),
            served: Atomic::new(0),
            next_service: Atomic::new(ibcm::ASSIGN),
        })
    }

    /// Returns the shard of a service id. There always is one.
    fn shard(&self, service_id: u64) -> Option<&Mutex<Tree>> {
        let index = usize::try_from(service_id).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(index)
    }

    // Listeners on addresses
    // ------------------------------------------------------------------------------------------

    /// Adds a listener on an address.
    ///
    /// Fails with `EINVAL` if a consumer of the InfiniBand CM has the service id at one of its
    /// devices, and with `ENOMEM`.
    pub(crate) fn add(&self, service_id: ServiceId, listener: Listener) -> Result<Listening> {
        let ServiceId(service_id) = service_id;
        let key = Key {
            service_id,
            who: Who::Address {
                net: listener.endpoint.net.hash_key(),
                number: listener.endpoint.number,
            },
        };
        let devices = listener.devices;
        let node = Room::new()?.0.into_node(key, Entry::Address(listener));
        let mut tree = self.shard(service_id).ok_or(EINVAL)?.lock();
        if is_served(&tree, service_id, |at| devices.admits(at)) {
            drop(tree);
            drop(node);
            return Err(EINVAL);
        }
        let before = tree.insert(node);
        drop(tree);
        drop(before);
        Ok(Listening { service_id })
    }

    /// Removes the listener of `endpoint`.
    pub(crate) fn remove(&self, listening: Listening, endpoint: &Endpoint) {
        let key = Key {
            service_id: listening.service_id,
            who: Who::Address {
                net: endpoint.net.hash_key(),
                number: endpoint.number,
            },
        };
        let node = self
            .shard(key.service_id)
            .and_then(|shard| shard.lock().remove_node(&key));
        // The node and its reference are dropped when the shard lock has been released.
        drop(node);
    }

    /// Returns the first key in a shard that is not before `key`, and the listener, if it is one on
    /// an address.
    fn from(shard: &Mutex<Tree>, key: &Key) -> Option<(Key, Option<Listener>)> {
        let tree = shard.lock();
        let cursor = tree.cursor_lower_bound(key)?;
        let (key, entry) = cursor.current();
        match entry {
            Entry::Address(listener) => Some((*key, Some(listener.clone()))),
            Entry::Messages(_) => Some((*key, None)),
        }
    }

    /// Calls `visit` for each listener on an address, without a lock. Listeners that are added or
    /// removed meanwhile may be missed.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Listener)) {
        for shard in self.shards.iter() {
            let mut next = Key::first_of_messages(0);
            while let Some((key, listener)) = Self::from(shard, &next) {
                if let Some(listener) = listener {
                    visit(&listener);
                }
                next = key.after();
            }
        }
    }

    /// Finds the listener on an address for a request.
    pub(crate) fn find(&self, wanted: &Wanted<'_>) -> Option<Listener> {
        let ServiceId(service_id) = wanted.service_id;
        let first = Key::first_of_addresses(service_id, wanted.net);
        let is_here = |who: &Who| matches!(who, Who::Address { net, .. } if *net == wanted.net);
        let tree = self.shard(service_id)?.lock();
        first_address(&tree, first, wanted.device, is_here, |listener| {
            let view = ListenView {
                addr: &listener.addr,
                afonly: listener.afonly,
                bound_if: listener.bound_if,
                port: listener.port,
            };
            view.accepts(&wanted.request).then(|| listener.clone())
        })
    }

    // Listeners of the InfiniBand CM
    // ------------------------------------------------------------------------------------------

    /// Returns a service id that no other consumer is given.
    pub(crate) fn assign(&self) -> u64 {
        self.next_service.fetch_add(1, Relaxed)
    }

    /// Adds `id` as the listener for a service id at a device, or takes a share of the listener
    /// there if it has the same name.
    ///
    /// A shared listener is in use at once, so `id` must have been shown as a listener before.
    /// Fails with `EBUSY` if another consumer has the service id at the device.
    pub(crate) fn serve(
        &self,
        room: Room,
        service_id: u64,
        device: &DeviceTraits,
        id: &Arc<KernelId>,
        name: Option<usize>,
    ) -> Result<Entered> {
        let key = Key {
            service_id,
            who: Who::Messages {
                device: device.index,
            },
        };
        let served = Served {
            id: id.clone(),
            device: *device,
            name,
            shares: 1,
        };
        let node = room.0.into_node(key, Entry::Messages(served));
        let mut tree = self.shard(service_id).ok_or(EINVAL)?.lock();
        let is_taken = has_address(&tree, service_id, device);
        let entered = match tree.get_mut(&key) {
            Some(Entry::Messages(served)) if name.is_some() && served.name == name => {
                served.shares = served.shares.saturating_add(1);
                Ok(Entered::Shared(served.id.clone()))
            }
            Some(_) => Err(EBUSY),
            None if is_taken => Err(EBUSY),
            None => Ok(Entered::New(Service(key))),
        };
        let unused = match entered {
            Ok(Entered::New(_)) => {
                self.served.fetch_add(1, Relaxed);
                tree.insert(node)
            }
            _ => Some(node),
        };
        drop(tree);
        drop(unused);
        entered
    }

    /// Removes one share of a listener, and the listener with its last share. Returns the handle if
    /// shares are left.
    pub(crate) fn release(&self, service: Service) -> Option<Service> {
        let mut tree = self.shard(service.id())?.lock();
        if let Some(Entry::Messages(served)) = tree.get_mut(&service.0) {
            if served.shares > 1 {
                served.shares = served.shares.saturating_sub(1);
                return Some(service);
            }
        }
        let node = tree.remove_node(&service.0);
        self.served.fetch_sub(1, Relaxed);
        drop(tree);
        drop(node);
        None
    }

    /// Finds the listener of the InfiniBand CM for a service id at the device with the index
    /// `device`.
    pub(crate) fn serving(&self, service_id: u64, device: u32) -> Option<EndpointRef> {
        if self.served.load(Relaxed) == 0 {
            return None;
        }
        let key = Key {
            service_id,
            who: Who::Messages { device },
        };
        match self.shard(service_id)?.lock().get(&key)? {
            Entry::Messages(served) => Some(served.id.endpoint().clone()),
            Entry::Address(_) => None,
        }
    }

    // Listeners of both kinds
    // ------------------------------------------------------------------------------------------

    /// Returns whether there is a listener for the service id at the device, of whatever kind,
    /// network namespace and address.
    pub(crate) fn has(&self, service_id: ServiceId, device: &DeviceTraits) -> bool {
        let ServiceId(service_id) = service_id;
        self.shard(service_id).is_some_and(|shard| {
            let tree = shard.lock();
            let is_there = |at: &DeviceTraits| at.index == device.index;
            has_address(&tree, service_id, device) || is_served(&tree, service_id, is_there)
        })
    }
}

/// Returns whether a consumer of the InfiniBand CM listens for a service id at a device for which
/// `is_meant` returns true.
fn is_served(tree: &Tree, service_id: u64, is_meant: impl Fn(&DeviceTraits) -> bool) -> bool {
    let mut next = Key::first_of_messages(service_id);
    while let Some(cursor) = tree.cursor_lower_bound(&next) {
        let (key, entry) = cursor.current();
        match entry {
            Entry::Messages(served) if key.service_id == service_id => {
                if is_meant(&served.device) {
                    return true;
                }
            }
            _ => break,
        }
        next = key.after();
    }
    false
}

/// Calls `wanted` for the listeners on an address for the service id of `next`, from `next` on,
/// that take requests from `device`, until it returns a value. Stops at the first key for which
/// `scope` returns false.
fn first_address<R>(
    tree: &Tree,
    mut next: Key,
    device: &DeviceTraits,
    scope: impl Fn(&Who) -> bool,
    wanted: impl Fn(&Listener) -> Option<R>,
) -> Option<R> {
    let service_id = next.service_id;
    while let Some(cursor) = tree.cursor_lower_bound(&next) {
        let (key, entry) = cursor.current();
        if key.service_id != service_id || !scope(&key.who) {
            break;
        }
        if let Entry::Address(listener) = entry {
            if listener.devices.admits(device) {
                if let Some(found) = wanted(listener) {
                    return Some(found);
                }
            }
        }
        next = key.after();
    }
    None
}

/// Returns whether there is a listener on an address for a service id at the device, in whatever
/// network namespace.
fn has_address(tree: &Tree, service_id: u64, device: &DeviceTraits) -> bool {
    let first = Key::first_of_addresses(service_id, 0);
    first_address(tree, first, device, |_| true, |_| Some(())).is_some()
}
