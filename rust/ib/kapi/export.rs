// SPDX-License-Identifier: GPL-2.0

//! The functions that C calls, by what `include/rust_rdma_cm_kapi.h` says.
//!
//! Each makes values of its pointers, which are valid by what a consumer promises (see
//! [`super`]), and leaves the rest to [`crate::kernel_api`].

use super::{
    super::{device::NodeType, qp, qp::Qp, restrack::OwnerName, sa::record::path_from_raw, trace},
    address,
    param::{conn_param, ece, timeout},
    registration::the_core,
};
use crate::{
    bindings,
    cma::view::Asked,
    endpoint::Ece,
    kernel_api::KernelId,
    kext::{lock::unlock_forgotten, net::Net},
};
use cmproto::{
    addr::Gid,
    mcast::Member,
    reject::Reason,
    sa::ServiceQuestion,
    service_id::{PortSpace, ServiceId},
    ucma_abi::{CmEvent, IbService},
};
use core::{mem, slice};
use kernel::{
    error::from_result,
    prelude::*,
    sync::{Arc, ArcBorrow},
};

/// Defines functions for C, and compares their signatures with the prototypes. What they allocate waits for
/// no input or output, as the caller may be storage that connects again.
macro_rules! export_to_c {
    ($(
        $(#[$attr:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block
    )*) => {$(
        const _: unsafe extern "C" fn($($ty),*) $(-> $ret)? = bindings::$name;

        $(#[$attr])*
        #[no_mangle]
        unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            let _scope = $crate::kext::reclaim::NoIo::begin();
            $body
        }
    )*};
}
pub(super) use export_to_c as export;

type Id = *mut bindings::rdma_cm_id;
type Address = *const bindings::sockaddr;

/// What a consumer's identifier stands for.
///
/// # Safety
///
/// `id` must be an identifier that the consumer has, and has it for the duration of `'a`.
unsafe fn id_of<'a>(id: Id) -> ArcBorrow<'a, KernelId> {
    // SAFETY: An identifier is the start of the object that ib_core sees, which names its owner: a
    // `KernelId` that keeps itself until the consumer destroys it.
    unsafe {
        let head = id.cast::<bindings::rdma_id_private_head>();
        ArcBorrow::from_raw((*head).consumer.cast_const().cast())
    }
}

/// What C returns.
pub(super) fn result(result: Result) -> c_int {
    from_result(|| result.map(|()| 0))
}

/// Creates an identifier, see [`rust_cma_create_id`].
///
/// # Safety
///
/// As there.
unsafe fn create(
    net: *mut bindings::net,
    handler: bindings::rdma_cm_event_handler,
    context: *mut c_void,
    ps: u32,
    qp_type: u32,
    owner: *const c_char,
) -> Result<Id> {
    // SAFETY: By the safety requirements.
    let core = unsafe { the_core() }?;
    // SAFETY: The consumer has the namespace.
    let net = unsafe { Net::from_raw(net) };
    let ps = u16::try_from(ps).map_err(|_| EINVAL)?;
    let ps = PortSpace::try_from(ps).map_err(|_| EINVAL)?;
    let qp_type = u8::try_from(qp_type).map_err(|_| EINVAL)?;
    // SAFETY: The name of a module, which is there while it calls.
    let owner = unsafe { OwnerName::copy(owner) }?;
    let id = KernelId::create(&core, net.into(), ps, qp_type, owner)?;
    let head = &id.endpoint().head;
    // SAFETY: The handler is one of a consumer.
    unsafe { head.set_handler(handler, context) };
    Ok(head.as_id())
}

/// Creates a queue pair for the identifier, see [`rust_cma_create_qp`].
///
/// # Safety
///
/// As there.
unsafe fn create_qp(
    id: &KernelId,
    pd: *mut bindings::ib_pd,
    attr: *mut bindings::ib_qp_init_attr,
) -> Result {
    let raw = id.endpoint().head.as_id();
    // SAFETY: All are valid by the promises of the consumer.
    let qp = unsafe {
        if (*raw).device != (*pd).device {
            return Err(EINVAL);
        }
        (*attr).port_num = (*raw).port_num;
        Qp::create(pd, attr)
    }?;
    id.adopt_qp(&qp).inspect_err(|_| {
        // SAFETY: Nobody knows it.
        unsafe { qp.destroy() };
    })
}

/// Asks for attributes of the queue pair, see [`rust_cma_init_qp_attr`].
///
/// # Safety
///
/// As there.
unsafe fn init_qp_attr(id: &KernelId, attr: *mut bindings::ib_qp_attr, mask: *mut c_int) -> Result {
    // SAFETY: All are valid by the promises of the consumer.
    unsafe {
        let known = id.endpoint().init_qp_attr((*attr).qp_state)?;
        let device = (*id.endpoint().head.as_id()).device;
        *attr = qp::to_raw(device, &known, id.endpoint().peer_mac());
        *mask = c_int::try_from(known.qp_attr_mask).map_err(|_| EINVAL)?;
    }
    Ok(())
}

export! {
    /// `rdma_create_id()`.
    ///
    /// # Safety
    ///
    /// As for all functions here: called by a consumer that keeps the promises of [`super`], with
    /// pointers that are valid for the call, or null where C allows it.
    fn rust_cma_create_id(
        net: *mut bindings::net,
        handler: bindings::rdma_cm_event_handler,
        context: *mut c_void,
        ps: bindings::rdma_ucm_port_space,
        qp_type: bindings::ib_qp_type,
        owner: *const c_char,
    ) -> Id {
        // SAFETY: By the safety requirements.
        match unsafe { create(net, handler, context, ps, qp_type, owner) } {
            Ok(id) => id,
            Err(error) => error.to_ptr(),
        }
    }

    /// `rdma_destroy_id()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_destroy_id(id: Id) {
        // SAFETY: By the safety requirements.
        let id: Arc<KernelId> = unsafe { id_of(id) }.into();
        id.destroy();
    }

    /// `rdma_restrict_node_type()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_restrict_node_type(id: Id, node_type: bindings::u8_) -> c_int {
        let wanted = match u32::from(node_type) {
            bindings::RDMA_NODE_UNSPECIFIED => None,
            bindings::RDMA_NODE_IB_CA => Some(NodeType::IbCa),
            bindings::RDMA_NODE_RNIC => Some(NodeType::Rnic),
            _ => return EINVAL.to_errno(),
        };
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().set_node_type(wanted))
    }

    /// `rdma_bind_addr()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_bind_addr(id: Id, addr: Address) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, addr) = unsafe { (id_of(id), address::read(addr)) };
        result(addr.and_then(|addr| id.endpoint().bind(&addr)))
    }

    /// `rdma_resolve_addr()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_resolve_addr(
        id: Id,
        src: Address,
        dst: Address,
        timeout_ms: c_ulong,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, src, dst) = unsafe { (id_of(id), address::read(src), address::read(dst)) };
        from_result(|| {
            let (src, dst) = (src?, dst?);
            id.on_the_way(id.endpoint().resolve_addr(&src, &dst, timeout(timeout_ms)))?;
            Ok(0)
        })
    }

    /// `rdma_resolve_route()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_resolve_route(id: Id, timeout_ms: c_ulong) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.on_the_way(id.endpoint().resolve_route(timeout(timeout_ms))))
    }

    /// `rdma_resolve_ib_service()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_resolve_ib_service(id: Id, ibs: *const bindings::rdma_ucm_ib_service) -> c_int {
        // SAFETY: By the safety requirements. The structs are the same, without padding, of which any
        // bytes are valid.
        let (id, service) = unsafe { (id_of(id), &*ibs.cast::<IbService>()) };
        let question = ServiceQuestion::from_user(service);
        result(id.endpoint().resolve_ib_service(&question))
    }

    /// `rdma_set_ib_path()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_set_ib_path(id: Id, path: *const bindings::sa_path_rec) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, path) = unsafe { (id_of(id), path_from_raw(&*path)) };
        result(id.set_path(&path))
    }

    /// `rdma_create_qp()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_create_qp(
        id: Id,
        pd: *mut bindings::ib_pd,
        attr: *mut bindings::ib_qp_init_attr,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            let id = id_of(id);
            let created = result(create_qp(&id, pd, attr));
            let tos = id.endpoint().inner.lock().tos();
            trace::cma::cm_qp_create(&id.endpoint().head, tos, pd, attr, created);
            created
        }
    }

    /// `rdma_destroy_qp()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_destroy_qp(id: Id) {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        let tos = id.endpoint().inner.lock().tos();
        trace::cma::cm_qp_destroy(&id.endpoint().head, tos);
        if let Some(qp) = id.release_qp() {
            // SAFETY: The consumer gives it up, and the identifier has it no more.
            unsafe { qp.destroy() };
        }
    }

    /// `rdma_init_qp_attr()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_init_qp_attr(
        id: Id,
        attr: *mut bindings::ib_qp_attr,
        mask: *mut c_int,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        result(unsafe { init_qp_attr(&id_of(id), attr, mask) })
    }

    /// `rdma_connect()` and `rdma_connect_ece()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_connect(
        id: Id,
        param: *const bindings::rdma_conn_param,
        with: *const bindings::rdma_ucm_ece,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, param, with) = unsafe { (id_of(id), conn_param(param), ece(with)) };
        let param = param.ok_or(EINVAL);
        result(param.and_then(|param| id.connect_alone(param, with)))
    }

    /// `rdma_connect_locked()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_connect_locked(
        id: Id,
        param: *const bindings::rdma_conn_param,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, param) = unsafe { (id_of(id), conn_param(param)) };
        let param = param.ok_or(EINVAL);
        result(param.and_then(|param| id.connect(param, Ece::default())))
    }

    /// `rdma_listen()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_listen(id: Id, backlog: bindings::u32_) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().listen(backlog))
    }

    /// `rdma_accept()` and `rdma_accept_ece()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_accept(
        id: Id,
        param: *const bindings::rdma_conn_param,
        with: *const bindings::rdma_ucm_ece,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (id, param, with) = unsafe { (id_of(id), conn_param(param), ece(with)) };
        result(id.accept(param, with))
    }

    /// `rdma_lock_handler()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_lock_handler(id: Id) {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        mem::forget(id.handler().lock());
    }

    /// `rdma_unlock_handler()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`]; the task has called [`rust_cma_lock_handler`].
    fn rust_cma_unlock_handler(id: Id) {
        // SAFETY: By the safety requirements.
        unsafe { unlock_forgotten(id_of(id).handler()) };
    }

    /// `rdma_notify()`. Can be called in any context.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_notify(id: Id, event: bindings::u32_) -> c_int {
        // SAFETY: By the safety requirements.
        let id: Arc<KernelId> = unsafe { id_of(id) }.into();
        result(id.notify(event))
    }

    /// `rdma_reject()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_reject(
        id: Id,
        private_data: *const c_void,
        private_data_len: bindings::u8_,
        reason: bindings::u8_,
    ) -> c_int {
        let data = if private_data.is_null() {
            &[]
        } else {
            let len = usize::from(private_data_len);
            // SAFETY: By the safety requirements.
            unsafe { slice::from_raw_parts(private_data.cast::<u8>(), len) }
        };
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().reject(data, reason))
    }

    /// `rdma_disconnect()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_disconnect(id: Id) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.disconnect())
    }

    /// `rdma_join_multicast()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_join_multicast(
        id: Id,
        addr: Address,
        join_state: bindings::u8_,
        context: *mut c_void,
    ) -> c_int {
        // Bits of `enum ib_sa_mc_join_states`.
        let member = match join_state {
            1 => Member::Full,
            8 => Member::SendOnly,
            _ => return EINVAL.to_errno(),
        };
        // SAFETY: By the safety requirements.
        let (id, addr) = unsafe { (id_of(id), address::read(addr)) };
        result(addr.and_then(|addr| id.join(&addr, member, context.addr())))
    }

    /// `rdma_leave_multicast()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_leave_multicast(id: Id, addr: Address) {
        // SAFETY: By the safety requirements.
        let (id, addr) = unsafe { (id_of(id), address::read(addr)) };
        if let Ok(addr) = addr {
            id.leave(&addr);
        }
    }

    /// `rdma_set_service_type()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_set_service_type(id: Id, tos: bindings::u8_) {
        // SAFETY: By the safety requirements.
        unsafe { id_of(id) }.endpoint().set_tos(tos);
    }

    /// `rdma_set_reuseaddr()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_set_reuseaddr(id: Id, reuse: bool) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().set_reuseaddr(reuse))
    }

    /// `rdma_set_afonly()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_set_afonly(id: Id, afonly: bool) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().set_afonly(afonly))
    }

    /// `rdma_set_ack_timeout()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_set_ack_timeout(id: Id, timeout: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().set_ack_timeout(timeout))
    }

    /// `rdma_set_min_rnr_timer()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_set_min_rnr_timer(id: Id, code: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        result(id.endpoint().set_min_rnr_timer(code))
    }

    /// `rdma_get_service_id()`, in host order; 0 for an address that has none.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_get_service_id(id: Id, addr: Address) -> bindings::u64_ {
        // SAFETY: By the safety requirements.
        let (id, addr) = unsafe { (id_of(id), address::read(addr)) };
        addr.map_or(0, |addr| ServiceId::of_address(id.endpoint().ps, &addr).0)
    }

    /// `rdma_read_gids()`.
    ///
    /// # Safety
    ///
    /// As [`rust_cma_create_id`].
    fn rust_cma_read_gids(
        id: Id,
        sgid: *mut bindings::ib_gid,
        dgid: *mut bindings::ib_gid,
    ) {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        let asked = Asked {
            gids: true,
            path: false,
        };
        let device = id.endpoint().snapshot(asked).device;
        let gids = device.map(|device| (device.sgid, device.dgid));
        let (own, peer) = gids.unwrap_or((Gid::ZERO, Gid::ZERO));
        for (to, gid) in [(sgid, own), (dgid, peer)] {
            // SAFETY: By the safety requirements.
            if let Some(to) = unsafe { to.as_mut() } {
                *to = bindings::ib_gid { raw: gid.0 };
            }
        }
    }

    /// `rdma_reject_msg()`.
    ///
    /// # Safety
    ///
    /// None: the text lives for ever.
    fn rust_cma_reject_msg(reason: c_int) -> *const c_char {
        let reason = u16::try_from(reason).map_or(Reason(0), Reason);
        reason.message().as_char_ptr()
    }

    /// `rdma_event_msg()`.
    ///
    /// # Safety
    ///
    /// None: the text lives for ever.
    fn rust_cma_event_msg(event: bindings::u32_) -> *const c_char {
        let text = CmEvent::try_from(event).map_or(CmEvent::UNKNOWN, CmEvent::message);
        text.as_char_ptr()
    }
}
