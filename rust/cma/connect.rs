// SPDX-License-Identifier: GPL-2.0

//! Connecting, answering a connection request, and disconnecting.

use crate::{
    endpoint::{ConnParam, Ece, Endpoint, EndpointRef, Inner},
    ib::trace,
    kext::error::ResultExt,
};
use cmproto::{
    cm::{AcceptParams, ConnectParams},
    cma::State,
    private_data::RequestData,
    qp::QpType,
    reject::Reason,
    stored_addr::StoredAddr,
    wire::Transport,
};
use kernel::prelude::*;

impl Endpoint {
    /// Sends a REQ, or a SIDR_REQ for datagrams. The answer is reported as an event.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EINVAL` if the route is not resolved, or if there is too much private data;
    /// - `EPERM` if a program names the queue pair of another;
    /// - `ENOMEM` if there is no memory;
    /// - `ENODEV` if the device or its port has gone.
    pub(crate) fn connect(self: &EndpointRef, param: &ConnParam<'_>, ece: Ece) -> Result {
        self.connect_with(param, ece, || Ok(()))
    }

    /// Connects like [`Endpoint::connect`], but calls `ready` before an iWARP peer is asked.
    ///
    /// Over iWARP the queue pair has to be ready before that. `ready` is called without a lock; its
    /// error is returned.
    pub(crate) fn connect_with(
        self: &EndpointRef,
        param: &ConnParam<'_>,
        ece: Ece,
        ready: impl FnOnce() -> Result,
    ) -> Result {
        self.take_qp_number(param.qp_num);
        let inner = self.inner.lock();
        if inner.is_iwarp() {
            self.claim_qp_number(&inner, param.qp_num)?;
            drop(inner);
            return self.connect_iwarp(param, ready);
        }
        if self.qp_type == QpType::UD {
            return self.connect_datagram(inner, param);
        }
        let transport = self.qp_type.transport().kernel()?;
        let claim = |inner: &mut Inner| self.claim_qp_number(inner, param.qp_num);
        self.send_req_resolved(inner, param.user, claim, |inner| {
            let data = self.request_data(inner, param)?;
            let params = self.connect_params(inner, transport, param, ece);
            self.id_priv.set_qp_num(param.qp_num);
            trace::cma::cm_send_req(&self.id_priv, inner.tos());
            Ok((inner.limits(), params, data))
        })
    }

    /// Returns the private data of a request, in a field of `LEN` bytes, behind the header that the
    /// addresses demand. Fails with `EINVAL` if the route is not resolved any more: another call
    /// may have connected meanwhile.
    pub(super) fn request_data<const LEN: usize>(
        &self,
        inner: &Inner,
        param: &ConnParam<'_>,
    ) -> Result<RequestData<LEN>> {
        if inner.state() != State::RouteResolved {
            return Err(EINVAL);
        }
        let (src, dst) = (self.src(inner).read(), self.shown_dst(inner).read());
        RequestData::new(&src, &dst, param.private_data).kernel()
    }

    /// Returns the parameters of a REQ, without those of the route.
    #[inline]
    fn connect_params(
        &self,
        inner: &Inner,
        transport: Transport,
        param: &ConnParam<'_>,
        ece: Ece,
    ) -> ConnectParams {
        let response_timeout = inner.response_timeout().get();
        ConnectParams {
            service_id: self.shown_dst(inner).service_id(self.ps).0,
            local_qpn: param.qp_num,
            srq: param.srq != 0,
            transport,
            starting_psn: inner.qp.psn,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control & 1 != 0,
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
            remote_cm_response_timeout: response_timeout,
            local_cm_response_timeout: response_timeout,
            max_cm_retries: inner.max_retries(),
            vendor_id: ece.vendor_id,
            attr_mod: ece.attr_mod,
            ..ConnectParams::default()
        }
    }

    /// Accepts a connection: sends a REP as the answer to a REQ, an RTU as the answer to a REP
    /// (without `param`), or a SIDR_REP as the answer to a SIDR_REQ.
    ///
    /// `on_success` runs before any event that the answer causes. If this fails in the state
    /// CONNECT, the peer is refused, but not after `EPERM`: a program has named the queue pair of
    /// another.
    pub(crate) fn accept(
        self: &EndpointRef,
        param: Option<&ConnParam<'_>>,
        ece: Ece,
        on_success: impl FnOnce(),
    ) -> Result {
        if let Some(param) = param {
            self.take_qp_number(param.qp_num);
        }
        let mut inner = self.inner.lock();
        if inner.state() != State::Connect {
            return Err(EINVAL);
        }
        match param {
            Some(param) => self.claim_qp_number(&inner, param.qp_num)?,
            None => self.qp_access(&inner, inner.qp.num).map(drop)?,
        }
        if inner.is_iwarp() {
            drop(inner);
            return self.accept_iwarp(param, on_success);
        }
        let accepted = if self.qp_type == QpType::UD {
            self.accept_datagram(&mut inner, param, ece)
        } else {
            self.answer(&mut inner, param, ece)
        };
        match accepted {
            Ok(()) => on_success(),
            Err(_) => {
                let _ = self.reject_locked(&mut inner, &[], Reason::CONSUMER_DEFINED);
            }
        }
        accepted
    }

    fn answer(
        self: &EndpointRef,
        inner: &mut Inner,
        param: Option<&ConnParam<'_>>,
        ece: Ece,
    ) -> Result {
        if inner.exchange.conn().is_none() {
            return Err(EINVAL);
        }
        let tos = inner.tos();
        let Some(param) = param else {
            trace::cma::cm_send_rtu(&self.id_priv, tos);
            return self.send_rtu(inner, &[]);
        };
        let params = AcceptParams {
            local_qpn: param.qp_num,
            starting_psn: inner.qp.psn,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control & 1 != 0,
            rnr_retry_count: param.rnr_retry_count,
            srq: param.srq != 0,
            vendor_id: ece.vendor_id,
            attr_mod: ece.attr_mod,
            ..AcceptParams::default()
        };
        self.id_priv.set_qp_num(param.qp_num);
        trace::cma::cm_send_rep(&self.id_priv, tos);
        self.send_rep(inner, params, param.private_data)
            .inspect_err(|_| self.id_priv.set_qp_num(inner.qp.num))
    }

    /// Refuses a connection request.
    ///
    /// Fails with `EINVAL` in the wrong state, or for too much private data.
    pub(crate) fn reject(self: &EndpointRef, private_data: &[u8], reason: u8) -> Result {
        let mut inner = self.inner.lock();
        if inner.is_iwarp() {
            drop(inner);
            return self.reject_iwarp(private_data);
        }
        self.reject_locked(&mut inner, private_data, Reason(u16::from(reason)))
    }

    fn reject_locked(
        self: &EndpointRef,
        inner: &mut Inner,
        private_data: &[u8],
        reason: Reason,
    ) -> Result {
        if inner.exchange.sidr().is_some() {
            return self.reject_datagram(inner, private_data);
        }
        if inner.exchange.conn().is_none() {
            return Err(EINVAL);
        }
        trace::cma::cm_send_rej(&self.id_priv, inner.tos());
        self.send_rej(inner, reason, &[], private_data)
    }

    /// Ends a connection, or confirms that the peer has ended it.
    ///
    /// Succeeds if there is nothing to end, unless the endpoint has no connection and neither has a
    /// SIDR nor listens at a device: then it fails with `EINVAL`.
    pub(crate) fn disconnect(self: &EndpointRef) -> Result {
        let mut inner = self.inner.lock();
        if inner.is_iwarp() {
            drop(inner);
            return self.disconnect_iwarp();
        }
        // There is no connection to end for datagrams, nor for a listener.
        if inner.exchange.sidr().is_some() || (inner.listening.is_some() && inner.device.is_some())
        {
            return Ok(());
        }
        if inner.exchange.conn().is_none() {
            return Err(EINVAL);
        }
        let tos = inner.tos();
        trace::cma::cm_disconnect(&self.id_priv, tos);
        if self.send_dreq(&mut inner, &[]).is_ok() {
            trace::cma::cm_sent_dreq(&self.id_priv, tos);
        } else if self.send_drep(&mut inner, &[]).is_ok() {
            trace::cma::cm_sent_drep(&self.id_priv, tos);
        }
        Ok(())
    }

    /// Handles an event of the consumer's QP.
    ///
    /// Fails with `EINVAL` in a state without a connection, and like [`Endpoint::notify_cm`].
    pub(crate) fn notify(self: &EndpointRef, event: u32) -> Result {
        if self.inner.lock().exchange.iwarp().is_some() {
            // The iWARP CM needs no such notice.
            return Ok(());
        }
        self.notify_cm(event)
    }
}
