// SPDX-License-Identifier: GPL-2.0

//! The order of the listeners in their table.

/// The identity of a listener for a service id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A consumer of the InfiniBand CM, at the device with this index.
    Service { device: u32 },
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
pub(super) struct Key {
    pub(super) service_id: u64,
    pub(super) owner: Owner,
}

impl Key {
    /// Returns the lowest key of a listener of the InfiniBand CM.
    pub(super) fn first_service(service_id: u64) -> Self {
        Key {
            service_id,
            owner: Owner::Service { device: 0 },
        }
    }

    /// Returns the lowest key of a listener on an address in a network namespace.
    pub(super) fn first_address(service_id: u64, net: u64) -> Self {
        Key {
            service_id,
            owner: Owner::Address { net, number: 0 },
        }
    }

    /// Returns the next key. Numbers never run out.
    pub(super) fn after(self) -> Self {
        let owner = match self.owner {
            Owner::Service { device } => Owner::Service {
                device: device.saturating_add(1),
            },
            Owner::Address { net, number } => Owner::Address {
                net,
                number: number.saturating_add(1),
            },
        };
        Key { owner, ..self }
    }
}

/// The place of a listener in the order of shards and keys.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(super) shard: usize,
    pub(super) key: Key,
}

impl Place {
    /// The first place.
    pub(crate) const FIRST: Self = Place {
        shard: 0,
        key: Key {
            service_id: 0,
            owner: Owner::Service { device: 0 },
        },
    };

    /// Returns the next place.
    pub(crate) fn after(self) -> Self {
        Place {
            key: self.key.after(),
            ..self
        }
    }

    /// Returns the service id of the listener.
    pub(crate) fn service_id(self) -> u64 {
        self.key.service_id
    }
}
