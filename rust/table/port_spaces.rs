// SPDX-License-Identifier: GPL-2.0

//! The port spaces, with the owners of each port.
//!
//! There is one entry per bound endpoint. The entries are sorted by namespace, port space and port,
//! and then by what the rules for sharing a port ([`cmproto::bind`]) look at. One owner of each
//! port is counted, so that a port without an owner is found by counting. Each operation takes time
//! that grows with the logarithm of the number of entries: a user can have many, at one port or at
//! all.
//!
//! Lock order: the shard locks are of the class "table shard". While one is held, nothing is locked
//! and nothing is allocated.

use super::sharded::{new_sharded, Shard, Sharded};
use crate::kext::{
    error::ToKernel,
    net::Net,
    random,
    slab::{SlabArc, SlabCache},
};
use cmproto::{
    bind::{self, Binding, Peer, PortOwner},
    ephemeral::EphemeralRange,
    errno::Errno,
    service_id::PortSpace,
};
use containers::{impl_has_link, Link, Tree};
use core::{cmp::Ordering, iter};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{Arc, Mutex},
};

/// A port of a port space of a network namespace, or the end of the space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    net: u64,
    /// The number of the port space, and in the lower half the port, or one more than the last one.
    number: u64,
}

impl Port {
    fn new(net: u64, ps: PortSpace, port: u16) -> Self {
        let number = u64::from(ps.number()) << 32;
        Port { net, number }.at(port.into())
    }

    /// Returns another port of the same port space.
    fn at(self, port: u32) -> Self {
        let number = self.number & !u64::from(u32::MAX) | u64::from(port);
        Port { number, ..self }
    }
}

/// A port, and one of its owners.
#[derive(Clone, Copy)]
struct Key {
    port: Port,
    binding: Binding,
    /// The number of the owning endpoint.
    number: u64,
    /// The peer of the owner, which does not matter to the order.
    peer: Peer,
}

impl Key {
    /// Returns the least key of a port, from a binding on.
    fn first(port: Port, binding: Binding) -> Self {
        Key {
            port,
            binding,
            number: 0,
            peer: Peer::NONE,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_port = self.port.cmp(&other.port);
        let by_binding = by_port.then_with(|| self.binding.cmp(&other.binding));
        by_binding.then_with(|| self.number.cmp(&other.number))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        // Most often the ports differ.
        if self.port == other.port {
            return self.cmp(other).is_lt();
        }
        self.port < other.port
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// The entry of an endpoint that owns a port.
pub(crate) struct Entry {
    link: Link<Key, usize>,
    table: Arc<PortSpaces>,
    /// The network namespace, which chooses the shard.
    net: u64,
}

impl_has_link! {
    impl HasLink<Key, usize> for Entry { self.link }
}

/// The slab cache of the entries.
pub(crate) type PortCache = SlabCache<Entry>;

/// A port that is claimed. It is given back when this is dropped.
pub(crate) struct PortClaim {
    entry: SlabArc<Entry>,
}

impl PortClaim {
    fn shard(&self) -> Option<&Mutex<Shard<Owners>>> {
        self.entry.table.shard(self.entry.net)
    }

    /// Changes the owner, as the rules for sharing see it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Binding, &mut Peer)) {
        let Some(mut owners) = self.shard().map(Mutex::lock) else {
            return;
        };
        let Some(before) = owners.tree.key(&self.entry) else {
            return;
        };
        let mut key = before;
        change(&mut key.binding, &mut key.peer);
        if key != before || key.peer != before.peer {
            owners.change(&self.entry, key);
        }
    }

    /// Stops the owner from sharing its address but with its group, as a listener must not.
    ///
    /// Fails with the errors of [`PortSpaces::claim`] if the address is shared now.
    pub(crate) fn make_exclusive(&self) -> Result {
        let mut owners = self.shard().ok_or(EINVAL)?.lock();
        let Some(mut key) = owners.tree.key(&self.entry) else {
            return Ok(());
        };
        // Owners of an ephemeral port whose connections can be told apart may go on sharing it.
        if !key.binding.allows_reuse() {
            return Ok(());
        }
        let entry = owners.remove(&self.entry);
        key.binding.set_reuseaddr(false);
        let checked = owners.check(&key);
        key.binding.set_reuseaddr(checked.is_err());
        if let Some(entry) = entry {
            owners.insert(key, entry);
        }
        checked.map_err(Errno::to_kernel)
    }
}

impl Drop for PortClaim {
    fn drop(&mut self) {
        let removed = self.shard().map(|shard| shard.lock().remove(&self.entry));
        // The reference is dropped when the lock has been released.
        drop(removed);
    }
}

/// The owners of the ports of some namespaces, and the ephemeral port that was claimed last.
///
/// # Invariants
///
/// The first owner of each port is counted, and no other one.
struct Owners {
    tree: Tree<SlabArc<Entry>, Key, usize>,
    last_used: Option<u16>,
}

impl Owners {
    fn new() -> Self {
        Owners {
            tree: Tree::counting(),
            last_used: None,
        }
    }

    /// Returns the first binding of a port's owners that is not below `from`.
    fn first_binding(&self, port: Port, from: Binding) -> Option<Binding> {
        let (key, _) = self.tree.lower_bound(&Key::first(port, from))?;
        (key.port == port).then_some(key.binding)
    }

    /// Returns whether the owner before this one, and the one after it, has the same port.
    fn shares(&self, entry: &Entry, port: Port) -> [bool; 2] {
        let beside = self.tree.beside(entry, |key| key.port == port);
        beside.map(|is_same| is_same == Some(true))
    }

    /// Counts or does not count the owner after `entry`.
    fn set_next_counted(&mut self, entry: &Entry, is_counted: bool) {
        let next = self.tree.after(entry).map(|next| (*next).clone());
        if let Some(next) = next {
            self.tree.set_counted(&next, is_counted);
        }
    }

    /// Enters the owner of a port that has no other owner.
    fn insert_alone(&mut self, key: Key, entry: SlabArc<Entry>) {
        // It is in no other table, so that it is entered.
        let _ = self.tree.insert(key, entry);
    }

    /// Enters an owner.
    fn insert(&mut self, key: Key, entry: SlabArc<Entry>) {
        let owner = entry.clone();
        self.insert_alone(key, entry);
        // INVARIANT: The first one of the owners is counted.
        match self.shares(&owner, key.port) {
            [true, _] => self.tree.set_counted(&owner, false),
            [false, true] => self.set_next_counted(&owner, false),
            [false, false] => {}
        }
    }

    /// Removes an owner.
    fn remove(&mut self, entry: &Entry) -> Option<SlabArc<Entry>> {
        let port = self.tree.key(entry)?.port;
        if let [false, true] = self.shares(entry, port) {
            // INVARIANT: The next one is the first from here on.
            self.set_next_counted(entry, true);
        }
        self.tree.remove(entry)
    }

    /// Changes the key of an owner. Its port stays.
    fn change(&mut self, entry: &Entry, key: Key) {
        if self.tree.set_key(entry, key) {
            return;
        }
        if let Some(owner) = self.remove(entry) {
            self.insert(key, owner);
        }
    }

    /// Checks whether a new owner may share its port with the others.
    fn check(&self, new: &Key) -> Result<(), Errno> {
        new.binding
            .check(|from| self.first_binding(new.port, *from))
    }

    /// Iterates over the owners of a port.
    fn of_port(&self, port: Port) -> impl Iterator<Item = (Binding, Peer)> + '_ {
        let mut next = Key::first(port, Binding::LEAST);
        iter::from_fn(move || {
            let (key, _) = self.tree.lower_bound(&next)?;
            next = Key {
                number: key.number.saturating_add(1),
                ..key
            };
            (key.port == port).then_some((key.binding, key.peer))
        })
    }

    /// Returns an ephemeral port for a new owner, and whether nobody owns it; if somebody does, the
    /// new owner may share it.
    fn ephemeral(&self, range: EphemeralRange, random: u32, new: &Key) -> Option<(u16, bool)> {
        let at = |port: u32| new.port.at(port);
        let is_owned = |port: u16| {
            self.first_binding(at(port.into()), Binding::LEAST)
                .is_some()
        };
        let free = range.free(random, self.last_used, is_owned, |from, to| {
            let [from, to] = [from, to].map(|port| Key::first(at(port), Binding::LEAST));
            self.tree
                .count_below(&to)
                .saturating_sub(self.tree.count_below(&from))
        });
        if let Some(port) = free {
            return Some((port, true));
        }
        let shared = range.tries(random).find(|port| {
            let owners = self.of_port(at(u32::from(*port)));
            bind::is_unique((&new.binding, &new.peer), owners)
        })?;
        Some((shared, false))
    }
}

/// The port spaces of all network namespaces. A namespace is in one shard.
#[pin_data]
pub(crate) struct PortSpaces {
    #[pin]
    shards: Sharded<Owners, 16>,
}

impl PortSpaces {
    /// Creates empty port spaces. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                shards <- new_sharded!(Owners::new(), "rdma_cm_port_spaces"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether no port is in use.
    pub(crate) fn is_empty(&self) -> bool {
        let mut shards = self.shards.all().iter();
        shards.all(|shard| shard.lock().tree.is_empty())
    }

    /// Returns the shard of a namespace. There always is one.
    fn shard(&self, net: u64) -> Option<&Mutex<Shard<Owners>>> {
        // The upper bits depend on all bits of the address.
        let hash = net.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        self.shards.shard(hash)
    }

    /// Claims the port of `owner`'s address for the endpoint with the number `number`, or an
    /// ephemeral port if the port is 0. Returns the port in host order, too.
    ///
    /// `cache` is that of the entries. `privileged` returns whether ports below 1024 are allowed.
    /// Fails with `EACCES`, `EADDRINUSE`, `EADDRNOTAVAIL` (no ephemeral port is free) or `ENOMEM`.
    pub(crate) fn claim(
        self: &Arc<Self>,
        cache: &PortCache,
        net: &Net,
        ps: PortSpace,
        owner: &PortOwner,
        number: u64,
        privileged: impl FnOnce() -> bool,
    ) -> Result<(PortClaim, u16)> {
        let entry = cache.pin_init(init!(Entry {
            link: Link::new(),
            table: self.clone(),
            net: net.hash_key(),
        }))?;
        let mut port = owner.addr.port();
        let mut key = Key {
            port: Port::new(entry.net, ps, port),
            binding: Binding::of(owner),
            number,
            peer: Peer::of(&owner.dst),
        };
        let shard = self.shard(entry.net).ok_or(EINVAL)?;
        let mut owners;
        let mut is_alone = false;
        if port != 0 {
            if port < bind::PRIVILEGED_PORTS && !privileged() {
                return Err(Errno::EACCES.to_kernel());
            }
            owners = shard.lock();
            owners.check(&key).map_err(Errno::to_kernel)?;
        } else {
            let (low, high) = net.local_port_range();
            let none = || Errno::EADDRNOTAVAIL.to_kernel();
            let range = EphemeralRange::new(low, high).ok_or_else(none)?;
            let random = random::u32();
            owners = shard.lock();
            (port, is_alone) = owners.ephemeral(range, random, &key).ok_or_else(none)?;
            key.port = key.port.at(port.into());
            owners.last_used = Some(port);
        }
        if is_alone {
            owners.insert_alone(key, entry.clone());
        } else {
            owners.insert(key, entry.clone());
        }
        drop(owners);
        Ok((PortClaim { entry }, port))
    }
}
