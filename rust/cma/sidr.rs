// SPDX-License-Identifier: GPL-2.0

//! Service ID resolution (SIDR) for datagrams: both ends of it (IBTA 12.11).

use crate::{
    endpoint::{ConnParam, Ece, Endpoint, EndpointRef, Inner},
    ib::trace,
    kext::error::ResultExt,
};
use cmproto::{
    sidr::{ReplyParams, ResolveParams, Status},
    stored_addr::StoredAddr,
};
use kernel::{prelude::*, sync::MutexGuard};

impl Endpoint {
    /// Sends a SIDR_REQ. The answer is reported as an event. Called with the lock of the endpoint.
    /// Fails as [`Endpoint::connect`] does.
    pub(super) fn connect_datagram(
        self: &EndpointRef,
        inner: MutexGuard<'_, Inner>,
        param: &ConnParam<'_>,
    ) -> Result {
        let mut inner = self.send_sidr_req_resolved(inner, param.user, |inner| {
            self.claim_qp_number(inner, param.qp_num)?;
            let data = self.request_data(inner, param)?;
            let params = ResolveParams {
                timeout: inner.response_timeout().to_duration(),
                max_cm_retries: inner.max_retries(),
                total: inner.limits().total,
                ..ResolveParams::new(self.shown_dst(inner).service_id(self.ps).0, 0)
            };
            trace::cma::cm_send_sidr_req(&self.id_priv, inner.tos());
            Ok((params, data))
        })?;
        inner.qp.num = param.qp_num;
        inner.srq = param.srq != 0;
        self.show(&inner);
        Ok(())
    }

    /// Answers a SIDR_REQ with the QP that serves it.
    ///
    /// Fails with `EINVAL` in the wrong state, for a Q_Key that is not the endpoint's, or for too
    /// much private data.
    pub(super) fn accept_datagram(
        self: &EndpointRef,
        inner: &mut Inner,
        param: Option<&ConnParam<'_>>,
        ece: Ece,
    ) -> Result {
        let before = inner.qp.qkey;
        match param.map_or(0, |param| param.qkey) {
            0 => self.take_default_qkey(inner)?,
            named => inner.qp.qkey.take(named).kernel()?,
        }
        let qkey = core::mem::replace(&mut inner.qp.qkey, before);
        let qp_num = param.map_or(inner.qp.num, |param| param.qp_num);
        let params = ReplyParams {
            vendor_id: ece.vendor_id,
            attr_mod: ece.attr_mod,
            ..ReplyParams::success(qp_num, qkey.value())
        };
        let private_data = param.map_or(&[][..], |param| param.private_data);
        self.reply_datagram(inner, &params, private_data)?;
        inner.qp.qkey = qkey;
        inner.qp.num = qp_num;
        inner.srq = param.map_or(inner.srq, |param| param.srq != 0);
        self.show(inner);
        Ok(())
    }

    /// Refuses a SIDR_REQ.
    ///
    /// Fails with `EINVAL` in the wrong state, or for too much private data.
    pub(super) fn reject_datagram(
        self: &EndpointRef,
        inner: &mut Inner,
        private_data: &[u8],
    ) -> Result {
        self.reply_datagram(inner, &ReplyParams::failure(Status::REJECT), private_data)
    }

    /// Sends a SIDR_REP.
    ///
    /// Fails with `EINVAL` in the wrong state, or for too much private data.
    fn reply_datagram(
        self: &EndpointRef,
        inner: &mut Inner,
        params: &ReplyParams,
        private_data: &[u8],
    ) -> Result {
        if inner.exchange.sidr().is_none() {
            return Err(EINVAL);
        }
        trace::cma::cm_send_sidr_rep(&self.id_priv, inner.tos());
        self.send_sidr_rep(inner, params, &[], private_data)
    }
}
