// SPDX-License-Identifier: GPL-2.0

//! Connecting, answering a connection request, and disconnecting.

use crate::{
    cm::{execute::Cause, ids::CommId, port::transaction_id},
    endpoint::{Conn, ConnParam, Ece, Endpoint, EndpointRef, Inner},
    ib::{
        ah::{Ah, AhSpec},
        trace::{self, icm},
    },
    kext::{delay, error::ResultExt},
};
use cmproto::{
    cm::{self, AcceptParams, ConnectParams, Connection, Tuning},
    cma::State,
    errno::Errno,
    origin::Origin,
    path::Path,
    private_data::RequestData,
    qp::QpType,
    reject::Reason,
    service_id::ServiceId,
    wire::{Req, Transport},
};
use kernel::{prelude::*, sync::Arc};

/// The event `IB_EVENT_COMM_EST`: data arrived before the RTU.
const EVENT_COMM_EST: u32 = 4;
/// The event `IB_EVENT_PATH_MIG`: the QP uses its alternate path.
const EVENT_PATH_MIG: u32 = 6;

/// The bits of a path's flow label that are used for its CM messages. They are few, so that
/// connections share address handles, and enough for the messages to spread over the links of the
/// network.
const MESSAGE_LABEL_MASK: u32 = 0xf;

/// The parameters of an address handle and of a REQ, copied so that the address handle can be
/// created without the endpoint's lock.
pub(super) struct Way {
    pub(super) service_id: ServiceId,
    gid: Option<crate::ib::gid::GidAttr>,
    device: crate::ib::device::DeviceRef,
    pub(super) agent: Arc<crate::ib::mad::Agent>,
    pub(super) path: Path,
    /// The source of the peer's messages.
    pub(super) peer: Origin,
    /// The MAC address of the next hop, on RoCE.
    dmac: Option<[u8; 6]>,
    pub(super) pkey_index: u16,
    guid: u64,
    ca_ack_delay: u8,
}

impl Way {
    pub(super) fn address(&self) -> Result<Ah> {
        let path = Path {
            flow_label: self.path.flow_label & MESSAGE_LABEL_MASK,
            ..self.path
        };
        let port = self.agent.port_num();
        let spec = AhSpec::along(&path, &self.device, port, self.gid.as_ref(), self.dmac);
        Ah::new(&self.agent, &self.device, &spec)
    }
}

impl Endpoint {
    /// Returns the parameters for a request of an endpoint whose route is resolved.
    ///
    /// Fails with `EINVAL` if the route is not resolved, or with `ENODEV` if the port has gone or
    /// has no source GID.
    pub(super) fn way(&self, inner: &Inner) -> Result<Way> {
        if inner.state != State::RouteResolved {
            return Err(EINVAL);
        }
        let (Some(attachment), Some(path)) = (&inner.device, &inner.path) else {
            return Err(EINVAL);
        };
        let port = self.port(inner).ok_or(ENODEV)?;
        let (peer, dmac) = if attachment.is_roce() {
            let link = inner.link.as_ref().ok_or(EINVAL)?;
            // Without a GID there is no source address: a loopback address was resolved.
            attachment.gid.as_ref().ok_or(ENODEV)?;
            (Origin::of_gid(path.dgid), Some(link.dst_mac()))
        } else {
            let port = attachment.device.ib_port(attachment.port_num);
            (path.origin_at(port), None)
        };
        let device = &attachment.device.device;
        Ok(Way {
            service_id: ServiceId::of_address(self.ps, &inner.dst),
            gid: attachment.gid.clone(),
            device: device.clone(),
            agent: port.agent().ok_or(ENODEV)?,
            path: *path,
            peer,
            dmac,
            pkey_index: device.find_pkey(attachment.port_num, path.pkey)?,
            guid: port.guid,
            ca_ack_delay: port.ca_ack_delay,
        })
    }

    /// Sends a REQ, or a SIDR_REQ for datagrams. The answer is reported as an event.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EINVAL` if the route is not resolved, or if there is too much private data;
    /// - `ENOMEM` if there is no memory;
    /// - `ENODEV` if the device or its port has gone.
    pub(crate) fn connect(self: &EndpointRef, param: &ConnParam<'_>, ece: Ece) -> Result {
        self.connect_with(param, ece, || Ok(()))
    }

    /// Connects like [`Endpoint::connect`], but calls `ready` before an iWARP peer is asked.
    ///
    /// Over iWARP the queue pair has to be ready before that. `ready` is called without a lock; its
    /// error is returned.
    pub(crate) fn connect_with(
        self: &EndpointRef,
        param: &ConnParam<'_>,
        ece: Ece,
        ready: impl FnOnce() -> Result,
    ) -> Result {
        let inner = self.inner.lock();
        if inner.is_iwarp() {
            drop(inner);
            return self.connect_iwarp(param, ready);
        }
        if self.qp_type == QpType::UD {
            drop(inner);
            return self.ask(param);
        }
        let way = self.way(&inner)?;
        drop(inner);
        delay::point();
        let transport = self.qp_type.transport().kernel()?;
        let ah = way.address()?;
        let comm_id = CommId::new(&self.core)?;
        let tid = transaction_id(&way.agent, comm_id.value());
        let mut inner = self.inner.lock();
        let data = Self::request_data::<{ Req::PRIVATE_DATA_LEN }>(&inner, param)?;
        let tuning = self.tuning(&inner);
        let params = Self::connect_params(&inner, &way, transport, &tuning, param, ece);
        let now = self.core.now();
        let pace = self.pace(&inner, &way.peer, now);
        let conn = inner.conn.insert(Conn {
            machine: Connection::new(comm_id.value(), way.guid, tid),
            comm_id,
            tracked: None,
            peer: way.peer,
            ah: Some(ah),
            pkey_index: way.pkey_index,
            data_lid: 0,
            parked: None,
            before: cm::State::Idle,
        });
        conn.machine.set_limits(&tuning.limits());
        conn.machine.set_pace(pace);
        let connected = conn.machine.connect(&params, data.bytes(), now).kernel();
        let actions = match connected {
            Ok(actions) => actions,
            Err(error) => {
                let undone = inner.conn.take();
                drop(inner);
                drop(undone);
                return Err(error);
            }
        };
        conn.comm_id.publish(self);
        inner.qp_num = param.qp_num;
        inner.srq = param.srq != 0;
        self.set_state(&mut inner, State::Connect);
        self.head.set_qp_num(inner.qp_num);
        trace::cma::cm_send_req(&self.head, inner.tos());
        self.execute(&mut inner, actions, &Cause::None);
        Ok(())
    }

    /// Returns the private data of a request, in a field of `LEN` bytes, behind the header that the
    /// addresses demand. Fails with `EINVAL` if the route is not resolved any more: another call
    /// may have connected meanwhile.
    pub(super) fn request_data<const LEN: usize>(
        inner: &Inner,
        param: &ConnParam<'_>,
    ) -> Result<RequestData<LEN>> {
        if inner.state != State::RouteResolved {
            return Err(EINVAL);
        }
        RequestData::new(&inner.src, &inner.dst, param.private_data).kernel()
    }

    fn connect_params(
        inner: &Inner,
        way: &Way,
        transport: Transport,
        tuning: &Tuning,
        param: &ConnParam<'_>,
        ece: Ece,
    ) -> ConnectParams {
        let response_timeout = tuning.response_timeout().get();
        ConnectParams {
            service_id: way.service_id.0,
            local_qpn: param.qp_num,
            local_qkey: 0,
            srq: param.srq != 0,
            transport,
            starting_psn: inner.psn,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control & 1 != 0,
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
            pkey: way.path.pkey,
            path_mtu: way.path.mtu,
            primary: way.path.to_req(),
            packet_life_time: way.path.packet_life_time,
            ca_ack_delay: way.ca_ack_delay,
            remote_cm_response_timeout: response_timeout,
            local_cm_response_timeout: response_timeout,
            max_cm_retries: tuning.max_retries(),
            vendor_id: ece.vendor_id,
            attr_mod: ece.attr_mod,
        }
    }

    /// Accepts a connection: sends a REP as the answer to a REQ, an RTU as the answer to a REP
    /// (without `param`), or a SIDR_REP as the answer to a SIDR_REQ.
    ///
    /// `on_success` runs before any event that the answer causes. If this fails in the state
    /// CONNECT, the peer is refused.
    pub(crate) fn accept(
        self: &EndpointRef,
        param: Option<&ConnParam<'_>>,
        ece: Ece,
        on_success: impl FnOnce(),
    ) -> Result {
        let mut inner = self.inner.lock();
        if inner.state != State::Connect {
            return Err(EINVAL);
        }
        if inner.is_iwarp() {
            drop(inner);
            return self.accept_iwarp(param, on_success);
        }
        let accepted = if self.qp_type == QpType::UD {
            self.answer_question(&mut inner, param, ece)
        } else {
            self.answer(&mut inner, param, ece)
        };
        match accepted {
            Ok(()) => on_success(),
            Err(_) => {
                let _ = self.reject_locked(&mut inner, &[], Reason::CONSUMER_DEFINED);
            }
        }
        accepted
    }

    fn answer(
        self: &EndpointRef,
        inner: &mut Inner,
        param: Option<&ConnParam<'_>>,
        ece: Ece,
    ) -> Result {
        let now = self.core.now();
        let ca_ack_delay = self.port(inner).map_or(0, |port| port.ca_ack_delay);
        let psn = inner.psn;
        let tos = inner.tos();
        self.keep_pace(inner, now);
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        let actions = match param {
            None => {
                trace::cma::cm_send_rtu(&self.head, tos);
                let actions = conn.machine.establish(&[], now);
                if actions.is_err() {
                    icm::icm_send_cm_rtu_err(&self.icm_id(conn));
                }
                actions.kernel()?
            }
            Some(param) => {
                let params = AcceptParams {
                    local_qpn: param.qp_num,
                    qkey: 0,
                    starting_psn: psn,
                    responder_resources: param.responder_resources,
                    initiator_depth: param.initiator_depth,
                    target_ack_delay: ca_ack_delay,
                    failover_accepted: 0,
                    flow_control: param.flow_control & 1 != 0,
                    rnr_retry_count: param.rnr_retry_count,
                    srq: param.srq != 0,
                    vendor_id: ece.vendor_id,
                    attr_mod: ece.attr_mod,
                };
                self.head.set_qp_num(param.qp_num);
                trace::cma::cm_send_rep(&self.head, tos);
                let actions = conn.machine.accept(&params, param.private_data, now);
                if actions.is_err() {
                    icm::icm_send_rep_err(conn.comm_id.value(), conn.machine.state() as u32);
                    self.head.set_qp_num(inner.qp_num);
                }
                actions.kernel()?
            }
        };
        if let Some(param) = param {
            inner.qp_num = param.qp_num;
            inner.srq = param.srq != 0;
        }
        self.execute(inner, actions, &Cause::None);
        Ok(())
    }

    /// Refuses a connection request.
    ///
    /// Fails with `EINVAL` in the wrong state, or for too much private data.
    pub(crate) fn reject(self: &EndpointRef, private_data: &[u8], reason: u8) -> Result {
        let mut inner = self.inner.lock();
        if inner.is_iwarp() {
            drop(inner);
            return self.reject_iwarp(private_data);
        }
        self.reject_locked(&mut inner, private_data, Reason(u16::from(reason)))
    }

    fn reject_locked(
        self: &EndpointRef,
        inner: &mut Inner,
        private_data: &[u8],
        reason: Reason,
    ) -> Result {
        if inner.sidr.is_some() {
            return self.refuse_question(inner, private_data);
        }
        let now = self.core.now();
        let tos = inner.tos();
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        trace::cma::cm_send_rej(&self.head, tos);
        let actions = conn.machine.reject(reason, &[], private_data, now);
        if actions.is_err() {
            let id = self.icm_id(conn);
            icm::icm_send_rej(&id, reason.0);
            icm::icm_send_unknown_rej_err(&id);
        }
        self.execute(inner, actions.kernel()?, &Cause::None);
        Ok(())
    }

    /// Ends a connection, or confirms that the peer has ended it.
    ///
    /// Succeeds if there is nothing to end, unless the endpoint has no connection and neither has a
    /// SIDR nor listens at a device: then it fails with `EINVAL`.
    pub(crate) fn disconnect(self: &EndpointRef) -> Result {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        if inner.is_iwarp() {
            drop(inner);
            return self.disconnect_iwarp();
        }
        // There is no connection to end for datagrams, nor for a listener.
        if inner.sidr.is_some() || (inner.listening.is_some() && inner.device.is_some()) {
            return Ok(());
        }
        let tos = inner.tos();
        self.keep_pace(&mut inner, now);
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        trace::cma::cm_disconnect(&self.head, tos);
        if let Ok(actions) = conn.machine.disconnect(&[], now) {
            self.execute(&mut inner, actions, &Cause::None);
            trace::cma::cm_sent_dreq(&self.head, tos);
            return Ok(());
        }
        icm::icm_dreq_skipped(&self.icm_id(conn));
        if let Ok(actions) = conn.machine.confirm_disconnect(&[], now) {
            self.execute(&mut inner, actions, &Cause::None);
            trace::cma::cm_sent_drep(&self.head, tos);
        } else {
            icm::icm_send_drep_err(&self.icm_id(conn));
        }
        Ok(())
    }

    /// Handles an event of the consumer's QP.
    ///
    /// Fails with `EISCONN` if the connection is established already, and with `EINVAL` in other
    /// states and for other events.
    pub(crate) fn notify(self: &EndpointRef, event: u32) -> Result {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        if inner.iwarp.is_some() {
            // The iWARP CM needs no such notice.
            return Ok(());
        }
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        match event {
            EVENT_COMM_EST => {
                let actions = conn.machine.notify_established(now);
                if matches!(actions, Err(Errno::EINVAL)) {
                    icm::icm_establish_err(&self.icm_id(conn));
                }
                let actions = actions.kernel()?;
                self.execute(&mut inner, actions, &Cause::None);
                Ok(())
            }
            // There are no alternate paths, so that nothing has to be done.
            EVENT_PATH_MIG if conn.machine.state() == cm::State::Established => Ok(()),
            _ => Err(EINVAL),
        }
    }
}
