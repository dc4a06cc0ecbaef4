// SPDX-License-Identifier: GPL-2.0

//! The peers of connections: their answer times.

use super::{
    connection::{self, put_trip},
    identifier::is_visible,
};
use crate::{
    globals::Globals,
    kext::{net::Net, netlink::Answer},
};
use cmproto::{
    cm::{RetryPolicy, Tunable},
    netlink::{Attr, Command, Viewer},
    origin::Origin,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, rbtree::RBTree};

/// The peers that a dump has not come to.
pub(super) struct Peers(RBTree<Origin, Connections>);

/// The connections with a peer.
struct Connections {
    count: u32,
    /// [`Tunable::EarlyRetry`] of one of them.
    early_retry: u32,
}

impl Peers {
    /// Returns the peers of the connections that the viewer sees. Fails with `ENOMEM`.
    pub(super) fn new(globals: &Globals, viewer: &Viewer, net: &Net) -> Result<Self> {
        let mut peers = RBTree::new();
        let mut place = connection::Place::FIRST;
        while let Some((at, endpoint)) = connection::from(globals, place) {
            place = at.after();
            if !is_visible(&endpoint, viewer, net) {
                continue;
            }
            let found = endpoint.with_lock(|_, inner| {
                let early_retry = inner.tuned(Tunable::EarlyRetry);
                Some((inner.exchange.peer()?, early_retry))
            });
            let Some((peer, early_retry)) = found else {
                continue;
            };
            if let Some(Connections { count, .. }) = peers.get_mut(&peer) {
                *count = count.saturating_add(1);
                continue;
            }
            let count = 1;
            let connections = Connections { count, early_retry };
            peers.try_create_and_insert(peer, connections, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Peers(peers))
    }

    /// Dumps the peers.
    pub(super) fn dump(&mut self, globals: &Globals, out: &mut Answer<'_>) -> Result {
        while let Some(first) = self.0.cursor_front() {
            let (peer, connections) = first.current();
            let peer = *peer;
            let now = globals.now();
            let trips = &globals.round_trips;
            let view = trips.view(&peer, now);
            let policy = trips.retry_policy(&peer, None, connections.early_retry, now);
            out.message(Command::PeerGet as u8, |_, message| {
                message.bytes(Attr::Gid as u16, &peer.shown().0)?;
                message.u32(Attr::Connections as u16, connections.count)?;
                if let Some(view) = &view {
                    put_trip(view.trip, message)?;
                    message.u32(Attr::Unanswered as u16, view.unanswered)?;
                    if let Some(silent) = view.silent {
                        message.uint(Attr::Silent as u16, silent.as_micros() / 1000)?;
                    }
                }
                match policy {
                    RetryPolicy::After(early) | RetryPolicy::Overtaken(early) => {
                        message.uint(Attr::EarlyRetryAfter as u16, early.as_micros())
                    }
                    RetryPolicy::Classic | RetryPolicy::Hold(_) => Ok(()),
                }
            })?;
            self.0.remove(&peer);
        }
        Ok(())
    }
}
