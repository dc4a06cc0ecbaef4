// SPDX-License-Identifier: GPL-2.0

//! The attributes for the state transitions of a connection's QP.

use crate::{
    endpoint::{Attachment, Conn, Endpoint, Inner},
    kext::error::ResultExt,
};
use cmproto::{
    cm::{QpAttr, QpAttrMask, QpState},
    path::ROCE_PKEY,
    qp::QpType,
    ucma_abi::{UverbsAhAttr, UverbsGlobalRoute, UverbsQpAttr},
};
use kernel::prelude::*;
use zerocopy::FromZeros;

/// The access flags of remote flushes (`enum ib_access_flags`), set where reads are allowed and the
/// device supports flushes.
const ACCESS_FLUSH: u32 = (1 << 8) | (1 << 9);

impl Inner {
    /// Returns the address vector of the path, as `struct ib_uverbs_ah_attr`, if there is a path.
    pub(crate) fn address_vector(&self) -> Option<UverbsAhAttr> {
        let (path, attachment) = (self.path.as_ref()?, self.device.as_ref()?);
        let mut vector = UverbsAhAttr {
            sl: path.sl,
            static_rate: path.rate,
            port_num: u8::try_from(attachment.port_num).unwrap_or(0),
            ..FromZeros::new_zeroed()
        };
        let is_roce = attachment.is_roce();
        if is_roce || path.has_grh() {
            let sgid_index = attachment.gid.as_ref().map_or(0, |gid| gid.index());
            vector.is_global = 1;
            vector.grh = UverbsGlobalRoute {
                dgid: path.dgid.0,
                flow_label: path.flow_label,
                sgid_index: u8::try_from(sgid_index).unwrap_or(0),
                hop_limit: path.hop_limit,
                traffic_class: path.traffic_class,
                ..FromZeros::new_zeroed()
            };
        }
        if !is_roce {
            let device = &attachment.device.device;
            let mask = device.path_bits_mask(attachment.port_num);
            vector.src_path_bits = path.slid_bits(mask.unwrap_or(0));
            vector.dlid = match &self.conn {
                Some(conn) if conn.data_lid != 0 => conn.data_lid,
                _ => path.dlid,
            };
        }
        Some(vector)
    }
}

impl Endpoint {
    /// Returns the MAC address of the peer; zeros if it is not known.
    pub(crate) fn peer_mac(&self) -> [u8; 6] {
        self.inner
            .lock()
            .link
            .as_ref()
            .map_or([0; 6], |link| link.dst_mac())
    }

    /// Returns the attributes for the transition of the QP to `state`, an `enum ib_qp_state`.
    ///
    /// The attributes of a datagram QP are the same in every state, and set the Q_Key of the
    /// endpoint, by default that of the port space.
    ///
    /// Fails with `EINVAL` if the endpoint has no device or cannot know the attributes yet, or with
    /// `ENODEV` if the port space has no Q_Key here.
    pub(crate) fn init_qp_attr(&self, state: u32) -> Result<UverbsQpAttr> {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
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
        match &inner.conn {
            None if inner.listening.is_some() && !is_datagram => return Err(EINVAL),
            None => {
                let device = &attachment.device.device;
                let pkey = if attachment.is_roce() {
                    ROCE_PKEY
                } else {
                    inner.pkey
                };
                attr.pkey_index = device.find_pkey(attachment.port_num, pkey)?;
                let last = if is_datagram {
                    self.take_default_qkey(inner)?;
                    attr.qkey = inner.qkey.value();
                    QpAttrMask::QKEY
                } else {
                    QpAttrMask::ACCESS_FLAGS
                };
                let mask = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | last;
                attr.qp_attr_mask = mask.0;
            }
            Some(conn) => connected(&mut attr, inner, attachment, conn)
                .inspect_err(|_| self.trace_no_qp_attr(conn, state))?,
        }
        if state == QpState::Rtr as u32 {
            attr.rq_psn = inner.psn;
        }
        if let Some(timeout) = inner.options.ack_timeout {
            if QpAttrMask(attr.qp_attr_mask).contains(QpAttrMask::TIMEOUT) {
                attr.timeout = timeout;
            }
        }
        if let Some(code) = inner.options.min_rnr_timer {
            if QpAttrMask(attr.qp_attr_mask).contains(QpAttrMask::MIN_RNR_TIMER) {
                attr.min_rnr_timer = code;
            }
        }
        Ok(attr)
    }
}

/// Fills in the attributes that the connection determines.
fn connected(
    attr: &mut UverbsQpAttr,
    inner: &Inner,
    attachment: &Attachment,
    conn: &Conn,
) -> Result {
    let target = QpState::try_from(attr.qp_state).kernel()?;
    let known: QpAttr = conn.machine.qp_attr(target).kernel()?;
    attr.qp_attr_mask = known.mask.0;
    attr.qp_access_flags = known.access_flags;
    if known.access_flags & QpAttr::REMOTE_READ != 0 && attachment.device.device.has_flush() {
        attr.qp_access_flags |= ACCESS_FLUSH;
    }
    if known.mask.contains(QpAttrMask::AV) {
        attr.ah_attr = inner.address_vector().ok_or(EINVAL)?;
    }
    attr.pkey_index = conn.pkey_index;
    attr.path_mtu = u32::from(known.path_mtu);
    attr.dest_qp_num = known.dest_qpn;
    attr.rq_psn = known.rq_psn;
    attr.sq_psn = known.sq_psn;
    attr.max_dest_rd_atomic = known.max_dest_rd_atomic;
    attr.max_rd_atomic = known.max_rd_atomic;
    attr.min_rnr_timer = known.min_rnr_timer;
    attr.retry_cnt = known.retry_cnt;
    attr.rnr_retry = known.rnr_retry;
    attr.timeout = known.timeout;
    attr.path_mig_state = u32::from(known.path_mig_state);
    Ok(())
}
