// SPDX-License-Identifier: GPL-2.0

//! The attributes that a connection determines for the state transitions of its QP.

use crate::{
    endpoint::{Attachment, Endpoint, Inner},
    kext::error::ResultExt,
};
use cmproto::{
    cm::{access, qp_attr_mask, QpState},
    opa,
    path::Path,
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
        let (path, attachment) = (self.route.path.as_ref()?, self.device.as_ref()?);
        let data_lid = self.exchange.conn().map_or(0, |conn| conn.data_lid);
        Some(attachment.address_vector(path, data_lid))
    }

    /// Changes an address vector of the path to that which a program gets: a long LID of Omni-Path
    /// is in its GID.
    #[inline]
    pub(crate) fn show_opa_lid(&self, vector: &mut UverbsAhAttr) {
        if let Some(attachment) = self.device.as_ref().filter(|at| at.is_opa()) {
            self.show_opa_lid_at(attachment, vector);
        }
    }

    #[cold]
    fn show_opa_lid_at(&self, at: &Attachment, vector: &mut UverbsAhAttr) {
        let own = at.device.device.query_gid(at.port_num, 0);
        if let (Some(path), Ok(own)) = (&self.route.path, own) {
            vector.show_opa_lid(path.dlid, &own);
        }
    }
}

impl Attachment {
    /// Returns the address vector of `path`, which begins here. Data is sent to `data_lid`, unless
    /// that is 0.
    #[inline]
    pub(super) fn address_vector(&self, path: &Path, data_lid: u16) -> UverbsAhAttr {
        let mut vector = UverbsAhAttr {
            sl: path.sl,
            static_rate: path.rate,
            port_num: u8::try_from(self.port_num).unwrap_or(0),
            ..FromZeros::new_zeroed()
        };
        let is_roce = self.is_roce();
        if is_roce || path.has_grh() {
            let sgid_index = self.gid.as_ref().map_or(0, |gid| gid.index());
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
            let mask = self.device.device.path_bits_mask(self.port_num);
            vector.src_path_bits = path.slid_bits(mask.unwrap_or(0));
            vector.dlid = match data_lid {
                0 => opa::short_lid(path.dlid),
                lid => lid,
            };
        }
        vector
    }
}

impl Endpoint {
    /// Returns the attributes for the transition of the QP of a connection to `state`, an `enum
    /// ib_qp_state`.
    ///
    /// Fails with `EINVAL` if there is no connection, or if it does not have them yet.
    pub(crate) fn cm_qp_attr(&self, inner: &Inner, state: u32) -> Result<UverbsQpAttr> {
        let connected = inner.device.as_ref().zip(inner.exchange.conn());
        let (attachment, conn) = connected.ok_or(EINVAL)?;
        let known = QpState::try_from(state).and_then(|state| conn.machine.qp_attr(state));
        let mut attr = known
            .kernel()
            .inspect_err(|_| self.trace_no_qp_attr(conn, state))?;
        attr.port_num = u8::try_from(attachment.port_num).unwrap_or(0);
        attr.pkey_index = conn.pkey_index;
        if attr.qp_access_flags & access::REMOTE_READ != 0 && attachment.device.device.has_flush() {
            attr.qp_access_flags |= ACCESS_FLUSH;
        }
        if attr.qp_attr_mask & qp_attr_mask::AV != 0 {
            attr.ah_attr = inner.address_vector().ok_or(EINVAL)?;
        }
        if attr.qp_attr_mask & qp_attr_mask::ALT_PATH != 0 {
            conn.alternate().ok_or(EINVAL)?.add_to(&mut attr);
        }
        if state == QpState::Rtr as u32 {
            attr.rq_psn = inner.qp.psn;
        }
        Ok(attr)
    }
}
