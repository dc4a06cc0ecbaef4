// SPDX-License-Identifier: GPL-2.0

//! Kernel consumers: other parts of the kernel that use the connection manager.
//!
//! They use a `struct rdma_cm_id`, or a `struct ib_cm_id` if they use the IB CM ([`cm`]).
//!
//! The C functions that consumers call end in [`ffi`], which calls the methods of [`KernelId`]. An
//! event of an endpoint is queued when it happens, and a work item tells the consumer of it: a
//! consumer's callback may sleep, so it must not run on the path that receives messages.
//!
//! # Locks
//!
//! Lock order: handler -> queue pair -> endpoint -> queue. The handler's lock is held while the
//! consumer's callback runs, so that callbacks of one identifier never overlap; the consumer can
//! take it, too. A callback for a connection request runs under the handler's lock of the listener
//! and that of the new identifier. The queue's lock has the class "channel".

pub(crate) mod cm;
mod connect;
mod dispatch;
#[allow(unsafe_code)]
pub(crate) mod ffi;
mod handler_guard;
mod multicast;
mod queue;

pub(crate) use self::handler_guard::HandlerGuard;

use self::{
    ffi::{cm::IbCmId, PathRec, QpUse, ServiceRecs},
    queue::{IdState, Notification, Queue},
};
use crate::{
    endpoint::{Endpoint, EndpointRef, IdKind},
    globals::Globals,
    ib::restrack::OwnerName,
    kext::{delay, net::Net},
};
use atomics::Notice;
use cmproto::{qp::QpType, service_id::PortSpace};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex, new_work,
    prelude::*,
    sync::{aref::ARef, atomic::Atomic, Arc, Mutex, SetOnce},
    workqueue::Work,
};

/// The identifier of a kernel consumer: a `struct rdma_cm_id` or a `struct ib_cm_id`.
///
/// # Invariants
///
/// `ib_cm_id` is `Some` if the kind of the endpoint is [`IdKind::IbCm`], and only then.
#[pin_data]
pub(crate) struct KernelId {
    endpoint: EndpointRef,
    /// The `struct ib_cm_id`. A `struct rdma_cm_id` is in the endpoint.
    ib_cm_id: Option<IbCmId>,
    /// A lock that is held while the consumer's callback runs.
    #[pin]
    handler: Mutex<()>,
    /// A lock that is held while the queue pair is used.
    #[pin]
    qp: Mutex<QpUse>,
    #[pin]
    queue: Mutex<Queue>,
    /// The task that runs the callback; 0 if none does.
    caller: Atomic<u64>,
    /// Set if the consumer has reported data that the endpoint was not told of yet.
    has_data: Notice,
    /// Set if the consumer has ever reported data, as a second report fails with `EISCONN`.
    had_data: Notice,
    /// Set if the consumer has reported that its queue pair uses the alternate path, and the
    /// endpoint was not told of it yet.
    has_migrated: Notice,
    /// The path record that the consumer sees.
    path: PathRec,
    /// The service records that the consumer sees.
    services: SetOnce<ServiceRecs>,
    #[pin]
    work: Work<Self>,
}

impl KernelId {
    /// Creates an identifier for the part of the kernel called `owner`, or for the current task.
    ///
    /// The caller passes it to a consumer, which destroys it with [`KernelId::destroy`].
    pub(crate) fn create(
        globals: &Arc<Globals>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: QpType,
        owner: Option<OwnerName>,
    ) -> Result<Arc<Self>> {
        let endpoint = Endpoint::create(globals, net, ps, qp_type, IdKind::RdmaCm, owner, None)?;
        Self::of(&endpoint, IdState::Open, None).inspect_err(|_| endpoint.destroy())
    }

    /// Creates an identifier for an endpoint and makes it the consumer of the endpoint.
    fn of(endpoint: &EndpointRef, state: IdState, ib_cm_id: Option<IbCmId>) -> Result<Arc<Self>> {
        let queue = Queue::new(state)?;
        let this = Arc::pin_init(
            pin_init!(KernelId {
                endpoint: endpoint.clone(),
                ib_cm_id,
                handler <- new_mutex!((), "rdma_cm_handler"),
                qp <- new_mutex!(QpUse::new(), "rdma_cm_qp"),
                queue <- new_mutex!(queue, "rdma_cm_callbacks"),
                caller: Atomic::new(0),
                has_data: Notice::new(),
                had_data: Notice::new(),
                has_migrated: Notice::new(),
                path: PathRec::new(),
                services: SetOnce::new(),
                work <- new_work!("rdma_cm_callback"),
            }),
            GFP_KERNEL,
        )?;
        match &this.ib_cm_id {
            None => endpoint.id_priv.set_consumer(&this),
            Some(ib_cm_id) => ib_cm_id.set_owner(&this),
        }
        endpoint.set_consumer(this.clone())?;
        this.set_owner();
        Ok(this)
    }

    /// Returns the endpoint.
    pub(crate) fn endpoint(&self) -> &EndpointRef {
        &self.endpoint
    }

    /// Returns the path record that the consumer sees, which lives as long as the identifier.
    pub(crate) fn path_rec(&self) -> &PathRec {
        &self.path
    }

    /// Returns the service records that the consumer sees, if there are any.
    pub(crate) fn service_recs(&self) -> Option<&ServiceRecs> {
        self.services.as_ref()
    }

    /// Returns the lock under which the consumer's callback runs.
    pub(crate) fn handler(&self) -> &Mutex<()> {
        &self.handler
    }

    /// Destroys the identifier. There are no callbacks any more when this returns.
    ///
    /// Waits for a callback that is running, unless the callback itself calls this.
    pub(crate) fn destroy(self: &Arc<Self>) {
        if self.is_called() {
            return self.end();
        }
        let handler = self.handler.lock();
        let removed = self.close();
        drop(handler);
        delay::point();
        self.endpoint.destroy();
        removed.discard();
    }

    /// Destroys the identifier of a connection request that the consumer of its listener was not
    /// told of, or hands the request to another listener.
    fn end_request(&self, notification: &Notification) {
        let removed = self.close();
        delay::point();
        let is_taken = match notification {
            Notification::Event(event) => self.endpoint.hand_over(&event.get(), None),
            Notification::Message(_) => false,
        };
        if !is_taken {
            self.endpoint.destroy();
        }
        removed.discard();
    }

    /// Destroys the identifier without waiting for a callback.
    fn end(&self) {
        let removed = self.close();
        self.endpoint.destroy();
        removed.discard();
    }
}
