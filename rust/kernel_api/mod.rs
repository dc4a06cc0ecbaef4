// SPDX-License-Identifier: GPL-2.0

//! Kernel consumers: what other parts of the kernel know as a `struct rdma_cm_id`, and those of the
//! InfiniBand CM ([`cm`]), which know it as a `struct ib_cm_id`.
//!
//! The C functions that they call end in [`crate::ib::kapi`], which calls the methods of [`KernelId`].
//! What happens to an endpoint is queued where it happens, and told by a work item: a consumer's
//! callback may sleep, so that the path that receives messages does not run it.
//!
//! # Locks
//!
//! handler -> queue pair -> endpoint -> queue. The handler's lock is held while the consumer's callback
//! runs, so that the callbacks of one identifier never overlap; the consumer can take it, too. A
//! connection request is told under that of the listener, and under that of the new identifier. The
//! queue's lock is of the class "channel".

pub(crate) mod cm;
mod connect;
mod dispatch;
mod multicast;
mod queue;
mod turn;

pub(crate) use self::turn::Turn;

use self::queue::{Life, Queue};
use crate::{
    core::Core,
    endpoint::{Endpoint, EndpointRef},
    ib::{
        kapi::{cm::CmHead, PathRec, QpUse, ServiceRecs},
        restrack::OwnerName,
    },
    kext::{delay, net::Net},
};
use cmproto::service_id::PortSpace;
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex, new_work,
    prelude::*,
    sync::{aref::ARef, atomic::Atomic, Arc, Mutex, SetOnce},
    workqueue::Work,
};

/// What a consumer speaks of, and knows the identifier by.
enum Face {
    /// Addresses: a `struct rdma_cm_id`, which is in the endpoint.
    Addresses,
    /// Messages: a `struct ib_cm_id`.
    Messages(CmHead),
}

/// What a kernel consumer knows as a `struct rdma_cm_id` or `struct ib_cm_id`.
#[pin_data]
pub(crate) struct KernelId {
    endpoint: EndpointRef,
    face: Face,
    /// Held while the consumer's callback runs.
    #[pin]
    handler: Mutex<()>,
    /// Held while the queue pair is used.
    #[pin]
    qp: Mutex<QpUse>,
    #[pin]
    queue: Mutex<Queue>,
    /// The task that runs the callback; 0 if none does.
    caller: Atomic<u64>,
    /// Whether the consumer has said that data has arrived, and the endpoint does not know yet.
    has_data: Atomic<bool>,
    /// Whether it ever said so. A connection gets there once, whatever its endpoint knows yet.
    had_data: Atomic<bool>,
    /// What the consumer sees of the path.
    path: PathRec,
    /// What the consumer sees of the services that were found.
    services: SetOnce<ServiceRecs>,
    #[pin]
    work: Work<Self>,
}

impl KernelId {
    /// Creates an identifier for the part of the kernel called `owner`, or for the current task.
    ///
    /// The caller gives it to a consumer, which gives it back by [`KernelId::destroy`].
    pub(crate) fn create(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: u8,
        owner: Option<OwnerName>,
    ) -> Result<Arc<Self>> {
        let endpoint = match owner {
            Some(owner) => Endpoint::create_for(core, net, ps, qp_type, owner),
            None => Endpoint::create(core, net, ps, qp_type),
        }?;
        Self::of(&endpoint, Life::Open, Face::Addresses).inspect_err(|_| endpoint.destroy())
    }

    /// Makes an identifier of an endpoint, whose consumer it becomes.
    fn of(endpoint: &EndpointRef, life: Life, face: Face) -> Result<Arc<Self>> {
        let queue = Queue::new(life)?;
        let this = Arc::pin_init(
            pin_init!(KernelId {
                endpoint: endpoint.clone(),
                face,
                handler <- new_mutex!((), "rdma_cm_handler"),
                qp <- new_mutex!(QpUse::new(), "rdma_cm_qp"),
                queue <- new_mutex!(queue, "rdma_cm_callbacks"),
                caller: Atomic::new(0),
                has_data: Atomic::new(false),
                had_data: Atomic::new(false),
                path: PathRec::new(),
                services: SetOnce::new(),
                work <- new_work!("rdma_cm_callback"),
            }),
            GFP_KERNEL,
        )?;
        match &this.face {
            Face::Addresses => endpoint.head.set_consumer(&this),
            Face::Messages(head) => head.set_owner(&this),
        }
        endpoint.set_consumer(this.clone())?;
        this.give();
        Ok(this)
    }

    /// The endpoint.
    pub(crate) fn endpoint(&self) -> &EndpointRef {
        &self.endpoint
    }

    /// What the consumer sees of the path, for as long as it has the identifier.
    pub(crate) fn path_rec(&self) -> &PathRec {
        &self.path
    }

    /// What the consumer sees of the services that were found, likewise, if it sees any.
    pub(crate) fn service_recs(&self) -> Option<&ServiceRecs> {
        self.services.as_ref()
    }

    /// The lock under which the consumer's callback runs.
    pub(crate) fn handler(&self) -> &Mutex<()> {
        &self.handler
    }

    /// Destroys the identifier. The consumer is told nothing any more when this returns.
    ///
    /// Waits for a callback that is running, unless it is that which calls.
    pub(crate) fn destroy(self: &Arc<Self>) {
        if self.is_called() {
            return self.end();
        }
        let handler = self.handler.lock();
        let leavings = self.close();
        drop(handler);
        delay::point();
        self.endpoint.destroy();
        leavings.discard();
    }

    /// Destroys the identifier without waiting for a callback.
    fn end(&self) {
        let leavings = self.close();
        self.endpoint.destroy();
        leavings.discard();
    }
}
