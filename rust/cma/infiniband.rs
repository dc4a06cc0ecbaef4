// SPDX-License-Identifier: GPL-2.0

//! Route resolution on ports with an InfiniBand link: the GIDs of both ends, and the path, which
//! comes from the subnet administrator.

use crate::{
    endpoint::{CallbackContext, Endpoint, EndpointRef, Inner, PathRecords},
    ib::{
        debug::Failure,
        gid::GidAttr,
        sa::{PathClass, PathDone, PathQuery},
    },
};
use cmproto::{
    addr::{Gid, SockAddr},
    cma::{State, Trigger},
    event::Phase,
    path::Path,
    sa::ChosenPath,
    stored_addr::StoredAddr,
    ucma_abi::CmEvent,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// Returns the traffic class in the IPv6 flow information of an address.
fn traffic_class(flowinfo: u32) -> u8 {
    u8::try_from((flowinfo >> 20) & 0xff).unwrap_or(0)
}

impl Endpoint {
    /// Returns the GIDs of both ends on an InfiniBand link, that of this end first. A GID that is
    /// not known is zero. `inner` is as for [`Endpoint::src`].
    pub(crate) fn ends(&self, inner: &Inner) -> (Gid, Gid) {
        let link = inner.ipoib();
        let own = match (link, self.src(inner).read()) {
            (Some(link), _) => link.own_gid(),
            (None, src @ SockAddr::Ib { gid, .. }) if !src.is_any_or_loopback() => gid,
            _ => inner
                .device
                .as_ref()
                .and_then(|at| at.gid.as_ref())
                .map_or(Gid::ZERO, GidAttr::gid),
        };
        let peer = match (self.dst(inner), link) {
            (SockAddr::Unspec, _) => Gid::ZERO,
            (dst, _) if dst.is_any_or_loopback() => own,
            (SockAddr::Ib { gid, .. }, _) => gid,
            (_, Some(link)) => link.peer_gid(),
            (_, None) => Gid::ZERO,
        };
        (own, peer)
    }

    /// Asks for the path to the destination. The outcome is reported as an event. Called with the
    /// lock of the endpoint, whose address is resolved.
    ///
    /// Fails with `ENOMEM`, with `EAGAIN` if there is no subnet administrator at the moment, or
    /// with `EOPNOTSUPP` if the port never has one. On failure nothing has changed.
    pub(super) fn query_route(self: &EndpointRef, inner: &mut Inner, timeout_ms: u32) -> Result {
        let attachment = inner.device.as_ref().ok_or(ENODEV)?;
        let (sgid, dgid) = self.ends(inner);
        let query = PathQuery {
            dgid,
            sgid,
            pkey: inner.addr.pkey,
            service_id: self.shown_dst(inner).service_id(self.ps).0,
            class: match self.src(inner).read() {
                SockAddr::V6 { flowinfo, .. } | SockAddr::Ib { flowinfo, .. } => {
                    PathClass::Traffic(traffic_class(flowinfo))
                }
                SockAddr::Unspec | SockAddr::V4 { .. } => PathClass::Qos(u16::from(inner.tos())),
            },
        };
        let (device, port) = (&attachment.device.device, attachment.port_num);
        // If the answer comes before this returns, its callback waits for the endpoint's lock.
        let context = CallbackContext::new(self)?;
        let query = self
            .globals
            .sa
            .query_path(device, port, &query, timeout_ms, context)?;
        inner.route.sa_query = Some(KBox::new(query, GFP_KERNEL_ACCOUNT)?);
        self.step(inner, Trigger::ResolveRoute)
    }
}

impl PathDone for CallbackContext {
    fn path_done(self: Arc<Self>, result: Result<ChosenPath>) {
        let found = result.and_then(|chosen| {
            let path = Path::from_record(&chosen.record, true);
            Ok((path, PathRecords::of_chosen(chosen)?))
        });
        let endpoint = self.endpoint();
        let mut inner = endpoint.inner.lock();
        if inner.state() != State::RouteQuery {
            return;
        }
        let sa_query = inner.route.sa_query.take();
        let found = found.map(|(path, records)| {
            inner.route.path = Some(path);
            inner.route.add_records(records);
            if let Some(port) = inner.cm_port() {
                port.counts.latencies.count(Phase::Route, self.elapsed());
            }
        });
        let resolved = (Trigger::RouteResolved, CmEvent::RouteResolved);
        let failed = (Trigger::RouteFailed, CmEvent::RouteError);
        endpoint.query_done(
            &mut inner,
            found,
            resolved,
            failed,
            Failure::RouteUnresolved,
        );
        drop(inner);
        drop(sa_query);
    }
}
