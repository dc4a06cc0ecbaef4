// SPDX-License-Identifier: GPL-2.0

//! Connections of kernel consumers, and the states of their queue pairs.

use super::{
    ffi::{self, ReleasedQp},
    KernelId,
};
use crate::{
    endpoint::{ConnParam, Ece},
    ib::qp::{NextHop, Qp},
    kext::error::ToKernel,
};
use cmproto::{
    cm::QpState,
    cma::{
        qp::{steps, QpStage, Step, Transport},
        State,
    },
    qp::QpType,
    reject::Reason,
    ucma_abi::UverbsQpAttr,
};
use kernel::prelude::*;
use zerocopy::FromZeros;

impl KernelId {
    /// Takes a queue pair through the states that the stage requires.
    ///
    /// `param` are the parameters of the consumer's answer, if it gives one.
    fn modify_qp_for(&self, qp: &Qp<'_>, stage: QpStage, param: Option<&ConnParam<'_>>) -> Result {
        let transport = match self.endpoint.qp_type {
            _ if self.endpoint.is_iwarp() => Transport::Iwarp,
            QpType::UD => Transport::Datagram,
            _ => Transport::Connected,
        };
        for step in steps(stage, transport) {
            match *step {
                Step::Full(state) => {
                    let mut attr = self.endpoint.init_qp_attr(state as u32)?;
                    match (state, param) {
                        (QpState::Rtr, Some(param)) => {
                            attr.max_dest_rd_atomic = param.responder_resources;
                        }
                        (QpState::Rts, Some(param)) => attr.max_rd_atomic = param.initiator_depth,
                        _ => {}
                    }
                    qp.modify(&attr, self.endpoint.next_hop())?;
                }
                Step::Bare(state, mask) => {
                    let attr = UverbsQpAttr {
                        qp_state: state as u32,
                        qp_attr_mask: mask,
                        ..FromZeros::new_zeroed()
                    };
                    qp.modify(&attr, NextHop::NONE)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the identifier's queue pair, if it has one, through the states that the stage
    /// requires.
    pub(super) fn change_qp(&self, stage: QpStage, param: Option<&ConnParam<'_>>) -> Result {
        let held = self.qp.lock();
        match self.endpoint.id_priv.qp(&held) {
            Some(qp) => self.modify_qp_for(&qp, stage, param),
            None => Ok(()),
        }
    }

    /// Makes `qp` the queue pair of the identifier, and takes it to INIT.
    ///
    /// Fails with `EINVAL` without a device, and with errors of the device. After an error nothing
    /// has changed except for the state of the queue pair.
    pub(crate) fn adopt_qp(&self, qp: &Qp<'_>) -> Result {
        let mut held = self.qp.lock();
        self.with_state_error(self.modify_qp_for(qp, QpStage::Created, None))?;
        self.endpoint.id_priv.set_qp(&mut held, qp);
        self.endpoint.set_qp(qp.number(), qp.has_srq());
        Ok(())
    }

    /// Removes the queue pair from the identifier and returns it, if there is one.
    pub(crate) fn release_qp(&self) -> Option<ReleasedQp> {
        self.endpoint.id_priv.release_qp(&mut self.qp.lock())
    }

    /// Sets the number and the SRQ flag in the parameters from the identifier's queue pair, if it
    /// has one.
    fn set_qp_param(&self, param: &mut ConnParam<'_>) {
        let _held = self.qp.lock();
        if self.endpoint.id_priv.has_qp() {
            let inner = self.endpoint.inner.lock();
            param.qp_num = inner.qp.num;
            param.srq = u8::from(inner.srq);
        }
    }

    /// Returns the result of a call that precedes a connection. `EINVAL` becomes the error of the
    /// state.
    pub(crate) fn with_state_error(&self, result: Result) -> Result {
        result.map_err(|error| match error {
            EINVAL => self.endpoint.state().refusal().to_kernel(),
            error => error,
        })
    }

    /// Connects, like [`Endpoint::connect`](crate::endpoint::Endpoint::connect).
    pub(crate) fn connect(&self, mut param: ConnParam<'_>, ece: Ece) -> Result {
        if let Some(sl) = ffi::service_level(self) {
            self.endpoint.set_service_level(sl);
        }
        self.set_qp_param(&mut param);
        let ready = || self.change_qp(QpStage::Connecting, Some(&param));
        self.with_state_error(self.endpoint.connect_with(&param, ece, ready))
    }

    /// Connects like [`KernelId::connect`], while no callback of the consumer runs.
    pub(crate) fn connect_alone(&self, param: ConnParam<'_>, ece: Ece) -> Result {
        let _handler = (!self.is_called()).then(|| self.handler.lock());
        self.connect(param, ece)
    }

    /// Accepts a connection, with the queue pair ready before the peer is told.
    ///
    /// Fails with `EINVAL` (the state, or the parameters) and errors of the device. Unless the
    /// state is wrong, an error rejects the peer.
    pub(crate) fn accept(&self, mut param: Option<ConnParam<'_>>, ece: Ece) -> Result {
        if self.endpoint.state() != State::Connect {
            return Err(EINVAL);
        }
        if let Some(param) = &mut param {
            self.set_qp_param(param);
        }
        let ready = self
            .change_qp(QpStage::Accepting, param.as_ref())
            .inspect_err(|_| self.refuse());
        // On failure the endpoint rejects the peer by itself.
        let accepted = ready.and_then(|()| self.endpoint.accept(param.as_ref(), ece, || ()));
        accepted.inspect_err(|_| {
            let _ = self.change_qp(QpStage::Ended, None);
        })
    }

    /// Rejects the connection, with the reason 28 (consumer defined).
    pub(super) fn refuse(&self) {
        let [_, reason] = Reason::CONSUMER_DEFINED.0.to_be_bytes();
        let _ = self.endpoint.reject(&[], reason);
    }

    /// Disconnects, after it has taken the queue pair to ERR.
    ///
    /// Fails with `EINVAL` if there is nothing to disconnect, and with errors of the device.
    pub(crate) fn disconnect(&self) -> Result {
        self.pass_on_notices();
        let has_peer = {
            let inner = self.endpoint.inner.lock();
            inner.exchange.peer().is_some()
        };
        if has_peer {
            self.change_qp(QpStage::Ended, None)?;
        }
        self.endpoint.disconnect()
    }
}
