// SPDX-License-Identifier: GPL-2.0

//! What a consumer may set.

use crate::{
    endpoint::Endpoint,
    ib::device::NodeType,
    kext::error::{ResultExt, ToKernel},
};
use cmproto::{cm::Tunable, cma::State, errno::Errno};
use kernel::prelude::*;

/// `enum ib_qp_type` of reliable connections.
const QPT_RC: u8 = 2;
/// `enum ib_qp_type` of the initiating end of extended reliable connections.
const QPT_XRC_INI: u8 = 9;
/// `enum ib_qp_type` of the target end of extended reliable connections.
const QPT_XRC_TGT: u8 = 10;

impl Endpoint {
    /// Sets the type of service of a route that is yet to be resolved.
    pub(crate) fn set_tos(&self, tos: u8) {
        self.inner.lock().options.tos = Some(tos);
    }

    /// Allows others to bind the same address, if they allow it too.
    ///
    /// Can be allowed unless the endpoint listens, and forbidden before it is bound; else `EINVAL`.
    pub(crate) fn set_reuseaddr(&self, reuseaddr: bool) -> Result {
        let mut inner = self.inner.lock();
        let allowed = match inner.state {
            State::Idle => true,
            State::Listen => false,
            _ => reuseaddr,
        };
        if !allowed {
            return Err(EINVAL);
        }
        inner.options.reuseaddr = reuseaddr;
        if let Some(port) = &inner.port {
            self.core
                .ports
                .update(port, |owner| owner.reuseaddr = reuseaddr);
        }
        Ok(())
    }

    /// Sets whether a wildcard stands for its own address family only.
    ///
    /// `EINVAL` if the endpoint is past being bound.
    pub(crate) fn set_afonly(&self, afonly: bool) -> Result {
        let mut inner = self.inner.lock();
        if !matches!(inner.state, State::Idle | State::AddrBound) {
            return Err(EINVAL);
        }
        inner.options.afonly = Some(afonly);
        inner.afonly = afonly;
        if let Some(port) = &inner.port {
            self.core.ports.update(port, |owner| owner.afonly = afonly);
        }
        Ok(())
    }

    /// Tunes the endpoint, or if it listens the requests to it, from now on.
    ///
    /// `EINVAL` if the value is too large.
    pub(crate) fn tune(&self, tunable: Tunable, value: u32) -> Result {
        self.inner.lock().tuning.set(tunable, value).kernel()
    }

    /// Confines the endpoint to devices of one kind, or to none in particular.
    ///
    /// `EALREADY` if it is bound.
    pub(crate) fn set_node_type(&self, node_type: Option<NodeType>) -> Result {
        let mut inner = self.inner.lock();
        if inner.state != State::Idle {
            return Err(Errno::EALREADY.to_kernel());
        }
        inner.options.node_type = node_type;
        Ok(())
    }

    /// Sets how long the QP makes a peer wait that it was not ready for, an RNR code of 5 bits.
    ///
    /// `EINVAL` for a longer one, or if the QP answers to nobody.
    pub(crate) fn set_min_rnr_timer(&self, code: u8) -> Result {
        if code > 31 || !matches!(self.qp_type, QPT_RC | QPT_XRC_TGT) {
            return Err(EINVAL);
        }
        self.inner.lock().options.min_rnr_timer = Some(code);
        Ok(())
    }

    /// Sets the service level of a resolved route, 4 bits.
    pub(crate) fn set_service_level(&self, sl: u8) {
        if let Some(path) = &mut self.inner.lock().path {
            path.sl = sl & 0xf;
        }
    }

    /// Takes note of the QP that the consumer has for the endpoint: its number, 24 bits, and whether it
    /// uses a shared receive queue.
    pub(crate) fn set_qp(&self, qp_num: u32, srq: bool) {
        let mut inner = self.inner.lock();
        inner.qp_num = qp_num;
        inner.srq = srq;
        self.show(&inner);
    }

    /// Sets the local ack timeout of the QP, an IBA time code; 0 waits for ever.
    ///
    /// `EINVAL` if the QP is not reliable.
    pub(crate) fn set_ack_timeout(&self, timeout: u8) -> Result {
        if !matches!(self.qp_type, QPT_RC | QPT_XRC_INI) {
            return Err(EINVAL);
        }
        self.inner.lock().options.ack_timeout = Some(timeout);
        Ok(())
    }
}
