// SPDX-License-Identifier: GPL-2.0

//! The state that all channels share.

use super::{context::Context, multicast::Multicast};
use crate::{globals::Globals, kext::idtable::IdTable};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{atomic::Atomic, Arc},
};

/// The state that all channels share.
#[pin_data]
pub(crate) struct Ucma {
    /// The tables and services of the module.
    pub(super) globals: Arc<Globals>,
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
    pub(super) fn new(globals: Arc<Globals>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Ucma {
                globals,
                contexts <- IdTable::new(),
                groups <- IdTable::new(),
                ending: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }
}
