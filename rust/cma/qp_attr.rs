// SPDX-License-Identifier: GPL-2.0

//! The attributes for the state transitions of a connection's QP.

use crate::{
    endpoint::{Endpoint, Inner, View},
    ib::qp::NextHop,
};
use cmproto::{
    cm::{qp_attr_mask, QpState},
    path::ROCE_PKEY,
    qp::QpType,
    ucma_abi::UverbsQpAttr,
};
use kernel::prelude::*;
use zerocopy::FromZeros;

impl Endpoint {
    /// Returns the next hop to the peer.
    pub(crate) fn next_hop(&self) -> NextHop {
        View::of(&self.inner.lock()).next_hop()
    }

    /// Returns the attributes for the transition of the QP to `state`, an `enum ib_qp_state`, as a
    /// program gets them.
    ///
    /// Fails like [`init_qp_attr`](Self::init_qp_attr).
    pub(crate) fn init_qp_attr_for_program(&self, state: u32) -> Result<UverbsQpAttr> {
        let mut inner = self.inner.lock();
        let mut attr = self.make_qp_attr(&mut inner, state)?;
        if attr.qp_attr_mask & qp_attr_mask::AV != 0 {
            inner.show_opa_lid(&mut attr.ah_attr);
        }
        Ok(attr)
    }

    /// Returns the attributes for the transition of the QP to `state`, an `enum ib_qp_state`.
    ///
    /// The attributes of a datagram QP are the same in every state, and set the Q_Key of the
    /// endpoint, by default that of the port space.
    ///
    /// Fails with `EINVAL` if the endpoint has no device or cannot know the attributes yet, or with
    /// `ENODEV` if the port space has no Q_Key here.
    pub(crate) fn init_qp_attr(&self, state: u32) -> Result<UverbsQpAttr> {
        self.make_qp_attr(&mut self.inner.lock(), state)
    }

    /// Returns the attributes of the endpoint with this state.
    fn make_qp_attr(&self, inner: &mut Inner, state: u32) -> Result<UverbsQpAttr> {
        let attachment = inner.device.as_ref().ok_or(EINVAL)?;
        let port_num = u8::try_from(attachment.port_num).unwrap_or(0);
        let mut attr = UverbsQpAttr {
            qp_state: state,
            port_num,
            ..FromZeros::new_zeroed()
        };
        if inner.is_iwarp() {
            super::iwarp::qp_attr(&mut attr, inner)?;
            return Ok(attr);
        }
        let is_datagram = self.qp_type == QpType::UD;
        match inner.exchange.conn() {
            None if inner.listening.is_some() && !is_datagram => return Err(EINVAL),
            None => {
                let device = &attachment.device.device;
                let pkey = if attachment.is_roce() {
                    ROCE_PKEY
                } else {
                    inner.addr.pkey
                };
                attr.pkey_index = device.find_pkey(attachment.port_num, pkey)?;
                let last = if is_datagram {
                    self.take_default_qkey(inner)?;
                    attr.qkey = inner.qp.qkey.value();
                    qp_attr_mask::QKEY
                } else {
                    qp_attr_mask::ACCESS_FLAGS
                };
                attr.qp_attr_mask =
                    qp_attr_mask::STATE | qp_attr_mask::PKEY_INDEX | qp_attr_mask::PORT | last;
                if state == QpState::Rtr as u32 {
                    attr.rq_psn = inner.qp.psn;
                }
            }
            Some(_) => attr = self.cm_qp_attr(inner, state)?,
        }
        if let Some(timeout) = inner.options.ack_timeout {
            if attr.qp_attr_mask & qp_attr_mask::TIMEOUT != 0 {
                attr.timeout = timeout;
            }
        }
        if let Some(code) = inner.options.min_rnr_timer {
            if attr.qp_attr_mask & qp_attr_mask::MIN_RNR_TIMER != 0 {
                attr.min_rnr_timer = code;
            }
        }
        Ok(attr)
    }
}
