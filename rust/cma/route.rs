// SPDX-License-Identifier: GPL-2.0

//! Route resolution: determines the path to the peer.
//!
//! On RoCE nobody is asked: the path follows from the addresses and the interface. iWARP has no
//! paths, as TCP finds its way. For InfiniBand see [`super::infiniband`].

use crate::{
    endpoint::{Attachment, Endpoint, EndpointRef, Event, Inner, PathRecords},
    ib::addr::roce_path_mtu,
    kext::netdev::NetDevice,
};
use cmproto::{
    addr::SockAddr,
    cma::{State, Trigger},
    path::{self, Path, ROCE_PACKET_LIFE_TIME, ROCE_PKEY},
    stored_addr::StoredAddr,
    ucma::path::PathRecord,
    ucma_abi::{CmEvent, SaPathRecord},
};
use kernel::prelude::*;

/// The bits of a flow label.
const FLOW_LABEL_MASK: u32 = 0x000f_ffff;

/// Returns the flow label of a RoCE v2 path: that of the source address, or else one that differs
/// between connections, so that they spread over the links of the network.
fn flow_label(src: &SockAddr, dst: &SockAddr) -> u32 {
    if let SockAddr::V6 { flowinfo, .. } = src {
        let label = flowinfo & FLOW_LABEL_MASK;
        if label != 0 {
            return label;
        }
    }
    u32::from(src.port())
        .wrapping_mul(31)
        .wrapping_add(u32::from(dst.port()))
        & FLOW_LABEL_MASK
}

impl Endpoint {
    /// Resolves the route. The outcome is reported as an event: at once, except on InfiniBand,
    /// where it comes with the answer of the subnet administrator or after `timeout_ms`.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EINVAL` if `timeout_ms` is 0, in the wrong state, or if the MTU of the interface is too
    ///   small;
    /// - `ENODEV` for a loopback address on RoCE, or if the interface has gone;
    /// - the errors of asking the subnet administrator.
    pub(crate) fn resolve_route(self: &EndpointRef, timeout_ms: u32) -> Result {
        if timeout_ms == 0 {
            return Err(EINVAL);
        }
        let mut inner = self.inner.lock();
        if !matches!(inner.state(), State::AddrResolved | State::AddrinfoResolved) {
            return Err(EINVAL);
        }
        if inner.is_ib() {
            return self.query_route(&mut inner, timeout_ms);
        }
        if !inner.is_iwarp() {
            let path = self.roce_path(&inner)?;
            inner.watching = self.watch_peer(&inner)?;
            inner.route.set_path(path);
        }
        self.step(&mut inner, Trigger::ComputeRoute)?;
        self.deliver(&inner, &Event::new(CmEvent::RouteResolved, 0));
        Ok(())
    }

    /// Sets a route that the consumer has found by itself. If `report` is set, the event is
    /// reported at once.
    ///
    /// Fails with `EINVAL` in the wrong state, with `ENODEV` for a loopback address on RoCE or if
    /// the interface has gone, or with `ENOMEM`. On failure nothing has changed.
    pub(crate) fn set_path(&self, record: &PathRecord, report: bool) -> Result {
        let mut inner = self.inner.lock();
        if inner.state() != State::AddrResolved {
            return Err(EINVAL);
        }
        if inner.is_roce() {
            let link = inner.resolution.dev_addr.as_ref().ok_or(ENODEV)?;
            NetDevice::by_index(&self.net, link.bound_dev_if).ok_or(ENODEV)?;
        }
        let has_lids = inner.is_ib();
        let records = PathRecords::of_path(path::shown(record, has_lids))?;
        inner.route.path = Some(Path::from_record(record, has_lids));
        inner.route.add_records(records);
        self.step(&mut inner, Trigger::SetPath)?;
        if report {
            self.deliver(&inner, &Event::new(CmEvent::RouteResolved, 0));
        }
        Ok(())
    }

    /// Returns the path in a record of a program. On Omni-Path, long LIDs are in its GIDs.
    pub(crate) fn path_of_program(&self, record: &SaPathRecord) -> PathRecord {
        let is_opa = {
            let inner = self.inner.lock();
            inner.device.as_ref().is_some_and(Attachment::is_opa)
        };
        if is_opa {
            PathRecord::from_ib(record)
        } else {
            PathRecord::from(*record)
        }
    }

    /// Computes the path from the source to the destination address on RoCE.
    fn roce_path(&self, inner: &Inner) -> Result<Path> {
        let link = inner.resolution.dev_addr.as_ref().ok_or(ENODEV)?;
        let attachment = inner.device.as_ref().ok_or(ENODEV)?;
        let netdev = NetDevice::by_index(&self.net, link.bound_dev_if).ok_or(ENODEV)?;
        let default_tos = || inner.cm_port().map_or(0, |port| port.default_tos());
        let tos = inner.options.tos.unwrap_or_else(default_tos);
        let mtu = roce_path_mtu(netdev.mtu()).ok_or(EINVAL)?;
        let v2 = attachment
            .device
            .device
            .protocol_roce_udp_encap(attachment.port_num);
        let (src, dst) = (self.src(inner), self.shown_dst(inner));
        Ok(Path {
            service_id: 0,
            sgid: src.to_gid(),
            dgid: dst.to_gid(),
            flow_label: if v2 {
                flow_label(&src.read(), &dst.read())
            } else {
                0
            },
            slid: 0,
            dlid: 0,
            hop_limit: link.hop_limit,
            traffic_class: tos,
            pkey: ROCE_PKEY,
            sl: netdev.service_level(tos),
            mtu,
            rate: 0,
            is_opa: false,
            packet_life_time: match inner.options.ack_timeout {
                // The ack timeout covers the path in both directions, so that one direction has
                // half of it, which is one less as a time code.
                Some(timeout) if timeout != 0 => timeout.saturating_sub(1).min(31),
                _ => ROCE_PACKET_LIFE_TIME,
            },
        })
    }
}
