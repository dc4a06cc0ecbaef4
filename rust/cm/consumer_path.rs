// SPDX-License-Identifier: GPL-2.0

//! Requests along a path that the consumer has named, as in `<rdma/ib_cm.h>`.

use super::route::Route;
use crate::{
    endpoint::{Alternate, Alternates, Attachment, CmDevice, Endpoint, EndpointRef, Inner},
    ib::{dev_addr::DevAddr, gid::GidAttr},
    kext::error::ResultExt,
};
use cmproto::{
    cm::{ConnectParams, Limits, State},
    path::Path,
    sa::DataLids,
    sidr::ResolveParams,
    ucma::path::PathRecord,
};
use kernel::{prelude::*, sync::Arc};

/// The path that a consumer has named for a request, and where it begins.
pub(crate) struct ConsumerPath {
    /// The device that sends the request.
    pub(crate) device: Arc<CmDevice>,
    /// The source GID at the device.
    pub(crate) gid: GidAttr,
    /// The path to the peer.
    pub(crate) record: PathRecord,
    /// The MAC address of the next hop on RoCE.
    pub(crate) dmac: [u8; 6],
}

impl ConsumerPath {
    /// Returns the attachment at which the path begins, and the route along it.
    ///
    /// Fails with `EINVAL` if the port does not support connections, with `ENOENT` if it is not in
    /// the partition of the path, and like [`Route::new`].
    fn route(&self) -> Result<(Attachment, Route)> {
        let port_num = self.gid.port_num();
        let port = self.device.port(port_num).ok_or(EINVAL)?;
        if !self.device.device.cap_ib_cm(port_num) {
            return Err(EINVAL);
        }
        let attachment = Attachment::new(&self.device, port, Some(self.gid.clone()));
        let is_roce = attachment.is_roce();
        let path = Path::from_record(&self.record, !is_roce);
        let dmac = is_roce.then_some(self.dmac);
        let route = Route::new(&attachment, &path, path.flow_label, dmac, None)?;
        Ok((attachment, route))
    }
}

/// The paths that a consumer has named for a REQ.
pub(crate) struct ConsumerPaths {
    /// The path of the messages and, by default, of the data.
    pub(crate) primary: ConsumerPath,
    /// The alternate path, over InfiniBand.
    pub(crate) alternate: Option<ConsumerPath>,
    /// The LIDs for the data.
    pub(crate) data_lids: DataLids,
}

impl ConsumerPaths {
    /// Returns the attachment at which the primary path begins, and the route along both.
    ///
    /// Fails like [`ConsumerPath::route`], and with `EINVAL` if there is an alternate path that is
    /// not one of the same device, or is in another partition or has another MTU.
    fn route(&self) -> Result<(Attachment, Route)> {
        let (attachment, mut route) = self.primary.route()?;
        route.data_lids = self.data_lids;
        if attachment.is_opa() {
            // As in C.
            route.data_lids.outbound = 0;
        }
        if let Some(alternate) = &self.alternate {
            let (at, other) = alternate.route()?;
            if !at.is_ib() || !Arc::ptr_eq(&at.device, &attachment.device) {
                return Err(EINVAL);
            }
            route.path.check_alternate(&other.path).kernel()?;
            route.alternates = Some(Alternates::of(Alternate::new(at, other)?)?);
        }
        Ok((attachment, route))
    }
}

impl Endpoint {
    /// Sends a REQ along `paths`. The answer is reported as an event. The parameters of the paths
    /// are added to `params`. `begin` is called before the REQ is sent, when nothing can fail any
    /// more, with the lock of the endpoint.
    ///
    /// Fails with `EINVAL` (the state, or the parameters), `ENOENT` (the partition), `ENODEV`,
    /// `ENOMEM` and errors of the device. After an error nothing has changed.
    pub(crate) fn request(
        self: &EndpointRef,
        paths: &ConsumerPaths,
        params: ConnectParams,
        data: &[u8],
        begin: impl FnOnce(),
    ) -> Result {
        let (attachment, route) = paths.route()?;
        let mut inner = self.inner.lock();
        let limits = Self::limits_at(&inner, &attachment)?;
        let attach = self.attach_fn(attachment, &route, &paths.primary, begin);
        self.send_req(&mut inner, route, &limits, params, data, attach)
    }

    /// Sends a SIDR_REQ along `path`. The answer is reported as an event. `begin` is called as by
    /// [`Endpoint::request`].
    ///
    /// Fails like [`Endpoint::request`].
    pub(crate) fn request_sidr(
        self: &EndpointRef,
        path: &ConsumerPath,
        mut params: ResolveParams,
        data: &[u8],
        begin: impl FnOnce(),
    ) -> Result {
        let (attachment, route) = path.route()?;
        let mut inner = self.inner.lock();
        params.total = Self::limits_at(&inner, &attachment)?.total;
        let attach = self.attach_fn(attachment, &route, path, begin);
        self.send_sidr_req(&mut inner, route, params, data, attach)
    }

    /// Returns the limits of a request from the port of `attachment`.
    ///
    /// Fails with `EINVAL` if the state allows no request, or if the endpoint is attached to
    /// another device.
    fn limits_at(inner: &Inner, attachment: &Attachment) -> Result<Limits> {
        let is_elsewhere = |before: &Attachment| !Arc::ptr_eq(&before.device, &attachment.device);
        if inner.is_dead()
            || inner.cm_state() != State::Idle
            || inner.device.as_ref().is_some_and(is_elsewhere)
        {
            return Err(EINVAL);
        }
        Ok(inner.limits_at(attachment.port().map(|port| &**port)))
    }

    /// Returns a function that attaches the endpoint, or moves it to another port of its device,
    /// gives it the path of `route`, and then calls `begin`.
    fn attach_fn<'a>(
        self: &'a EndpointRef,
        attachment: Attachment,
        route: &Route,
        path: &'a ConsumerPath,
        begin: impl FnOnce() + 'a,
    ) -> impl FnOnce(&mut Inner) -> Result + 'a {
        let record = route.path;
        move |inner| {
            match &mut inner.device {
                None => self.attach(inner, attachment)?,
                Some(before) => *before = attachment,
            }
            inner.route.path = Some(record);
            inner.resolution.dev_addr = Some(DevAddr::to_mac(path.dmac));
            begin();
            Ok(())
        }
    }
}
