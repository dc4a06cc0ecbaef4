// SPDX-License-Identifier: GPL-2.0

//! The route to a peer: a path, and the resources for sending messages along it.

use crate::{
    endpoint::{Alternates, Attachment, Inner},
    ib::ah::{Ah, AhSpec},
    kext::{delay, users::UserRef},
    table::round_trips::RoundTrips,
};
use cmproto::{
    cm::{RetryPolicy, Tunable},
    cma::State,
    origin::Origin,
    path::Path,
    sa::DataLids,
    time::Instant,
    wire::ReqPath,
};
use kernel::{prelude::*, sync::MutexGuard};

/// The bits of a path's flow label that are used for its CM messages. They are few, so that
/// connections share address handles, and enough for the messages to spread over the links of the
/// network.
const MESSAGE_LABEL_MASK: u32 = 0xf;

/// A route along which a request can be sent.
pub(crate) struct Route {
    /// The path of the data.
    pub(crate) path: Path,
    /// The LIDs of the data.
    pub(crate) data_lids: DataLids,
    /// The alternate path.
    pub(super) alternates: Option<KBox<Alternates>>,
    /// The origin of the peer's messages.
    pub(super) peer: Origin,
    /// The address handle of the peer, which also has the MAD agent of the port.
    pub(super) ah: Ah,
    /// Index of the P_Key of the messages.
    pub(super) pkey_index: u16,
    /// GUID of the node that the port belongs to.
    pub(super) guid: u64,
    /// Time that the device takes to acknowledge a packet, as IBA time code.
    pub(super) ca_ack_delay: u8,
    /// The port's value of [`Tunable::EarlyRetry`], in milliseconds.
    pub(super) early_retry: u32,
}

impl Route {
    /// Prepares the route along `path` from the port of `at`. May sleep.
    ///
    /// The messages have the flow label `flow_label`. `dmac` is the MAC address of the next hop on
    /// RoCE, where `at` must have a GID. The address handle is charged to `user` if it is for a
    /// program.
    ///
    /// Fails with `ENODEV` if the port is not open, with `ENOENT` if it is not in the partition of
    /// the path, and like [`Ah::new`].
    pub(crate) fn new(
        at: &Attachment,
        path: &Path,
        flow_label: u32,
        dmac: Option<[u8; 6]>,
        user: Option<&UserRef>,
    ) -> Result<Self> {
        let device = &at.device.device;
        let port = at.port().ok_or(ENODEV)?;
        let agent = port.agent().ok_or(ENODEV)?;
        let pkey_index = device.find_pkey(at.port_num, path.pkey)?;
        let of_messages = Path {
            flow_label,
            ..*path
        };
        let spec = AhSpec::along(&of_messages, device, at.port_num, at.gid.as_ref(), dmac);
        Ok(Route {
            path: *path,
            data_lids: DataLids::default(),
            alternates: None,
            peer: if at.is_roce() {
                Origin::of_gid(path.dgid)
            } else {
                path.origin_at(at.device.ib_port(at.port_num))
            },
            ah: Ah::new(&agent, device, &spec, user)?,
            pkey_index,
            guid: port.guid,
            ca_ack_delay: port.ca_ack_delay,
            early_retry: port.tuned(Tunable::EarlyRetry),
        })
    }

    /// Prepares the route along the path that an endpoint has resolved. The lock is held until the
    /// path has been copied.
    ///
    /// Fails with `EINVAL` if the route is not resolved, with `ENODEV` if the port has gone or has
    /// no source GID, and like [`Route::new`].
    pub(super) fn resolved(inner: MutexGuard<'_, Inner>, user: Option<&UserRef>) -> Result<Self> {
        if inner.state() != State::RouteResolved {
            return Err(EINVAL);
        }
        let (Some(attachment), Some(path)) = (&inner.device, &inner.route.path) else {
            return Err(EINVAL);
        };
        if !attachment.is_roce() {
            return Self::resolved_over_ib(inner, user);
        }
        let dev_addr = inner.resolution.dev_addr.as_ref().ok_or(EINVAL)?;
        // Without a GID there is no source address: a loopback address was resolved.
        attachment.gid.as_ref().ok_or(ENODEV)?;
        let dmac = Some(dev_addr.dst_mac());
        let (attachment, path) = (attachment.clone(), *path);
        drop(inner);
        delay::point();
        let flow_label = path.flow_label & MESSAGE_LABEL_MASK;
        Route::new(&attachment, &path, flow_label, dmac, user)
    }

    /// Prepares the route of an endpoint over InfiniBand, like [`Route::resolved`].
    #[inline(never)]
    fn resolved_over_ib(inner: MutexGuard<'_, Inner>, user: Option<&UserRef>) -> Result<Self> {
        let (Some(attachment), Some(path)) = (&inner.device, &inner.route.path) else {
            return Err(EINVAL);
        };
        let (attachment, path, data_lids) = (attachment.clone(), *path, inner.route.data_lids());
        drop(inner);
        delay::point();
        let flow_label = path.flow_label & MESSAGE_LABEL_MASK;
        let mut route = Route::new(&attachment, &path, flow_label, None, user)?;
        route.data_lids = data_lids;
        Ok(route)
    }

    /// Returns the policy for the retries of a new request along the route, at the time `now`, of
    /// the endpoint with the state `inner`.
    pub(super) fn retry_policy(
        &self,
        round_trips: &RoundTrips,
        inner: &Inner,
        now: Instant,
    ) -> RetryPolicy {
        let own = inner.tuning.own(Tunable::EarlyRetry);
        let early_retry = own.unwrap_or(self.early_retry);
        round_trips.retry_policy(&self.peer, None, early_retry, now)
    }

    /// Returns the primary path of a REQ along the route.
    pub(super) fn primary(&self) -> ReqPath {
        let mut primary = self.path.to_req();
        if !primary.subnet_local && self.data_lids.inbound != 0 {
            primary.local_lid = self.data_lids.inbound;
        }
        primary
    }
}
