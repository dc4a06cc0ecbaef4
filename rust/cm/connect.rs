// SPDX-License-Identifier: GPL-2.0

//! Connecting: the REQ of this end.

use super::{execute::Cause, route::Route};
use crate::{
    endpoint::{
        Conn, Connection, Endpoint, EndpointRef, Exchange, IdKind, Inner, RetransmitMemory,
    },
    kext::{error::ResultExt, slab::Wait, users::UserRef},
    table::comm_ids::CommId,
};
use cmproto::{
    cm::{self, ConnectParams, Limits},
    cma::Trigger,
    private_data::RequestData,
    wire::Req,
};
use kernel::{prelude::*, sync::MutexGuard};

/// The private data of a REQ.
type ReqData = RequestData<{ Req::PRIVATE_DATA_LEN }>;

impl Endpoint {
    /// Sends a REQ along the path that the endpoint has resolved. The answer is reported as an
    /// event.
    ///
    /// The lock, which is that of `inner`, is left while the route is prepared, which may sleep.
    /// The route of a program is charged to `user`. Then `make` makes the limits, the parameters
    /// and the private data, and checks the state. It may show the QPN of the parameters. `claim`
    /// is called when nothing else can fail.
    ///
    /// Fails like [`Route::resolved`], `make`, `claim` and [`send_req`](Self::send_req).
    pub(crate) fn send_req_resolved(
        self: &EndpointRef,
        inner: MutexGuard<'_, Inner>,
        user: Option<&UserRef>,
        claim: impl FnOnce(&mut Inner) -> Result,
        make: impl FnOnce(&Inner) -> Result<(Limits, ConnectParams, ReqData)>,
    ) -> Result {
        let route = Route::resolved(inner, user)?;
        let mut inner = self.inner.lock();
        let (limits, params, data) = make(&inner)?;
        self.send_req(&mut inner, route, &limits, params, data.bytes(), claim)
            .inspect_err(|_| self.id_priv.set_qp_num(inner.qp.num))
    }

    /// Sends a REQ along `route`. The answer is reported as an event.
    ///
    /// The fields of `params` that describe the path and the port are set from the route. The
    /// caller has checked that the endpoint may connect. `attach` attaches it to the port of the
    /// route, if the caller has not done that, and is called when nothing else can fail.
    ///
    /// Fails with `EINVAL` if there is too much private data, with `ENOMEM`, and like `attach`;
    /// nothing has changed then.
    pub(crate) fn send_req(
        self: &EndpointRef,
        inner: &mut Inner,
        route: Route,
        limits: &Limits,
        mut params: ConnectParams,
        private_data: &[u8],
        attach: impl FnOnce(&mut Inner) -> Result,
    ) -> Result {
        let comm_id = CommId::new(&self.globals.comm_ids);
        let tid = route.ah.agent().transaction_id(comm_id.value());
        params.pkey = route.path.pkey;
        params.path_mtu = route.path.mtu;
        params.primary = route.primary();
        params.packet_life_time = route.path.packet_life_time;
        params.ca_ack_delay = route.ca_ack_delay;
        cm::Connection::check_connect(&params, private_data).kernel()?;
        let slabs = &self.globals.slabs;
        let memory = slabs.conns.reserve(Wait::May)?;
        let buffer = RetransmitMemory::from_cache(&slabs.buffers)?;
        attach(inner)?;
        self.step_to_connect(inner)?;
        let now = self.globals.now();
        let policy = route.retry_policy(&self.globals.round_trips, inner, now);
        // It is made in its place, as it is large.
        inner.exchange = Exchange::Connection(memory.with(Conn {
            machine: Connection::new(comm_id.value(), route.guid, tid),
            comm_id,
            remote_ids: None,
            peer: route.peer,
            ah: Some(route.ah),
            alternates: route.alternates,
            pkey_index: route.pkey_index,
            data_lid: route.data_lids.outbound,
            parked: None,
            retries: 0,
            before: cm::State::Idle,
        }));
        inner.qp.psn = params.starting_psn;
        inner.qp.num = params.local_qpn;
        inner.srq = params.srq;
        let conn = inner.exchange.conn_mut().ok_or(EINVAL)?;
        // The exchange before, which had an id, too, was just dropped.
        conn.comm_id.publish(self);
        let machine = &mut conn.machine;
        machine.provide(buffer);
        machine.set_limits(limits);
        machine.set_retry_policy(policy);
        let alternates = conn.alternates.as_ref();
        if let Some(alternate) = alternates.and_then(|paths| paths.used.as_ref()) {
            machine.offer_alternate(alternate.path.packet_life_time);
        }
        let actions = machine.connect(&params, private_data, now).kernel()?;
        self.execute(inner, actions, &Cause::None);
        Ok(())
    }

    /// Makes the state transition for a REQ or SIDR_REQ of this end. The caller of the verb has
    /// checked that the state allows it.
    pub(super) fn step_to_connect(&self, inner: &mut Inner) -> Result {
        let trigger = match self.kind {
            IdKind::User | IdKind::RdmaCm => Trigger::Connect,
            IdKind::IbCm => Trigger::SendReq,
        };
        self.step(inner, trigger)
    }
}
