// SPDX-License-Identifier: GPL-2.0

//! The parameters of a consumer of the IB CM.
//!
//! C header: [`include/rdma/ib_cm.h`](srctree/include/rdma/ib_cm.h)

use super::{gid::GidAttr, path::Path, qp_attr::QpType, refusal::SidrStatus};
use crate::bindings;
use core::ptr;
use kernel::prelude::*;

/// Data that a message carries.
#[derive(Clone, Copy)]
pub(crate) enum PrivateData<'a> {
    /// The data.
    Of(&'a [u8]),
    /// No data, but a length.
    Missing(u8),
}

impl PrivateData<'_> {
    /// No data.
    pub(crate) const NONE: Self = PrivateData::Missing(0);

    /// As C takes them; fails with `EINVAL` where C cannot be asked: a length has a byte.
    pub(super) fn to_raw(self) -> Result<(*const c_void, u8)> {
        match self {
            PrivateData::Of(data) => {
                let length = u8::try_from(data.len()).map_err(|_| EINVAL)?;
                Ok((data.as_ptr().cast(), length))
            }
            PrivateData::Missing(length) => Ok((ptr::null(), length)),
        }
    }
}

impl<'a> From<&'a [u8]> for PrivateData<'a> {
    fn from(data: &'a [u8]) -> Self {
        PrivateData::Of(data)
    }
}

/// A request for a connection (`struct ib_cm_req_param`).
#[derive(Clone, Copy)]
pub(crate) struct ReqParam<'a> {
    pub(crate) path: Option<Path>,
    pub(crate) alternate: Option<Path>,
    /// The GID at which the path begins; without one, it is looked up.
    pub(crate) sgid: Option<&'a GidAttr>,
    pub(crate) service_id: u64,
    pub(crate) qpn: u32,
    pub(crate) qp_type: QpType,
    pub(crate) psn: u32,
    pub(crate) private_data: PrivateData<'a>,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) remote_cm_response_timeout: u8,
    pub(crate) local_cm_response_timeout: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) max_cm_retries: u8,
}

impl ReqParam<'_> {
    /// Calls `send` with the request as C has it.
    pub(super) fn with_raw(
        &self,
        send: impl FnOnce(&mut bindings::ib_cm_req_param) -> Result,
    ) -> Result {
        let mut path = self.path.map(Path::to_raw);
        let mut alternate = self.alternate.map(Path::to_raw);
        let (private_data, private_data_len) = self.private_data.to_raw()?;
        send(&mut bindings::ib_cm_req_param {
            alternate_path: alternate.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            primary_path: path.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            ppath_sgid_attr: self.sgid.map_or(ptr::null(), GidAttr::as_raw),
            service_id: self.service_id.to_be(),
            qp_num: self.qpn,
            qp_type: self.qp_type.0,
            starting_psn: self.psn,
            private_data,
            private_data_len,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            remote_cm_response_timeout: self.remote_cm_response_timeout,
            local_cm_response_timeout: self.local_cm_response_timeout,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            max_cm_retries: self.max_cm_retries,
            ..Default::default()
        })
    }
}

/// The answer to a request (`struct ib_cm_rep_param`).
#[derive(Clone, Copy)]
pub(crate) struct RepParam<'a> {
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) private_data: PrivateData<'a>,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) rnr_retry_count: u8,
}

impl RepParam<'_> {
    /// As C has it; valid as long as the data are.
    pub(super) fn to_raw(self) -> Result<bindings::ib_cm_rep_param> {
        let (private_data, private_data_len) = self.private_data.to_raw()?;
        Ok(bindings::ib_cm_rep_param {
            qp_num: self.qpn,
            starting_psn: self.psn,
            private_data,
            private_data_len,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            rnr_retry_count: self.rnr_retry_count,
            ..Default::default()
        })
    }
}

/// A question to a service (`struct ib_cm_sidr_req_param`).
#[derive(Clone, Copy)]
pub(crate) struct SidrReqParam<'a> {
    pub(crate) path: Path,
    pub(crate) sgid: &'a GidAttr,
    pub(crate) service_id: u64,
    pub(crate) timeout_ms: usize,
    pub(crate) private_data: PrivateData<'a>,
    pub(crate) max_cm_retries: u8,
}

impl SidrReqParam<'_> {
    /// Calls `send` with the question as C has it.
    pub(super) fn with_raw(
        &self,
        send: impl FnOnce(&mut bindings::ib_cm_sidr_req_param) -> Result,
    ) -> Result {
        let mut path = self.path.to_raw();
        let (private_data, private_data_len) = self.private_data.to_raw()?;
        send(&mut bindings::ib_cm_sidr_req_param {
            path: &mut path,
            sgid_attr: self.sgid.as_raw(),
            service_id: self.service_id.to_be(),
            timeout_ms: self.timeout_ms,
            private_data,
            private_data_len,
            max_cm_retries: self.max_cm_retries,
        })
    }
}

/// The answer to a question (`struct ib_cm_sidr_rep_param`).
#[derive(Clone, Copy)]
pub(crate) struct SidrRepParam<'a> {
    pub(crate) qpn: u32,
    pub(crate) qkey: u32,
    pub(crate) status: SidrStatus,
    pub(crate) info: PrivateData<'a>,
    pub(crate) private_data: PrivateData<'a>,
}

impl SidrRepParam<'_> {
    /// As C has it; valid as long as the data are.
    pub(super) fn to_raw(self) -> Result<bindings::ib_cm_sidr_rep_param> {
        let (info, info_length) = self.info.to_raw()?;
        let (private_data, private_data_len) = self.private_data.to_raw()?;
        Ok(bindings::ib_cm_sidr_rep_param {
            qp_num: self.qpn,
            qkey: self.qkey,
            status: self.status.0,
            info,
            info_length,
            private_data,
            private_data_len,
            ..Default::default()
        })
    }
}
