// SPDX-License-Identifier: GPL-2.0

//! The functions that C calls, by what `include/rust_rdma_cm_ibcm.h` says.
//!
//! As [`super::super::export`].

use super::{
    super::{
        super::{device::Device, qp},
        export::{export, result},
        registration::the_core,
    },
    head::CmHead,
    param::{accept_params, bytes, connect_params, data_lids, reply_params, resolve_params, route},
};
use crate::{bindings, kernel_api::KernelId};
use cmproto::{
    reject::Reason,
    wire::{Drep, Dreq, Rej, Rep, Req, Rtu, SidrRep, SidrReq, INFO_LEN},
};
use core::ptr;
use kernel::{
    error::from_result,
    prelude::*,
    sync::{Arc, ArcBorrow},
};

type Id = *mut bindings::ib_cm_id;

/// What a consumer's identifier stands for.
///
/// # Safety
///
/// `id` must be an identifier that the consumer has, and has it for the duration of `'a`.
unsafe fn id_of<'a>(id: Id) -> ArcBorrow<'a, KernelId> {
    // SAFETY: An identifier is the start of an object that names its owner: a `KernelId` that keeps
    // itself until the consumer destroys it.
    unsafe {
        let head = id.cast::<bindings::rust_ib_cm_id>();
        ArcBorrow::from_raw((*head).owner.cast_const().cast())
    }
}

/// Creates an identifier, see [`rust_ib_create_cm_id`].
///
/// # Safety
///
/// As there.
unsafe fn create(
    device: *mut bindings::ib_device,
    handler: bindings::ib_cm_handler,
    context: *mut c_void,
) -> Result<Arc<KernelId>> {
    let head = CmHead::new();
    // SAFETY: The handler is one of a consumer.
    unsafe { head.set_consumer(device, handler, context) };
    // SAFETY: The consumer needs the module.
    KernelId::create_cm(&unsafe { the_core() }?, head)
}

/// The name by which identifiers of one handler are told from those of another; never 0.
fn name_of(handler: bindings::ib_cm_handler) -> usize {
    handler.map_or(1, |handler| handler as usize)
}

/// Creates a listener, or finds one that can be shared, see [`rust_ib_cm_insert_listen`].
///
/// # Safety
///
/// As there.
unsafe fn insert_listen(
    device: *mut bindings::ib_device,
    handler: bindings::ib_cm_handler,
    service_id: u64,
) -> Result<Id> {
    // SAFETY: By the safety requirements.
    let id = unsafe { create(device, handler, ptr::null_mut()) }?;
    // SAFETY: By the safety requirements.
    let device = unsafe { Device::from_raw(device) }.traits();
    match id.share_service(device, service_id, name_of(handler)) {
        Ok(None) => Ok(id.cm_head().ok_or(EINVAL)?.as_id()),
        Ok(Some(other)) => {
            id.destroy();
            Ok(other.cm_head().ok_or(EINVAL)?.as_id())
        }
        Err(error) => {
            id.destroy();
            Err(error)
        }
    }
}

/// Sends a REQ, see [`rust_ib_send_cm_req`].
///
/// # Safety
///
/// As there.
unsafe fn send_req(id: &KernelId, param: &bindings::ib_cm_req_param) -> Result {
    if !param.alternate_path.is_null() {
        // Nobody would fail over to it.
        return Err(EINVAL);
    }
    let params = connect_params(param)?;
    // SAFETY: By the safety requirements.
    let (lids, data, route) = unsafe {
        (
            data_lids(param),
            bytes(
                param.private_data,
                param.private_data_len,
                Req::PRIVATE_DATA_LEN,
            )?,
            route(
                &id.endpoint().core,
                param.primary_path,
                param.ppath_sgid_attr,
            )?,
        )
    };
    id.send_req(&route, lids, &params, data)
}

/// Sends a SIDR_REQ, see [`rust_ib_send_cm_sidr_req`].
///
/// # Safety
///
/// As there.
unsafe fn send_sidr_req(id: &KernelId, param: &bindings::ib_cm_sidr_req_param) -> Result {
    // SAFETY: By the safety requirements.
    let (data, route) = unsafe {
        (
            bytes(
                param.private_data,
                param.private_data_len,
                SidrReq::PRIVATE_DATA_LEN,
            )?,
            route(&id.endpoint().core, param.path, param.sgid_attr)?,
        )
    };
    let params = resolve_params(param, route.path.pkey);
    id.send_sidr_req(&route, &params, data)
}

/// Asks for attributes of the queue pair, see [`rust_ib_cm_init_qp_attr`].
///
/// # Safety
///
/// As there.
unsafe fn init_qp_attr(id: &KernelId, attr: *mut bindings::ib_qp_attr, mask: *mut c_int) -> Result {
    // SAFETY: Both are valid by the promises of the consumer, and so is the device, at which the
    // endpoint is if there are attributes.
    unsafe {
        let known = id.cm_qp_attr((*attr).qp_state)?;
        let device = (*id.cm_head().ok_or(EINVAL)?.as_id()).device;
        *attr = qp::to_raw(device, &known, id.endpoint().peer_mac());
        *mask = c_int::try_from(known.qp_attr_mask).map_err(|_| EINVAL)?;
    }
    Ok(())
}

export! {
    /// `ib_create_cm_id()`.
    ///
    /// # Safety
    ///
    /// As for all functions here: called by a consumer that keeps the promises of [`super`], with
    /// pointers that are valid for the call, or null where C allows it.
    fn rust_ib_create_cm_id(
        device: *mut bindings::ib_device,
        handler: bindings::ib_cm_handler,
        context: *mut c_void,
    ) -> Id {
        // SAFETY: By the safety requirements.
        let id = unsafe { create(device, handler, context) };
        let id = id.and_then(|id| Ok(id.cm_head().ok_or(EINVAL)?.as_id()));
        id.unwrap_or_else(|error| error.to_ptr())
    }

    /// `ib_destroy_cm_id()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_destroy_cm_id(id: Id) {
        // SAFETY: By the safety requirements.
        let id: Arc<KernelId> = unsafe { id_of(id) }.into();
        id.destroy_cm();
    }

    /// `ib_cm_listen()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_cm_listen(id: Id, service_id: bindings::u64_) -> c_int {
        // SAFETY: By the safety requirements; the device is that of the identifier.
        let (device, id) = unsafe {
            (Device::from_raw((*id).device).traits(), id_of(id))
        };
        let id: Arc<KernelId> = id.into();
        result(id.listen_service(device, service_id))
    }

    /// `ib_cm_insert_listen()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_cm_insert_listen(
        device: *mut bindings::ib_device,
        handler: bindings::ib_cm_handler,
        service_id: bindings::u64_,
    ) -> Id {
        // SAFETY: By the safety requirements.
        let id = unsafe { insert_listen(device, handler, service_id) };
        id.unwrap_or_else(|error| error.to_ptr())
    }

    /// `ib_send_cm_req()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_req(id: Id, param: *const bindings::ib_cm_req_param) -> c_int {
        // SAFETY: By the safety requirements.
        result(unsafe { send_req(&id_of(id), &*param) })
    }

    /// `ib_send_cm_rep()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_rep(id: Id, param: *const bindings::ib_cm_rep_param) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, param) = unsafe { (id_of(id), &*param) };
        // SAFETY: As above.
        let data = unsafe { bytes(param.private_data, param.private_data_len, Rep::PRIVATE_DATA_LEN) };
        result(data.and_then(|data| id.send_rep(&accept_params(param), data)))
    }

    /// `ib_send_cm_rtu()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_rtu(id: Id, data: *const c_void, len: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, data) = unsafe { (id_of(id), bytes(data, len, Rtu::PRIVATE_DATA_LEN)) };
        result(data.and_then(|data| id.act(|machine, now| machine.establish(data, now))))
    }

    /// `ib_send_cm_dreq()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_dreq(id: Id, data: *const c_void, len: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, data) = unsafe { (id_of(id), bytes(data, len, Dreq::PRIVATE_DATA_LEN)) };
        result(data.and_then(|data| id.act(|machine, now| machine.disconnect(data, now))))
    }

    /// `ib_send_cm_drep()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_drep(id: Id, data: *const c_void, len: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, data) = unsafe { (id_of(id), bytes(data, len, Drep::PRIVATE_DATA_LEN)) };
        result(data.and_then(|data| id.act(|machine, now| machine.confirm_disconnect(data, now))))
    }

    /// `ib_send_cm_rej()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_rej(
        id: Id,
        reason: bindings::u32_,
        ari: *const c_void,
        ari_len: bindings::u8_,
        data: *const c_void,
        len: bindings::u8_,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, ari, data) = unsafe {
            (
                id_of(id),
                bytes(ari, ari_len, INFO_LEN),
                bytes(data, len, Rej::PRIVATE_DATA_LEN),
            )
        };
        from_result(|| {
            let (ari, data) = (ari?, data?);
            let reason = Reason(u16::try_from(reason).map_err(|_| EINVAL)?);
            id.act(|machine, now| machine.reject(reason, ari, data, now))?;
            Ok(0)
        })
    }

    /// `ib_prepare_cm_mra()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_prepare_cm_mra(id: Id) -> c_int {
        // SAFETY: By the safety requirements.
        result(unsafe { id_of(id) }.prepare_mra())
    }

    /// `ib_cm_init_qp_attr()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_cm_init_qp_attr(
        id: Id,
        attr: *mut bindings::ib_qp_attr,
        mask: *mut c_int,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        result(unsafe { init_qp_attr(&id_of(id), attr, mask) })
    }

    /// `ib_send_cm_sidr_req()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_sidr_req(id: Id, param: *const bindings::ib_cm_sidr_req_param) -> c_int {
        // SAFETY: By the safety requirements.
        result(unsafe { send_sidr_req(&id_of(id), &*param) })
    }

    /// `ib_send_cm_sidr_rep()`.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_sidr_rep(id: Id, param: *const bindings::ib_cm_sidr_rep_param) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, param) = unsafe { (id_of(id), &*param) };
        // SAFETY: As above.
        let (info, data) = unsafe {
            (
                bytes(param.info, param.info_length, INFO_LEN),
                bytes(param.private_data, param.private_data_len, SidrRep::PRIVATE_DATA_LEN),
            )
        };
        from_result(|| {
            let (info, data) = (info?, data?);
            id.send_sidr_rep(&reply_params(param)?, info, data)?;
            Ok(0)
        })
    }

    /// `ib_cm_notify()`. Can be called in any context.
    ///
    /// # Safety
    ///
    /// As [`rust_ib_create_cm_id`].
    fn rust_ib_cm_notify(id: Id, event: bindings::u32_) -> c_int {
        // SAFETY: By the safety requirements.
        let id: Arc<KernelId> = unsafe { id_of(id) }.into();
        result(id.notify_cm(event))
    }
}
