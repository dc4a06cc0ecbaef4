// SPDX-License-Identifier: GPL-2.0

//! The state that the module has once: tables, timers, devices and services.

use crate::{
    device::devices::Devices,
    endpoint::{EndpointRef, ServiceConsumer, Slabs},
    ib::{addr::Resolver, iw::IwCm, sa::SaClient},
    kext::{bug, clock, random, users::Users, workqueue::OwnedQueue},
    table::{
        accept_locks::AcceptLocks, comm_ids::CommIds, events::Events, listeners::Listeners,
        neighbours::Neighbours, parked::Parking, port_spaces::PortSpaces, qp_numbers::QpNumbers,
        remote_ids::RemoteIdTable, resolve_budget::ResolveBudget, round_trips::RoundTrips,
        sidr_requests::SidrRequests, sources::Sources, timers::Timers, unresolved::Unresolved,
        wildcard_listeners::WildcardListeners,
    },
};
use cmproto::time::Instant;
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The tables, timers, devices and services of the module, shared by all endpoints.
#[pin_data]
pub(crate) struct Globals {
    /// The slab caches of all endpoints and their messages.
    pub(crate) slabs: Arc<Slabs>,
    pub(crate) comm_ids: Arc<CommIds<EndpointRef>>,
    pub(crate) remote_ids: Arc<RemoteIdTable<EndpointRef>>,
    pub(crate) port_spaces: Arc<PortSpaces>,
    pub(crate) qp_numbers: Arc<QpNumbers<EndpointRef>>,
    pub(crate) listeners: Arc<Listeners<EndpointRef, ServiceConsumer>>,
    #[pin]
    pub(crate) devices: Devices<EndpointRef>,
    pub(crate) wildcard_listeners: Arc<WildcardListeners>,
    pub(crate) neighbours: Arc<Neighbours<Arc<Globals>>>,
    pub(crate) timers: Timers<EndpointRef>,
    pub(crate) sidr_requests: Arc<SidrRequests<EndpointRef>>,
    pub(crate) resolver: Resolver,
    pub(crate) iw: IwCm,
    pub(crate) sa: SaClient,
    pub(crate) accept_locks: Arc<AcceptLocks<EndpointRef>>,
    pub(crate) resolve_budget: Arc<ResolveBudget>,
    pub(crate) unresolved: Arc<Unresolved<EndpointRef>>,
    pub(crate) round_trips: Arc<RoundTrips>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) parking: Arc<Parking>,
    pub(crate) users: Arc<Users>,
    /// The events that administrators are told of.
    pub(crate) events: Arc<Events>,
    /// The queue for callbacks of kernel consumers and for the end of closed files.
    pub(crate) callbacks: OwnedQueue,
    /// Set when an identifier was tuned that minds a dead link.
    pub(crate) minds_links: Atomic<bool>,
    numbers: Atomic<u64>,
    port_taken: Atomic<bool>,
}

impl Globals {
    /// Creates the globals with empty tables, for endpoints of the given caches.
    ///
    /// Each endpoint holds a reference to the globals, so that these must not be the only owner of
    /// the cache.
    pub(crate) fn new(slabs: Arc<Slabs>) -> Result<Arc<Self>> {
        let timers = Timers::new()?;
        let sidr_requests = SidrRequests::new(timers.queue())?;
        let resolver = Resolver::new()?;
        let iw = IwCm::new()?;
        let sa = SaClient::new()?;
        let neighbours = Neighbours::new()?;
        let listeners = Listeners::new([random::u64(), random::u64()])?;
        let port_spaces = PortSpaces::new()?;
        let qp_numbers = QpNumbers::new()?;
        let remote_ids = RemoteIdTable::new()?;
        let comm_ids = CommIds::new([random::u64(), random::u64()])?;
        let accept_locks = AcceptLocks::new()?;
        let wildcard_listeners = WildcardListeners::new()?;
        let unresolved = Unresolved::new()?;
        let parking = Parking::new()?;
        let users = Users::new()?;
        let events = Events::new(timers.queue())?;
        let resolve_budget = ResolveBudget::new([random::u64(), random::u64()])?;
        let round_trips = RoundTrips::new([random::u64(), random::u64()])?;
        let sources = Sources::new([random::u64(), random::u64()])?;
        let callbacks = OwnedQueue::new(c"rdma_cm")?;
        Arc::pin_init(
            pin_init!(Globals {
                slabs,
                comm_ids,
                remote_ids,
                port_spaces,
                qp_numbers,
                listeners,
                devices <- Devices::new(),
                wildcard_listeners,
                neighbours,
                timers,
                sidr_requests,
                resolver,
                iw,
                sa,
                accept_locks,
                resolve_budget,
                unresolved,
                round_trips,
                sources,
                parking,
                users,
                events,
                callbacks,
                minds_links: Atomic::new(false),
                numbers: Atomic::new(1),
                port_taken: Atomic::new(false),
            }),
            GFP_KERNEL,
        )
    }

    /// Stops all timers, work items and queries of the module, and waits for them. Warns of entries
    /// of the tables that nobody would remove.
    ///
    /// To be called when no endpoint is left and before the module is unloaded. The last reference
    /// to the globals may be dropped by work that is stopped here, which could not wait for itself.
    pub(crate) fn shut_down(&self) {
        self.callbacks.flush();
        self.neighbours.shut_down();
        self.resolver.close();
        self.iw.close();
        self.sa.close();
        self.timers.shut_down();
        self.sidr_requests.shut_down();
        self.events.shut_down();
        // Entries of other tables own endpoints, of which the slab cache warns.
        bug::check_empty("communication ids", self.comm_ids.is_empty());
        bug::check_empty("ports", self.port_spaces.is_empty());
        bug::check_empty("neighbours", self.neighbours.is_empty());
        bug::check_empty("users", self.users.is_empty());
    }

    /// Returns a number that was not returned before, for a new endpoint or multicast group.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// Returns the current time, for the protocol crate.
    pub(crate) fn now(&self) -> Instant {
        Instant(clock::now_us())
    }

    /// Records that another module receives the CM messages of a port.
    pub(crate) fn note_port_taken(&self) {
        self.port_taken.store(true, Relaxed);
    }

    /// Returns whether another module receives the CM messages of a port.
    pub(crate) fn is_port_taken(&self) -> bool {
        self.port_taken.load(Relaxed)
    }
}
