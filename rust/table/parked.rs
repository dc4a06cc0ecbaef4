// SPDX-License-Identifier: GPL-2.0

//! Limit of the parked connection requests, which are those beyond a full backlog.
//!
//! A parked request has an endpoint like any other request. It is in its listener's queue behind
//! those for which the backlog has room, in the order of arrival, so that nothing has to be done
//! when there is room again. Its peer is sent an MRA, and another one for each repeated REQ.

use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// Maximum number of parked requests of the module.
const MOST: u32 = 2_048;

/// The number of parked requests of the module.
pub(crate) struct Parking(Atomic<u32>);

impl Parking {
    /// Creates a counter with the value 0. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Parking(Atomic::new(0)), GFP_KERNEL)?)
    }
}

/// A parked request, which is counted until this is dropped.
pub(crate) struct Parked(Arc<Parking>);

impl Parked {
    /// Counts a request as parked, if the limit allows it.
    pub(crate) fn take(parking: &Arc<Parking>) -> Option<Self> {
        // The request is counted first, so that the drop is right whether or not the limit was
        // reached.
        let before = parking.0.fetch_add(1, Relaxed);
        let parked = Parked(parking.clone());
        (before < MOST).then_some(parked)
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.0 .0.fetch_sub(1, Relaxed);
    }
}
