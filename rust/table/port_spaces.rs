// SPDX-License-Identifier: GPL-2.0

//! The port spaces, with the owners of each port.
//!
//! There is one entry per bound endpoint, ordered by port, namespace and port space, so that the
//! owners of a port are next to each other. The rules for sharing a port are in [`cmproto::bind`].
//!
//! Lock order: the lock is of the class "table shard". While it is held, nothing is locked and
//! nothing is allocated.

use crate::kext::{error::ToKernel, net::Net, random};
use cmproto::{
    bind::{self, PortOwner},
    errno::Errno,
    service_id::PortSpace,
};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// A port in a port space of a network namespace, and one of its owners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    // The port comes first because ports differ most, and keys are compared in this order.
    port: u16,
    net: u64,
    ps: PortSpace,
    /// The number of the owning endpoint.
    number: u64,
}

/// A port that is claimed. It is given back when this is dropped.
pub(crate) struct PortClaim {
    table: Arc<PortSpaces>,
    key: Key,
}

impl PortClaim {
    /// Returns the port, in host order.
    pub(crate) fn port(&self) -> u16 {
        self.key.port
    }

    /// Changes the owner, as the rules for sharing see it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut PortOwner)) {
        if let Some(owner) = self.table.table.lock().owners.get_mut(&self.key) {
            change(owner);
        }
    }

    /// Stops the owner from sharing its address, as a listener must not share it.
    ///
    /// Fails with the errors of [`PortSpaces::claim`] if the address is shared now.
    pub(crate) fn make_exclusive(&self) -> Result {
        let mut table = self.table.table.lock();
        let Some(owner) = table.owners.get(&self.key).copied() else {
            return Ok(());
        };
        // Owners of an ephemeral port whose connections can be told apart may go on sharing it.
        if !owner.reuseaddr {
            return Ok(());
        }
        let exclusive = PortOwner {
            reuseaddr: false,
            ..owner
        };
        table
            .check(self.key, &exclusive)
            .map_err(Errno::to_kernel)?;
        if let Some(owner) = table.owners.get_mut(&self.key) {
            *owner = exclusive;
        }
        Ok(())
    }
}

impl Drop for PortClaim {
    fn drop(&mut self) {
        let node = self.table.table.lock().owners.remove_node(&self.key);
        drop(node);
    }
}

/// The owners of all ports, and the ephemeral port that was claimed last.
struct Table {
    owners: RBTree<Key, PortOwner>,
    last_used: Option<u16>,
}

impl Table {
    /// Calls `visit` for each owner of the port of `key`.
    fn for_each_owner<E>(
        &self,
        key: Key,
        mut visit: impl FnMut(u64, &PortOwner) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = Key { number: 0, ..key };
        while let Some(cursor) = self.owners.cursor_lower_bound(&next) {
            let (found, owner) = cursor.current();
            if (found.net, found.ps, found.port) != (key.net, key.ps, key.port) {
                break;
            }
            visit(found.number, owner)?;
            next.number = found.number.saturating_add(1);
        }
        Ok(())
    }

    /// Checks whether `new` may share the port with its other owners.
    fn check(&self, key: Key, new: &PortOwner) -> Result<(), Errno> {
        self.for_each_owner(key, |number, owner| {
            if number == key.number {
                return Ok(());
            }
            bind::check(new, [owner])
        })
    }

    /// Returns whether the connections of `new` on an ephemeral port can be told from those of the
    /// port's owners.
    fn is_unique(&self, key: Key, new: &PortOwner) -> bool {
        self.for_each_owner(key, |_, owner| {
            bind::port_is_unique(new, [owner]).then_some(()).ok_or(())
        })
        .is_ok()
    }
}

/// The port spaces of all network namespaces.
#[pin_data]
pub(crate) struct PortSpaces {
    #[pin]
    table: Mutex<Table>,
}

impl PortSpaces {
    /// Creates empty port spaces. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let table = Table {
            owners: RBTree::new(),
            last_used: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                table <- new_mutex!(table, "rdma_cm_port_spaces"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether no port is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().owners.is_empty()
    }

    /// Claims the port of `owner`'s address for the endpoint with the number `number`, or an
    /// ephemeral port if the port is 0.
    ///
    /// `privileged` returns whether ports below 1024 are allowed. Fails with `EACCES`,
    /// `EADDRINUSE`, `EADDRNOTAVAIL` (no ephemeral port is free) or `ENOMEM`.
    pub(crate) fn claim(
        self: &Arc<Self>,
        net: &Net,
        ps: PortSpace,
        owner: PortOwner,
        number: u64,
        privileged: impl FnOnce() -> bool,
    ) -> Result<PortClaim> {
        let mut key = Key {
            net: net.hash_key(),
            ps,
            port: owner.addr.port(),
            number,
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut table;
        if key.port != 0 {
            if key.port < bind::PRIVILEGED_PORTS && !privileged() {
                return Err(Errno::EACCES.to_kernel());
            }
            table = self.table.lock();
            table.check(key, &owner).map_err(Errno::to_kernel)?;
        } else {
            let (low, high) = net.local_port_range();
            let none = || Errno::EADDRNOTAVAIL.to_kernel();
            let range = bind::EphemeralRange::new(low, high).ok_or_else(none)?;
            let random = random::u32();
            table = self.table.lock();
            key.port = range
                .probe(random, table.last_used)
                .find(|port| table.is_unique(Key { port: *port, ..key }, &owner))
                .ok_or_else(none)?;
            table.last_used = Some(key.port);
        }
        let _ = table.owners.insert(node.into_node(key, owner));
        drop(table);
        let table = self.clone();
        Ok(PortClaim { table, key })
    }
}
