// SPDX-License-Identifier: GPL-2.0

//! The state that all channels share.

use super::{
    context::Context,
    entries::{ParamCache, PlaceCache, SlotCache},
    multicast::Multicast,
};
use crate::{
    globals::Globals,
    kext::{
        idtable::IdTable,
        slab::{SlabBoxCache, SlabCache},
    },
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{atomic::Atomic, Arc},
};

/// The slab caches for what channels have many of.
///
/// Some of these objects lead to the globals below, so that these must not be the only owner of the
/// caches.
pub(crate) struct Slabs {
    /// The places of contexts.
    pub(super) places: PlaceCache<Context>,
    /// The slots for the events of contexts.
    pub(super) slots: SlotCache,
    /// The parameters of events.
    pub(super) params: ParamCache,
}

impl Slabs {
    /// Creates the caches.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let slabs = Slabs {
            places: SlabCache::new(c"rdma_ucm_place")?,
            slots: SlotCache::new()?,
            params: SlabBoxCache::new(c"rdma_ucm_event_param")?,
        };
        Ok(Arc::new(slabs, GFP_KERNEL)?)
    }
}

/// The state that all channels share.
#[pin_data]
pub(crate) struct Ucma {
    /// The tables and services of the module.
    pub(super) globals: Arc<Globals>,
    /// The memory for what channels have many of.
    pub(super) slabs: Arc<Slabs>,
    /// The contexts of all channels, by number.
    #[pin]
    pub(super) contexts: IdTable<Context>,
    /// The memberships of all contexts in multicast groups, by number.
    #[pin]
    pub(super) groups: IdTable<Multicast>,
    /// Number of contexts of closed files that are being destroyed in the background.
    pub(super) ending: Atomic<u64>,
}

impl Ucma {
    /// Creates the state, without a context.
    pub(super) fn new(globals: Arc<Globals>, slabs: Arc<Slabs>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Ucma {
                globals,
                slabs,
                contexts <- IdTable::new(),
                groups <- IdTable::new(),
                ending: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }
}
