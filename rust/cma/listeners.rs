// SPDX-License-Identifier: GPL-2.0

//! The listeners: who hears a connection request.
//!
//! A listener is entered once, whatever the number of devices; which devices it hears is decided
//! when a request arrives. The entries are ordered by service id in a red-black tree per shard.
//!
//! Lock order: the shard locks are of the class "table shard"; nothing is locked and nothing is
//! allocated while one is held.

use crate::endpoint::Endpoint;
use cmproto::{
    addr::SockAddr,
    listen::{ListenView, RequestView},
    service_id::ServiceId,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// Number of shards; a power of two.
const SHARDS: usize = 16;

/// A service, and one of its listeners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    service_id: u64,
    /// The namespace ([`crate::kext::net::Net::hash_key`]).
    net: u64,
    /// The listener's number.
    number: u64,
}

impl Key {
    /// The least key that is greater, unless the numbers have run out, which they never do.
    fn after(self) -> Self {
        Key {
            number: self.number.saturating_add(1),
            ..self
        }
    }

    fn shard(&self) -> usize {
        usize::try_from(self.service_id).unwrap_or(0) & (SHARDS - 1)
    }
}

/// What a request is matched against.
#[derive(Clone)]
pub(crate) struct Listener {
    /// The endpoint that listens.
    pub(crate) endpoint: Arc<Endpoint>,
    /// The address it listens on.
    pub(crate) addr: SockAddr,
    /// Whether a wildcard stands for its own address family only.
    pub(crate) afonly: bool,
    /// Interface that it is bound to; 0 if any.
    pub(crate) bound_if: i32,
    /// How many requests an iWARP device keeps for it.
    pub(crate) backlog: u32,
    /// The index of the one device that it hears; none if it hears all.
    pub(crate) device: Option<u32>,
}

/// An entry that exists, and the only handle by which it is removed.
pub(crate) struct Listening {
    service_id: u64,
}

/// Where a request is for.
pub(crate) struct Wanted<'a> {
    /// The service.
    pub(crate) service_id: ServiceId,
    /// The namespace that the request arrived in ([`crate::kext::net::Net::hash_key`]).
    pub(crate) net: u64,
    /// The index of the device that it arrived on.
    pub(crate) device: u32,
    /// What else decides.
    pub(crate) request: RequestView<'a>,
}

/// All listeners.
#[pin_data]
pub(crate) struct Listeners {
    #[pin]
    shards: [Mutex<RBTree<Key, Listener>>; SHARDS],
}

impl Listeners {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(|_| {
                new_mutex!(RBTree::new(), "rdma_cm_listeners")
            }),
        })
    }

    /// Enters a listener.
    pub(crate) fn add(&self, service_id: ServiceId, listener: Listener) -> Result<Listening> {
        let key = Key {
            service_id: service_id.0,
            net: listener.endpoint.net.hash_key(),
            number: listener.endpoint.number,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?.into_node(key, listener);
        let before = match self.shards.get(key.shard()) {
            Some(shard) => shard.lock().insert(node),
            None => return Err(EINVAL),
        };
        drop(before);
        Ok(Listening {
            service_id: service_id.0,
        })
    }

    /// Removes the entry of `endpoint`.
    pub(crate) fn remove(&self, listening: Listening, endpoint: &Endpoint) {
        let key = Key {
            service_id: listening.service_id,
            net: endpoint.net.hash_key(),
            number: endpoint.number,
        };
        let node = self
            .shards
            .get(key.shard())
            .and_then(|shard| shard.lock().remove_node(&key));
        // The node and its reference go away outside the shard lock.
        drop(node);
    }

    /// The first listener in a shard that is not before `key`.
    fn from(shard: &Mutex<RBTree<Key, Listener>>, key: &Key) -> Option<(Key, Listener)> {
        let tree = shard.lock();
        let cursor = tree.cursor_lower_bound(key)?;
        let (key, listener) = cursor.current();
        Some((*key, listener.clone()))
    }

    /// Calls `visit` for each listener, without a lock; one that comes or goes meanwhile may be
    /// missed.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Listener)) {
        for shard in self.shards.iter() {
            let mut next = Key {
                service_id: 0,
                net: 0,
                number: 0,
            };
            while let Some((key, listener)) = Self::from(shard, &next) {
                visit(&listener);
                next = key.after();
            }
        }
    }

    /// Returns what `wanted` makes of the first listener from `next` on that is for the same service, as
    /// long as `scope` says so of its key, and hears the device, and of which `wanted` makes something.
    fn first<R>(
        &self,
        mut next: Key,
        device: u32,
        scope: impl Fn(&Key) -> bool,
        wanted: impl Fn(&Listener) -> Option<R>,
    ) -> Option<R> {
        let service_id = next.service_id;
        let tree = self.shards.get(next.shard())?.lock();
        while let Some(cursor) = tree.cursor_lower_bound(&next) {
            let (key, listener) = cursor.current();
            if key.service_id != service_id || !scope(key) {
                break;
            }
            if listener.device.is_none_or(|only| only == device) {
                if let Some(found) = wanted(listener) {
                    return Some(found);
                }
            }
            next = key.after();
        }
        None
    }

    /// Whether anybody listens for the service at the device, in whatever namespace and on whatever
    /// address.
    pub(crate) fn has(&self, service_id: ServiceId, device: u32) -> bool {
        let from = Key {
            service_id: service_id.0,
            net: 0,
            number: 0,
        };
        self.first(from, device, |_| true, |_| Some(())).is_some()
    }

    /// Finds the listener that a request is for.
    pub(crate) fn find(&self, wanted: &Wanted<'_>) -> Option<Listener> {
        let from = Key {
            service_id: wanted.service_id.0,
            net: wanted.net,
            number: 0,
        };
        let scope = |key: &Key| key.net == wanted.net;
        self.first(from, wanted.device, scope, |listener| {
            let view = ListenView {
                addr: &listener.addr,
                afonly: listener.afonly,
                bound_if: listener.bound_if,
            };
            view.accepts(&wanted.request).then(|| listener.clone())
        })
    }
}
