// SPDX-License-Identifier: GPL-2.0

//! The endpoint: the object behind one connection, listener or identifier.
//!
//! It takes the place of two objects of the C modules, the `rdma_cm_id` and the `ib_cm_id`, and has
//! one lock. Its operations are spread over the layers: addresses, routes, ports and listening are
//! in [`crate::cma`], messages and timers in [`crate::cm`]. This module has the state that they
//! share, and the birth of endpoints; their end is in [`crate::cm`].
//!
//! # Lock order
//!
//! endpoint -> channel -> table shard -> port. No two endpoint locks are held together. No endpoint
//! lock is held while user memory is copied or while anything is waited for: the path that receives
//! MADs takes endpoint locks, so they must be held for microseconds only.
//!
//! # Life
//!
//! Everything in flight for an endpoint (a timer, an address query, an entry in a table, a queued
//! event) owns a reference to it. [`Endpoint::destroy`] marks the endpoint dead, sends the last
//! message of the protocol, and takes the endpoint out of all tables. It waits only for a callback
//! that is running.

mod addresses;
mod attach;
mod callback_context;
mod consumer;
mod ends;
mod event;
mod exchange;
mod group;
mod inner;
mod iwarp;
mod owned_event;
mod path_resolution;
mod qp_info;
mod retransmit_buffer;
mod vacancy;

pub(crate) use self::{
    callback_context::CallbackContext,
    consumer::{Admitted, Consumer, ServiceConsumer, View},
    event::{ConnEventParam, ConnParam, Ece, Event, EventParam, PrivateData, UdEventParam},
    exchange::{Alternate, Alternates, Conn, Exchange, Sidr},
    group::{Group, GroupAnswer},
    inner::Inner,
    iwarp::{Iwarp, IwarpConnection},
    owned_event::OwnedEvent,
    path_resolution::{PathRecords, Services},
    retransmit_buffer::{BufferCache, Connection, RetransmitMemory},
};

use self::vacancy::VacancyFlags;
use crate::{
    device::{attachment, cm_device},
    globals::Globals,
    ib::{
        overlaid_rdma_id::{words_left, OverlaidRdmaId, Padded, FIRST_GAP, SECOND_GAP, THIRD_GAP},
        restrack::{OwnerName, RdmaIdPrivate},
        trace,
    },
    kext::{
        clock::Tick,
        memcg::{ChargeScope, MemCgroup},
        net::Net,
        slab::{SlabArc, SlabBoxCache, SlabCache},
        users::{IdCharge, UserRef},
    },
    table::{
        comm_ids::{CommIdLink, OwnCommId},
        listeners::{self, Listens, Vacancy},
        members::{self, MemberLink},
        port_spaces::PortCache,
        qp_numbers,
        remote_ids::{
            HasRemoteIds, RemoteCommId, RemoteCommIdLink, RemoteIdTable, RemoteQpn, RemoteQpnLink,
        },
        timers::{Deadline, TimerLink},
    },
};
use cmproto::{
    cma::{State, Trigger},
    qp::QpType,
    service_id::PortSpace,
    stored_addr::StoredAddr,
};
use containers::impl_has_link;
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{aref::ARef, Arc, Mutex},
};

/// The kind of an identifier, by the API that its owner uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdKind {
    /// An identifier of the RDMA CM that belongs to a program.
    User,
    /// An identifier of the RDMA CM that belongs to a part of the kernel, such as storage: a
    /// `struct rdma_cm_id`.
    RdmaCm,
    /// An identifier of the InfiniBand CM, which belongs to a part of the kernel: a `struct
    /// ib_cm_id`. Its owner deals in messages, and the endpoint has no addresses.
    IbCm,
}

/// A connection, a listener or an identifier.
///
/// # Invariants
///
/// `id_priv` agrees with `inner`: each task that changes the QPN under the lock calls
/// [`Endpoint::show`] before releasing it. The addresses are in `id_priv` alone; only tasks with
/// the lock use them, but for the source address of an endpoint that listens, which does not
/// change.
#[pin_data]
pub(crate) struct Endpoint {
    /// The part of the endpoint that ib_core reads, in ib_core's layout.
    #[pin]
    pub(crate) id_priv: EndpointRdmaId,
    /// The tables and services of the module.
    pub(crate) globals: Arc<Globals>,
    /// A number that no other endpoint has or had; the key in the tables of the module.
    pub(crate) number: u64,
    /// The network namespace of the addresses.
    pub(crate) net: ARef<Net>,
    /// The port space.
    pub(crate) ps: PortSpace,
    /// The QP type.
    pub(crate) qp_type: QpType,
    /// The kind of the identifier.
    pub(crate) kind: IdKind,
    /// The vacancy of a listener, which counts if others share its address.
    pub(crate) vacancy: VacancyFlags,
    /// The memory cgroup that pays for what is allocated for the identifier outside the calls of
    /// its program: that of its creator, or of its listener's. `None` is the root.
    memcg: Option<MemCgroup>,
    /// The state that changes.
    #[pin]
    pub(crate) inner: Mutex<Inner>,
}

/// The links of an endpoint in the tables that it is in by its own numbers and times.
pub(crate) struct OwnLinks {
    /// The link of the timer. `inner` has the right to arm it.
    timer: TimerLink,
    /// The link in the members of the device.
    member: MemberLink,
    /// The link in the table of communication ids.
    comm_id: CommIdLink,
    /// When the endpoint was created.
    created: Tick,
}

/// The links of an endpoint in the table of the peers' ids.
pub(crate) struct RemoteLinks {
    comm_id: RemoteCommIdLink,
    qpn: RemoteQpnLink,
}

/// The owner of a program's identifier, as far as it pays.
pub(crate) struct Payer {
    /// The charge for a program's identifier.
    charge: Option<IdCharge>,
}

/// The identifier that ib_core reads, in whose gaps are fields of the endpoint that it is in.
pub(crate) type EndpointRdmaId = OverlaidRdmaId<
    Padded<OwnLinks, { words_left::<OwnLinks>(FIRST_GAP) }>,
    Padded<RemoteLinks, { words_left::<RemoteLinks>(SECOND_GAP) }>,
    Padded<Payer, { words_left::<Payer>(THIRD_GAP) }>,
>;

impl Listens for EndpointRef {
    #[inline]
    fn addr(&self) -> impl StoredAddr {
        self.id_priv.src()
    }

    fn vacancy(&self) -> Vacancy {
        self.vacancy.get()
    }
}

impl HasRemoteIds for EndpointRef {
    fn table(&self) -> &RemoteIdTable<Self> {
        &self.globals.remote_ids
    }
}

impl_has_link! {
    impl HasLink<Deadline> for Endpoint { self.id_priv.first.value.timer }
}
impl_has_link! {
    impl HasLink<members::Number> for Endpoint { self.id_priv.first.value.member }
}
impl_has_link! {
    impl HasLink<OwnCommId> for Endpoint { self.id_priv.first.value.comm_id }
}
impl_has_link! {
    impl HasLink<RemoteCommId> for Endpoint { self.id_priv.second.value.comm_id }
}
impl_has_link! {
    impl HasLink<RemoteQpn> for Endpoint { self.id_priv.second.value.qpn }
}

/// The slab caches of the endpoints, and of their connections, the messages of those and their
/// ports.
///
/// The objects lead to the globals, so that these must not be the only owner of the caches.
pub(crate) struct Slabs {
    endpoints: SlabCache<Endpoint>,
    /// The connections.
    pub(crate) conns: SlabBoxCache<Conn>,
    /// The messages that wait for their answers.
    pub(crate) buffers: BufferCache,
    /// The claims to ports.
    pub(crate) ports: PortCache,
}

impl Slabs {
    /// Creates the caches.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let slabs = Slabs {
            endpoints: SlabCache::new(c"rdma_cm_endpoint")?,
            conns: SlabBoxCache::new(c"rdma_cm_connection")?,
            buffers: SlabBoxCache::new(c"rdma_cm_retransmit")?,
            ports: PortCache::new(c"rdma_cm_port")?,
        };
        Ok(Arc::new(slabs, GFP_KERNEL)?)
    }
}

/// A counted reference to an endpoint.
pub(crate) type EndpointRef = SlabArc<Endpoint>;

/// A device, whose members are endpoints.
pub(crate) type CmDevice = cm_device::CmDevice<EndpointRef>;

/// The entry of an endpoint in the table of listeners.
pub(crate) type Listening = listeners::Listening<EndpointRef, ServiceConsumer>;

/// The attachment of an endpoint to a port of a device.
pub(crate) type Attachment = attachment::Attachment<EndpointRef>;

/// The slot for the claim of an endpoint to the number of a queue pair.
pub(crate) type ClaimSlot = qp_numbers::ClaimSlot<EndpointRef>;

impl Endpoint {
    /// Creates an endpoint that belongs to the part of the kernel called `owner`, or to the current
    /// task, as netlink reports it. `charge` is that for a program's identifier.
    pub(crate) fn create(
        globals: &Arc<Globals>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: QpType,
        kind: IdKind,
        owner: Option<OwnerName>,
        charge: Option<IdCharge>,
    ) -> Result<EndpointRef> {
        let memcg = match kind {
            IdKind::User => MemCgroup::of_current(),
            IdKind::RdmaCm | IdKind::IbCm => None,
        };
        let endpoint = Self::new(globals, net, ps, qp_type, kind, charge, memcg)?;
        match owner {
            Some(owner) => endpoint.id_priv.own_by_kernel(owner),
            None => endpoint.id_priv.own_by_current(),
        }
        Ok(endpoint)
    }

    /// Creates the endpoint of a connection request, which belongs to the owner of `listener`, as
    /// netlink reports it. `charge` is that of [`Consumer::takes_requests`].
    pub(crate) fn create_child(
        listener: &Endpoint,
        ps: PortSpace,
        qp_type: QpType,
        charge: Option<IdCharge>,
    ) -> Result<EndpointRef> {
        let (net, kind, memcg) = (listener.net.clone(), listener.kind, listener.memcg.clone());
        let child = Self::new(&listener.globals, net, ps, qp_type, kind, charge, memcg)?;
        child.id_priv.own_as(&listener.id_priv);
        Ok(child)
    }

    fn new(
        globals: &Arc<Globals>,
        net: ARef<Net>,
        ps: PortSpace,
        qp_type: QpType,
        kind: IdKind,
        charge: Option<IdCharge>,
        memcg: Option<MemCgroup>,
    ) -> Result<EndpointRef> {
        let number = globals.next_number();
        globals.slabs.endpoints.pin_init(pin_init!(Endpoint {
            id_priv <- OverlaidRdmaId::new(
                RdmaIdPrivate::new(ps.number(), qp_type),
                Padded::new(init!(OwnLinks {
                    timer: TimerLink::new(),
                    member: MemberLink::new(),
                    comm_id: CommIdLink::new(),
                    created: Tick::now(),
                })),
                Padded::new(init!(RemoteLinks {
                    comm_id: RemoteCommIdLink::new(),
                    qpn: RemoteQpnLink::new(),
                })),
                Padded::new(init!(Payer { charge })),
            ),
            globals: globals.clone(),
            number,
            net,
            ps,
            qp_type,
            kind,
            vacancy: VacancyFlags::new(),
            memcg,
            inner <- new_mutex!(Inner::new(), "rdma_cm_endpoint"),
        }))
    }

    /// Begins a scope in which the owner's memory cgroup pays for what is allocated.
    ///
    /// Messages, timers and answers to queries are handled in tasks of the kernel, which belong to
    /// the root group.
    #[inline]
    pub(crate) fn memcg_scope(&self) -> Option<ChargeScope<'_>> {
        self.memcg.as_ref().map(MemCgroup::charge)
    }

    /// Returns the time when the endpoint was created.
    pub(crate) fn created(&self) -> &Tick {
        &self.id_priv.first.value.created
    }

    fn charge(&self) -> &Option<IdCharge> {
        &self.id_priv.third.value.charge
    }

    /// Returns the user who pays for a program's identifier.
    pub(crate) fn user(&self) -> Option<&UserRef> {
        self.charge().as_ref().map(IdCharge::user)
    }

    /// Notes that the endpoint is no request any more: it is a connection, answered or given up.
    /// Called with the lock held.
    #[inline]
    pub(crate) fn settle_request(&self) {
        if let Some(charge) = self.charge() {
            charge.settle();
        }
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
        if let (true, Some(attachment)) = (self.kind == IdKind::RdmaCm, &inner.device) {
            let Some(device_use) = attachment.device.kernel_use() else {
                drop(inner);
                drop(consumer);
                return Err(ENODEV);
            };
            inner.device_use = Some(device_use);
        }
        let before = inner.consumer.replace(consumer);
        drop(inner);
        drop(before);
        Ok(())
    }

    /// Makes the state transition that `trigger` causes, also as netlink reports it.
    ///
    /// Fails with `EINVAL`, and changes nothing, if `trigger` is not allowed in the state.
    #[inline]
    pub(crate) fn step(&self, inner: &mut Inner, trigger: Trigger) -> Result {
        inner.state = inner.state.next(trigger).ok_or(EINVAL)?;
        self.id_priv.set_state(inner.state as u32);
        Ok(())
    }

    /// Reports an event to the consumer, if there is one that uses the RDMA CM.
    pub(crate) fn deliver(&self, inner: &Inner, event: &Event<'_>) {
        if let Some(consumer) = inner
            .consumer
            .as_ref()
            .filter(|_| self.kind != IdKind::IbCm)
        {
            consumer.event(View::of(inner), event);
        }
    }

    /// Reports an event of the multicast group `group` to the consumer, if there is one.
    pub(crate) fn deliver_of_group(&self, inner: &Inner, group: u64, event: &Event<'_>) {
        if let Some(consumer) = inner.consumer.as_ref().filter(|_| !inner.is_dead()) {
            consumer.group_event(View::of(inner), group, event);
        }
    }

    /// Tells a consumer of the InfiniBand CM that the state of the connection may have changed.
    pub(crate) fn report_state(&self, inner: &Inner) {
        if let (true, Some(consumer)) = (self.kind == IdKind::IbCm, &inner.consumer) {
            consumer.state_changed(View::of(inner));
        }
    }

    /// Traces the call of `deliver`, which reports `event` to the consumer's owner and returns the
    /// owner's answer, 0 for success.
    pub(crate) fn traced(&self, tos: u8, event: &Event<'_>, deliver: impl FnOnce() -> i32) -> i32 {
        let kind = event.kind.number();
        trace::cma::cm_event_handler(&self.id_priv, tos, kind, event.status);
        let status = deliver();
        trace::cma::cm_event_done(&self.id_priv, tos, kind, status);
        status
    }

    /// Updates the QPN that ib_core reads (`rdma resource show cm_id`).
    pub(crate) fn show(&self, inner: &Inner) {
        self.id_priv.set_qp_num(inner.qp.num);
    }

    /// Calls `call` with the lock of the endpoint held, and what the lock protects.
    pub(crate) fn with_lock<R>(
        self: &EndpointRef,
        call: impl FnOnce(&EndpointRef, &mut Inner) -> R,
    ) -> R {
        call(self, &mut self.inner.lock())
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
