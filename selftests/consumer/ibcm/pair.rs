// SPDX-License-Identifier: GPL-2.0

//! Two ends, and how far they have come.

use super::{
    inbox::Inbox,
    side::Side,
    world::{next_service, World},
};
use crate::{harness::is, rdma::ib_cm_event::EventType};
use kernel::{prelude::*, sync::Arc};

/// Two ends of a connection, and the listener of `b`. Dropped, and ended, in this order.
pub(crate) struct Pair {
    pub(crate) l: Side,
    pub(crate) a: Side,
    pub(crate) b: Side,
    pub(crate) service: u64,
}

impl Pair {
    fn new(world: &Arc<World>) -> Result<Self> {
        let service = next_service();
        let b = Side::expecting(world, service)?;
        let mut l = Side::of(&b)?;
        let identity = l.identity()?;
        b.set_listener(identity);
        l.id()?.listen(service)?;
        let a = Side::new(world, service)?;
        Ok(Self { l, a, b, service })
    }

    /// A listener, and an end that may speak to it.
    pub(crate) fn start(world: &Arc<World>) -> Option<Self> {
        let pair = Self::new(world);
        is!(pair.as_ref().err(), None);
        pair.ok()
    }

    /// Up to a request that nobody has answered.
    pub(crate) fn until_req(world: &Arc<World>) -> Option<Self> {
        let mut pair = Self::start(world)?;
        (is!(pair.a.does(Inbox::send_req), Ok(())) && pair.b.expect(EventType::REQ_RECEIVED))
            .then_some(pair)
    }

    /// Up to a REP that nobody has answered.
    pub(crate) fn until_rep(world: &Arc<World>) -> Option<Self> {
        let mut pair = Self::until_req(world)?;
        (is!(pair.b.does(Inbox::send_rep), Ok(())) && pair.a.expect(EventType::REP_RECEIVED))
            .then_some(pair)
    }

    pub(crate) fn until_established(world: &Arc<World>) -> Option<Self> {
        let mut pair = Self::until_rep(world)?;
        (is!(pair.a.does(Inbox::send_rtu), Ok(())) && pair.b.expect(EventType::RTU_RECEIVED))
            .then_some(pair)
    }
}
