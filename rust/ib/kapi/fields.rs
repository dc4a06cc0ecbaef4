// SPDX-License-Identifier: GPL-2.0

//! What a consumer reads and writes of its identifier, without asking.
//!
//! The consumer may write its context and its handler at any time, and the queue pair: they are read
//! again for each use.

use super::{
    super::{dev_addr::DevAddr, qp::Qp, restrack::IdHead},
    path::{to_raw, PathLink, PathRec, ServiceRecs},
};
use crate::{bindings, kext::net::Net};
use cmproto::ucma::path::PathRecord;
use core::ptr;
use kernel::prelude::*;

impl IdHead {
    /// The identifier as the consumer knows it.
    pub(in crate::ib) fn as_id(&self) -> *mut bindings::rdma_cm_id {
        // SAFETY: The field is inside the object.
        unsafe { &raw mut (*self.as_raw()).id }
    }

    /// Notes what owns the identifier, a part of the kernel.
    pub(crate) fn set_consumer(&self, consumer: *const c_void) {
        let id = self.as_id();
        // SAFETY: The fields are inside the object, and zeros are a valid work item; set before the
        // consumer sees the identifier.
        unsafe {
            (*self.as_raw()).consumer = consumer.cast_mut();
            (&raw mut (*id).net_work).write_bytes(0, 1);
        }
    }

    /// Sets what the consumer is called by, and with.
    ///
    /// # Safety
    ///
    /// The handler must be one of a consumer that keeps the promises of this module.
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

    /// Takes over handler and context of a listener.
    pub(crate) fn inherit(&self, listener: &IdHead) {
        let from = listener.as_id();
        // SAFETY: The fields are inside the object. The handler is one of a consumer already.
        unsafe {
            let handler = (&raw const (*from).event_handler).read_volatile();
            let context = (&raw const (*from).context).read_volatile();
            self.set_handler(handler, context);
        }
    }

    /// The state, an `enum rdma_cm_state`, at one moment. Can be called in any context.
    pub(crate) fn state(&self) -> u32 {
        // SAFETY: The field is inside the object.
        unsafe { (&raw const (*self.as_raw()).state).read_volatile() }
    }

    /// The queue pair that belongs to the identifier, if there is one.
    ///
    /// To be used at once: it is the consumer's, who may destroy it.
    pub(crate) fn qp(&self) -> Option<Qp> {
        // SAFETY: The field is inside the object. What it names is valid by the promises of the
        // consumer.
        unsafe { Qp::from_raw((&raw const (*self.as_id()).qp).read_volatile()) }
    }

    /// Has a queue pair belong to the identifier, or none.
    pub(crate) fn set_qp(&self, qp: Option<&Qp>) {
        let qp = qp.map_or(ptr::null_mut(), Qp::as_raw);
        // SAFETY: The field is inside the object.
        unsafe { (&raw mut (*self.as_id()).qp).write_volatile(qp) };
    }

    /// Shows what is known of the link to the peer.
    ///
    /// The caller serialises this with itself.
    pub(crate) fn set_link(&self, link: &DevAddr, net: &Net) {
        let [src_dev_addr, dst_dev_addr, broadcast] = link.hw_addrs();
        // SAFETY: The field is inside the object, and written by nobody else meanwhile.
        unsafe {
            (*self.as_id()).route.addr.dev_addr = bindings::rdma_dev_addr {
                src_dev_addr,
                dst_dev_addr,
                broadcast,
                dev_type: link.link_type,
                bound_dev_if: link.bound_dev_if,
                net: net.as_raw(),
                network: link.network as u32,
                hoplimit: c_int::from(link.hop_limit),
                ..pin_init::zeroed()
            };
        }
    }

    /// Shows the path, in `space`, which stays for as long as the consumer has the identifier.
    ///
    /// The caller serialises this with itself.
    pub(crate) fn set_path(&self, space: &PathRec, path: &PathRecord, link: PathLink) {
        // SAFETY: The fields are inside the object, and written by nobody else meanwhile.
        unsafe {
            space.as_raw().write(to_raw(path, link));
            (*self.as_id()).route.path_rec = space.as_raw();
            (*self.as_id()).route.num_pri_alt_paths = 1;
        }
    }

    /// Shows the services that were found, in `space`, which stays for as long as the consumer has the
    /// identifier.
    ///
    /// The caller serialises this with itself.
    pub(crate) fn set_services(&self, space: &ServiceRecs) {
        let records = space.records();
        // SAFETY: The fields are inside the object, and written by nobody else meanwhile. The consumer
        // only reads the records.
        unsafe {
            let route = &raw mut (*self.as_id()).route;
            (*route).service_recs = records.as_ptr().cast_mut();
            (*route).num_service_recs = c_uint::try_from(records.len()).unwrap_or(0);
        }
    }

    /// The service level of the path that is shown, which the consumer may have changed.
    pub(crate) fn service_level(&self) -> Option<u8> {
        // SAFETY: The fields are inside the object; the record is valid while it is shown.
        unsafe {
            let path = (&raw const (*self.as_id()).route.path_rec).read_volatile();
            (!path.is_null()).then(|| (&raw const (*path).sl).read_volatile())
        }
    }
}
