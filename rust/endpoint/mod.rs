// SPDX-License-Identifier: GPL-2.0

//! The endpoint: the object behind one connection, listener or identifier.
//!
//! It takes the place of two objects of the C modules, the `rdma_cm_id` and the `ib_cm_id`, and has
//! one lock. Its operations are spread over the layers: addresses, routes, ports and listening are
//! in [`crate::cma`], messages and timers in [`crate::cm`]. This module has the state that they
//! share, and the birth and death of endpoints.
//!
//! # Lock order
//!
//! endpoint -> channel -> table shard -> port. No two endpoint locks are held together. None is
//! held while user memory is copied or while anything is waited for: the path that receives MADs
//! takes endpoint locks, so they must be held for microseconds only.
//!
//! # Life
//!
//! Everything in flight for an endpoint (a timer, an address query, an entry in a table, a queued
//! event) owns a reference to it. [`Endpoint::destroy`] marks the endpoint dead, sends the last
//! message of the protocol, and takes the endpoint out of all tables. It waits only for a callback
//! that is running.

mod addressee;
mod destroy;
mod event;
mod inner;
mod kept;

pub(crate) use self::{
    addressee::Addressee,
    event::{
        ConnEventParam, ConnParam, Consumer, Ece, Event, EventParam, PrivateData, UdEventParam,
    },
    inner::{Attachment, Conn, Inner, Sidr},
    kept::KeptEvent,
};

use crate::{
    cm::timer::TimerSlot,
    core::Core,
    ib::{
        restrack::{IdHead, OwnerName},
        trace,
    },
    kext::{net::Net, slab::SlabArc},
};
use cmproto::{addr::SockAddr, cma::State, qp::QpType, service_id::PortSpace};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{aref::ARef, Arc, Mutex},
};

/// A connection, a listener or an identifier.
///
/// # Invariants
///
/// `head` agrees with `inner`: whoever changes the state or an address under the lock calls
/// [`Endpoint::show`] before releasing it.
#[pin_data]
pub(crate) struct Endpoint {
    /// The part of the endpoint that ib_core reads, in ib_core's layout.
    #[pin]
    pub(crate) head: IdHead,
    /// The tables and services of the module.
    pub(crate) core: Arc<Core>,
    /// A number that no other endpoint has or had; the key in the tables of the module.
    pub(crate) number: u64,
    /// The network namespace of the addresses.
    pub(crate) net: ARef<Net>,
    /// The port space.
    pub(crate) ps: PortSpace,
    /// The QP type.
    pub(crate) qp_type: QpType,
    /// Set if the consumer is one of the InfiniBand CM (`<rdma/ib_cm.h>`): it deals in messages,
    /// and the endpoint has no addresses.
    pub(crate) speaks_messages: bool,
    /// Set if the endpoint belongs to a part of the kernel, such as storage. Its messages are sent
    /// from memory that was set aside, because the allocation of new memory may depend on the
    /// connection.
    pub(crate) is_of_kernel: bool,
    /// The state that changes.
    #[pin]
    pub(crate) inner: Mutex<Inner>,
}

/// A counted reference to an endpoint.
pub(crate) type EndpointRef = SlabArc<Endpoint>;

impl Endpoint {
    /// Creates an endpoint that belongs to the current task, as netlink reports it.
    pub(crate) fn create(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: QpType,
    ) -> Result<EndpointRef> {
        let endpoint = Self::new(core, net, ps, qp_type, false, false)?;
        endpoint.head.own_by_current();
        Ok(endpoint)
    }

    /// Creates an endpoint that belongs to the part of the kernel called `owner`, as netlink
    /// reports it.
    pub(crate) fn create_for(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: QpType,
        owner: OwnerName,
    ) -> Result<EndpointRef> {
        let endpoint = Self::new(core, net, ps, qp_type, false, true)?;
        endpoint.head.own_by_kernel(owner);
        Ok(endpoint)
    }

    /// Creates the endpoint of a connection request, which belongs to the owner of `listener`, as
    /// netlink reports it.
    pub(crate) fn create_child(listener: &Endpoint, qp_type: QpType) -> Result<EndpointRef> {
        let (core, net) = (&listener.core, listener.net.clone());
        let (speaks_messages, is_of_kernel) = (listener.speaks_messages, listener.is_of_kernel);
        let child = Self::new(
            core,
            net,
            listener.ps,
            qp_type,
            speaks_messages,
            is_of_kernel,
        )?;
        child.head.own_as(&listener.head);
        Ok(child)
    }

    /// Creates the endpoint of a connection request over iWARP, where the port space is always TCP
    /// and the QP type always RC.
    pub(crate) fn create_child_of_iwarp(listener: &Endpoint) -> Result<EndpointRef> {
        let (core, net) = (&listener.core, listener.net.clone());
        let is_of_kernel = listener.is_of_kernel;
        let child = Self::new(core, net, PortSpace::Tcp, QpType::RC, false, is_of_kernel)?;
        child.head.own_as(&listener.head);
        Ok(child)
    }

    /// Creates an endpoint without an address, for a consumer of the InfiniBand CM.
    pub(crate) fn create_bare(
        core: &Arc<Core>,
        net: ARef<Net>,
        owner: OwnerName,
    ) -> Result<EndpointRef> {
        let endpoint = Self::new(core, net, PortSpace::Ib, QpType::ANY, true, true)?;
        endpoint.head.own_by_kernel(owner);
        Ok(endpoint)
    }

    fn new(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: QpType,
        speaks_messages: bool,
        is_of_kernel: bool,
    ) -> Result<EndpointRef> {
        let timer = TimerSlot::new()?;
        let number = core.next_number();
        core.endpoints.pin_init(pin_init!(Endpoint {
            head <- IdHead::new(ps.number(), qp_type),
            core: core.clone(),
            number,
            net,
            ps,
            qp_type,
            speaks_messages,
            is_of_kernel,
            inner <- new_mutex!(Inner::new(timer), "rdma_cm_endpoint"),
        }))
    }

    /// Gives the endpoint its consumer.
    ///
    /// Fails with `ENODEV` and drops the consumer if the endpoint is dead, or if the consumer is a
    /// part of the kernel and the device is being removed.
    pub(crate) fn set_consumer(&self, consumer: Arc<dyn Consumer>) -> Result {
        let mut inner = self.inner.lock();
        if inner.is_dead() {
            drop(inner);
            drop(consumer);
            return Err(ENODEV);
        }
        if let (true, Some(attachment)) = (consumer.is_kernel(), &inner.device) {
            let Some(stay) = attachment.device.stay() else {
                drop(inner);
                drop(consumer);
                return Err(ENODEV);
            };
            inner.stay = Some(stay);
        }
        let before = inner.consumer.replace(consumer);
        drop(inner);
        drop(before);
        Ok(())
    }

    /// Changes the state, also as netlink reports it.
    pub(crate) fn set_state(&self, inner: &mut Inner, state: State) {
        inner.state = state;
        self.head.set_state(state as u32);
    }

    /// Reports an event to the consumer, if there is one that deals in addresses.
    pub(crate) fn deliver(&self, inner: &Inner, event: &Event<'_>) {
        if let Some(consumer) = inner.consumer.as_ref().filter(|_| !self.speaks_messages) {
            consumer.event(inner, event);
        }
    }

    /// Reports an event of the multicast group `group` to the consumer, if there is one.
    pub(crate) fn deliver_of_group(&self, inner: &Inner, group: u64, event: &Event<'_>) {
        if let Some(consumer) = inner.consumer.as_ref().filter(|_| !inner.is_dead()) {
            consumer.group_event(inner, group, event);
        }
    }

    /// Traces the call of `tell`, which reports `event` to the consumer's owner and returns the
    /// owner's answer, 0 for success.
    pub(crate) fn traced(&self, tos: u8, event: &Event<'_>, tell: impl FnOnce() -> i32) -> i32 {
        let kind = event.kind.number();
        trace::cma::cm_event_handler(&self.head, tos, kind, event.status);
        let told = tell();
        trace::cma::cm_event_done(&self.head, tos, kind, told);
        told
    }

    /// Updates the addresses and the QPN that ib_core reads (`rdma resource show cm_id`).
    pub(crate) fn show(&self, inner: &Inner) {
        self.show_addresses(&inner.src, &inner.dst);
        self.head.set_qp_num(inner.qp_num);
    }

    /// Updates the addresses that ib_core reads. As in C, an unspecified peer's address gets the
    /// family of the source address.
    pub(crate) fn show_addresses(&self, src: &SockAddr, dst: &SockAddr) {
        let dst = if dst.is_unspec() {
            src.wildcard()
        } else {
            *dst
        };
        self.head.set_addresses(src, &dst);
    }

    /// Returns whether the source address is a native one (`AF_IB`).
    pub(crate) fn is_native(&self) -> bool {
        matches!(self.inner.lock().src, SockAddr::Ib { .. })
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> State {
        self.inner.lock().state
    }

    /// Returns whether the endpoint is attached to a device.
    pub(crate) fn has_device(&self) -> bool {
        self.inner.lock().device.is_some()
    }
}
