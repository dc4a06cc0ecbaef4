// SPDX-License-Identifier: GPL-2.0

//! Execution of the actions of a connection's state machine.

use crate::{
    endpoint::{
        Conn, ConnEventParam, Connection, Ece, Endpoint, EndpointRef, Event, EventParam, IdKind,
        Inner,
    },
    globals::Globals,
    ib::{
        ah::Ah,
        counters::CounterGroup,
        debug::{self, Failure},
        mad::Memory,
        trace,
    },
    kext::error::ResultExt,
    table::parked::Parked,
};
use cmproto::{
    cm::{self, Action, Actions, Counter, Outgoing},
    cma::{self, State},
    dropped::Dropped,
    event,
    ibcm::EventType,
    node::Admission,
    origin::Origin,
    time::Instant,
    wire::{Attribute, Header, Rej, Rep, MAD_LEN},
};
use core::mem;
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, sync::Arc};

/// The cause of a transition, from which an event takes its data.
pub(super) enum Cause<'a> {
    /// A call of the consumer, or the expiry of a timer.
    None,
    /// A REP from the peer.
    Rep {
        /// The header of the MAD.
        header: &'a Header,
        /// The message.
        rep: &'a Rep<'a>,
        /// QPN of the peer, from the field that the type of the queue pair selects.
        qpn: u32,
    },
    /// A REJ from the peer.
    Rej(&'a Rej<'a>),
    /// Any message from the peer, for a consumer of the InfiniBand CM.
    Mad(&'a [u8; MAD_LEN]),
}

impl<'a> Cause<'a> {
    /// Returns the parameters of the event, as seen from this side.
    fn data(&self) -> (EventParam<'a>, Ece) {
        match self {
            Cause::None | Cause::Mad(_) => (EventParam::None, Ece::default()),
            Cause::Rej(rej) => {
                let param = ConnEventParam::with_private_data(rej.private_data);
                (EventParam::Conn(param), Ece::default())
            }
            Cause::Rep { header, rep, qpn } => {
                let param = ConnEventParam {
                    responder_resources: rep.initiator_depth,
                    initiator_depth: rep.responder_resources,
                    flow_control: u8::from(rep.flow_control),
                    rnr_retry_count: rep.rnr_retry_count,
                    srq: u8::from(rep.srq),
                    qp_num: *qpn,
                    ..ConnEventParam::with_private_data(rep.private_data)
                };
                let ece = Ece {
                    vendor_id: rep.vendor_id,
                    attr_mod: header.attr_mod,
                };
                (EventParam::Conn(param), ece)
            }
        }
    }
}

impl Endpoint {
    /// Carries out `actions` in their order.
    pub(super) fn execute(
        self: &EndpointRef,
        inner: &mut Inner,
        mut actions: Actions,
        cause: &Cause<'_>,
    ) {
        while let Some(action) = actions.next() {
            match action {
                Action::Send(outgoing) => self.transmit(inner, outgoing, actions.peek()),
                Action::SendUnasked(outgoing) if self.may_send_unasked(inner) => {
                    self.transmit(inner, outgoing, actions.peek());
                }
                Action::SendUnasked(_) => {
                    if let Some(Action::Count(_)) = actions.peek() {
                        actions.next();
                    }
                }
                Action::Timer => self.set_timer(inner),
                Action::ReleaseRemoteIds => {
                    if let Some(conn) = inner.exchange.conn_mut() {
                        conn.remote_ids = None;
                    }
                }
                Action::Deliver(event) => self.report(inner, event, cause),
                // The communication id is released with the endpoint. Until then it answers late
                // messages.
                Action::Release => {}
                Action::EndLap { is_loaded } => Self::end_lap(inner, is_loaded),
                Action::Count(counter) => {
                    if let (Counter::Retry(_), Some(conn)) = (counter, inner.exchange.conn_mut()) {
                        conn.retries = conn.retries.saturating_add(1);
                    }
                    self.count(inner, counter);
                }
            }
        }
        if let Some(conn) = inner.exchange.conn_mut() {
            let state = conn.machine.state();
            let is_new = mem::replace(&mut conn.before, state) != state;
            if state != cm::State::MraReqSent {
                conn.parked = None;
            }
            if is_new && state.is_over() {
                inner.watching = None;
            }
            if !state.is_request() {
                self.settle_request();
            }
        }
        self.report_state(inner);
    }

    /// Sets the timer to the deadline of the connection or of the SIDR request, and counts the
    /// request that waits for its answer, for as long as there is one.
    pub(super) fn set_timer(self: &EndpointRef, inner: &mut Inner) {
        match (inner.exchange.waiting(), &inner.in_flight) {
            (Some((peer, Some(_))), None) => {
                inner.in_flight = Some(self.globals.round_trips.sent(peer));
            }
            (Some((_, None)) | None, Some(_)) => self.end_in_flight(inner),
            _ => {}
        }
        match inner.exchange.deadline() {
            Some(deadline) => self.globals.timers.arm(&mut inner.timer, deadline, self),
            None => self.globals.timers.disarm(&mut inner.timer, self),
        }
    }

    /// Stops counting the request that waits for its answer, if there is one.
    pub(super) fn end_in_flight(&self, inner: &mut Inner) {
        if let Some(request) = inner.in_flight.take() {
            self.globals.round_trips.settle(request);
        }
    }

    /// Returns whether the peer may be sent a message that it has not asked for, although it has
    /// not confirmed its request.
    fn may_send_unasked(&self, inner: &Inner) -> bool {
        let Globals { sources, .. } = &*self.globals;
        let conn = inner.exchange.conn();
        conn.is_some_and(|conn| sources.may_send_unasked(&conn.peer, self.globals.now()))
    }

    /// Sends a message of the connection, if there is an address handle for its peer.
    ///
    /// A message that cannot be sent is treated as lost: the timers make up for it. `next` is the
    /// action after this one.
    fn transmit(&self, inner: &Inner, outgoing: Outgoing, next: Option<&Action>) {
        let Some(conn) = inner.exchange.conn() else {
            return;
        };
        let Some(ah) = &conn.ah else {
            return;
        };
        self.post(inner, ah, conn.pkey_index, outgoing.attribute(), |mad| {
            // Encoding fails only for a message that the connection does not have.
            let alternate = conn.path_in(outgoing);
            conn.machine
                .encode_along(outgoing, alternate, mad)
                .kernel()?;
            if outgoing == Outgoing::Rej {
                self.note_sent_rej(inner, conn, mad, next);
            }
            self.trace_send(conn, outgoing, next);
            Ok(())
        });
    }

    /// Counts a REJ of the connection, and tells of the refusal. `next` is the action after this
    /// one, which shows whether the message is a repeated one.
    #[cold]
    fn note_sent_rej(
        &self,
        inner: &Inner,
        conn: &Conn,
        mad: &[u8; MAD_LEN],
        next: Option<&Action>,
    ) {
        if let Some(port) = inner.cm_port() {
            port.counts.sent_rej(mad);
        }
        let is_repeated = matches!(next, Some(Action::Count(Counter::Repeat(_))));
        if let Some(reason) = conn.machine.reject_reason().filter(|_| !is_repeated) {
            self.tell_failure(inner, event::Failure::rejected(reason));
        }
    }

    /// Posts the message that `write` writes, and counts it.
    ///
    /// If the device is being removed and the peer is attached to it, too, nothing is sent: the
    /// peer learns of the removal by itself. The message would arrive while ib_mad takes the port
    /// down, and would be received with a queue pair that is destroyed already.
    pub(super) fn post(
        &self,
        inner: &Inner,
        ah: &Ah,
        pkey_index: u16,
        attribute: Attribute,
        write: impl FnOnce(&mut [u8; MAD_LEN]) -> Result,
    ) {
        if inner.state() == State::DeviceRemoval && inner.is_peer_at_own_device() {
            return;
        }
        // The memory for messages of a part of the kernel was set aside, because the allocation of
        // new memory may depend on the connection.
        let memory = match self.kind {
            IdKind::User => Memory::Shared,
            IdKind::RdmaCm | IdKind::IbCm => Memory::Pool,
        };
        let sent = ah.agent().send_with(ah, pkey_index, memory, write);
        if let (Ok(()), Some(port)) = (sent, inner.cm_port()) {
            port.counts.add(CounterGroup::TxMsgs, attribute.id(), 1);
        }
    }

    /// Delivers an event to a consumer of the InfiniBand CM. An event with a message is lost if
    /// there is no memory for the message.
    pub(super) fn pass_on(&self, inner: &Inner, event: EventType, mad: Option<&[u8; MAD_LEN]>) {
        let Some(consumer) = &inner.consumer else {
            return;
        };
        match mad.map(|mad| Arc::new(*mad, GFP_KERNEL)) {
            None => consumer.message(event, None),
            Some(Ok(mad)) => consumer.message(event, Some(mad)),
            Some(Err(_)) => {}
        }
    }

    /// Delivers an event of the connection. For a consumer of the RDMA CM, the event is converted
    /// first.
    fn report(self: &EndpointRef, inner: &mut Inner, event: cm::Event, cause: &Cause<'_>) {
        if let (cm::Event::ReqError | cm::Event::RepError | cm::Event::DreqError, Some(conn)) =
            (event, inner.exchange.conn())
        {
            trace::icm::icm_mad_send_err(conn.before as u32);
        }
        let retries = inner.exchange.conn().map_or(0, |conn| conn.retries);
        if let Some(failure) = event::Failure::of(event, retries) {
            self.tell_failure(inner, failure);
        }
        if self.kind == IdKind::IbCm {
            let mad = match cause {
                Cause::Mad(mad) => Some(*mad),
                _ => None,
            };
            return self.pass_on(inner, event.into(), mad);
        }
        let Some(upcall) = cma::upcall(inner.state(), event, None) else {
            return;
        };
        match event {
            cm::Event::RepReceived => {
                // An error is traced. The REP is still reported.
                let _ = self.prepare_mra(inner);
            }
            cm::Event::RejReceived { .. } => {
                debug::log(&self.id_priv, Failure::Rejected, upcall.status);
            }
            _ => {}
        }
        if let Some(trigger) = upcall.trigger {
            // The state that the event was chosen for allows it.
            let _ = self.step(inner, trigger);
        }
        let (param, ece) = cause.data();
        self.deliver(
            inner,
            &Event {
                kind: upcall.event,
                status: upcall.status,
                param,
                ece,
            },
        );
    }

    /// Parks a REQ: its sender is told by an MRA to wait until the consumer has room for the
    /// request. The sender of a request that has replaced another one is told only if it asks
    /// again, because the request may have to give way, too. A request that its sender has
    /// withdrawn is not parked.
    pub(super) fn park(self: &EndpointRef, inner: &mut Inner, admission: Admission) {
        trace::cma::cm_prepare_mra(&self.id_priv, inner.tos());
        let Some(conn) = inner.exchange.conn_mut() else {
            return;
        };
        let timeout = cm::Connection::PARKING_TIMEOUT;
        let prepared = match admission {
            Admission::Parked => conn.machine.park(timeout).map(Some),
            _ => conn.machine.prepare_mra(timeout).map(|()| None),
        };
        let Ok(actions) = prepared else {
            return;
        };
        conn.parked = Some(Parked::new(&self.globals.parking));
        if let Some(actions) = actions {
            self.execute(inner, actions, &Cause::None);
        }
    }

    /// Increments a counter that the administrator sees in sysfs.
    pub(super) fn count(&self, inner: &Inner, counter: Counter) {
        if let Some(conn) = inner.exchange.conn() {
            self.trace_unexpected(conn, counter);
        }
        let Some(port) = inner.cm_port() else {
            return;
        };
        let counts = &port.counts;
        if let Some(why) = Dropped::of(counter) {
            counts.dropped(why);
        }
        match counter {
            Counter::Duplicate(attribute) => {
                counts.add(CounterGroup::RxDuplicates, attribute.id(), 1);
            }
            Counter::Retry(attribute) => counts.add(CounterGroup::TxRetries, attribute.id(), 1),
            Counter::Repeat(attribute) => {
                counts.add(CounterGroup::TxMsgs, attribute.id(), 1);
                counts.add(CounterGroup::TxRetries, attribute.id(), 1);
            }
            Counter::Unexpected(_) | Counter::Mismatch(_) | Counter::Unsupported(_) => {}
        }
    }

    /// Handles the claim of a peer at `source` that it has lost the connection.
    pub(super) fn stale_peer(self: &EndpointRef, source: Origin) {
        self.step_for(source, Connection::stale_peer);
    }

    /// Handles a repeated REQ of this endpoint from `source`.
    pub(super) fn duplicate_req(self: &EndpointRef, source: Origin) {
        self.step_for(source, Connection::duplicate_req);
    }

    /// Makes a transition that is not caused by a message to the connection, if `source` is that of
    /// its peer. Another sender that uses the peer's ids changes nothing.
    fn step_for(
        self: &EndpointRef,
        source: Origin,
        step: impl FnOnce(&mut Connection, Instant) -> Actions,
    ) {
        let now = self.globals.now();
        let mut inner = self.inner.lock();
        let Some(conn) = inner.exchange.conn_mut() else {
            return;
        };
        if conn.peer != source {
            return;
        }
        let actions = step(&mut conn.machine, now);
        self.execute(&mut inner, actions, &Cause::None);
    }
}
