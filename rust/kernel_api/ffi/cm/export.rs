// SPDX-License-Identifier: GPL-2.0

//! The functions that C calls, with the prototypes in `include/rust_rdma_cm_ibcm.h`.
//!
//! They follow the rules of [`super::super::export`].

use super::{
    super::{
        export::{export, result},
        registration::the_globals,
    },
    ib_cm_id::IbCmId,
    param::{
        accept_params, bytes, connect_params, consumer_path, data_lids, reply_params,
        resolve_params,
    },
};
use crate::{
    bindings,
    cm::consumer_path::ConsumerPaths,
    ib::{device::Device, qp},
    kernel_api::KernelId,
};
use cmproto::{
    reject::Reason,
    wire::{Drep, Dreq, Rej, Rep, Req, Rtu, SidrRep, SidrReq, INFO_LEN},
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
};

type Id = *mut bindings::ib_cm_id;

/// Returns the [`KernelId`] of a consumer's identifier.
///
/// # Safety
///
/// `id` must be an identifier that the consumer owns for the duration of `'a`.
unsafe fn id_of<'a>(id: Id) -> ArcBorrow<'a, KernelId> {
    // SAFETY: An identifier is the first field of an object that points to its owner: a `KernelId`
    // that holds a reference to itself until the consumer destroys it.
    unsafe {
        let ib_cm_id = id.cast::<bindings::rust_ib_cm_id>();
        ArcBorrow::from_raw((*ib_cm_id).owner.cast_const().cast())
    }
}

/// Calls `f` with a consumer's identifier, and converts the result to the return value of a C
/// function.
///
/// # Safety
///
/// The requirements of [`id_of`].
unsafe fn with_id(id: Id, f: impl FnOnce(ArcBorrow<'_, KernelId>) -> Result) -> c_int {
    // SAFETY: By the safety requirements.
    result(f(unsafe { id_of(id) }))
}

/// Creates an identifier, for [`rust_ib_create_cm_id`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn create(
    device: *mut bindings::ib_device,
    handler: bindings::ib_cm_handler,
    context: *mut c_void,
) -> Result<Arc<KernelId>> {
    let ib_cm_id = IbCmId::new();
    // SAFETY: The handler belongs to a consumer.
    unsafe { ib_cm_id.set_consumer(device, handler, context) };
    // SAFETY: A consumer depends on this module.
    KernelId::create_cm(&unsafe { the_globals() }?, ib_cm_id)
}

/// Returns a number that identifies a handler; never 0.
fn name_of(handler: bindings::ib_cm_handler) -> usize {
    handler.map_or(1, |handler| handler as usize)
}

/// Creates a listener, or finds one to share, for [`rust_ib_cm_insert_listen`].
///
/// # Safety
///
/// The requirements of that function.
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
        Ok(None) => Ok(id.ib_cm_id().ok_or(EINVAL)?.as_id()),
        Ok(Some(other)) => {
            id.destroy();
            let other = KernelId::of_service(&other).and_then(KernelId::ib_cm_id);
            Ok(other.ok_or(EINVAL)?.as_id())
        }
        Err(error) => {
            id.destroy();
            Err(error)
        }
    }
}

/// Sends a REQ, for [`rust_ib_send_cm_req`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn send_req(id: &KernelId, param: &bindings::ib_cm_req_param) -> Result {
    let params = connect_params(param)?;
    // SAFETY: By the safety requirements.
    unsafe {
        let (globals, gid) = (&id.endpoint().globals, param.ppath_sgid_attr);
        let (len, max) = (param.private_data_len, Req::PRIVATE_DATA_LEN);
        let data = bytes(param.private_data, len, max)?;
        let alternate = match param.alternate_path.is_null() {
            true => None,
            false => Some(consumer_path(globals, param.alternate_path, ptr::null())?),
        };
        let paths = ConsumerPaths {
            primary: consumer_path(globals, param.primary_path, gid)?,
            alternate,
            data_lids: data_lids(param),
        };
        id.send_req(&paths, params, data)
    }
}

/// Sends a SIDR_REQ, for [`rust_ib_send_cm_sidr_req`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn send_sidr_req(id: &KernelId, param: &bindings::ib_cm_sidr_req_param) -> Result {
    // SAFETY: By the safety requirements.
    unsafe {
        let (len, max) = (param.private_data_len, SidrReq::PRIVATE_DATA_LEN);
        let data = bytes(param.private_data, len, max)?;
        let path = consumer_path(&id.endpoint().globals, param.path, param.sgid_attr)?;
        id.send_sidr_req(&path, resolve_params(param), data)
    }
}

/// Returns attributes for the queue pair, for [`rust_ib_cm_init_qp_attr`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn init_qp_attr(id: &KernelId, attr: *mut bindings::ib_qp_attr, mask: *mut c_int) -> Result {
    // SAFETY: The pointers are valid by the promises of the consumer. If there are attributes, the
    // endpoint is attached to the device, so that this is valid too.
    unsafe {
        let known = id.cm_qp_attr((*attr).qp_state)?;
        let device = (*id.ib_cm_id().ok_or(EINVAL)?.as_id()).device;
        qp::set_named(&mut *attr, device, &known, id.endpoint().next_hop());
        *mask = c_int::try_from(known.qp_attr_mask).map_err(|_| EINVAL)?;
    }
    Ok(())
}

export! {
    /// Implements `ib_create_cm_id()`.
    ///
    /// # Safety
    ///
    /// The requirements of all functions in this file: the caller is a consumer that keeps the
    /// promises of [`super`], and pointers are valid for the call, or null where C allows it.
    fn rust_ib_create_cm_id(
        device: *mut bindings::ib_device,
        handler: bindings::ib_cm_handler,
        context: *mut c_void,
    ) -> Id {
        // SAFETY: By the safety requirements.
        let id = unsafe { create(device, handler, context) };
        let id = id.and_then(|id| Ok(id.ib_cm_id().ok_or(EINVAL)?.as_id()));
        id.unwrap_or_else(|error| error.to_ptr())
    }

    /// Implements `ib_destroy_cm_id()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_destroy_cm_id(id: Id) {
        // SAFETY: By the safety requirements.
        let id: Arc<KernelId> = unsafe { id_of(id) }.into();
        id.destroy_cm();
    }

    /// Implements `ib_cm_listen()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_cm_listen(id: Id, service_id: bindings::u64_) -> c_int {
        // SAFETY: By the safety requirements; the device is that of the identifier.
        unsafe {
            let device = Device::from_raw((*id).device).traits();
            with_id(id, |id| Arc::<KernelId>::from(id).listen_service(device, service_id))
        }
    }

    /// Implements `ib_cm_insert_listen()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_cm_insert_listen(
        device: *mut bindings::ib_device,
        handler: bindings::ib_cm_handler,
        service_id: bindings::u64_,
    ) -> Id {
        // SAFETY: By the safety requirements.
        let id = unsafe { insert_listen(device, handler, service_id) };
        id.unwrap_or_else(|error| error.to_ptr())
    }

    /// Implements `ib_send_cm_req()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_req(id: Id, param: *const bindings::ib_cm_req_param) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| send_req(&id, &*param)) }
    }

    /// Implements `ib_send_cm_rep()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_rep(id: Id, param: *const bindings::ib_cm_rep_param) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                let (param, max) = (&*param, Rep::PRIVATE_DATA_LEN);
                let data = bytes(param.private_data, param.private_data_len, max)?;
                id.endpoint().with_lock(|cm, inner| cm.send_rep(inner, accept_params(param), data))
            })
        }
    }

    /// Implements `ib_send_cm_rtu()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_rtu(id: Id, data: *const c_void, len: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            let data = bytes(data, len, Rtu::PRIVATE_DATA_LEN);
            with_id(id, |id| id.endpoint().with_lock(|cm, inner| cm.send_rtu(inner, data?)))
        }
    }

    /// Implements `ib_send_cm_dreq()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_dreq(id: Id, data: *const c_void, len: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            let data = bytes(data, len, Dreq::PRIVATE_DATA_LEN);
            with_id(id, |id| {
                id.pass_on_notices();
                id.endpoint().with_lock(|cm, inner| cm.send_dreq(inner, data?))
            })
        }
    }

    /// Implements `ib_send_cm_drep()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_drep(id: Id, data: *const c_void, len: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            let data = bytes(data, len, Drep::PRIVATE_DATA_LEN);
            with_id(id, |id| id.endpoint().with_lock(|cm, inner| cm.send_drep(inner, data?)))
        }
    }

    /// Implements `ib_send_cm_rej()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_rej(
        id: Id,
        reason: bindings::u32_,
        ari: *const c_void,
        ari_len: bindings::u8_,
        data: *const c_void,
        len: bindings::u8_,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                let ari = bytes(ari, ari_len, INFO_LEN)?;
                let data = bytes(data, len, Rej::PRIVATE_DATA_LEN)?;
                let reason = Reason(u16::try_from(reason).map_err(|_| EINVAL)?);
                id.endpoint().with_lock(|cm, inner| cm.send_rej(inner, reason, ari, data))
            })
        }
    }

    /// Implements `ib_prepare_cm_mra()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_prepare_cm_mra(id: Id) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().with_lock(|cm, inner| cm.prepare_mra(inner))) }
    }

    /// Implements `ib_cm_init_qp_attr()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_cm_init_qp_attr(
        id: Id,
        attr: *mut bindings::ib_qp_attr,
        mask: *mut c_int,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| init_qp_attr(&id, attr, mask)) }
    }

    /// Implements `ib_send_cm_sidr_req()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_sidr_req(id: Id, param: *const bindings::ib_cm_sidr_req_param) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| send_sidr_req(&id, &*param)) }
    }

    /// Implements `ib_send_cm_sidr_rep()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_send_cm_sidr_rep(id: Id, param: *const bindings::ib_cm_sidr_rep_param) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                let (param, max) = (&*param, SidrRep::PRIVATE_DATA_LEN);
                let info = bytes(param.info, param.info_length, INFO_LEN)?;
                let data = bytes(param.private_data, param.private_data_len, max)?;
                let params = reply_params(param)?;
                id.endpoint().with_lock(|cm, inner| cm.send_sidr_rep(inner, &params, info, data))
            })
        }
    }

    /// Implements `ib_cm_notify()`. Can be called in any context.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_ib_create_cm_id`].
    fn rust_ib_cm_notify(id: Id, event: bindings::u32_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| Arc::<KernelId>::from(id).notify_cm(event)) }
    }
}
