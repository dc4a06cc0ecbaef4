// SPDX-License-Identifier: GPL-2.0

//! The table of listeners, in which the listener of a connection request is found.
//!
//! There are two kinds of listeners for a service id: endpoints that are bound to an address, and
//! consumers of the InfiniBand CM, which name the service id itself, and a device. At one device, a
//! service id has listeners of one kind only. So both kinds are in one table, and a lock decides
//! which was first.
//!
//! A listener on an address has one entry, whatever the number of devices; which devices it takes
//! requests from is decided when a request arrives. A listener of the InfiniBand CM can be shared
//! by consumers that have the same handler. The entries are ordered by service id, in a red-black
//! tree per shard.
//!
//! If several listeners share an address, [`cmproto::reuseport`] chooses one for each request.

use super::{
    listener_key::{Key, Owner, Place},
    sharded::{new_sharded, Shard, Sharded},
    wildcard_listeners::DeviceListeners,
};
use crate::{
    ib::{device::DeviceTraits, device_filter::DeviceFilter},
    kext::error::ToKernel,
};
use atomics::Presence;
use cmproto::{
    addr::SockAddr,
    errno::Errno,
    ibcm,
    listen::{ListenView, RequestView},
    reuseport::{Choice, ChoiceKey, PortGroup, Sender, MOST_MEMBERS},
    service_id::ServiceId,
    stored_addr::StoredAddr,
};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// A listener on an address, with everything that a request is matched against.
#[derive(Clone)]
pub(crate) struct AddressListener<T> {
    /// The endpoint that listens.
    pub(crate) endpoint: T,
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
    /// The group that shares the address, if the endpoint is in one.
    pub(crate) port_group: Option<PortGroup>,
}

/// An endpoint that listens on an address.
pub(crate) trait Listens {
    /// Returns the address, which does not change while the endpoint listens.
    fn addr(&self) -> impl StoredAddr;

    /// Returns the vacancy of the listener, which counts if others share its address.
    fn vacancy(&self) -> Vacancy;
}

/// The vacancy of a listener that shares its address: its readiness to take a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vacancy {
    /// The backlog has room.
    Room,
    /// The backlog is full.
    Full,
    /// The listener has gone, or will in a moment.
    Gone,
}

/// A listener of the InfiniBand CM.
pub(crate) struct ServiceListener<T, S> {
    /// The endpoint that listens.
    pub(crate) endpoint: T,
    /// The consumer, which those who share the listener get.
    pub(crate) consumer: S,
    /// The device that it listens at.
    pub(crate) device: DeviceTraits,
    /// Equal for consumers that share the listener; `None` if it is not shared.
    pub(crate) name: Option<usize>,
}

/// An entry of the table.
enum Entry<T, S> {
    Service {
        listener: ServiceListener<T, S>,
        /// The number of consumers that share it.
        shares: u32,
    },
    Address(AddressListener<T>),
}

/// A listener on an address, which is removed when this is dropped, and then its entries at
/// devices.
pub(crate) struct Listening<T, S>(
    #[expect(dead_code, reason = "only to be dropped")] KBox<ListeningKey<T, S>>,
);

/// The key of a [`Listening`].
struct ListeningKey<T, S> {
    table: Arc<Listeners<T, S>>,
    key: Key,
    _at_devices: Option<DeviceListeners>,
}

impl<T, S> Drop for ListeningKey<T, S> {
    fn drop(&mut self) {
        let node = self.table.shards.take(self.key.service_id, &self.key);
        // The node and its reference are dropped outside the shard lock.
        drop(node);
    }
}

/// A share of a listener of the InfiniBand CM, which must be [released](Self::release).
pub(crate) struct ServiceShare<T, S> {
    table: Arc<Listeners<T, S>>,
    key: Key,
}

/// The outcome of [`Listeners::add_service`].
pub(crate) enum Added<T, S> {
    /// The listener was added.
    New(ServiceShare<T, S>),
    /// Another listener has the service id already, and has one more share now. This is its
    /// consumer.
    Shared(S),
}

/// Memory for an entry, allocated before any lock is taken.
pub(crate) struct ListenerReservation<T, S>(RBTreeNodeReservation<Key, Entry<T, S>>);

impl<T, S> ListenerReservation<T, S> {
    /// Allocates the memory. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

type Tree<T, S> = RBTree<Key, Entry<T, S>>;

/// The destination of a connection request, for which a listener is looked up.
pub(crate) struct Destination<'a> {
    /// The service id.
    pub(crate) service_id: ServiceId,
    /// The network namespace that the request arrived in ([`crate::kext::net::Net::hash_key`]).
    pub(crate) net: u64,
    /// The device that the request arrived at.
    pub(crate) device: &'a DeviceTraits,
    /// The other fields of the request that a listener is matched against.
    pub(crate) request: RequestView<'a>,
    /// The sender of the request, which decides among listeners that share their address.
    pub(crate) sender: Sender,
}

/// The table of listeners. `T` is a reference to an endpoint, and `S` one to the consumer of a
/// listener of the InfiniBand CM.
#[pin_data]
pub(crate) struct Listeners<T, S> {
    #[pin]
    shards: Sharded<Tree<T, S>, 16>,
    /// The number of listeners of the InfiniBand CM: a host without any saves the lookup.
    services: Presence,
    next_service: Atomic<u64>,
    choice: ChoiceKey,
}

impl<T: Clone + Listens, S: Clone> Listeners<T, S> {
    /// Creates an empty table, with 128 random bits. Fails with `ENOMEM`.
    pub(crate) fn new(random: [u64; 2]) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                shards <- new_sharded!(RBTree::new(), "rdma_cm_listeners"),
                services: Presence::new(),
                next_service: Atomic::new(ibcm::ASSIGN),
                choice: ChoiceKey::new(random),
            }),
            GFP_KERNEL,
        )
    }

    // Listeners on addresses
    // ------------------------------------------------------------------------------------------

    /// Adds a listener on an address: the endpoint with the number `number`, in the network
    /// namespace `net`. A wildcard listener has entries at devices, which end with it.
    ///
    /// Fails with `EINVAL` if a consumer of the InfiniBand CM has the service id at one of its
    /// devices, with `EMFILE` if too many listeners share the address, and with `ENOMEM`.
    pub(crate) fn add(
        self: &Arc<Self>,
        service_id: ServiceId,
        net: u64,
        number: u64,
        listener: AddressListener<T>,
        at_devices: Option<DeviceListeners>,
    ) -> Result<Listening<T, S>> {
        let ServiceId(service_id) = service_id;
        let owner = Owner::Address { net, number };
        let key = Key { service_id, owner };
        let devices = listener.devices;
        let shared = listener
            .port_group
            .map(|group| (group, listener.endpoint.addr().read()));
        let handle = KBox::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let memory = ListenerReservation::new()?;
        let node = memory.0.into_node(key, Entry::Address(listener));
        let mut tree = self.shards.shard(service_id).ok_or(EINVAL)?.lock();
        if has_service(&tree, service_id, |at| devices.admits(at)) {
            drop(tree);
            drop(node);
            return Err(EINVAL);
        }
        let is_crowded = shared.is_some_and(|(group, addr)| {
            let first = Key::first_address(service_id, net);
            members(&tree, first, group, &addr) >= MOST_MEMBERS
        });
        if is_crowded {
            drop(tree);
            drop(node);
            return Err(Errno::EMFILE.to_kernel());
        }
        let before = tree.insert(node);
        drop(tree);
        drop(before);
        let listening = ListeningKey {
            table: self.clone(),
            key,
            _at_devices: at_devices,
        };
        Ok(Listening(KBox::write(handle, listening)))
    }

    /// Returns the first key in a shard that is not before `key`, and the listener, if it is one on
    /// an address.
    fn first_from(
        shard: &Mutex<Shard<Tree<T, S>>>,
        key: &Key,
    ) -> Option<(Key, Option<AddressListener<T>>)> {
        let tree = shard.lock();
        let cursor = tree.cursor_lower_bound(key)?;
        let (key, entry) = cursor.current();
        match entry {
            Entry::Address(listener) => Some((*key, Some(listener.clone()))),
            Entry::Service { .. } => Some((*key, None)),
        }
    }

    /// Calls `visit` for each listener on an address, without a lock. Listeners that are added or
    /// removed meanwhile may be missed.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&AddressListener<T>)) {
        for shard in self.shards.all() {
            let mut next = Key::first_service(0);
            while let Some((key, listener)) = Self::first_from(shard, &next) {
                if let Some(listener) = listener {
                    visit(&listener);
                }
                next = key.after();
            }
        }
    }

    /// Finds the listener on an address for a request. If several share the address it is the one
    /// that the sender's hash prefers.
    pub(crate) fn find(&self, destination: &Destination<'_>) -> Option<AddressListener<T>> {
        let Destination { net, device, .. } = *destination;
        let ServiceId(service_id) = destination.service_id;
        let first = Key::first_address(service_id, net);
        let is_here = |owner: &Owner| matches!(owner, Owner::Address { net: at, .. } if *at == net);
        let tree = self.shards.shard(service_id)?.lock();
        let (mut choice, mut chosen) = (None, None);
        let alone = first_address(&tree, first, device, is_here, |number, listener| {
            let view = ListenView {
                addr: &listener.endpoint.addr().read(),
                afonly: listener.afonly,
                bound_if: listener.bound_if,
                port: listener.port,
            };
            if !view.accepts(&destination.request) {
                return None;
            }
            if listener.port_group.is_none() {
                return Some(listener.clone());
            }
            let vacancy = listener.endpoint.vacancy();
            if vacancy != Vacancy::Gone {
                let choice =
                    choice.get_or_insert_with(|| Choice::new(&self.choice, &destination.sender));
                if choice.prefers(number, vacancy == Vacancy::Room) {
                    chosen = Some(number);
                }
            }
            None
        });
        alone.or_else(|| {
            let owner = Owner::Address {
                net,
                number: chosen?,
            };
            match tree.get(&Key { owner, ..first })? {
                Entry::Address(listener) => Some(listener.clone()),
                Entry::Service { .. } => None,
            }
        })
    }

    // Listeners of the InfiniBand CM
    // ------------------------------------------------------------------------------------------

    /// Returns a service id that no other consumer is given.
    pub(crate) fn assign(&self) -> u64 {
        self.next_service.fetch_add(1, Relaxed)
    }

    /// Adds a listener for a service id at its device, or takes a share of the listener there if it
    /// has the same name.
    ///
    /// A shared listener is in use at once, so the new one must have been shown as a listener
    /// before. Fails with `EBUSY` if another consumer has the service id at the device.
    pub(crate) fn add_service(
        self: &Arc<Self>,
        memory: ListenerReservation<T, S>,
        service_id: u64,
        listener: ServiceListener<T, S>,
    ) -> Result<Added<T, S>> {
        let ServiceListener { device, name, .. } = listener;
        let owner = Owner::Service {
            device: device.index,
        };
        let key = Key { service_id, owner };
        let entry = Entry::Service {
            listener,
            shares: 1,
        };
        let node = memory.0.into_node(key, entry);
        let mut tree = self.shards.shard(service_id).ok_or(EINVAL)?.lock();
        let is_taken = has_address(&tree, service_id, &device);
        let added = match tree.get_mut(&key) {
            Some(Entry::Service { listener, shares })
                if name.is_some() && listener.name == name =>
            {
                *shares = shares.saturating_add(1);
                Ok(Added::Shared(listener.consumer.clone()))
            }
            Some(_) => Err(EBUSY),
            None if is_taken => Err(EBUSY),
            None => Ok(Added::New(ServiceShare {
                table: self.clone(),
                key,
            })),
        };
        let unused = match added {
            Ok(Added::New(_)) => {
                self.services.add();
                tree.insert(node)
            }
            _ => Some(node),
        };
        drop(tree);
        drop(unused);
        added
    }

    /// Finds the endpoint of the InfiniBand CM that listens for a service id at the device with the
    /// index `device`.
    pub(crate) fn find_service(&self, service_id: u64, device: u32) -> Option<T> {
        if self.services.is_empty() {
            return None;
        }
        let owner = Owner::Service { device };
        let key = Key { service_id, owner };
        match self.shards.shard(service_id)?.lock().get(&key)? {
            Entry::Service { listener, .. } => Some(listener.endpoint.clone()),
            Entry::Address(_) => None,
        }
    }

    // Listeners of both kinds
    // ------------------------------------------------------------------------------------------

    /// Returns the endpoint of the first listener from `place` on, and its place.
    pub(crate) fn from(&self, place: &Place) -> Option<(Place, T)> {
        let Place { mut shard, mut key } = *place;
        loop {
            let tree = self.shards.all().get(shard)?.lock();
            if let Some(cursor) = tree.cursor_lower_bound(&key) {
                let (key, entry) = cursor.current();
                let endpoint = match entry {
                    Entry::Service { listener, .. } => &listener.endpoint,
                    Entry::Address(listener) => &listener.endpoint,
                };
                return Some((Place { shard, key: *key }, endpoint.clone()));
            }
            drop(tree);
            shard = shard.saturating_add(1);
            key = Place::FIRST.key;
        }
    }

    /// Returns whether there is a listener for the service id at the device, of whatever kind,
    /// network namespace and address.
    pub(crate) fn has(&self, service_id: ServiceId, device: &DeviceTraits) -> bool {
        let ServiceId(service_id) = service_id;
        self.shards.shard(service_id).is_some_and(|shard| {
            let tree = shard.lock();
            let is_there = |at: &DeviceTraits| at.index == device.index;
            has_address(&tree, service_id, device) || has_service(&tree, service_id, is_there)
        })
    }
}

impl<T, S> ServiceShare<T, S> {
    /// Gives the share back, and removes the listener if it was the last one. Returns the handle if
    /// shares are left.
    pub(crate) fn release(self) -> Option<Self> {
        let mut tree = self.table.shards.shard(self.key.service_id)?.lock();
        if let Some(Entry::Service { shares, .. }) = tree.get_mut(&self.key) {
            if *shares > 1 {
                *shares = shares.saturating_sub(1);
                drop(tree);
                return Some(self);
            }
        }
        let node = tree.remove_node(&self.key);
        self.table.services.remove();
        drop(tree);
        drop(node);
        None
    }
}

/// Returns whether a consumer of the InfiniBand CM listens for a service id at a device for which
/// `is_meant` returns true.
fn has_service<T, S>(
    tree: &Tree<T, S>,
    service_id: u64,
    is_meant: impl Fn(&DeviceTraits) -> bool,
) -> bool {
    let mut next = Key::first_service(service_id);
    while let Some(cursor) = tree.cursor_lower_bound(&next) {
        let (key, entry) = cursor.current();
        match entry {
            Entry::Service { listener, .. } if key.service_id == service_id => {
                if is_meant(&listener.device) {
                    return true;
                }
            }
            _ => break,
        }
        next = key.after();
    }
    false
}

/// Calls `visit` for the listeners on an address for the service id of `next`, from `next` on, that
/// take requests from `device`, until it returns a value. Stops at the first key for which `scope`
/// returns false.
fn first_address<T, S, R>(
    tree: &Tree<T, S>,
    mut next: Key,
    device: &DeviceTraits,
    scope: impl Fn(&Owner) -> bool,
    mut visit: impl FnMut(u64, &AddressListener<T>) -> Option<R>,
) -> Option<R> {
    let service_id = next.service_id;
    while let Some(cursor) = tree.cursor_lower_bound(&next) {
        let (key, entry) = cursor.current();
        if key.service_id != service_id || !scope(&key.owner) {
            break;
        }
        if let (Entry::Address(listener), Owner::Address { number, .. }) = (entry, key.owner) {
            if listener.devices.admits(device) {
                if let Some(found) = visit(number, listener) {
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
fn has_address<T, S>(tree: &Tree<T, S>, service_id: u64, device: &DeviceTraits) -> bool {
    let first = Key::first_address(service_id, 0);
    first_address(tree, first, device, |_| true, |_, _| Some(())).is_some()
}

/// Returns the number of listeners from `next` on, for its service id and in its network namespace,
/// that share an address as a group. Counts no more than there may be.
fn members<T: Listens, S>(
    tree: &Tree<T, S>,
    mut next: Key,
    group: PortGroup,
    addr: &SockAddr,
) -> usize {
    let mut count = 0_usize;
    let at = |key: &Key| match key.owner {
        Owner::Address { net, .. } => Some((key.service_id, net)),
        Owner::Service { .. } => None,
    };
    let place = at(&next);
    while let Some(cursor) = tree.cursor_lower_bound(&next) {
        let (key, entry) = cursor.current();
        if at(key) != place || count >= MOST_MEMBERS {
            break;
        }
        if let Entry::Address(listener) = entry {
            let is_member = listener.port_group == Some(group)
                && listener.endpoint.addr().read().same_address(addr);
            count = count.saturating_add(usize::from(is_member));
        }
        next = key.after();
    }
    count
}
