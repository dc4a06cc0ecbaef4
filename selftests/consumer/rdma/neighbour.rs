// SPDX-License-Identifier: GPL-2.0

//! A neighbour that comes and goes.

use super::gid::Mac;
use crate::bindings;
use core::net::Ipv4Addr;
use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::{Acquire, Atomic, Release},
};

/// True if there is a [`Churn`].
static RUNS: Atomic<bool> = Atomic::new(false);

/// A neighbour that comes and goes, until this is dropped: it has its address for some ms, and then
/// none. It changes as the kernel changes one, but slowly.
///
/// # Invariants
///
/// It was started, and there is but one.
pub(crate) struct Churn(());

impl Churn {
    /// The neighbour `other`, at `mac`, of the interface with the address `own`.
    ///
    /// Fails with `EADDRNOTAVAIL` if there is no such interface, [`EBUSY`] or [`ENOMEM`].
    pub(crate) fn start(own: Ipv4Addr, other: Ipv4Addr, mac: Mac) -> Result<Self> {
        RUNS.cmpxchg(false, true, Acquire).map_err(|_| EBUSY)?;
        let (own, other) = (own.octets(), other.octets());
        // SAFETY: There is none. The addresses are copied.
        let started = to_result(unsafe {
            bindings::rust_test_churn_start(own.as_ptr(), other.as_ptr(), mac.as_ptr())
        });
        started.inspect_err(|_| RUNS.store(false, Release))?;
        // INVARIANT: The only one, and started.
        Ok(Self(()))
    }

    /// Waits until the neighbour has its state already, and its address not yet, which takes some
    /// ms. Returns whether it has come to that.
    pub(crate) fn wait(&self) -> bool {
        // SAFETY: By the type invariant it was started.
        unsafe { bindings::rust_test_churn_wait() }
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it was started, and this is called once.
        unsafe { bindings::rust_test_churn_stop() };
        RUNS.store(false, Release);
    }
}
