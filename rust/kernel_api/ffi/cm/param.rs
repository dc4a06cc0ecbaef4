// SPDX-License-Identifier: GPL-2.0

//! Conversion of the parameters that a consumer passes.

use crate::{
    bindings,
    cm::consumer_path::ConsumerPath,
    globals::Globals,
    ib::{
        device::Device,
        gid::{GidAttr, GidType},
        sa::record::path_from_raw,
    },
    kext::error::ResultExt,
};
use cmproto::{
    cm::{AcceptParams, ConnectParams},
    ibcm,
    qp::QpType,
    sa::DataLids,
    sidr::{ReplyParams, ResolveParams, Status},
    time::Duration,
};
use core::slice;
use kernel::prelude::*;

/// Returns bytes of a consumer for a field of a message with `max` bytes; a null pointer is an
/// empty slice.
///
/// Fails with `EINVAL` if there are more than `max` bytes.
///
/// # Safety
///
/// `data` must be null or valid for `len` bytes, for the duration of `'a`.
pub(super) unsafe fn bytes<'a>(data: *const c_void, len: u8, max: usize) -> Result<&'a [u8]> {
    let bytes = if data.is_null() {
        None
    } else {
        // SAFETY: By the safety requirements.
        Some(unsafe { slice::from_raw_parts(data.cast::<u8>(), usize::from(len)) })
    };
    ibcm::payload(bytes, max).kernel()
}

/// Returns the type of the source GID of a path, or `None` if the path is of no known type.
fn gid_type(path: &bindings::sa_path_rec) -> Option<GidType> {
    match path.rec_type {
        bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB
        | bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA => Some(GidType::Ib),
        bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1 => Some(GidType::RoceV1),
        bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2 => Some(GidType::RoceV2),
        _ => None,
    }
}

/// Returns the route of a path, which starts at `sgid` or, if that is null, at the GID in the path.
///
/// Fails with `EINVAL` if there is no path, or if no device that supports connections has the GID.
///
/// # Safety
///
/// Both must be null or valid, and `sgid` must belong to a registered device.
pub(super) unsafe fn consumer_path(
    globals: &Globals,
    path: *const bindings::sa_path_rec,
    sgid: *const bindings::ib_gid_attr,
) -> Result<ConsumerPath> {
    // SAFETY: By the safety requirements.
    let (path, sgid) = unsafe { (path.as_ref(), sgid.as_ref()) };
    let path = path.ok_or(EINVAL)?;
    let ty = gid_type(path).ok_or(EINVAL)?;
    let record = path_from_raw(path);
    let found = match sgid {
        Some(attr) => {
            // SAFETY: By the safety requirements.
            let index = unsafe { Device::from_raw(attr.device) }.index();
            let device = globals.devices.by_index(index).ok_or(EINVAL)?;
            // SAFETY: By the safety requirements.
            let gid = unsafe { GidAttr::hold(attr, &device.device) }?;
            Some((device, gid))
        }
        None => globals.devices.find_map(|device| {
            let gid = GidAttr::find(&device.device, &record.sa.sgid, ty, None).ok()?;
            Some((device.clone(), gid))
        }),
    };
    let (device, gid) = found.ok_or(EINVAL)?;
    let dmac = if ty == GidType::Ib {
        [0; 6]
    } else {
        // SAFETY: The type of the path tells that this is the valid field of the union.
        unsafe { path.__bindgen_anon_1.roce.dmac }
    };
    Ok(ConsumerPath {
        device,
        gid,
        record,
        dmac,
    })
}

/// Returns the LIDs for the data of a connection.
///
/// # Safety
///
/// The paths in `param` must be null or valid.
pub(super) unsafe fn data_lids(param: &bindings::ib_cm_req_param) -> DataLids {
    let lid_of = |path: *const bindings::sa_path_rec| {
        // SAFETY: By the safety requirements.
        let path = unsafe { path.as_ref() };
        path.map_or(0, |path| path_from_raw(path).sa.dlid)
    };
    DataLids {
        inbound: lid_of(param.primary_path_inbound),
        outbound: lid_of(param.primary_path_outbound),
    }
}

/// Converts the parameters of a REQ, without the fields that come from the path.
///
/// Fails with `EINVAL` for a QP type without connections.
pub(super) fn connect_params(param: &bindings::ib_cm_req_param) -> Result<ConnectParams> {
    Ok(ConnectParams {
        service_id: u64::from_be(param.service_id),
        local_qpn: param.qp_num,
        srq: param.srq != 0,
        transport: QpType::try_from(param.qp_type)
            .and_then(QpType::transport)
            .kernel()?,
        starting_psn: param.starting_psn,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control & 1 != 0,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        remote_cm_response_timeout: param.remote_cm_response_timeout,
        local_cm_response_timeout: param.local_cm_response_timeout,
        max_cm_retries: param.max_cm_retries,
        vendor_id: param.ece.vendor_id,
        attr_mod: param.ece.attr_mod,
        ..ConnectParams::default()
    })
}

/// Converts the parameters of a REP, without the fields that come from the device.
pub(super) fn accept_params(param: &bindings::ib_cm_rep_param) -> AcceptParams {
    AcceptParams {
        local_qpn: param.qp_num,
        starting_psn: param.starting_psn,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        failover_accepted: param.failover_accepted,
        flow_control: param.flow_control & 1 != 0,
        rnr_retry_count: param.rnr_retry_count,
        srq: param.srq != 0,
        vendor_id: param.ece.vendor_id,
        attr_mod: param.ece.attr_mod,
        ..AcceptParams::default()
    }
}

/// Converts the parameters of a SIDR_REQ, without the P_Key, which comes from the path.
pub(super) fn resolve_params(param: &bindings::ib_cm_sidr_req_param) -> ResolveParams {
    ResolveParams {
        timeout: Duration::from_millis(u64::try_from(param.timeout_ms).unwrap_or(u64::MAX)),
        max_cm_retries: param.max_cm_retries,
        ..ResolveParams::new(u64::from_be(param.service_id), 0)
    }
}

/// Converts the parameters of a SIDR_REP.
///
/// Fails with `EINVAL` for a status that does not fit the message.
pub(super) fn reply_params(param: &bindings::ib_cm_sidr_rep_param) -> Result<ReplyParams> {
    let status = u8::try_from(param.status).map_err(|_| EINVAL)?;
    Ok(ReplyParams {
        status: Status(status),
        qpn: param.qp_num,
        qkey: param.qkey,
        vendor_id: param.ece.vendor_id,
        attr_mod: param.ece.attr_mod,
    })
}
