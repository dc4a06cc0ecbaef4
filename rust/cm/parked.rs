// SPDX-License-Identifier: GPL-2.0

//! Connection requests that met a full backlog: how many there may be.
//!
//! A parked request is an endpoint like that of any other request. It stands in its listener's queue
//! behind those that the backlog has room for, in the order of arrival, so that nothing has to be done
//! when a place becomes free. Its peer was sent an MRA, and is sent another one whenever it asks again.

use crate::core::Core;
use kernel::sync::{
    atomic::{Atomic, Relaxed},
    Arc,
};

/// The most parked requests of the module.
const MOST: u32 = 2_048;

/// How many requests are parked.
pub(crate) struct Parking(Atomic<u32>);

impl Parking {
    /// None is.
    pub(crate) fn new() -> Self {
        Parking(Atomic::new(0))
    }
}

/// A parked request, until this is dropped.
pub(crate) struct Parked(Arc<Core>);

impl Parked {
    /// Counts one more, if there is room.
    pub(super) fn take(core: &Arc<Core>) -> Option<Self> {
        // Counted first, so that the drop is right whether or not there was room.
        let before = core.parking.0.fetch_add(1, Relaxed);
        let parked = Parked(core.clone());
        (before < MOST).then_some(parked)
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.parking.0.fetch_sub(1, Relaxed);
    }
}
