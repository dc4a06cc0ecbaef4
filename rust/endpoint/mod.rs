// SPDX-License-Identifier: GPL-2.0

//! The endpoint: one object for one connection, listener or identifier.
//!
//! It takes the place of two objects of the C modules, the `rdma_cm_id` and the `ib_cm_id`. It has
//! one lock. What it does is spread over the layers: addresses, routes, ports and listening are in
//! [`crate::cma`], messages and timers in [`crate::cm`]; this module holds what they share and how
//! an endpoint is born and dies.
//!
//! # Lock order
//!
//! endpoint -> channel -> table shard -> port. No two endpoint locks are held together, and none is
//! held while user memory is copied or while anything is waited for: the path that receives MADs
//! takes endpoint locks, so whoever holds one must be done in microseconds.
//!
//! # Life
//!
//! Every thing in flight (a timer, an address query, an entry in a table, a queued event) owns a
//! reference. [`Endpoint::destroy`] marks the endpoint dead, says the protocol's farewell, and takes
//! it out of all tables; it waits only for a callback that is running.

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
use cmproto::{addr::SockAddr, cma::State, service_id::PortSpace};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{aref::ARef, Arc, Mutex},
};

/// `enum ib_qp_type` of reliable connections.
const QPT_RC: u8 = 2;

/// One connection, listener or identifier.
///
/// # Invariants
///
/// `head` says what `inner` says: whoever changes the state or an address under the lock also
/// calls [`Endpoint::show`] before releasing it.
#[pin_data]
pub(crate) struct Endpoint {
    /// What ib_core reads of an endpoint, in the layout in which it reads it.
    #[pin]
    pub(crate) head: IdHead,
    /// The module.
    pub(crate) core: Arc<Core>,
    /// A number that no other endpoint has or had; the key in the tables of the module.
    pub(crate) number: u64,
    /// The namespace of the addresses.
    pub(crate) net: ARef<Net>,
    /// The port space.
    pub(crate) ps: PortSpace,
    /// The type of the QP (`enum ib_qp_type`).
    pub(crate) qp_type: u8,
    /// Whether its consumer speaks of messages, and not of addresses.
    pub(crate) speaks_messages: bool,
    /// Whether it belongs to a part of the kernel, such as storage: what it has to send needs no memory
    /// that there might not be.
    pub(crate) is_of_kernel: bool,
    /// All that changes.
    #[pin]
    pub(crate) inner: Mutex<Inner>,
}

/// A counted reference to an endpoint.
pub(crate) type EndpointRef = SlabArc<Endpoint>;

impl Endpoint {
    /// Creates an endpoint that is shown as the current task's.
    pub(crate) fn create(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: u8,
    ) -> Result<EndpointRef> {
        let endpoint = Self::new(core, net, ps, qp_type, false, false)?;
        endpoint.head.own_by_current();
        Ok(endpoint)
    }

    /// Creates an endpoint that is shown as belonging to the part of the kernel called `owner`.
    pub(crate) fn create_for(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: u8,
        owner: OwnerName,
    ) -> Result<EndpointRef> {
        let endpoint = Self::new(core, net, ps, qp_type, false, true)?;
        endpoint.head.own_by_kernel(owner);
        Ok(endpoint)
    }

    /// Creates the endpoint of a connection request; it is shown as belonging to whom `listener`
    /// belongs to.
    pub(crate) fn create_child(listener: &Endpoint, qp_type: u8) -> Result<EndpointRef> {
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

    /// Creates the endpoint of a connection request over iWARP, which knows no other port space and no
    /// other type of QP.
    pub(crate) fn create_child_of_iwarp(listener: &Endpoint) -> Result<EndpointRef> {
        let (core, net) = (&listener.core, listener.net.clone());
        let is_of_kernel = listener.is_of_kernel;
        let child = Self::new(core, net, PortSpace::Tcp, QPT_RC, false, is_of_kernel)?;
        child.head.own_as(&listener.head);
        Ok(child)
    }

    /// Creates an endpoint without an address, for a consumer that speaks of messages.
    pub(crate) fn create_bare(
        core: &Arc<Core>,
        net: ARef<Net>,
        owner: OwnerName,
    ) -> Result<EndpointRef> {
        let endpoint = Self::new(core, net, PortSpace::Ib, 0, true, true)?;
        endpoint.head.own_by_kernel(owner);
        Ok(endpoint)
    }

    fn new(
        core: &Arc<Core>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: u8,
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
    /// A dead endpoint takes none, nor does one whose device goes away if that has to be kept:
    /// `ENODEV`, and the consumer is dropped.
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

    /// Changes the state.
    pub(crate) fn set_state(&self, inner: &mut Inner, state: State) {
        inner.state = state;
        self.head.set_state(state as u32);
    }

    /// Tells the consumer, if there is one.
    pub(crate) fn deliver(&self, inner: &Inner, event: &Event<'_>) {
        if let Some(consumer) = inner.consumer.as_ref().filter(|_| !self.speaks_messages) {
            consumer.event(inner, event);
        }
    }

    /// Tells the consumer, if there is one, of the multicast group `group`.
    pub(crate) fn deliver_of_group(&self, inner: &Inner, group: u64, event: &Event<'_>) {
        if let Some(consumer) = inner.consumer.as_ref().filter(|_| !inner.is_dead()) {
            consumer.group_event(inner, group, event);
        }
    }

    /// Traces the call `tell`, in which the consumer is told of `event` and which returns 0 if it
    /// agrees.
    pub(crate) fn traced(&self, tos: u8, event: &Event<'_>, tell: impl FnOnce() -> i32) -> i32 {
        let kind = event.kind.number();
        trace::cma::cm_event_handler(&self.head, tos, kind, event.status);
        let told = tell();
        trace::cma::cm_event_done(&self.head, tos, kind, told);
        told
    }

    /// Shows the addresses and the QP to ib_core (`rdma resource show cm_id`).
    pub(crate) fn show(&self, inner: &Inner) {
        self.show_addresses(&inner.src, &inner.dst);
        self.head.set_qp_num(inner.qp_num);
    }

    /// Shows the addresses. As soon as the own one is known, that of the peer has a family, as in C.
    pub(crate) fn show_addresses(&self, src: &SockAddr, dst: &SockAddr) {
        let dst = if dst.is_unspec() {
            src.wildcard()
        } else {
            *dst
        };
        self.head.set_addresses(src, &dst);
    }

    /// Whether the endpoint's own address is one of InfiniBand.
    pub(crate) fn is_native(&self) -> bool {
        matches!(self.inner.lock().src, SockAddr::Ib { .. })
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        self.inner.lock().state
    }

    /// Whether the endpoint has a device.
    pub(crate) fn has_device(&self) -> bool {
        self.inner.lock().device.is_some()
    }
}
