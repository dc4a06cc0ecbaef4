// SPDX-License-Identifier: GPL-2.0

//! The functions that C calls, with the prototypes in `include/rust_rdma_cm_kapi.h`.
//!
//! Each function turns its pointers, which are valid by the promises of a consumer (see [`super`]),
//! into references or values, and calls [`crate::kernel_api`].

use super::{
    address,
    param::{conn_param, ece, timeout},
    registration::the_globals,
};
use crate::{
    bindings,
    endpoint::Ece,
    ib::{device::NodeType, qp, qp::Qp, restrack::OwnerName, sa::record::path_from_raw, trace},
    kernel_api::KernelId,
    kext::{error::ResultExt, lock::unlock_forgotten, net::Net},
};
use cmproto::{
    addr::Gid,
    mcast::Member,
    qp::QpType,
    reject::Reason,
    sa::ServiceQuery,
    service_id::{PortSpace, ServiceId},
    ucma::query::Ends,
    ucma_abi::{CmEvent, IbService},
};
use core::{mem, slice};
use kernel::{
    error::from_result,
    prelude::*,
    sync::{Arc, ArcBorrow},
};

/// Defines functions for C, and checks their signatures against the prototypes.
///
/// Their allocations start no I/O, because the caller may be a storage driver that reconnects.
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

/// Returns the [`KernelId`] of a consumer's identifier.
///
/// # Safety
///
/// `id` must be an identifier that the consumer owns for the duration of `'a`.
unsafe fn id_of<'a>(id: Id) -> ArcBorrow<'a, KernelId> {
    // SAFETY: An identifier is the first field of the object that ib_core reads, which points to
    // its owner: a `KernelId` that holds a reference to itself until the consumer destroys it.
    unsafe {
        let id_priv = id.cast::<bindings::rdma_id_private_head>();
        ArcBorrow::from_raw((*id_priv).consumer.cast_const().cast())
    }
}

/// Converts a result to the return value of a C function.
pub(super) fn result(result: Result) -> c_int {
    from_result(|| result.map(|()| 0))
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

/// Creates an identifier, for [`rust_cma_create_id`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn create(
    net: *mut bindings::net,
    handler: bindings::rdma_cm_event_handler,
    context: *mut c_void,
    ps: u32,
    qp_type: u32,
    owner: *const c_char,
) -> Result<Id> {
    // SAFETY: By the safety requirements.
    let globals = unsafe { the_globals() }?;
    // SAFETY: The consumer has a reference to the namespace.
    let net = unsafe { Net::from_raw(net) };
    let ps = u16::try_from(ps).map_err(|_| EINVAL)?;
    let ps = PortSpace::try_from(ps).map_err(|_| EINVAL)?;
    let qp_type = QpType::try_from(qp_type).kernel()?;
    // SAFETY: This is the name of a module, which is loaded while it calls.
    let owner = unsafe { OwnerName::copy(owner) }?;
    let id = KernelId::create(&globals, net.into(), ps, qp_type, owner)?;
    let id_priv = &id.endpoint().id_priv;
    // SAFETY: The handler belongs to a consumer.
    unsafe { id_priv.set_handler(handler, context) };
    Ok(id_priv.as_id())
}

/// Creates a queue pair for the identifier, for [`rust_cma_create_qp`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn create_qp(
    id: &KernelId,
    pd: *mut bindings::ib_pd,
    attr: *mut bindings::ib_qp_init_attr,
) -> Result {
    let raw = id.endpoint().id_priv.as_id();
    // SAFETY: All pointers are valid by the promises of the consumer.
    let qp = unsafe {
        if (*raw).device != (*pd).device {
            return Err(EINVAL);
        }
        (*attr).port_num = (*raw).port_num;
        Qp::create(pd, attr)
    }?;
    id.adopt_qp(&qp).inspect_err(|_| {
        // SAFETY: The queue pair was created above, and nobody else uses it.
        unsafe { qp.destroy() };
    })
}

/// Returns attributes for the queue pair, for [`rust_cma_init_qp_attr`].
///
/// # Safety
///
/// The requirements of that function.
unsafe fn init_qp_attr(id: &KernelId, attr: *mut bindings::ib_qp_attr, mask: *mut c_int) -> Result {
    // SAFETY: All pointers are valid by the promises of the consumer.
    unsafe {
        let known = id.endpoint().init_qp_attr((*attr).qp_state)?;
        let device = (*id.endpoint().id_priv.as_id()).device;
        qp::set_named(&mut *attr, device, &known, id.endpoint().next_hop());
        *mask = c_int::try_from(known.qp_attr_mask).map_err(|_| EINVAL)?;
    }
    Ok(())
}

export! {
    /// Implements `rdma_create_id()`.
    ///
    /// # Safety
    ///
    /// The requirements of all functions in this file: the caller is a consumer that keeps the
    /// promises of [`super`], and pointers are valid for the call, or null where C allows it.
    fn rust_cma_create_id(
        net: *mut bindings::net,
        handler: bindings::rdma_cm_event_handler,
        context: *mut c_void,
        ps: bindings::rdma_ucm_port_space,
        qp_type: bindings::ib_qp_type,
        owner: *const c_char,
    ) -> Id {
        // SAFETY: By the safety requirements.
        let id = unsafe { create(net, handler, context, ps, qp_type, owner) };
        id.unwrap_or_else(|error| error.to_ptr())
    }

    /// Implements `rdma_destroy_id()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_destroy_id(id: Id) {
        // SAFETY: By the safety requirements.
        let id: Arc<KernelId> = unsafe { id_of(id) }.into();
        id.destroy();
    }

    /// Implements `rdma_restrict_node_type()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_restrict_node_type(id: Id, node_type: bindings::u8_) -> c_int {
        let wanted = match u32::from(node_type) {
            bindings::RDMA_NODE_UNSPECIFIED => None,
            bindings::RDMA_NODE_IB_CA => Some(NodeType::IbCa),
            bindings::RDMA_NODE_RNIC => Some(NodeType::Rnic),
            _ => return EINVAL.to_errno(),
        };
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().set_node_type(wanted)) }
    }

    /// Implements `rdma_bind_addr()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_bind_addr(id: Id, addr: Address) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().bind(&address::read(addr)?)) }
    }

    /// Implements `rdma_resolve_addr()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_resolve_addr(
        id: Id,
        src: Address,
        dst: Address,
        timeout_ms: c_ulong,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                let (src, dst) = (address::read(src)?, address::read(dst)?);
                id.with_state_error(id.endpoint().resolve_addr(&src, &dst, timeout(timeout_ms)))
            })
        }
    }

    /// Implements `rdma_resolve_route()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_resolve_route(id: Id, timeout_ms: c_ulong) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                id.with_state_error(id.endpoint().resolve_route(timeout(timeout_ms)))
            })
        }
    }

    /// Implements `rdma_resolve_ib_service()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_resolve_ib_service(id: Id, ibs: *const bindings::rdma_ucm_ib_service) -> c_int {
        // SAFETY: By the safety requirements. Both structs have the same layout, without padding,
        // and any bytes are valid.
        unsafe {
            let query = ServiceQuery::from_user(&*ibs.cast::<IbService>());
            with_id(id, |id| id.endpoint().resolve_ib_service(&query))
        }
    }

    /// Implements `rdma_set_ib_path()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_set_ib_path(id: Id, path: *const bindings::sa_path_rec) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.set_path(&path_from_raw(&*path))) }
    }

    /// Implements `rdma_create_qp()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
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
            trace::cma::cm_qp_create(&id.endpoint().id_priv, tos, pd, attr, created);
            created
        }
    }

    /// Implements `rdma_destroy_qp()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_destroy_qp(id: Id) {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        let tos = id.endpoint().inner.lock().tos();
        trace::cma::cm_qp_destroy(&id.endpoint().id_priv, tos);
        if let Some(qp) = id.release_qp() {
            // SAFETY: The consumer gives up the queue pair, and the identifier does not refer to it
            // any more.
            unsafe { qp.destroy() };
        }
    }

    /// Implements `rdma_init_qp_attr()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_init_qp_attr(
        id: Id,
        attr: *mut bindings::ib_qp_attr,
        mask: *mut c_int,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| init_qp_attr(&id, attr, mask)) }
    }

    /// Implements `rdma_connect()` and `rdma_connect_ece()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_connect(
        id: Id,
        param: *const bindings::rdma_conn_param,
        with: *const bindings::rdma_ucm_ece,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                id.connect_alone(conn_param(param).ok_or(EINVAL)?, ece(with))
            })
        }
    }

    /// Implements `rdma_connect_locked()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_connect_locked(
        id: Id,
        param: *const bindings::rdma_conn_param,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe {
            with_id(id, |id| {
                id.connect(conn_param(param).ok_or(EINVAL)?, Ece::default())
            })
        }
    }

    /// Implements `rdma_listen()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_listen(id: Id, backlog: bindings::u32_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().listen(backlog)) }
    }

    /// Implements `rdma_accept()` and `rdma_accept_ece()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_accept(
        id: Id,
        param: *const bindings::rdma_conn_param,
        with: *const bindings::rdma_ucm_ece,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.accept(conn_param(param), ece(with))) }
    }

    /// Implements `rdma_lock_handler()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_lock_handler(id: Id) {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        mem::forget(id.handler().lock());
    }

    /// Implements `rdma_unlock_handler()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`]; the task must have called
    /// [`rust_cma_lock_handler`].
    fn rust_cma_unlock_handler(id: Id) {
        // SAFETY: By the safety requirements.
        unsafe { unlock_forgotten(id_of(id).handler()) };
    }

    /// Implements `rdma_notify()`. Can be called in any context.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_notify(id: Id, event: bindings::u32_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| Arc::<KernelId>::from(id).notify(event)) }
    }

    /// Implements `rdma_reject()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
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
        unsafe { with_id(id, |id| id.endpoint().reject(data, reason)) }
    }

    /// Implements `rdma_disconnect()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_disconnect(id: Id) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.disconnect()) }
    }

    /// Implements `rdma_join_multicast()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_join_multicast(
        id: Id,
        addr: Address,
        join_state: bindings::u8_,
        context: *mut c_void,
    ) -> c_int {
        // Values are bits of `enum ib_sa_mc_join_states`.
        let member = match join_state {
            1 => Member::Full,
            8 => Member::SendOnly,
            _ => return EINVAL.to_errno(),
        };
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.join(&address::read(addr)?, member, context.addr())) }
    }

    /// Implements `rdma_leave_multicast()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_leave_multicast(id: Id, addr: Address) {
        // SAFETY: By the safety requirements.
        let (id, addr) = unsafe { (id_of(id), address::read(addr)) };
        if let Ok(addr) = addr {
            id.leave(&addr);
        }
    }

    /// Implements `rdma_set_service_type()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_set_service_type(id: Id, tos: bindings::u8_) {
        // SAFETY: By the safety requirements.
        unsafe { id_of(id) }.endpoint().set_tos(tos);
    }

    /// Implements `rdma_set_reuseaddr()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_set_reuseaddr(id: Id, reuse: bool) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().set_reuseaddr(reuse)) }
    }

    /// Implements `rdma_set_afonly()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_set_afonly(id: Id, afonly: bool) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().set_afonly(afonly)) }
    }

    /// Implements `rdma_set_ack_timeout()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_set_ack_timeout(id: Id, timeout: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().set_ack_timeout(timeout)) }
    }

    /// Implements `rdma_set_min_rnr_timer()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_set_min_rnr_timer(id: Id, code: bindings::u8_) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { with_id(id, |id| id.endpoint().set_min_rnr_timer(code)) }
    }

    /// Implements `rdma_get_service_id()`, in host byte order; 0 for an address without a service
    /// id.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_get_service_id(id: Id, addr: Address) -> bindings::u64_ {
        // SAFETY: By the safety requirements.
        let (id, addr) = unsafe { (id_of(id), address::read(addr)) };
        addr.map_or(0, |addr| ServiceId::of_address(id.endpoint().ps, &addr).0)
    }

    /// Implements `rdma_read_gids()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`rust_cma_create_id`].
    fn rust_cma_read_gids(
        id: Id,
        sgid: *mut bindings::ib_gid,
        dgid: *mut bindings::ib_gid,
    ) {
        // SAFETY: By the safety requirements.
        let id = unsafe { id_of(id) };
        let gids = id.endpoint().snapshot(|snapshot| {
            let device = snapshot.device.as_ref();
            device.map(|_| snapshot.ends.gids())
        });
        let (own, peer) = gids.unwrap_or((Gid::ZERO, Gid::ZERO));
        for (to, gid) in [(sgid, own), (dgid, peer)] {
            // SAFETY: By the safety requirements.
            if let Some(to) = unsafe { to.as_mut() } {
                *to = bindings::ib_gid { raw: gid.0 };
            }
        }
    }

    /// Implements `rdma_reject_msg()`.
    ///
    /// # Safety
    ///
    /// None: the text is static.
    fn rust_cma_reject_msg(reason: c_int) -> *const c_char {
        let reason = u16::try_from(reason).map_or(Reason(0), Reason);
        reason.message().as_char_ptr()
    }

    /// Implements `rdma_event_msg()`.
    ///
    /// # Safety
    ///
    /// None: the text is static.
    fn rust_cma_event_msg(event: bindings::u32_) -> *const c_char {
        let text = CmEvent::try_from(event).map_or(CmEvent::UNKNOWN, CmEvent::message);
        text.as_char_ptr()
    }
}
