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
    addr::SockAddr,
    bind::{self, BindView},
    errno::Errno,
    service_id::PortSpace,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Mutex,
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

/// The owner of a port, with everything that the rules for sharing look at.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    /// The address that is bound.
    pub(crate) addr: SockAddr,
    /// The address that the owner connects to; unspecified if it does not.
    pub(crate) dst: SockAddr,
    /// Set if the owner lets others bind the address, too.
    pub(crate) reuseaddr: bool,
    /// Set if a wildcard address covers its own address family only.
    pub(crate) afonly: bool,
}

impl Owner {
    fn view(&self) -> BindView<'_> {
        BindView {
            addr: &self.addr,
            dst: &self.dst,
            reuseaddr: self.reuseaddr,
            afonly: self.afonly,
        }
    }
}

/// The handle of a port that is claimed. The port is given back by this handle only.
pub(crate) struct PortClaim(Key);

impl PortClaim {
    /// Returns the port, in host order.
    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }
}

/// The owners of all ports, and the ephemeral port that was claimed last.
struct Table {
    owners: RBTree<Key, Owner>,
    last_used: Option<u16>,
}

impl Table {
    /// Calls `visit` for each owner of the port of `key`.
    fn for_each_owner<E>(
        &self,
        key: Key,
        mut visit: impl FnMut(u64, &Owner) -> Result<(), E>,
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
    fn check(&self, key: Key, new: &Owner) -> Result<(), Errno> {
        self.for_each_owner(key, |number, owner| {
            if number == key.number {
                return Ok(());
            }
            bind::check(&new.view(), core::iter::once(owner.view()))
        })
    }

    /// Returns whether the connections of `new` on an ephemeral port can be told from those of the
    /// port's owners.
    fn is_unique(&self, key: Key, new: &Owner) -> bool {
        self.for_each_owner(key, |_, owner| {
            if bind::port_is_unique(&new.view(), core::iter::once(owner.view())) {
                Ok(())
            } else {
                Err(())
            }
        })
        .is_ok()
    }
}

/// The port spaces of all network namespaces.
#[pin_data]
pub(crate) struct Ports {
    #[pin]
    table: Mutex<Table>,
}

impl Ports {
    /// Creates empty port spaces.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(Table {
                owners: RBTree::new(),
                last_used: None,
            }, "rdma_cm_ports"),
        })
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
        &self,
        net: &Net,
        ps: PortSpace,
        owner: Owner,
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
        if key.port != 0 {
            if key.port < bind::PRIVILEGED_PORTS && !privileged() {
                return Err(Errno::EACCES.to_kernel());
            }
            let mut table = self.table.lock();
            table.check(key, &owner).map_err(Errno::to_kernel)?;
            let _ = table.owners.insert(node.into_node(key, owner));
            return Ok(PortClaim(key));
        }

        let (low, high) = net.local_port_range();
        let none = || Errno::EADDRNOTAVAIL.to_kernel();
        let range = bind::EphemeralRange::new(low, high).ok_or_else(none)?;
        let random = random::u32();
        let mut table = self.table.lock();
        key.port = range
            .probe(random, table.last_used)
            .find(|port| table.is_unique(Key { port: *port, ..key }, &owner))
            .ok_or_else(none)?;
        table.last_used = Some(key.port);
        let _ = table.owners.insert(node.into_node(key, owner));
        Ok(PortClaim(key))
    }

    /// Changes the owner of `claim`, as the rules for sharing see it.
    pub(crate) fn update(&self, claim: &PortClaim, change: impl FnOnce(&mut Owner)) {
        if let Some(owner) = self.table.lock().owners.get_mut(&claim.0) {
            change(owner);
        }
    }

    /// Stops the owner of `claim` from sharing its address, as a listener must not share it.
    ///
    /// Fails with the errors of [`Ports::claim`] if the address is shared now.
    pub(crate) fn make_exclusive(&self, claim: &PortClaim) -> Result {
        let mut table = self.table.lock();
        let Some(owner) = table.owners.get(&claim.0).copied() else {
            return Ok(());
        };
        // Owners of an ephemeral port whose connections can be told apart may go on sharing it.
        if !owner.reuseaddr {
            return Ok(());
        }
        let exclusive = Owner {
            reuseaddr: false,
            ..owner
        };
        table.check(claim.0, &exclusive).map_err(Errno::to_kernel)?;
        if let Some(owner) = table.owners.get_mut(&claim.0) {
            *owner = exclusive;
        }
        Ok(())
    }

    /// Gives a port back.
    pub(crate) fn release(&self, claim: PortClaim) {
        let node = self.table.lock().owners.remove_node(&claim.0);
        drop(node);
    }
}
