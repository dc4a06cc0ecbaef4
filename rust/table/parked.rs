// SPDX-License-Identifier: GPL-2.0

//! Limit of the parked connection requests, which are those beyond a full backlog.
//!
//! A parked request has an endpoint like any other request. It is in its listener's queue behind
//! those for which the backlog has room, so that nothing has to be done when there is room again.
//! Its peer is sent an MRA, and another one for each repeated REQ.

use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// Maximum number of parked requests of the module, beside [`RESERVE`] for each listener.
const MOST: u32 = 2_048;

/// Number of requests that a listener may park even if others have parked as many as there may be.
const RESERVE: u32 = 16;

/// The number of parked requests of the module.
pub(crate) struct Parking(Atomic<u32>);

impl Parking {
    /// Creates a counter with the value 0. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Parking(Atomic::new(0)), GFP_KERNEL)?)
    }

    /// Returns the most requests that a listener may park now, which is set to park `wanted`. No
    /// listener has more than what is left for the others.
    pub(crate) fn share(&self, wanted: u32) -> u32 {
        let left = MOST.saturating_sub(self.0.load(Relaxed));
        wanted.min(left.max(RESERVE))
    }
}

/// A parked request, which is counted until this is dropped.
pub(crate) struct Parked(Arc<Parking>);

impl Parked {
    /// Counts a request as parked.
    pub(crate) fn new(parking: &Arc<Parking>) -> Self {
        parking.0.fetch_add(1, Relaxed);
        Parked(parking.clone())
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.0 .0.fetch_sub(1, Relaxed);
    }
}
