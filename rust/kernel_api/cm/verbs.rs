// SPDX-License-Identifier: GPL-2.0

//! Verbs of the IB CM for connections.

use super::{super::KernelId, message::state};
use crate::{
    cm::{
        execute::Cause,
        ids::CommId,
        port::{transaction_id, Port},
    },
    cma::device::CmDevice,
    endpoint::{Attachment, Conn, Inner},
    ib::{
        ah::{Ah, AhSpec},
        dev_addr::DevAddr,
        gid::GidAttr,
        mad::Agent,
    },
    kext::error::ResultExt,
};
use cmproto::{
    cm::{AcceptParams, Actions, ConnectParams, Connection, State},
    cma,
    errno::Errno,
    ibcm::{notify, Notice},
    origin::Origin,
    path::Path,
    time::Instant,
    ucma::{path::PathRecord, query::Protocol},
    ucma_abi::UverbsQpAttr,
};
use kernel::{
    prelude::*,
    sync::{atomic::Relaxed, Arc},
};

/// The route of a message.
pub(crate) struct Route {
    /// The device that sends the message.
    pub(crate) device: Arc<CmDevice>,
    /// The source GID at the device.
    pub(crate) gid: GidAttr,
    /// The path to the peer.
    pub(crate) path: PathRecord,
    /// The MAC address of the next hop on RoCE.
    pub(crate) dmac: [u8; 6],
}

/// The LIDs for the data of a connection, if they differ from those of its messages; else 0.
///
/// This is so if the consumer has given separate InfiniBand paths for the data.
#[derive(Clone, Copy, Default)]
pub(crate) struct DataLids {
    /// The destination LID of the peer's data, which is sent through routers.
    pub(crate) inbound: u16,
    /// The destination LID of this end's data.
    pub(crate) outbound: u16,
}

/// A route that is ready for use, with an address handle.
pub(super) struct Way {
    pub(super) port: Arc<Port>,
    pub(super) agent: Arc<Agent>,
    pub(super) path: Path,
    /// The origin of the peer's messages.
    pub(super) peer: Origin,
    pub(super) ah: Ah,
    pub(super) pkey_index: u16,
}

impl Way {
    /// Prepares a route.
    ///
    /// Fails with `EINVAL` if the port does not support connections, with `ENOENT` if it is not in
    /// the partition of the path, and like [`Ah::new`].
    pub(super) fn new(route: &Route) -> Result<Self> {
        let device = &route.device.device;
        let port_num = route.gid.port_num();
        let port = route.device.port(port_num).ok_or(EINVAL)?.clone();
        let agent = port.agent().ok_or(EINVAL)?;
        let is_roce = port.protocol == Protocol::Roce;
        let path = Path::from_record(&route.path, !is_roce);
        let pkey_index = device.find_pkey(port_num, path.pkey)?;
        let dmac = is_roce.then_some(route.dmac);
        let spec = AhSpec::along(&path, device, port_num, Some(&route.gid), dmac);
        let ah = Ah::new(&agent, device, &spec)?;
        let peer = if is_roce {
            Origin::of_gid(path.dgid)
        } else {
            path.origin_at(route.device.ib_port(port_num))
        };
        Ok(Way {
            port,
            agent,
            path,
            peer,
            ah,
            pkey_index,
        })
    }
}

impl KernelId {
    /// Attaches the endpoint, whose lock is held, to the device and port of a route.
    ///
    /// An endpoint that is attached already may change the port. Fails with `ENODEV` if the device
    /// is being removed, and with `EINVAL` if the endpoint is attached to another device.
    pub(super) fn settle(&self, inner: &mut Inner, route: &Route, way: &Way) -> Result {
        let attachment = Attachment {
            device: route.device.clone(),
            port_num: way.port.num,
            protocol: way.port.protocol,
            gid: Some(route.gid.clone()),
        };
        match &mut inner.device {
            None => self.endpoint.attach(inner, attachment)?,
            Some(before) if Arc::ptr_eq(&before.device, &route.device) => *before = attachment,
            Some(_) => return Err(EINVAL),
        }
        inner.path = Some(way.path);
        inner.link = Some(DevAddr::to_mac(route.dmac));
        Ok(())
    }

    /// Sends a REQ; an event reports the answer. The parameters of the path are added to `params`.
    ///
    /// Fails with `EINVAL` (the state, or the parameters), `ENOENT` (the partition), `ENODEV`,
    /// `ENOMEM` and errors of the device. After an error nothing has changed.
    pub(crate) fn send_req(
        &self,
        route: &Route,
        lids: DataLids,
        params: &ConnectParams,
        data: &[u8],
    ) -> Result {
        let endpoint = &self.endpoint;
        let way = Way::new(route)?;
        let comm_id = CommId::new(&endpoint.core)?;
        let tid = transaction_id(&way.agent, comm_id.value());
        let mut conn = Conn {
            machine: Connection::new(comm_id.value(), way.port.guid, tid),
            comm_id,
            tracked: None,
            peer: way.peer,
            ah: Some(way.ah.clone()),
            pkey_index: way.pkey_index,
            data_lid: lids.outbound,
            parked: None,
            before: State::Idle,
        };
        let mut primary = way.path.to_req();
        if !primary.subnet_local && lids.inbound != 0 {
            primary.local_lid = lids.inbound;
        }
        let params = ConnectParams {
            pkey: way.path.pkey,
            path_mtu: way.path.mtu,
            primary,
            packet_life_time: way.path.packet_life_time,
            ca_ack_delay: way.port.ca_ack_delay,
            ..*params
        };

        let mut inner = endpoint.inner.lock();
        if inner.is_dead() || state(&inner) != State::Idle {
            return Err(EINVAL);
        }
        conn.machine.set_limits(&endpoint.tuning(&inner).limits());
        let now = endpoint.core.now();
        let actions = conn.machine.connect(&params, data, now).kernel()?;
        self.settle(&mut inner, route, &way)?;
        conn.machine.set_pace(endpoint.pace(&inner, &way.peer, now));
        conn.comm_id.publish(endpoint);
        inner.psn = params.starting_psn;
        inner.qp_num = params.local_qpn;
        inner.srq = params.srq;
        // Drop the old address handle without the lock, as that may sleep.
        let ah = inner.conn.as_mut().and_then(|before| before.ah.take());
        let before = (ah, inner.sidr.take());
        inner.conn = Some(conn);
        if let Some(head) = self.cm_head() {
            head.show_service(params.service_id);
        }
        endpoint.set_state(&mut inner, cma::State::Connect);
        endpoint.execute(&mut inner, actions, &Cause::None);
        drop(inner);
        drop(before);
        Ok(())
    }

    /// Answers a REQ with a REP. The parameters of the device are added to `params`.
    ///
    /// Fails with `EINVAL` if the state does not allow it.
    pub(crate) fn send_rep(&self, params: &AcceptParams, data: &[u8]) -> Result {
        let endpoint = &self.endpoint;
        let now = endpoint.core.now();
        let mut inner = endpoint.inner.lock();
        let params = AcceptParams {
            target_ack_delay: endpoint.port(&inner).map_or(0, |port| port.ca_ack_delay),
            ..*params
        };
        endpoint.keep_pace(&mut inner, now);
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        let actions = conn.machine.accept(&params, data, now).kernel()?;
        inner.psn = params.starting_psn;
        inner.qp_num = params.local_qpn;
        inner.srq = params.srq;
        endpoint.execute(&mut inner, actions, &Cause::None);
        Ok(())
    }

    /// Calls another verb of the connection.
    ///
    /// Fails with the errors of `verb`, and with `EINVAL` if there is no connection.
    pub(crate) fn act(
        &self,
        verb: impl FnOnce(&mut Connection, Instant) -> Result<Actions, Errno>,
    ) -> Result {
        let endpoint = &self.endpoint;
        let now = endpoint.core.now();
        let mut inner = endpoint.inner.lock();
        endpoint.keep_pace(&mut inner, now);
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        let actions = verb(&mut conn.machine, now).kernel()?;
        endpoint.execute(&mut inner, actions, &Cause::None);
        Ok(())
    }

    /// Lets duplicates of a REQ or REP be answered with an MRA from now on.
    ///
    /// Fails with `EINVAL` if the state does not allow it.
    pub(crate) fn prepare_mra(&self) -> Result {
        let mut inner = self.endpoint.inner.lock();
        let conn = inner.conn.as_mut().ok_or(EINVAL)?;
        let prepared = conn.machine.prepare_mra(Connection::SERVICE_TIMEOUT);
        conn.before = conn.machine.state();
        prepared.kernel()?;
        self.endpoint.show_moved(&inner);
        Ok(())
    }

    /// Returns the attributes for a transition of the queue pair to `state`, an `enum ib_qp_state`.
    ///
    /// Fails with `EINVAL` if the connection does not have them.
    pub(crate) fn cm_qp_attr(&self, state: u32) -> Result<UverbsQpAttr> {
        if self.endpoint.inner.lock().conn.is_none() {
            return Err(EINVAL);
        }
        self.endpoint.init_qp_attr(state)
    }

    /// Handles an event of the queue pair, an `enum ib_event_type`.
    ///
    /// Can be called in any context, so that the event is passed on later. Fails with `EISCONN` if
    /// the connection is established already, even by an earlier call of this, and with `EINVAL` in
    /// other states and for other events.
    pub(crate) fn notify_cm(self: Arc<Self>, event: u32) -> Result {
        let state = self.cm_head().ok_or(EINVAL)?.state();
        match notify(state, event).kernel()? {
            Notice::Nothing => Ok(()),
            Notice::Established => {
                if self.had_data.xchg(true, Relaxed) {
                    return Err(Errno::EISCONN).kernel();
                }
                self.has_data.store(true, Relaxed);
                self.wake();
                Ok(())
            }
        }
    }
}
