// SPDX-License-Identifier: GPL-2.0

//! How an endpoint dies: by its consumer's wish, or with its device.

use super::{Attachment, Conn, Consumer, Endpoint, EndpointRef, Event, Inner, Sidr};
use crate::{
    cm::{execute::Cause, ids::CommId, remote::Tracked},
    cma::{
        iwarp::Iwarp, listeners::Listening, multicast::Group, neighbours::Watching,
        ports::PortClaim,
    },
    ib::{addr::Query, ah::Ah, sa::SaQuery, trace},
    kext::{delay, gate::OwnedGuard},
};
use cmproto::{cm::DestroyCause, cma::State, ucma_abi::CmEvent};
use core::mem;
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, rbtree::RBTree, sync::Arc};

/// What a dead endpoint leaves behind, to be taken down without its lock.
struct Remains {
    query: Option<Query>,
    asking: Option<KBox<SaQuery>>,
    listening: Option<Listening>,
    port: Option<PortClaim>,
    watching: Option<Watching>,
    names: Option<Names>,
    groups: RBTree<u64, Group>,
    sidr: Option<KBox<Sidr>>,
    iwarp: Option<Iwarp>,
    device: Option<Attachment>,
    stay: Option<OwnedGuard>,
    consumer: Option<Arc<dyn Consumer>>,
}

/// What a connection leaves behind.
struct Names {
    tracked: Option<Tracked>,
    _comm_id: CommId,
    _ah: Option<Ah>,
}

impl From<Conn> for Names {
    fn from(conn: Conn) -> Self {
        Names {
            tracked: conn.tracked,
            _comm_id: conn.comm_id,
            _ah: conn.ah,
        }
    }
}

impl Endpoint {
    /// Takes everything out of the endpoint; it is dead from here on.
    ///
    /// Says the protocol's farewell: a REJ, a DREQ, a DREP, a SIDR_REP or nothing, as the state
    /// demands.
    fn strip(self: &EndpointRef, inner: &mut Inner, state: State, cause: DestroyCause) -> Remains {
        if let Some(conn) = &mut inner.conn {
            let actions = conn.machine.destroy(cause, self.core.now());
            self.execute(inner, actions, &Cause::None);
        }
        if let Some(sidr) = &mut inner.sidr {
            let actions = sidr.machine.destroy(cause, self.core.now());
            self.execute_sidr(inner, actions, None);
        }
        self.core.timers.disarm(&mut inner.timer, self);
        inner.unanswered = None;
        self.set_state(inner, state);
        Remains {
            query: inner.query.take(),
            asking: inner.asking.take(),
            listening: inner.listening.take(),
            port: inner.port.take(),
            watching: inner.watching.take(),
            names: inner.conn.take().map(Names::from),
            groups: mem::replace(&mut inner.groups, RBTree::new()),
            sidr: inner.sidr.take(),
            iwarp: inner.iwarp.take(),
            device: inner.device.take(),
            stay: inner.stay.take(),
            consumer: inner.consumer.take(),
        }
    }

    /// Takes the remains down.
    fn bury(self: &EndpointRef, remains: Remains) {
        let Remains {
            query,
            asking,
            listening,
            port,
            watching,
            names,
            groups,
            sidr,
            iwarp,
            device,
            stay,
            consumer,
        } = remains;
        // A callback of a query that runs now finds a dead endpoint.
        drop(query);
        drop(asking);
        if let Some(listening) = listening {
            self.core.listeners.remove(listening, self);
            delay::point();
            self.core.stubs.hide(self.number);
        }
        if let Some(Names { tracked, .. }) = names {
            if let Some(tracked) = tracked {
                self.core.remotes.untrack(tracked, self);
            }
        }
        // A question that was not answered has no entry any more; the number of one's own goes here.
        drop(sidr);
        if let Some(iwarp) = iwarp {
            // Before the port is free for others.
            iwarp.end();
        }
        if let Some(port) = port {
            self.core.ports.release(port);
        }
        if let Some(watching) = watching {
            self.core.neighbours.forget(watching);
        }
        delay::point();
        if let Some(device) = device {
            self.detach(device);
        }
        // The device may go now.
        drop(stay);
        // Last of all: leaving them takes the lock of all network interfaces, which whoever takes the device
        // away may hold.
        drop(groups);
        drop(consumer);
    }

    /// Ends the endpoint. After the return its consumer hears nothing more of it.
    ///
    /// Waits for nothing but a callback that is running. Doing it twice does nothing.
    pub(crate) fn destroy(self: &EndpointRef) {
        self.end(DestroyCause::User);
    }

    /// Ends the endpoint of a request that nobody took.
    ///
    /// With [`DestroyCause::NoMemory`] the peer is told nothing and tries again.
    pub(crate) fn end(self: &EndpointRef, cause: DestroyCause) {
        let mut inner = self.inner.lock();
        // One that was only told of its device's removal is taken down here, or leaves its groups.
        if inner.is_dead() && inner.device.is_none() && inner.groups.is_empty() {
            return;
        }
        trace::cma::cm_id_destroy(&self.head, inner.tos());
        let listened = inner.state == State::Listen;
        let remains = self.strip(&mut inner, State::Destroying, cause);
        drop(inner);
        delay::point();
        if listened {
            self.core.unreached.end_of(self);
        }
        self.bury(remains);
    }

    /// Gives the port back, if that is all that others may want of an endpoint which will be destroyed
    /// soon. Returns whether it is: one that listens, or speaks iWARP, has to be destroyed for that.
    pub(crate) fn vacate(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.listening.is_some() || inner.iwarp.is_some() {
            return false;
        }
        let port = inner.port.take();
        drop(inner);
        if let Some(port) = port {
            self.core.ports.release(port);
        }
        true
    }

    /// Tells the consumer that the device goes away. The endpoint is dead from here on.
    pub(crate) fn announce_removal(&self) {
        let mut inner = self.inner.lock();
        if inner.is_dead() {
            return;
        }
        self.set_state(&mut inner, State::DeviceRemoval);
        let consumer = inner.consumer.clone();
        // First, so that who reads the event finds the endpoint gone.
        if let Some(consumer) = &consumer {
            consumer.device_removed();
        }
        self.deliver(&inner, &Event::new(CmEvent::DeviceRemoval, 0));
        drop(inner);
        drop(consumer);
    }

    /// Takes down an endpoint that was told of its device's removal, unless its consumer will.
    pub(crate) fn bury_removed(self: &EndpointRef) {
        let mut inner = self.inner.lock();
        if inner.state != State::DeviceRemoval || inner.stay.is_some() {
            return;
        }
        let mut remains = self.strip(&mut inner, State::DeviceRemoval, DestroyCause::User);
        // Whoever removes the device may hold the lock of all network interfaces, and waits for this: they are
        // left later.
        inner.groups = mem::replace(&mut remains.groups, RBTree::new());
        let has_groups = !inner.groups.is_empty();
        drop(inner);
        delay::point();
        self.bury(remains);
        if has_groups {
            let this = self.clone();
            let leave = move || {
                let groups = mem::replace(&mut this.inner.lock().groups, RBTree::new());
                drop(groups);
            };
            // Without memory when the consumer destroys the endpoint.
            let _ = self.core.callbacks.try_spawn(GFP_KERNEL, leave);
        }
    }
}
