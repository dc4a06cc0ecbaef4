// SPDX-License-Identifier: GPL-2.0

//! The `struct ib_cm_id` of a consumer.

use crate::{bindings, endpoint::View, ib::device::Device, kernel_api::KernelId};
use cmproto::cm::State;
use core::ptr;
use kernel::{prelude::*, sync::Arc, types::Opaque};

/// The QP that answers CM messages: QP1, for general services.
const GSI_QPN: u32 = 1;

/// A `struct ib_cm_id` with a pointer to its owner.
///
/// Consumers read the fields directly, and may write the context and the handler, which are read
/// again for each use.
pub(crate) struct IbCmId(Opaque<bindings::rust_ib_cm_id>);

// SAFETY: The fields are read and written by any task, with volatile accesses here.
unsafe impl Send for IbCmId {}

// SAFETY: The fields are read and written by any task, with volatile accesses here.
unsafe impl Sync for IbCmId {}

impl IbCmId {
    /// Creates an unused identifier without an owner.
    pub(crate) fn new() -> Self {
        Self(Opaque::new(bindings::rust_ib_cm_id {
            id: bindings::ib_cm_id {
                remote_cm_qpn: GSI_QPN,
                ..pin_init::zeroed()
            },
            owner: ptr::null_mut(),
        }))
    }

    /// Returns the identifier that the consumer uses.
    pub(super) fn as_id(&self) -> *mut bindings::ib_cm_id {
        // SAFETY: The field is inside the object.
        unsafe { &raw mut (*self.0.get()).id }
    }

    /// Sets the owner, which holds a reference to itself until the consumer destroys the
    /// identifier.
    pub(crate) fn set_owner(&self, owner: &Arc<KernelId>) {
        // SAFETY: The field is inside the object; set before the consumer sees the identifier.
        unsafe { (*self.0.get()).owner = Arc::as_ptr(owner).cast_mut().cast() };
    }

    /// Sets the device, the handler and the context.
    ///
    /// # Safety
    ///
    /// The handler must belong to a consumer that keeps the promises of this module.
    pub(super) unsafe fn set_consumer(
        &self,
        device: *mut bindings::ib_device,
        handler: bindings::ib_cm_handler,
        context: *mut c_void,
    ) {
        let id = self.as_id();
        // SAFETY: The fields are inside the object; set before the consumer sees the identifier.
        unsafe {
            (*id).device = device;
            (*id).cm_handler = handler;
            (*id).context = context;
        }
    }

    /// Copies handler and context of a listener, for a request received by `device`.
    pub(crate) fn inherit(&self, listener: &IbCmId, device: &Device) {
        let from = listener.as_id();
        // SAFETY: The fields are inside the objects. The handler belongs to a consumer already.
        unsafe {
            let handler = (&raw const (*from).cm_handler).read_volatile();
            let context = (&raw const (*from).context).read_volatile();
            self.set_consumer(device.as_raw(), handler, context);
        }
    }

    /// Returns the current handler.
    pub(super) fn handler(&self) -> bindings::ib_cm_handler {
        // SAFETY: The field is inside the object.
        unsafe { (&raw const (*self.as_id()).cm_handler).read_volatile() }
    }

    /// Shows the state and the communication ids of the endpoint, whose lock is held, to the
    /// consumer.
    pub(crate) fn show(&self, view: View<'_>) {
        let (state, (local, remote)) = (view.cm_state(), view.comm_ids());
        let id = self.as_id();
        // SAFETY: The fields are inside the object; readers accept any value.
        unsafe {
            (&raw mut (*id).state).write_volatile(state as u32);
            (&raw mut (*id).local_id).write_volatile(local.to_be());
            (&raw mut (*id).remote_id).write_volatile(remote.to_be());
        }
    }

    /// Sets the service id, given in host byte order.
    pub(crate) fn show_service(&self, service_id: u64) {
        // SAFETY: The field is inside the object.
        unsafe { (&raw mut (*self.as_id()).service_id).write_volatile(service_id.to_be()) };
    }

    /// Returns the service id in host byte order.
    pub(crate) fn service(&self) -> u64 {
        // SAFETY: The field is inside the object.
        u64::from_be(unsafe { (&raw const (*self.as_id()).service_id).read_volatile() })
    }

    /// Returns the state. Can be called in any context.
    pub(crate) fn state(&self) -> State {
        // SAFETY: The field is inside the object.
        let state = unsafe { (&raw const (*self.as_id()).state).read_volatile() };
        let known = usize::try_from(state).ok().and_then(|n| State::ALL.get(n));
        known.copied().unwrap_or(State::Idle)
    }
}
