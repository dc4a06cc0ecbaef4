// SPDX-License-Identifier: GPL-2.0

//! Consumers of the InfiniBand CM: what other parts of the kernel know as a `struct ib_cm_id`.
//!
//! They speak of messages, over the same endpoints: an identifier has neither addresses nor a queue
//! pair, its endpoint is at a device from its first message on and is not shown to user space, and
//! the consumer is told of each message instead of what that means for an address.
//!
//! Nobody waits for a consumer when a device goes: consumers are told of that as clients of ib_core,
//! before this module is, and destroy their identifiers. Of one that does not, the endpoint ends.

mod message;
mod service;
mod sidr;
mod verbs;

pub(super) use self::message::show_state;
pub(crate) use self::{
    message::Message,
    verbs::{DataLids, Route},
};

use super::{queue::Life, Face, KernelId};
use crate::{
    core::Core,
    endpoint::Endpoint,
    ib::{kapi::cm::CmHead, restrack::OwnerName},
    kext::net::Net,
};
use kernel::{prelude::*, sync::Arc};

impl KernelId {
    /// Creates an identifier that speaks of messages, which the consumer knows by `head`.
    ///
    /// The caller gives it to a consumer, which gives it back by [`KernelId::destroy_cm`].
    pub(crate) fn create_cm(core: &Arc<Core>, head: CmHead) -> Result<Arc<Self>> {
        let endpoint = Endpoint::create_bare(core, Net::init().into(), OwnerName::IbCm)?;
        let face = Face::Messages(head);
        Self::of(&endpoint, Life::Open, face).inspect_err(|_| endpoint.destroy())
    }

    /// What the consumer knows the identifier by, if it speaks of messages.
    pub(crate) fn cm_head(&self) -> Option<&CmHead> {
        match &self.face {
            Face::Messages(head) => Some(head),
            Face::Addresses => None,
        }
    }

    /// Destroys the identifier, as [`KernelId::destroy`], unless others share it.
    pub(crate) fn destroy_cm(self: &Arc<Self>) {
        let is_shared = {
            let mut queue = self.queue.lock();
            let listeners = &self.endpoint.core.listeners;
            let service = queue.service.take();
            queue.service = service.and_then(|service| listeners.release(service));
            queue.service.is_some()
        };
        if !is_shared {
            self.destroy();
        }
    }
}
