// SPDX-License-Identifier: GPL-2.0

//! Verbs of the IB CM: what [`crate::cm`] needs for those of a consumer.

use super::super::KernelId;
use crate::{
    cm::consumer_path::{ConsumerPath, ConsumerPaths},
    kext::error::ResultExt,
};
use cmproto::{
    cm::ConnectParams,
    errno::Errno,
    ibcm::{notify, Notice},
    sidr::ResolveParams,
    ucma_abi::UverbsQpAttr,
};
use kernel::{prelude::*, sync::Arc};

impl KernelId {
    /// Sends a REQ; an event reports the answer.
    ///
    /// Fails like [`Endpoint::request`](crate::endpoint::Endpoint::request).
    pub(crate) fn send_req(
        &self,
        paths: &ConsumerPaths,
        params: ConnectParams,
        data: &[u8],
    ) -> Result {
        let begin = self.show_service_fn(params.service_id);
        self.endpoint.request(paths, params, data, begin)
    }

    /// Sends a SIDR_REQ; an event reports the answer. Fails like [`KernelId::send_req`].
    pub(crate) fn send_sidr_req(
        &self,
        path: &ConsumerPath,
        params: ResolveParams,
        data: &[u8],
    ) -> Result {
        let begin = self.show_service_fn(params.service_id);
        self.endpoint.request_sidr(path, params, data, begin)
    }

    /// Returns a function that shows the service of a request to the consumer.
    fn show_service_fn(&self, service_id: u64) -> impl FnOnce() + '_ {
        move || {
            if let Some(ib_cm_id) = self.ib_cm_id() {
                ib_cm_id.show_service(service_id);
            }
        }
    }

    /// Returns the attributes for a transition of the queue pair to `state`, an `enum ib_qp_state`.
    ///
    /// Fails with `EINVAL` if the connection does not have them.
    pub(crate) fn cm_qp_attr(&self, state: u32) -> Result<UverbsQpAttr> {
        self.pass_on_notices();
        self.endpoint.cm_qp_attr(&self.endpoint.inner.lock(), state)
    }

    /// Handles an event of the queue pair, an `enum ib_event_type`.
    ///
    /// Can be called in any context, so that the event is passed on later. Fails with `EISCONN` if
    /// the connection is established already, even by an earlier call of this, and with `EINVAL` in
    /// other states and for other events.
    pub(crate) fn notify_cm(self: Arc<Self>, event: u32) -> Result {
        let state = self.ib_cm_id().ok_or(EINVAL)?.state();
        match notify(state, event).kernel()? {
            Notice::Migrated => self.has_migrated.leave(),
            Notice::Established => {
                if !self.had_data.leave_once() {
                    return Err(Errno::EISCONN).kernel();
                }
                self.has_data.leave();
            }
        }
        self.wake();
        Ok(())
    }
}
