// SPDX-License-Identifier: GPL-2.0

//! Options that a consumer may set.

use crate::{
    endpoint::{Endpoint, EndpointRef},
    ib::device::NodeType,
    kext::error::{ResultExt, ToKernel},
};
use cmproto::{cm::Tunable, cma::State, errno::Errno, qp::QpType};
use kernel::{prelude::*, sync::atomic::Relaxed};

impl Endpoint {
    /// Sets the type of service of a route that is yet to be resolved.
    pub(crate) fn set_tos(&self, tos: u8) {
        self.inner.lock().options.tos = Some(tos);
    }

    /// Lets others bind the same address, if they let others do so, too.
    ///
    /// Fails with `EINVAL` if the endpoint listens, or if `reuseaddr` is false and the endpoint is
    /// bound.
    pub(crate) fn set_reuseaddr(&self, reuseaddr: bool) -> Result {
        let mut inner = self.inner.lock();
        let allowed = match inner.state() {
            State::Idle => true,
            State::Listen => false,
            _ => reuseaddr,
        };
        if !allowed {
            return Err(EINVAL);
        }
        inner.options.reuseaddr = reuseaddr;
        if let Some(port) = &inner.addr.port {
            port.update(|binding, _| binding.set_reuseaddr(reuseaddr));
        }
        Ok(())
    }

    /// Sets whether a wildcard address covers its own address family only.
    ///
    /// Fails with `EINVAL` in any other state than bound or new.
    pub(crate) fn set_afonly(&self, afonly: bool) -> Result {
        let mut inner = self.inner.lock();
        if !matches!(inner.state(), State::Idle | State::AddrBound) {
            return Err(EINVAL);
        }
        inner.options.afonly = Some(afonly);
        inner.addr.afonly = afonly;
        if let Some(port) = &inner.addr.port {
            port.update(|binding, _| binding.set_afonly(afonly));
        }
        Ok(())
    }

    /// Sets a tunable of the endpoint from now on. A listener's value holds for its requests.
    ///
    /// Fails with `EINVAL` if the value is too large, or if it says whether the port is shared and
    /// the endpoint is bound.
    pub(crate) fn tune(self: &EndpointRef, tunable: Tunable, value: u32) -> Result {
        let mut inner = self.inner.lock();
        if tunable == Tunable::ReusePort && inner.state() != State::Idle {
            return Err(EINVAL);
        }
        inner.tuning.set(tunable, value).kernel()?;
        if tunable == Tunable::DeadLink && value != 0 {
            self.globals.minds_links.store(true, Relaxed);
        }
        if tunable == Tunable::Keepalive {
            self.keepalive_changed(&mut inner);
        }
        Ok(())
    }

    /// Restricts the endpoint to devices of one node type, or to none in particular.
    ///
    /// Fails with `EALREADY` if the endpoint is bound.
    pub(crate) fn set_node_type(&self, node_type: Option<NodeType>) -> Result {
        let mut inner = self.inner.lock();
        if inner.state() != State::Idle {
            return Err(Errno::EALREADY.to_kernel());
        }
        inner.options.node_type = node_type;
        Ok(())
    }

    /// Sets the minimum RNR NAK timer of the QP, a 5-bit code: the time that a peer waits when the
    /// QP was not ready to receive.
    ///
    /// Fails with `EINVAL` if the code is longer, or if the QP type has no RNR NAK.
    pub(crate) fn set_min_rnr_timer(&self, code: u8) -> Result {
        if code > 31 || !matches!(self.qp_type, QpType::RC | QpType::XRC_TGT) {
            return Err(EINVAL);
        }
        self.inner.lock().options.min_rnr_timer = Some(code);
        Ok(())
    }

    /// Sets the service level of a resolved route, 4 bits.
    pub(crate) fn set_service_level(&self, sl: u8) {
        if let Some(path) = &mut self.inner.lock().route.path {
            path.sl = sl & 0xf;
        }
    }

    /// Sets the QPN of the consumer's QP, 24 bits, and whether the QP uses a shared receive queue.
    pub(crate) fn set_qp(&self, qp_num: u32, srq: bool) {
        let mut inner = self.inner.lock();
        inner.qp.num = qp_num;
        inner.srq = srq;
        self.show(&inner);
    }

    /// Sets the local ack timeout of the QP, a 5-bit IBTA time code; 0 means infinite.
    ///
    /// Fails with `EINVAL` if the QP type is not reliable.
    pub(crate) fn set_ack_timeout(&self, timeout: u8) -> Result {
        if !matches!(self.qp_type, QpType::RC | QpType::XRC_INI) {
            return Err(EINVAL);
        }
        self.inner.lock().options.ack_timeout = Some(timeout);
        Ok(())
    }
}
