// SPDX-License-Identifier: GPL-2.0

//! The listeners: who hears a connection request.
//!
//! Two kinds listen for a service id: those on an address, and those who speak of messages
//! ([`crate::kernel_api::cm`]), who name the service id itself, and a device. Nobody has one at a device
//! where one of the other kind has it. So both are in one table, and a lock decides who was first.
//!
//! A listener on an address is entered once, whatever the number of devices; which devices it hears is
//! decided when a request arrives. One who speaks of messages can be shared by consumers that have the same
//! handler. The entries are ordered by service id in a red-black tree per shard.
//!
//! Lock order: the shard locks are of the class "table shard"; nothing is locked and nothing is
//! allocated while one is held.

use super::device_filter::DeviceFilter;
use crate::{
    endpoint::{Endpoint, EndpointRef},
    ib::device::DeviceTraits,
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

/// Who listens for a service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// One who speaks of messages, at the device with this index.
    Messages { device: u32 },
    /// One on an address.
    Address {
        /// The namespace ([`crate::kext::net::Net::hash_key`]).
        net: u64,
        /// The listener's number.
        number: u64,
    },
}

/// A service, and one of its listeners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    service_id: u64,
    who: Who,
}

impl Key {
    /// The first that one who speaks of messages can have.
    fn first_of_messages(service_id: u64) -> Self {
        Key {
            service_id,
            who: Who::Messages { device: 0 },
        }
    }

    /// The first that a listener on an address in a namespace can have.
    fn first_of_addresses(service_id: u64, net: u64) -> Self {
        Key {
            service_id,
            who: Who::Address { net, number: 0 },
        }
    }

    /// The least key that is greater, unless the numbers have run out, which they never do.
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

/// What a request is matched against.
#[derive(Clone)]
pub(crate) struct Listener {
    /// The endpoint that listens.
    pub(crate) endpoint: EndpointRef,
    /// The address it listens on.
    pub(crate) addr: SockAddr,
    /// Whether a wildcard stands for its own address family only.
    pub(crate) afonly: bool,
    /// Interface that it is bound to; 0 if any.
    pub(crate) bound_if: i32,
    /// How many requests an iWARP device keeps for it.
    pub(crate) backlog: u32,
    /// The devices that it hears.
    pub(crate) devices: DeviceFilter,
    /// The number of the port of the one device that it is bound to.
    pub(crate) port: Option<u32>,
}

/// A listener who speaks of messages.
struct Served {
    id: Arc<KernelId>,
    /// Where.
    device: DeviceTraits,
    /// What those have in common who share it; none if nobody shares it.
    name: Option<usize>,
    /// How many have it.
    shares: u32,
}

/// What the table has.
enum Entry {
    Messages(Served),
    Address(Listener),
}

/// An entry of a listener on an address that exists, and the only handle by which it is removed.
pub(crate) struct Listening {
    service_id: u64,
}

/// An entry of one who speaks of messages that exists, and the only handle by which it is removed.
pub(crate) struct Service(Key);

impl Service {
    /// The service id, in host order.
    fn id(&self) -> u64 {
        self.0.service_id
    }
}

/// How one who speaks of messages was entered.
pub(crate) enum Entered {
    /// It has the service.
    New(Service),
    /// Another one has it already, and has one more share now.
    Shared(Arc<KernelId>),
}

/// Memory for an entry.
pub(crate) struct Room(RBTreeNodeReservation<Key, Entry>);

impl Room {
    /// Allocates it; `ENOMEM` if there is none.
    pub(crate) fn new() -> Result<Self> {
        Ok(Room(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

type Tree = RBTree<Key, Entry>;

/// Where a request is for.
pub(crate) struct Wanted<'a> {
    /// The service.
    pub(crate) service_id: ServiceId,
    /// The namespace that the request arrived in ([`crate::kext::net::Net::hash_key`]).
    pub(crate) net: u64,
    /// The device that it arrived on.
    pub(crate) device: &'a DeviceTraits,
    /// What else decides.
    pub(crate) request: RequestView<'a>,
}

/// All listeners.
#[pin_data]
pub(crate) struct Listeners {
    #[pin]
    shards: [Mutex<Tree>; SHARDS],
    /// How many speak of messages, so that a host without any does not look.
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

    /// The shard of a service; there always is one.
    fn shard(&self, service_id: u64) -> Option<&Mutex<Tree>> {
        let index = usize::try_from(service_id).unwrap_or(0) & (SHARDS - 1);
        self.shards.get(index)
    }

    // Listeners on addresses
    // ------------------------------------------------------------------------------------------

    /// Enters a listener on an address.
    ///
    /// Fails with `EINVAL` if somebody who speaks of messages has the service at one of its devices, and
    /// with `ENOMEM`.
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

    /// Removes the entry of `endpoint`.
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
        // The node and its reference go away outside the shard lock.
        drop(node);
    }

    /// The first entry in a shard that is not before `key`, and the listener that it is of, if that is on
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

    /// Calls `visit` for each listener on an address, without a lock; one that comes or goes meanwhile may
    /// be missed.
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

    /// Finds the listener on an address that a request is for.
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

    // Those who speak of messages
    // ------------------------------------------------------------------------------------------

    /// A service id that nobody else is given.
    pub(crate) fn assign(&self) -> u64 {
        self.next_service.fetch_add(1, Relaxed)
    }

    /// Enters `id` as the listener on a service id at a device, or finds one of the same name, and takes
    /// a share of that.
    ///
    /// Whoever shares it uses it at once: it must be shown as a listener before. Fails with `EBUSY` if
    /// somebody else has the service there.
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

    /// Removes one share of a service, and the service with the last. Returns it if others have it still.
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

    /// Who speaks of messages and hears a service id at the device with this index.
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

    // All
    // ------------------------------------------------------------------------------------------

    /// Whether anybody listens for the service at the device, in whatever namespace and on whatever
    /// address.
    pub(crate) fn has(&self, service_id: ServiceId, device: &DeviceTraits) -> bool {
        let ServiceId(service_id) = service_id;
        self.shard(service_id).is_some_and(|shard| {
            let tree = shard.lock();
            let is_there = |at: &DeviceTraits| at.index == device.index;
            has_address(&tree, service_id, device) || is_served(&tree, service_id, is_there)
        })
    }
}

/// Whether anybody who speaks of messages has a service at a device of which `is_meant` says so.
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

/// Returns what `wanted` makes of the first listener on an address from `next` on that is for the same
/// service, as long as `scope` says so of it, and hears the device, and of which `wanted` makes something.
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

/// Whether anybody listens on an address for a service at the device, in whatever namespace.
fn has_address(tree: &Tree, service_id: u64, device: &DeviceTraits) -> bool {
    let first = Key::first_of_addresses(service_id, 0);
    first_address(tree, first, device, |_| true, |_| Some(())).is_some()
}
