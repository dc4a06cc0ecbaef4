// SPDX-License-Identifier: GPL-2.0

//! Verbs of the IB CM: what [`crate::cm`] needs for those of a consumer.

use super::{super::KernelId, message::state};
use crate::{
    cm::route::{DataLids, Route},
    cma::device::CmDevice,
    endpoint::{Attachment, EndpointRef, Inner},
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
        self.start(path, params.service_id, |inner, mut route, limits| {
            route.data_lids = data_lids;
            let endpoint = &self.endpoint;
            endpoint.send_req(inner, route, limits, params, data)
        })
    }

    /// Sends a SIDR_REQ; an event reports the answer. Fails like [`KernelId::send_req`].
    pub(crate) fn send_sidr_req(
        &self,
        path: &ConsumerPath,
        mut params: ResolveParams,
        data: &[u8],
    ) -> Result {
        self.start(path, params.service_id, |inner, route, limits| {
            params.total = limits.total;
            self.endpoint.send_sidr_req(inner, route, params, data)
        })
    }

    /// Prepares the route along `path`, and attaches the endpoint to its port, for a request that
    /// `send` sends.
    ///
    /// An endpoint that is attached already may change the port, but not the device.
    fn start(
        &self,
        path: &ConsumerPath,
        service_id: u64,
        send: impl FnOnce(&mut Inner, Route, &Limits) -> Result,
    ) -> Result {
        let (attachment, route) = path.route()?;
        let mut inner = self.endpoint.inner.lock();
        if inner.is_dead() || state(&inner) != State::Idle {
            return Err(EINVAL);
        }
        let limits = inner.full_tuning().limits();
        match &mut inner.device {
            None => self.endpoint.attach(&mut inner, attachment)?,
            Some(before) if Arc::ptr_eq(&before.device, &attachment.device) => *before = attachment,
            Some(_) => return Err(EINVAL),
        }
        inner.path = Some(route.path);
        inner.link = Some(DevAddr::to_mac(path.dmac));
        send(&mut inner, route, &limits)?;
        if let Some(head) = self.cm_head() {
            head.show_service(service_id);
        }
        Ok(())
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
