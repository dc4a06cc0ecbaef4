// SPDX-License-Identifier: GPL-2.0

//! Consumers of the IB CM: other parts of the kernel that use a `struct ib_cm_id`.
//!
//! They handle messages instead of addresses, and use the same endpoints. Their identifier has
//! neither addresses nor a queue pair. Its endpoint is attached to a device with its first message
//! and is not shown to user space. The consumer is told of each message, not of its effect on a
//! connection between addresses.
//!
//! The removal of a device does not wait for these consumers: as clients of ib_core they are told
//! of it before this module is, and destroy their identifiers. If one is left, the module ends its
//! endpoint.

mod message;
mod service;
mod verbs;

use super::{ffi::cm::IbCmId, queue::IdState, KernelId};
use crate::{
    endpoint::{Endpoint, IdKind},
    globals::Globals,
    ib::restrack::OwnerName,
    kext::net::Net,
    table::listeners::ServiceShare,
};
use cmproto::{qp::QpType, service_id::PortSpace};
use kernel::{prelude::*, sync::Arc};

impl KernelId {
    /// Creates an identifier for the IB CM, which the consumer knows as `ib_cm_id`.
    ///
    /// The caller passes it to a consumer, which destroys it with [`KernelId::destroy_cm`].
    pub(crate) fn create_cm(globals: &Arc<Globals>, ib_cm_id: IbCmId) -> Result<Arc<Self>> {
        let (net, owner) = (Net::init().into(), Some(OwnerName::IbCm));
        let kind = IdKind::IbCm;
        let endpoint =
            Endpoint::create(globals, net, PortSpace::Ib, QpType::ANY, kind, owner, None)?;
        Self::of(&endpoint, IdState::Open, Some(ib_cm_id)).inspect_err(|_| endpoint.destroy())
    }

    /// Returns the `struct ib_cm_id`, if this is an identifier of the IB CM.
    pub(crate) fn ib_cm_id(&self) -> Option<&IbCmId> {
        self.ib_cm_id.as_ref()
    }

    /// Destroys the identifier, like [`KernelId::destroy`], unless other users share it.
    pub(crate) fn destroy_cm(self: &Arc<Self>) {
        let is_shared = {
            let mut queue = self.queue.lock();
            let service = queue.service.take();
            queue.service = service.and_then(ServiceShare::release);
            queue.service.is_some()
        };
        if !is_shared {
            self.destroy();
        }
    }
}
