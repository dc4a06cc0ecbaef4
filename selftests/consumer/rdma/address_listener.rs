// SPDX-License-Identifier: GPL-2.0

//! Listeners of the RDMA CM, for those who but want to be in somebody's way.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use super::address::Address;
use crate::bindings;
use core::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    ptr::{self, NonNull},
};
use kernel::{
    error::{from_err_ptr, to_result},
    prelude::*,
};

/// The number of requests that may wait.
const BACKLOG: c_int = 1;

/// The first bits of the service ids of the port space of TCP.
const TCP_SERVICES: u64 = 0x0106_0000;

/// The service id of a port.
pub(crate) fn service_of(port: u16) -> u64 {
    TCP_SERVICES | u64::from(port)
}

/// A listener on a port of every address, which refuses all requests. Ends when dropped.
///
/// # Invariants
///
/// The identifier is there, and ours.
pub(crate) struct AddressListener(NonNull<bindings::rdma_cm_id>);

// SAFETY: The RDMA CM lets any task use and destroy an identifier.
unsafe impl Send for AddressListener {}

// SAFETY: It does its own locking.
unsafe impl Sync for AddressListener {}

impl AddressListener {
    /// One that is bound, and does not listen yet.
    pub(crate) fn bind(port: u16) -> Result<Self> {
        let name = <crate::LocalModule as kernel::ModuleMetadata>::NAME;
        // SAFETY: The namespace and the name live as long as the module, and the callback needs no context.
        let id = from_err_ptr(unsafe {
            bindings::__rdma_create_kernel_id(
                &raw mut bindings::init_net,
                Some(refuse),
                ptr::null_mut(),
                bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                bindings::ib_qp_type_IB_QPT_RC,
                name.as_char_ptr(),
            )
        })?;
        // INVARIANT: It has just been created.
        let this = Self(NonNull::new(id).ok_or(EFAULT)?);
        let any = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        let mut address = Address::from(any);
        // SAFETY: By the type invariant, and the address is valid.
        to_result(unsafe { bindings::rdma_bind_addr(this.0.as_ptr(), address.as_mut_raw()) })?;
        Ok(this)
    }

    pub(crate) fn listen(&self) -> Result {
        // SAFETY: By the type invariant.
        to_result(unsafe { bindings::rdma_listen(self.0.as_ptr(), BACKLOG) })
    }
}

impl Drop for AddressListener {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody uses it any more.
        unsafe { bindings::rdma_destroy_id(self.0.as_ptr()) };
    }
}

/// Called when an identifier is told of something: refuses a request, and keeps the listener.
///
/// # Safety
///
/// To be called by the RDMA CM only.
unsafe extern "C" fn refuse(
    _: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: The event is one of the RDMA CM's, and used during this call.
    let kind = unsafe { (*event).event };
    c_int::from(kind == bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST)
}
