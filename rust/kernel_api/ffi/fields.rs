// SPDX-License-Identifier: GPL-2.0

//! Fields of an identifier that a consumer accesses directly.
//!
//! The consumer may write its context, its handler and the queue pair at any time; they are read
//! again for each use.

use super::path::{to_raw, PathLink};
use crate::{
    bindings,
    endpoint::View,
    ib::{dev_addr::DevAddr, qp::Qp, restrack::RdmaIdPrivate},
    kernel_api::KernelId,
};
use cmproto::ucma::path::PathRecord;
use core::ptr::{self, NonNull};
use kernel::{prelude::*, sync::Arc};

impl RdmaIdPrivate {
    /// Returns the identifier that the consumer uses.
    pub(crate) fn as_id(&self) -> *mut bindings::rdma_cm_id {
        // SAFETY: The field is inside the object.
        unsafe { &raw mut (*self.as_raw()).id }
    }

    /// Sets the in-kernel owner, which holds a reference to itself until the consumer destroys it.
    pub(crate) fn set_consumer(&self, consumer: &Arc<KernelId>) {
        // SAFETY: The field is inside the object; set before the consumer sees the identifier.
        unsafe { (*self.as_raw()).consumer = Arc::as_ptr(consumer).cast_mut().cast() };
    }

    /// Sets the handler and the context.
    ///
    /// # Safety
    ///
    /// The handler must belong to a consumer that keeps the promises of this module.
    pub(super) unsafe fn set_handler(
        &self,
        handler: bindings::rdma_cm_event_handler,
        context: *mut c_void,
    ) {
        let id = self.as_id();
        // SAFETY: The fields are inside the object; set before the consumer sees the identifier.
        unsafe {
            (*id).event_handler = handler;
            (*id).context = context;
        }
    }

    /// Copies handler and context of a listener.
    pub(crate) fn inherit(&self, listener: &RdmaIdPrivate) {
        let from = listener.as_id();
        // SAFETY: The fields are inside the object. The handler belongs to a consumer already.
        unsafe {
            let handler = (&raw const (*from).event_handler).read_volatile();
            let context = (&raw const (*from).context).read_volatile();
            self.set_handler(handler, context);
        }
    }

    /// Returns the current state, an `enum rdma_cm_state`. Can be called in any context.
    pub(crate) fn state(&self) -> u32 {
        // SAFETY: The field is inside the object.
        unsafe { (&raw const (*self.as_raw()).state).read_volatile() }
    }

    /// Returns whether the identifier has a queue pair.
    pub(crate) fn has_qp(&self) -> bool {
        !self.raw_qp().is_null()
    }

    fn raw_qp(&self) -> *mut bindings::ib_qp {
        // SAFETY: The field is inside the object.
        unsafe { (&raw const (*self.as_id()).qp).read_volatile() }
    }

    /// Returns the queue pair of the identifier, if it has one.
    pub(crate) fn qp<'a>(&self, _use: &'a QpUse) -> Option<Qp<'a>> {
        // SAFETY: By the promises of the consumer, a queue pair is valid while the identifier
        // refers to it. Only the holder of an exclusive `QpUse` can remove it.
        unsafe { Qp::from_raw(self.raw_qp()) }
    }

    /// Sets the queue pair of the identifier.
    pub(crate) fn set_qp(&self, _use: &mut QpUse, qp: &Qp<'_>) {
        // SAFETY: The field is inside the object.
        unsafe { (&raw mut (*self.as_id()).qp).write_volatile(qp.as_raw()) };
    }

    /// Removes the queue pair from the identifier and returns it, if there is one.
    pub(crate) fn release_qp(&self, _use: &mut QpUse) -> Option<ReleasedQp> {
        let qp = self.raw_qp();
        // SAFETY: The field is inside the object.
        unsafe { (&raw mut (*self.as_id()).qp).write_volatile(ptr::null_mut()) };
        NonNull::new(qp).map(ReleasedQp)
    }
}

/// The right to use the queue pair of an identifier, or, if exclusive, to replace it.
///
/// [`KernelId`] has this behind the lock of the queue pair.
pub(crate) struct QpUse(());

impl QpUse {
    /// Creates the right of a new identifier, which is to be put behind its lock.
    pub(crate) fn new() -> Self {
        Self(())
    }
}

/// A queue pair that was removed from its identifier, for the consumer to destroy.
pub(crate) struct ReleasedQp(NonNull<bindings::ib_qp>);

impl ReleasedQp {
    /// Destroys the queue pair. May sleep.
    ///
    /// # Safety
    ///
    /// The consumer must give up the queue pair.
    pub(super) unsafe fn destroy(self) {
        // SAFETY: The queue pair was valid while the identifier referred to it, and nobody uses it
        // through the identifier any more.
        if let Some(qp) = unsafe { Qp::from_raw(self.0.as_ptr()) } {
            // SAFETY: By the safety requirements.
            unsafe { qp.destroy() };
        }
    }
}

/// Copies the known link-layer addresses into the identifier.
///
/// `_view` proves that the lock of the endpoint is held, so that there is one writer at a time.
pub(crate) fn show_link(id: &KernelId, _view: View<'_>, link: &DevAddr) {
    let endpoint = id.endpoint();
    let [src_dev_addr, dst_dev_addr, broadcast] = link.hw_addrs();
    // SAFETY: The field is inside the object, and is not written by anybody else meanwhile. The
    // endpoint, which contains the object, keeps the namespace.
    unsafe {
        (*endpoint.id_priv.as_id()).route.addr.dev_addr = bindings::rdma_dev_addr {
            src_dev_addr,
            dst_dev_addr,
            broadcast,
            dev_type: link.link_type,
            bound_dev_if: link.bound_dev_if,
            net: endpoint.net.as_raw(),
            network: link.network.to_raw(),
            hoplimit: c_int::from(link.hop_limit),
            ..pin_init::zeroed()
        };
    }
}

/// Copies the path into the record of the identifier, which lives as long as the identifier.
///
/// `_view` proves that the lock of the endpoint is held.
pub(crate) fn show_path(id: &KernelId, _view: View<'_>, path: &PathRecord, link: PathLink) {
    let (path_rec, raw) = (id.path_rec().as_raw(), id.endpoint().id_priv.as_id());
    // SAFETY: The fields are inside the objects, and are not written by anybody else meanwhile. The
    // `KernelId` holds a reference to itself until the consumer destroys it.
    unsafe {
        path_rec.write(to_raw(path, link));
        (*raw).route.path_rec = path_rec;
        (*raw).route.num_pri_alt_paths = 1;
    }
}

/// Sets the pointer to the services that were found, which live as long as the identifier.
///
/// `_view` proves that the lock of the endpoint is held.
pub(crate) fn show_services(id: &KernelId, _view: View<'_>) {
    let Some(services) = id.service_recs() else {
        return;
    };
    let (records, raw) = (services.records(), id.endpoint().id_priv.as_id());
    // SAFETY: The fields are inside the objects, and are not written by anybody else meanwhile. The
    // consumer only reads the records.
    unsafe {
        let route = &raw mut (*raw).route;
        (*route).service_recs = records.as_ptr().cast_mut();
        (*route).num_service_recs = c_uint::try_from(records.len()).unwrap_or(0);
    }
}

/// Returns the service level of the path in the identifier, which the consumer may have changed.
pub(crate) fn service_level(id: &KernelId) -> Option<u8> {
    // SAFETY: The fields are inside the objects.
    unsafe {
        let path = (&raw const (*id.endpoint().id_priv.as_id()).route.path_rec).read_volatile();
        let path_rec = id.path_rec().as_raw();
        (!path.is_null()).then(|| (&raw const (*path_rec).sl).read_volatile())
    }
}
