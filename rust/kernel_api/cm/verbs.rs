// SPDX-License-Identifier: GPL-2.0

//! Verbs of the IB CM: what [`crate::cm`] needs for those of a consumer.

use super::{super::KernelId, message::state};
use crate::{
    cm::route::{DataLids, Route},
    endpoint::{Attachment, CmDevice, EndpointRef, Inner},
    ib::{dev_addr::DevAddr, gid::GidAttr},
    kext::error::ResultExt,
};
use cmproto::{
    cm::{ConnectParams, Limits, State},
    errno::Errno,
    ibcm::{notify, Notice},
    path::Path,
    sidr::ResolveParams,
    ucma::path::PathRecord,
    ucma_abi::UverbsQpAttr,
};
use kernel::{
    prelude::*,
    sync::{atomic::Relaxed, Arc},
};
use zerocopy::FromZeros;

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
    /// Returns where the path begins, and the route along it.
    ///
    /// Fails with `EINVAL` if the port does not support connections, with `ENOENT` if it is not in
    /// the partition of the path, and like [`Route::new`].
    fn route(&self) -> Result<(Attachment, Route)> {
        let port_num = self.gid.port_num();
        let port = self.device.port(port_num).ok_or(EINVAL)?;
        if !self.device.device.cap_ib_cm(port_num) {
            return Err(EINVAL);
        }
        let attachment = Attachment {
            device: self.device.clone(),
            port_num,
            protocol: port.protocol,
            gid: Some(self.gid.clone()),
        };
        let is_roce = attachment.is_roce();
        let path = Path::from_record(&self.record, !is_roce);
        let dmac = is_roce.then_some(self.dmac);
        let route = Route::new(&attachment, &path, path.flow_label, dmac)?;
        Ok((attachment, route))
    }
}

impl KernelId {
    /// Sends a REQ; an event reports the answer. The parameters of the path are added to `params`.
    ///
    /// Fails with `EINVAL` (the state, or the parameters), `ENOENT` (the partition), `ENODEV`,
    /// `ENOMEM` and errors of the device. After an error nothing has changed.
    pub(crate) fn send_req(
        &self,
        path: &ConsumerPath,
        data_lids: DataLids,
        params: ConnectParams,
        data: &[u8],
    ) -> Result {
        let (attachment, mut route) = path.route()?;
        route.data_lids = data_lids;
        let service_id = params.service_id;
        let mut inner = self.endpoint.inner.lock();
        let limits = self.limits(&inner, &attachment)?;
        let attach = self.attacher(attachment, &route, path);
        self.endpoint
            .send_req(&mut inner, route, &limits, params, data, attach)?;
        self.show_service(service_id);
        Ok(())
    }

    /// Sends a SIDR_REQ; an event reports the answer. Fails like [`KernelId::send_req`].
    pub(crate) fn send_sidr_req(
        &self,
        path: &ConsumerPath,
        mut params: ResolveParams,
        data: &[u8],
    ) -> Result {
        let (attachment, route) = path.route()?;
        let service_id = params.service_id;
        let mut inner = self.endpoint.inner.lock();
        params.total = self.limits(&inner, &attachment)?.total;
        let attach = self.attacher(attachment, &route, path);
        self.endpoint
            .send_sidr_req(&mut inner, route, params, data, attach)?;
        self.show_service(service_id);
        Ok(())
    }

    /// Returns the limits of a request from the port of `attachment`.
    ///
    /// Fails with `EINVAL` if the state allows no request, or if the endpoint is attached to
    /// another device.
    fn limits(&self, inner: &Inner, attachment: &Attachment) -> Result<Limits> {
        let is_elsewhere = |before: &Attachment| !Arc::ptr_eq(&before.device, &attachment.device);
        if inner.is_dead()
            || state(inner) != State::Idle
            || inner.device.as_ref().is_some_and(is_elsewhere)
        {
            return Err(EINVAL);
        }
        Ok(inner.tuning_at(attachment.port()).limits())
    }

    /// Returns what attaches the endpoint, or moves it to another port of its device, and gives it
    /// the path of `route`.
    fn attacher<'a>(
        &'a self,
        attachment: Attachment,
        route: &Route,
        path: &'a ConsumerPath,
    ) -> impl FnOnce(&mut Inner) -> Result + 'a {
        let record = route.path;
        move |inner| {
            match &mut inner.device {
                None => self.endpoint.attach(inner, attachment)?,
                Some(before) => *before = attachment,
            }
            inner.path = Some(record);
            inner.link = Some(DevAddr::to_mac(path.dmac));
            Ok(())
        }
    }

    /// Shows the service of a request to the consumer.
    fn show_service(&self, service_id: u64) {
        if let Some(head) = self.cm_head() {
            head.show_service(service_id);
        }
    }

    /// Calls a verb of the endpoint, with its lock held.
    pub(crate) fn verb(&self, verb: impl FnOnce(&EndpointRef, &mut Inner) -> Result) -> Result {
        verb(&self.endpoint, &mut self.endpoint.inner.lock())
    }

    /// Returns the attributes for a transition of the queue pair to `state`, an `enum ib_qp_state`.
    ///
    /// Fails with `EINVAL` if the connection does not have them.
    pub(crate) fn cm_qp_attr(&self, state: u32) -> Result<UverbsQpAttr> {
        let mut attr = UverbsQpAttr {
            qp_state: state,
            ..FromZeros::new_zeroed()
        };
        let inner = self.endpoint.inner.lock();
        self.endpoint.init_cm_qp_attr(&inner, &mut attr)?;
        Ok(attr)
    }

    /// Handles an event of the queue pair, an `enum ib_event_type`.
    ///
    /// Can be called in any context, so that the event is passed on later. Fails with `EISCONN` if
    /// the connection is established already, even by an earlier call of this, and with `EINVAL` in
    /// other states and for other events.
    pub(crate) fn notify_cm(self: Arc<Self>, event: u32) -> Result {
        let state = self.cm_head().ok_or(EINVAL)?.state();
        match notify(state, event).kernel()? {
            Notice::Nothing => Ok(()),
            Notice::Established => {
                if self.had_data.xchg(true, Relaxed) {
                    return Err(Errno::EISCONN).kernel();
                }
                self.has_data.store(true, Relaxed);
                self.wake();
                Ok(())
            }
        }
    }
}
