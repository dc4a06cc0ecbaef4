// SPDX-License-Identifier: GPL-2.0

//! Two ends, and how far they have come.

use super::{
    ground::{at, Ground},
    side::Part,
};
use crate::{
    harness::is,
    rdma::{
        cm_id::{PortSpace, QpType},
        event::EventType,
    },
};
use kernel::sync::Arc;

/// Two ends of a connection, and the listener of `b`; ended when dropped, in this order.
///
/// The functions give none if they do not come as far, which has been said.
pub(crate) struct Pair {
    pub(crate) l: Part,
    pub(crate) a: Part,
    pub(crate) b: Part,
}

impl Pair {
    /// A listener, and an end that may speak to it.
    pub(crate) fn new(ground: &Arc<Ground>, ps: PortSpace, qp_type: QpType) -> Option<Self> {
        Self::listening(ground, ground.ip, ps, qp_type)
    }

    /// Creates a pair like [`Self::new`], at an address.
    pub(crate) fn listening(
        ground: &Arc<Ground>,
        ip: core::net::Ipv4Addr,
        ps: PortSpace,
        qp_type: QpType,
    ) -> Option<Self> {
        let b = Part::new(ground)?;
        ground.next_port();
        let l = Part::create(ground, ps, qp_type)?;
        l.serve(&b);
        let place = at(ip, ground.port());
        let listens = is!(l.call(|id| id.bind_addr(place)), Ok(())) && is!(l.listen(), Ok(()));
        if !listens {
            return None;
        }
        let a = Part::create(ground, ps, qp_type)?;
        a.set_active();
        Some(Self { l, a, b })
    }

    /// For a connection.
    pub(crate) fn start(ground: &Arc<Ground>) -> Option<Self> {
        Self::new(ground, PortSpace::TCP, QpType::RC)
    }

    /// Goes on if this is right.
    fn then(self, go_on: impl FnOnce(&Self) -> bool) -> Option<Self> {
        go_on(&self).then_some(self)
    }

    /// To the address.
    pub(crate) fn resolve(&self) -> bool {
        is!(self.a.resolve(), Ok(())) && self.a.expect(EventType::ADDR_RESOLVED)
    }

    /// From there to the route.
    pub(crate) fn resolve_route(&self) -> bool {
        is!(self.a.resolve_route(), Ok(())) && self.a.expect(EventType::ROUTE_RESOLVED)
    }

    /// From there to a request.
    pub(crate) fn request(&self) -> bool {
        is!(self.a.connect(), Ok(())) && self.b.expect(EventType::CONNECT_REQUEST)
    }

    pub(crate) fn until_resolved(ground: &Arc<Ground>) -> Option<Self> {
        Self::start(ground)?.then(Self::resolve)
    }

    pub(crate) fn until_route(ground: &Arc<Ground>) -> Option<Self> {
        Self::until_resolved(ground)?.then(Self::resolve_route)
    }

    pub(crate) fn until_request(ground: &Arc<Ground>) -> Option<Self> {
        Self::until_route(ground)?.then(Self::request)
    }

    /// Up to an answer that nobody has confirmed.
    pub(crate) fn until_response(ground: &Arc<Ground>) -> Option<Self> {
        Self::until_request(ground)?.then(|Self { a, b, .. }| {
            is!(b.accept(), Ok(())) && a.expect(EventType::CONNECT_RESPONSE)
        })
    }

    pub(crate) fn until_established(ground: &Arc<Ground>) -> Option<Self> {
        Self::until_response(ground)?
            .then(|Self { a, b, .. }| is!(a.confirm(), Ok(())) && b.expect(EventType::ESTABLISHED))
    }

    pub(crate) fn until_disconnected(ground: &Arc<Ground>) -> Option<Self> {
        Self::until_established(ground)?.then(|Self { a, b, .. }| {
            is!(a.disconnect(), Ok(()))
                && b.expect(EventType::DISCONNECTED)
                && is!(b.disconnect(), Ok(()))
                && a.expect(EventType::DISCONNECTED)
        })
    }
}
