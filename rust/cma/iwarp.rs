// SPDX-License-Identifier: GPL-2.0

//! Connections over iWARP, which the kernel's iWARP CM (iw_cm) makes.
//!
//! The verbs of iw_cm may wait for the network. They are called without the endpoint's lock, which
//! is taken again to store the outcome. [`cmproto::iwarp`] decides which verb is allowed when.

use crate::{
    cm::child::consumer_of,
    device::source::{Source, SourceLink},
    endpoint::{
        CallbackContext, CmDevice, ConnEventParam, ConnParam, Endpoint, EndpointRef, Event,
        EventParam, Exchange, Inner, Iwarp, IwarpConnection,
    },
    ib::{
        addr,
        interface::Interface,
        iw::{IwAddress, IwEvent, IwHandler, IwId, IwListener, IwParam, IwRequest},
    },
    kext::{error::ResultExt, netdev::NetDevice},
    table::accept_locks::{AcceptLock, AcceptWaiter, Reservation},
};
use cmproto::{
    cm::{qp_attr_mask, DestroyCause},
    cma::{State, Trigger},
    dropped::Dropped,
    event::{Failure, Refusal},
    iwarp::{Connection, Depths, Event as IwarpEvent, Outcome, Phase},
    node::Declined,
    qp::QpType,
    reject::Reason,
    service_id::PortSpace,
    stored_addr::StoredAddr,
    ucma_abi::{CmEvent, UverbsQpAttr},
};
use core::mem;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

impl Inner {
    /// Returns the connection at the iWARP CM. Fails with `EINVAL` if there is none.
    fn iwarp_connection(&mut self) -> Result<(&mut Connection, &Arc<IwId>)> {
        let connection = self.exchange.iwarp_connection_mut().ok_or(EINVAL)?;
        Ok((&mut connection.machine, &connection.id))
    }
}

impl ConnParam<'_> {
    fn to_iwarp(&self) -> IwParam<'_> {
        IwParam {
            qp_num: self.qp_num,
            depths: Depths {
                ird: self.responder_resources,
                ord: self.initiator_depth,
            },
            private_data: self.private_data,
        }
    }
}

/// Returns the event that `outcome` reports to the consumer, if it reports one.
fn event<'a>(outcome: &Outcome, private_data: &'a [u8]) -> Option<Event<'a>> {
    let upcall = outcome.upcall?;
    let plain = Event::new(upcall.event, upcall.status);
    if upcall.depths.is_none() && private_data.is_empty() {
        return Some(plain);
    }
    let param = conn_param(upcall.depths, private_data);
    Some(Event { param, ..plain })
}

fn conn_param(depths: Option<Depths>, private_data: &[u8]) -> EventParam<'_> {
    EventParam::Conn(ConnEventParam {
        responder_resources: depths.map_or(0, |depths| depths.ord),
        initiator_depth: depths.map_or(0, |depths| depths.ird),
        ..ConnEventParam::with_private_data(private_data)
    })
}

impl Endpoint {
    /// Returns whether the iWARP CM makes the connections of the endpoint.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.inner.lock().is_iwarp()
    }

    // Connecting
    // ------------------------------------------------------------------------------------------

    /// Calls `ready` and asks the peer for a connection. Sleeps until the TCP connection is
    /// established; what follows is reported as events.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EINVAL` if the route is not resolved, or if there is no such QP;
    /// - `ENOMEM` if there is no memory;
    /// - the errors of `ready` and of the driver, such as `ECONNREFUSED`.
    pub(super) fn connect_iwarp(
        self: &EndpointRef,
        param: &ConnParam<'_>,
        ready: impl FnOnce() -> Result,
    ) -> Result {
        let device = {
            let inner = self.inner.lock();
            if inner.state() != State::RouteResolved {
                return Err(EINVAL);
            }
            let attachment = inner.device.as_ref().ok_or(EINVAL)?;
            attachment.device.device.clone()
        };
        let memory = KBox::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let id = IwId::create(&self.globals.iw, &device, CallbackContext::new(self)?)?;
        drop(device);
        let connection = KBox::write(
            memory,
            Iwarp::Connection(IwarpConnection {
                machine: Connection::active(),
                id: id.clone(),
                held: KVec::new(),
            }),
        );

        let mut inner = self.inner.lock();
        // Another call may have connected meanwhile.
        if self.step(&mut inner, Trigger::Connect).is_err() {
            drop(inner);
            drop(connection);
            IwId::destroy(id);
            return Err(EINVAL);
        }
        let before = (inner.qp.num, inner.srq);
        let (src, dst, tos) = (self.src(&inner).read(), self.dst(&inner), inner.options.tos);
        inner.qp.num = param.qp_num;
        inner.srq = param.srq != 0;
        inner.exchange = Exchange::Iwarp(connection);
        id.show_at(&self.id_priv);
        self.show(&inner);
        drop(inner);

        let connected = ready().and_then(|()| id.connect(&src, &dst, tos, &param.to_iwarp()));
        if connected.is_err() {
            let mut inner = self.inner.lock();
            // The endpoint may have ended meanwhile.
            if self.step(&mut inner, Trigger::ConnectFailed).is_ok() {
                self.id_priv.hide_iw();
                inner.exchange = Exchange::None;
                (inner.qp.num, inner.srq) = before;
                self.show(&inner);
            }
            if let Err(error) = connected {
                self.tell_iwarp(&inner, error.to_errno());
            }
            drop(inner);
            IwId::destroy(id);
        }
        connected
    }

    /// Accepts a connection request.
    ///
    /// `on_success` runs before any event that the accept causes. The peer is refused if there is
    /// no `param`, or if the accept fails.
    pub(super) fn accept_iwarp(
        self: &EndpointRef,
        param: Option<&ConnParam<'_>>,
        on_success: impl FnOnce(),
    ) -> Result {
        let Some(param) = param else {
            let _ = self.reject_iwarp(&[]);
            return Err(EINVAL);
        };
        let reservation = Reservation::new()?;
        let (id, src, dst) = {
            let mut inner = self.inner.lock();
            let (machine, id) = inner.iwarp_connection()?;
            machine.accept().kernel()?;
            let id = id.clone();
            inner.qp.num = param.qp_num;
            inner.srq = param.srq != 0;
            self.show(&inner);
            (id, self.src(&inner).read(), self.dst(&inner))
        };
        let lock = AcceptLock::new(
            &self.globals.accept_locks,
            reservation,
            self.number,
            &src,
            &dst,
        );
        let accepted = id.accept(&param.to_iwarp());
        drop(lock);

        let mut inner = self.inner.lock();
        // The endpoint may have ended meanwhile.
        let Ok((machine, _)) = inner.iwarp_connection() else {
            return accepted;
        };
        let outcomes = machine.accepted(accepted.is_ok());
        let is_over = machine.is_attempt_over();
        if accepted.is_ok() {
            on_success();
        }
        if is_over {
            self.settle_request();
        }
        self.deliver_outcomes(&inner, &outcomes, &[]);
        drop(inner);
        if outcomes.iter().any(|outcome| outcome.disconnect) {
            // If this fails, the connection has ended already.
            let _ = id.disconnect();
        }
        accepted
    }

    /// Reports the outcomes of up to two events to the consumer. The first event has the private
    /// data.
    fn deliver_outcomes(&self, inner: &Inner, outcomes: &[Outcome; 2], private_data: &[u8]) {
        let [first, second] = outcomes;
        for (outcome, private_data) in [(first, private_data), (second, &[])] {
            self.deliver_outcome(inner, outcome, private_data);
        }
    }

    /// Reports the outcome of an event to the consumer, and to administrators if it is a failure.
    fn deliver_outcome(&self, inner: &Inner, outcome: &Outcome, private_data: &[u8]) {
        if let Some(event) = event(outcome, private_data) {
            self.tell_iwarp(inner, event.status);
            self.deliver(inner, &event);
        }
    }

    /// Tells administrators of the failure that a status says, if it says one of a peer.
    fn tell_iwarp(&self, inner: &Inner, status: i32) {
        if let Some(failure) = Failure::of_iwarp(status) {
            self.tell_failure(inner, failure);
        }
    }

    /// Holds the peer's answer back from the consumer, if the peer is at this host and its accept
    /// is still under way. Returns false if the answer is to be reported now.
    fn hold_reply(
        self: &EndpointRef,
        inner: &mut Inner,
        kind: IwarpEvent,
        iw_event: &IwEvent<'_>,
    ) -> bool {
        let locks = &self.globals.accept_locks;
        if !locks.is_locked(&iw_event.local, &iw_event.remote) {
            return false;
        }
        // Without memory, the answer is reported now, which is better than never.
        let mut private_data = KVec::new();
        if private_data
            .extend_from_slice(iw_event.private_data, GFP_KERNEL_ACCOUNT)
            .is_err()
        {
            return false;
        }
        let Some(connection) = inner.exchange.iwarp_connection_mut() else {
            return false;
        };
        let IwarpConnection { machine, held, .. } = connection;
        // If the accept ends now, its [`AcceptWaiter::accept_is_over`] waits for the lock of the
        // endpoint.
        if machine.phase() != Phase::Connecting
            || !locks.wait(&iw_event.local, &iw_event.remote, self)
        {
            return false;
        }
        *held = private_data;
        machine.hold(kind)
    }

    /// Refuses a connection request. Fails with `EINVAL` if there is none, or if it was answered
    /// already.
    pub(super) fn reject_iwarp(&self, private_data: &[u8]) -> Result {
        let id = {
            let mut inner = self.inner.lock();
            let (machine, id) = inner.iwarp_connection()?;
            machine.reject().kernel()?;
            let id = id.clone();
            self.settle_request();
            let reason = Reason::CONSUMER_DEFINED.message();
            self.tell_failure(&inner, Failure::iwarp_refused(Refusal::Sent, reason));
            id
        };
        id.reject(private_data)
    }

    /// Ends the connection, or ends it as soon as it is established. Succeeds if there is nothing
    /// to end, but fails with `EINVAL` if the endpoint has no iWARP connection.
    pub(super) fn disconnect_iwarp(&self) -> Result {
        let id = {
            let mut inner = self.inner.lock();
            let (machine, id) = inner.iwarp_connection()?;
            if !machine.disconnect() {
                return Ok(());
            }
            id.clone()
        };
        id.disconnect()
    }

    // Listening
    // ------------------------------------------------------------------------------------------

    /// Listens at the endpoint's device, if that uses iWARP.
    pub(super) fn listen_iwarp(self: &EndpointRef, backlog: u32) -> Result {
        let device = {
            let inner = self.inner.lock();
            match inner.device.as_ref().filter(|device| device.is_iwarp()) {
                Some(attachment) => attachment.device.clone(),
                None => return Ok(()),
            }
        };
        let memory = KBox::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let listener = self.listener_at(&device, backlog)?;
        drop(device);
        let mut inner = self.inner.lock();
        if inner.state() != State::Listen {
            // The endpoint has ended meanwhile.
            drop(inner);
            drop(listener);
            return Ok(());
        }
        listener.show_at(&self.id_priv);
        inner.exchange = Exchange::Iwarp(KBox::write(memory, Iwarp::Listener(listener)));
        Ok(())
    }

    /// Creates a listener at an iWARP device.
    pub(super) fn listener_at(
        self: &EndpointRef,
        device: &CmDevice,
        backlog: u32,
    ) -> Result<IwListener> {
        let address = {
            let inner = self.inner.lock();
            IwAddress {
                addr: self.src(&inner).read(),
                tos: inner.options.tos,
                afonly: inner.addr.afonly,
                backlog: i32::try_from(backlog).unwrap_or(i32::MAX),
            }
        };
        let context = CallbackContext::new(self)?;
        IwListener::new(&self.globals.iw, &device.device, context, &address)
    }

    /// Creates an endpoint for a connection request, and offers it to the listener's consumer.
    fn requested(self: &EndpointRef, request: &IwRequest<'_>) -> Result {
        let _scope = self.memcg_scope();
        let devices = {
            let inner = self.inner.lock();
            if inner.state() != State::Listen {
                return Err(EINVAL);
            }
            self.device_filter(&inner).anywhere()
        };
        let charge = consumer_of(self).and_then(|consumer| consumer.takes_requests(None));
        let (_, charge) = charge.map_err(|_| EINVAL)?;
        let iw_event = &request.iw_event;
        let link = addr::translate_ip(&self.net, &iw_event.local, 0)?;
        let interface = NetDevice::by_index(&self.net, link.bound_dev_if).ok_or(ENODEV)?;
        let source = Source {
            addr: &iw_event.local,
            net: &self.net,
            interface: Some(&interface),
            link: SourceLink::Other,
        };
        let near = request.device().index();
        let attachment = self
            .globals
            .devices
            .by_source_near(devices, near, &source)?;
        let child = Endpoint::create_child(self, PortSpace::Tcp, QpType::RC, charge)?;
        let memory = KBox::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let id = request.adopt(CallbackContext::new(&child)?)?;

        let mut inner = child.inner.lock();
        id.show_at(&child.id_priv);
        inner.exchange = Exchange::Iwarp(KBox::write(
            memory,
            Iwarp::Connection(IwarpConnection {
                machine: Connection::passive(),
                id,
                held: KVec::new(),
            }),
        ));
        child.set_addresses(&mut inner, &iw_event.local, &iw_event.remote);
        inner.addr.bound_if = link.bound_dev_if;
        inner.interface = Interface::of_link(&link);
        inner.resolution.dev_addr = Some(link);
        let started = child.step(&mut inner, Trigger::Request);
        let attached = started.and_then(|()| child.attach(&mut inner, attachment));
        drop(inner);

        let event = Event {
            param: conn_param(Some(iw_event.depths), iw_event.private_data),
            ..Event::new(CmEvent::ConnectRequest, 0)
        };
        // A request that meets a full backlog is refused: iWARP has no message that would make the
        // peer wait.
        let offered = attached.map_err(|_| Declined::Refused).and_then(|()| {
            consumer_of(self)?
                .connect_request(&child, &event, None)
                .map(drop)
        });
        if let Err(declined) = offered {
            if !matches!(declined, Declined::Refused | Declined::Gone) {
                let failure = Failure::iwarp_refused(Refusal::Sent, Dropped::Overload.name());
                child.tell_failure(&child.inner.lock(), failure);
            }
            child.end(DestroyCause::User);
        }
        Ok(())
    }
}

impl AcceptWaiter for EndpointRef {
    /// Releases the peer's answer that was held back, because the peer, at this host, has finished
    /// its accept: reports the answer to the consumer, and what has happened since.
    fn accept_is_over(&self) {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let Some(connection) = inner.exchange.iwarp_connection_mut() else {
            return;
        };
        let IwarpConnection { machine, id, held } = connection;
        let outcomes = machine.released();
        let held = mem::take(held);
        let disconnect = outcomes.iter().any(|outcome| outcome.disconnect);
        let id = disconnect.then(|| id.clone());
        self.deliver_outcomes(inner, &outcomes, &held);
        drop(guard);
        if let Some(id) = id {
            // If this fails, the connection has ended already.
            let _ = id.disconnect();
        }
    }
}

impl IwHandler for CallbackContext {
    fn request(self: Arc<Self>, request: &IwRequest<'_>) {
        // On failure the peer is refused.
        let _ = self.endpoint().requested(request);
    }

    fn event(self: Arc<Self>, kind: IwarpEvent, iw_event: &IwEvent<'_>) {
        let endpoint = self.endpoint();
        let mut guard = endpoint.inner.lock();
        let inner = &mut *guard;
        if inner.state() != State::Connect {
            return;
        }
        if matches!(kind, IwarpEvent::Reply { .. }) {
            if !iw_event.local.is_unspec() {
                endpoint.set_src(inner, &iw_event.local);
            }
            if !iw_event.remote.is_unspec() {
                endpoint.set_dst(inner, &iw_event.remote);
            }
            if endpoint.hold_reply(inner, kind, iw_event) {
                return;
            }
        }
        let Ok((machine, id)) = inner.iwarp_connection() else {
            return;
        };
        let outcome = machine.event(kind);
        let id = outcome.disconnect.then(|| id.clone());
        if machine.is_attempt_over() {
            endpoint.settle_request();
        }
        endpoint.deliver_outcome(inner, &outcome, iw_event.private_data);
        drop(guard);
        if let Some(id) = id {
            // If this fails, the connection has ended already.
            let _ = id.disconnect();
        }
    }
}

/// Fills in the attributes for the transition of an iWARP QP to `attr.qp_state`.
///
/// Fails with `EINVAL` for a listener, or if the connection does not lead to that state.
pub(super) fn qp_attr(attr: &mut UverbsQpAttr, inner: &Inner) -> Result {
    let mask = match inner.exchange.iwarp() {
        None => qp_attr_mask::STATE | qp_attr_mask::ACCESS_FLAGS,
        Some(Iwarp::Connection(connection)) => {
            let (mask, access) = connection.id.init_qp_attr(attr.qp_state)?;
            attr.qp_access_flags = access;
            mask
        }
        Some(Iwarp::Listener(_)) => return Err(EINVAL),
    };
    attr.qp_attr_mask = mask | qp_attr_mask::PORT;
    Ok(())
}
