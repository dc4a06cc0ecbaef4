// SPDX-License-Identifier: GPL-2.0

//! Answers that are being given to requests over iWARP.
//!
//! A driver may only listen to a connection's peer some time after it has sent the answer: siw does not
//! notice what arrives before, until more does. Only a peer at this host is that quick. So it is told
//! of the answer when the call that gives it has returned.
//!
//! Lock order: held across `IwId::accept`, under the lock of a handler at most; nothing of this module
//! is locked while it is held.

use cmproto::addr::SockAddr;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{Mutex, MutexGuard},
};

/// Number of shards; a power of two.
const SHARDS: usize = 16;

/// The answers that are being given, by connection.
#[pin_data]
pub(crate) struct Answers {
    #[pin]
    shards: [Mutex<()>; SHARDS],
}

impl Answers {
    /// None is being given yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(|_| new_mutex!((), "rdma_cm_answers")),
        })
    }

    /// To be held while the request for the connection between these addresses is answered.
    pub(super) fn give(&self, one: &SockAddr, other: &SockAddr) -> Option<MutexGuard<'_, ()>> {
        // The same for both ends.
        let shard = usize::from(one.port() ^ other.port()) & (SHARDS - 1);
        self.shards.get(shard).map(Mutex::lock)
    }

    /// Waits for an answer that is being given to the request for this connection.
    pub(super) fn wait(&self, one: &SockAddr, other: &SockAddr) {
        drop(self.give(one, other));
    }
}
