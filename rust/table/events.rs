// SPDX-License-Identifier: GPL-2.0

//! The events that administrators are told of by netlink.
//!
//! [`cmproto::event`] decides what an event says, and [`cmproto::event_budgets`] how many there
//! are. If nobody listens, an event costs no more than to see that.
//!
//! Lock order: the lock is of the class "table shard". While it is held, no other lock is taken and
//! nothing is allocated.

use crate::{
    ib::device::Device,
    kext::{
        clock,
        net::Net,
        netlink::Message,
        netlink_group::Group,
        sysctl,
        users::User,
        workqueue::{new_delayed_runner, DelayedRunner, OwnedQueue, RunDelayed},
    },
};
use cmproto::{
    addr::Gid,
    event::{Event, Value},
    event_budgets::Budgets,
    netlink::{Attr, ResourceAttr},
    time::Instant,
    ucma::account::Resource,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{aref::ARef, Arc, Mutex},
};

/// Time after which it is told how many events were lost, in microseconds.
const REPORT_US: u64 = 1_000_000;

/// The place of an event: a device, and perhaps a port of it.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) device: &'a Device,
    pub(crate) port: Option<u32>,
}

/// A port in a network namespace, as the source of events.
#[derive(Clone)]
struct PortSource {
    net: ARef<Net>,
    /// Index of the device and number of the port, or 0. `None` for addresses without a port.
    port: Option<(u32, u32)>,
}

impl PartialEq for PortSource {
    fn eq(&self, other: &Self) -> bool {
        self.net.ptr_eq(&other.net) && self.port == other.port
    }
}

/// The place of a request that has come to a port without an endpoint for it.
pub(crate) struct ArrivedAt<'a> {
    pub(crate) device: &'a Device,
    pub(crate) port: u32,
    /// The GID that it was sent to.
    pub(crate) gid: Gid,
}

/// A GID as the source of events, and the network namespace of the first.
#[derive(Clone)]
struct GidSource {
    net: ARef<Net>,
    port: (u32, u32),
    gid: Gid,
}

impl PartialEq for GidSource {
    fn eq(&self, other: &Self) -> bool {
        self.port == other.port && self.gid == other.gid
    }
}

/// A user as the source of events, and the network namespace where it was one first.
#[derive(Clone)]
struct UserSource {
    net: ARef<Net>,
    /// The number in the initial user namespace.
    user: u32,
}

impl PartialEq for UserSource {
    fn eq(&self, other: &Self) -> bool {
        self.user == other.user
    }
}

/// The limits. Users have places of their own, so that they take none from ports, and so do GIDs,
/// whose limits hold before the namespace of an event is looked up.
struct State {
    ports: Budgets<PortSource>,
    gids: Budgets<GidSource>,
    users: Budgets<UserSource>,
    /// Set while the report is armed, or is about to be.
    is_armed: bool,
}

impl State {
    fn new() -> impl Init<Self> {
        init!(State {
            ports: Budgets::new(),
            gids: Budgets::new(),
            users: Budgets::new(),
            is_armed: false,
        })
    }
}

/// The events that administrators are told of.
#[pin_data]
pub(crate) struct Events {
    pub(crate) group: Arc<Group>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    report: DelayedRunner<Events>,
    queue: Arc<OwnedQueue>,
}

impl Events {
    /// Creates the events, which are reported as lost on `queue`. Fails with [`ENOMEM`].
    pub(crate) fn new(queue: &Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let group = Arc::new(Group::new(), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                group,
                state <- new_mutex!(State::new(), "rdma_cm_events"),
                report <- new_delayed_runner!("rdma_cm_events"),
                queue: queue.clone(),
            }),
            GFP_KERNEL,
        )
    }

    /// Stops the report, and waits for it.
    pub(crate) fn shut_down(&self) {
        self.report.shutdown_sync();
    }

    /// Returns whether anybody listens.
    pub(crate) fn has_listeners(&self) -> bool {
        self.group.has_listeners()
    }

    /// Tells those who listen in `net` of an event, unless there are too many.
    pub(crate) fn tell(self: &Arc<Self>, net: &Net, at: Option<At<'_>>, event: &Event) {
        let source = PortSource {
            net: net.into(),
            port: at.map(|at| (at.device.index(), at.port.unwrap_or(0))),
        };
        if self.take(|state, now| state.ports.take(source, now)) {
            let name = at.map(|at| at.device.name());
            self.send(net, event, |message| {
                if let (Some(at), Some(name)) = (at, &name) {
                    message.u32(Attr::DevIndex as u16, at.device.index())?;
                    message.text(Attr::DevName as u16, name)?;
                    if let Some(port) = at.port {
                        message.u32(Attr::Port as u16, port)?;
                    }
                }
                Ok(())
            });
        }
    }

    /// Returns whether an event about a request that has come there would be lost, as there are too
    /// many. It is then counted as lost.
    pub(crate) fn is_flooded(&self, arrived: &ArrivedAt<'_>) -> bool {
        let now = Instant(clock::now_us());
        let place = (arrived.device.index(), arrived.port);
        let is_source = |source: &GidSource| (source.port, source.gid) == (place, arrived.gid);
        self.state.lock().gids.is_spent(is_source, now)
    }

    /// Tells those who listen in `net` of an event about a request that has come there, unless
    /// there are too many.
    pub(crate) fn tell_arrived(
        self: &Arc<Self>,
        net: &Net,
        arrived: &ArrivedAt<'_>,
        event: &Event,
    ) {
        let source = GidSource {
            net: net.into(),
            port: (arrived.device.index(), arrived.port),
            gid: arrived.gid,
        };
        if self.take(|state, now| state.gids.take(source, now)) {
            let at = At {
                device: arrived.device,
                port: Some(arrived.port),
            };
            self.tell(net, Some(at), event);
        }
    }

    /// Tells those who listen in `net` that a user has as much of a resource as it may have.
    #[cold]
    pub(crate) fn limit(self: &Arc<Self>, net: &Net, user: &User, resource: Resource) {
        if !self.has_listeners() {
            return;
        }
        let source = UserSource {
            net: net.into(),
            user: user.number(),
        };
        if self.take(|state, now| state.users.take(source, now)) {
            let event = Event::Limit {
                user: net.user_as_seen(user.number()),
                resource,
                limit: sysctl::max_user(resource),
            };
            self.send(net, &event, |_| Ok(()));
        }
    }

    /// Calls `take`, which says whether an event may be sent, and sees to the report.
    fn take(self: &Arc<Self>, take: impl FnOnce(&mut State, Instant) -> bool) -> bool {
        let now = Instant(clock::now_us());
        let mut state = self.state.lock();
        let may = take(&mut state, now);
        let arm = !state.is_armed;
        state.is_armed = true;
        drop(state);
        if arm {
            self.report.arm(self, &self.queue, REPORT_US);
        }
        may
    }

    /// Sends the message about an event, behind the attributes that `begin` puts into it.
    fn send(&self, net: &Net, event: &Event, begin: impl FnOnce(&mut Message<'_>) -> Result) {
        self.group.send(net, event.command() as u8, |message| {
            begin(message)?;
            event.visit(|attr, value| put(message, attr, value))
        });
    }

    /// Tells of the events that were lost.
    fn report_lost(&self) {
        while let Some((source, events)) = self.take_lost(|state| state.ports.take_lost()) {
            self.send_lost(&source.net, source.port, events);
        }
        while let Some((source, events)) = self.take_lost(|state| state.gids.take_lost()) {
            self.send_lost(&source.net, Some(source.port), events);
        }
        while let Some((source, events)) = self.take_lost(|state| state.users.take_lost()) {
            let user = source.net.user_as_seen(source.user);
            self.send(&source.net, &Event::Lost { events }, |message| {
                user.map_or(Ok(()), |user| message.u32(Attr::Uid as u16, user))
            });
        }
    }

    /// Tells those who listen in `net` how many events of a port were lost.
    fn send_lost(&self, net: &Net, port: Option<(u32, u32)>, events: u64) {
        self.send(net, &Event::Lost { events }, |message| {
            if let Some((device, port)) = port {
                message.u32(Attr::DevIndex as u16, device)?;
                message.u32(Attr::Port as u16, port)?;
            }
            Ok(())
        });
    }

    /// Calls `take` with the lock held.
    fn take_lost<T>(&self, take: impl FnOnce(&mut State) -> T) -> T {
        take(&mut self.state.lock())
    }
}

/// Adds an attribute of an event.
fn put(message: &mut Message<'_>, attr: Attr, value: Value) -> Result {
    let attr = attr as u16;
    match value {
        Value::U32(number) => message.u32(attr, number),
        Value::Uint(number) => message.uint(attr, number),
        Value::Text(text) => message.c_str(attr, text),
        Value::Address(addr) => {
            let bytes = addr.to_bytes();
            message.bytes(attr, bytes.get(..addr.len()).unwrap_or(&[]))
        }
        Value::Resource(resource, limit) => message.nest(attr, |message| {
            message.text(ResourceAttr::Name as u16, resource.name().as_bytes())?;
            message.u32(ResourceAttr::Limit as u16, limit)
        }),
    }
}

impl RunDelayed for Events {
    fn run_delayed(this: Arc<Self>) {
        this.report_lost();
        let now = Instant(clock::now_us());
        let mut state = this.state.lock();
        state.ports.forget(now);
        state.gids.forget(now);
        state.users.forget(now);
        state.is_armed =
            !state.ports.is_empty() || !state.gids.is_empty() || !state.users.is_empty();
        let arm = state.is_armed;
        drop(state);
        if arm {
            this.report.arm(&this, &this.queue, REPORT_US);
        }
    }
}
