// SPDX-License-Identifier: GPL-2.0

//! The end of an endpoint, by its consumer's wish or with its device.

use crate::{
    endpoint::{
        Attachment, Consumer, Endpoint, EndpointRef, Event, Exchange, Group, Inner, Iwarp,
        Listening,
    },
    globals::Globals,
    ib::{addr::Query, sa::SaQuery, trace},
    kext::{delay, use_count::OwnedUse},
    table::{neighbours::Watching, port_spaces::PortClaim},
};
use cmproto::{
    cm::DestroyCause,
    cma::{State, Trigger},
    dropped::Dropped,
    event::{Failure, Phase},
    ucma_abi::CmEvent,
};
use core::mem;
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, rbtree::RBTree, sync::Arc};

/// The contents of a dead endpoint, to be released without its lock.
struct Removed {
    query: Option<Query>,
    sa_query: Option<KBox<SaQuery>>,
    listening: Option<Listening>,
    port: Option<PortClaim>,
    watching: Option<Watching<Arc<Globals>>>,
    iwarp: Option<KBox<Iwarp>>,
    /// The exchange, whose communication id and address handle are given back.
    exchange: Exchange,
    groups: RBTree<u64, Group>,
    device: Option<Attachment>,
    device_use: Option<OwnedUse>,
    consumer: Option<Arc<dyn Consumer>>,
}

impl Endpoint {
    /// Takes everything out of the endpoint, which is dead, or will be before its lock is released,
    /// and sends its peer the last message.
    fn strip(self: &EndpointRef, inner: &mut Inner, cause: DestroyCause) -> Removed {
        self.destroy_cm(inner, cause);
        self.globals.timers.disarm(&mut inner.timer, self);
        self.end_in_flight(inner);
        self.settle_request();
        Removed {
            query: inner.resolution.query.take(),
            sa_query: inner.route.sa_query.take(),
            listening: inner.listening.take(),
            port: inner.addr.port.take(),
            watching: inner.watching.take(),
            iwarp: inner.exchange.take_iwarp(),
            exchange: mem::replace(&mut inner.exchange, Exchange::None),
            groups: mem::replace(&mut inner.groups, RBTree::new()),
            device: inner.device.take(),
            device_use: inner.device_use.take(),
            consumer: inner.consumer.take(),
        }
    }

    /// Releases the contents of a dead endpoint.
    fn tear_down(self: &EndpointRef, removed: Removed) {
        let Removed {
            query,
            sa_query,
            listening,
            port,
            watching,
            iwarp,
            exchange,
            groups,
            device,
            device_use,
            consumer,
        } = removed;
        // A callback of a query that runs now finds a dead endpoint.
        drop(query);
        drop(sa_query);
        drop(listening);
        // The state machines have given the ids of the peer back, and a SIDR_REQ that was received
        // and not answered has no table entry any more.
        drop(exchange);
        if let Some(iwarp) = iwarp {
            // A driver that was asked for the identifier may be using the one of the iWARP CM.
            self.id_priv.del();
            delay::point();
            // This comes before the port is free for others.
            Iwarp::end(iwarp);
        }
        drop(port);
        drop(watching);
        delay::point();
        if let Some(device) = device {
            self.detach(device);
        }
        // Nothing of the endpoint keeps the device from here on.
        drop(device_use);
        // This comes last: leaving the groups takes the lock of all network interfaces (RTNL),
        // which a task that removes the device, and waits for this endpoint, may hold.
        drop(groups);
        drop(consumer);
    }

    /// Ends the endpoint. After this returns, the consumer is told of no more events.
    ///
    /// Waits for nothing but a callback that is running. A second call does nothing.
    pub(crate) fn destroy(self: &EndpointRef) {
        self.end(DestroyCause::User);
    }

    /// Ends the endpoint of a connection request that nobody took.
    ///
    /// With [`DestroyCause::NoMemory`] nothing is sent to the peer, which tries again.
    pub(crate) fn end(self: &EndpointRef, cause: DestroyCause) {
        let mut inner = self.inner.lock();
        // An endpoint that was only told of its device's removal is taken down here, and one that
        // was taken down by the removal leaves its groups here.
        if inner.is_dead() && inner.device.is_none() && inner.groups.is_empty() {
            return;
        }
        trace::cma::cm_id_destroy(&self.id_priv, inner.tos());
        let listened = inner.state() == State::Listen;
        if listened {
            self.vacancy.close();
        }
        let removed = self.strip(&mut inner, cause);
        // Nothing happens to an endpoint that is being destroyed already.
        let _ = self.step(&mut inner, Trigger::Destroy);
        drop(inner);
        delay::point();
        if listened {
            self.end_unresolved();
        }
        self.tear_down(removed);
    }

    /// Ends the endpoint of a parked request that gives way to another one. Its sender is told
    /// nothing, and tries again.
    pub(crate) fn end_replaced(self: &EndpointRef) {
        let inner = self.inner.lock();
        if let Some(port) = inner.cm_port() {
            port.counts.dropped(Dropped::Replaced);
            self.tell_failure(&inner, Failure::dropped(Phase::Req, Dropped::Replaced));
        }
        drop(inner);
        self.end(DestroyCause::NoMemory);
    }

    /// Ends the requests to the endpoint, which does not listen any more, whose senders' addresses
    /// are being resolved.
    ///
    /// Their senders cannot be told, because their addresses are not known.
    pub(crate) fn end_unresolved(&self) {
        self.globals
            .unresolved
            .end_of(self.number, |child| child.end(DestroyCause::NoMemory));
    }

    /// Gives the port of an endpoint that will be destroyed soon back, so that others can use it at
    /// once. Returns false, and does nothing, if the endpoint listens or uses iWARP: such an
    /// endpoint has to be destroyed for that.
    pub(crate) fn release_port(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.listening.is_some() || inner.exchange.iwarp().is_some() {
            return false;
        }
        let port = inner.addr.port.take();
        drop(inner);
        drop(port);
        true
    }

    /// Tells the consumer that the device is being removed. The endpoint is dead from here on.
    pub(crate) fn report_removal(&self) {
        let mut inner = self.inner.lock();
        if self.step(&mut inner, Trigger::RemoveDevice).is_err() {
            return;
        }
        let consumer = inner.consumer.clone();
        // This comes first, so that a reader of the event finds the context removed.
        if let Some(consumer) = &consumer {
            consumer.device_removed();
        }
        self.deliver(&inner, &Event::new(CmEvent::DeviceRemoval, 0));
        drop(inner);
        drop(consumer);
    }

    /// Takes down an endpoint that was told of its device's removal, unless its consumer destroys
    /// it.
    pub(crate) fn tear_down_removed(self: &EndpointRef) {
        let mut inner = self.inner.lock();
        if inner.state() != State::DeviceRemoval || inner.device_use.is_some() {
            return;
        }
        let mut removed = self.strip(&mut inner, DestroyCause::User);
        // The groups are left later: the task that removes the device, and waits for this, may hold
        // the lock of all network interfaces (RTNL), which leaving them takes.
        inner.groups = mem::replace(&mut removed.groups, RBTree::new());
        let has_groups = !inner.groups.is_empty();
        drop(inner);
        delay::point();
        self.tear_down(removed);
        if has_groups {
            let this = self.clone();
            let leave = move || {
                let groups = mem::replace(&mut this.inner.lock().groups, RBTree::new());
                drop(groups);
            };
            // Without memory, the groups are left when the consumer destroys the endpoint.
            let _ = self.globals.callbacks.try_spawn(GFP_KERNEL, leave);
        }
    }
}
