// SPDX-License-Identifier: GPL-2.0

//! The view that a consumer has of an endpoint.

use super::Inner;
use crate::ib::dev_addr::DevAddr;
use cmproto::cm;

/// The view that a consumer has of an endpoint, whose lock is held as long as there is one.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(&'a Inner);

impl<'a> View<'a> {
    /// Returns the view of an endpoint whose locked state is `inner`.
    #[inline]
    pub(crate) fn of(inner: &'a Inner) -> Self {
        View(inner)
    }

    /// Returns the type of service that the consumer has set; 0 if none.
    #[inline]
    pub(crate) fn tos(self) -> u8 {
        self.0.tos()
    }

    /// Returns the MAC address of the next hop, if it is known.
    pub(crate) fn dst_mac(self) -> Option<[u8; 6]> {
        self.0.link.as_ref().map(DevAddr::dst_mac)
    }

    /// Returns the state as the InfiniBand CM defines it.
    pub(crate) fn cm_state(self) -> cm::State {
        self.0.cm_state()
    }

    /// Returns the communication ids of this side and of the peer; 0 for one that is not known.
    pub(crate) fn comm_ids(self) -> (u32, u32) {
        match self.0.exchange.conn() {
            Some(conn) => (conn.machine.local_comm_id(), conn.machine.remote_comm_id()),
            None => (0, 0),
        }
    }
}
