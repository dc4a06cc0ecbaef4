// SPDX-License-Identifier: GPL-2.0

//! Events of a port: its link goes down and comes back.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::DeviceRef;
use crate::bindings;
use core::ptr;
use kernel::{prelude::*, sync::Arc, types::Opaque};

/// A listener to the link of a port.
pub(crate) trait PortListener: Send + Sync + 'static {
    /// Handles a change of the link, which is up or not. Runs in process context with a lock of
    /// ib_core's that the removal of the device takes, and should only take notes.
    fn link_changed(&self, is_up: bool);
}

/// A registration of a [`PortListener`]; dropping it unregisters the listener, and waits for a call
/// that is running.
///
/// # Invariants
///
/// `handler` is registered with `_device`.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct PortEvents {
    #[pin]
    handler: Opaque<bindings::ib_event_handler>,
    listener: Arc<dyn PortListener>,
    port: u32,
    _device: DeviceRef,
}

// SAFETY: A handler can be unregistered by any thread, and the listener is `Send` and `Sync`.
unsafe impl Send for PortEvents {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for PortEvents {}

impl PortEvents {
    /// Creates an initialiser that registers the listener to a port of `device`. May sleep.
    pub(crate) fn new(
        device: &DeviceRef,
        port: u32,
        listener: Arc<dyn PortListener>,
    ) -> impl PinInit<Self> + '_ {
        // INVARIANT: The handler is registered just below.
        pin_init!(Self {
            listener,
            port,
            _device: device.clone(),
            handler <- Opaque::ffi_init(move |slot: *mut bindings::ib_event_handler| {
                let list = bindings::list_head {
                    next: ptr::null_mut(),
                    prev: ptr::null_mut(),
                };
                let handler = bindings::ib_event_handler {
                    device: device.as_raw(),
                    handler: Some(Self::call),
                    list,
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(handler) };
                // SAFETY: Just initialised; registering links the list. The handler does not move,
                // and is unregistered before it is freed. The other fields are initialised before.
                unsafe { bindings::ib_register_event_handler(slot) };
            }),
        })
    }

    /// Passes an event to the listener, if it is one of the port's link.
    ///
    /// # Safety
    ///
    /// Called by ib_core with our `handler` and an event of its device.
    unsafe extern "C" fn call(
        handler: *mut bindings::ib_event_handler,
        event: *mut bindings::ib_event,
    ) {
        // SAFETY: `handler` is at the start of a registration, which is there while it is
        // registered.
        let this = unsafe { &*handler.cast::<Self>() };
        // SAFETY: The event is valid for the call.
        let event = unsafe { &*event };
        let is_up = match event.event {
            bindings::ib_event_type_IB_EVENT_PORT_ACTIVE => true,
            bindings::ib_event_type_IB_EVENT_PORT_ERR => false,
            _ => return,
        };
        // SAFETY: The element of these events is the number of a port.
        if unsafe { event.element.port_num } == this.port {
            this.listener.link_changed(is_up);
        }
    }
}

#[pinned_drop]
impl PinnedDrop for PortEvents {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant. Returns when no call is running.
        unsafe { bindings::ib_unregister_event_handler(self.handler.get()) };
    }
}
