// SPDX-License-Identifier: GPL-2.0

//! A node, and the calls of its users.

use std::collections::BTreeMap;

use cmproto::{
    addr::{Gid, SockAddr},
    cm::{AcceptParams, ConnectParams, Connection, DestroyCause, RetryPolicy, Tuning},
    cma,
    errno::Errno,
    node::{Admission, AnswerBudget, RemoteIds, RequestEnd},
    origin::Origin,
    private_data::RequestData,
    reject::Reason,
    service_id::{PortSpace, ServiceId},
    sidr::{ReplyParams, Resolution, ResolveParams, Status},
    time::Instant,
    ucma::{backlog::Backlog, order::Numbers, turn::Turn},
    wire::{Req, ReqPath, SidrReq},
};

use crate::{
    alternate::Paths,
    endpoint::{Endpoint, Machine},
    environment::{Arrived, Cause, Environment},
    listener::Listener,
    sources::Sources,
    tables::{CommIds, EpId, RemoteIdTable, Tables},
};

/// Ack delay of a node's adapter, a time code, as with soft-RoCE.
pub(crate) const ACK_DELAY: u8 = 15;

/// A bug that is put into a node, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// REQs are not looked up in the table of duplicates and stale peers.
    NoDuplicates,
    /// The tables are not left when a connection ends.
    KeepRemoteIds,
    /// The timer of a REP is never set.
    NoRepTimer,
    /// DREQs for nobody are not answered.
    NoConfirm,
    /// A source that has confirmed nothing is sent as much as any other.
    Unasked,
    /// A repeated DREQ is told to the user again.
    RepeatedEvent,
    /// The first communication ids are the same after a restart, and for all nodes.
    SameIds,
    /// An alternate path that the peer has refused is taken for one that it has loaded.
    TakeRefused,
}

impl Plant {
    /// Every bug.
    pub const ALL: [Self; 8] = [
        Self::NoDuplicates,
        Self::KeepRemoteIds,
        Self::NoRepTimer,
        Self::NoConfirm,
        Self::Unasked,
        Self::RepeatedEvent,
        Self::SameIds,
        Self::TakeRefused,
    ];
}

/// Returns the parameters of a plain connection over RoCE.
///
/// The fields that [`Node::connect`] fills in are missing: service id, PSN and path.
pub fn connect_params() -> ConnectParams {
    ConnectParams {
        responder_resources: 1,
        initiator_depth: 1,
        flow_control: true,
        retry_count: 7,
        rnr_retry_count: 7,
        pkey: 0xffff,
        path_mtu: 3,
        packet_life_time: 16,
        ca_ack_delay: ACK_DELAY,
        remote_cm_response_timeout: ConnectParams::RESPONSE_TIMEOUT,
        local_cm_response_timeout: ConnectParams::RESPONSE_TIMEOUT,
        max_cm_retries: ConnectParams::MAX_RETRIES,
        ..ConnectParams::default()
    }
}

/// The first PSN that an endpoint with this communication id expects.
fn starting_psn(comm_id: u32) -> u32 {
    comm_id & 0x00ff_ffff
}

/// The transaction id of the requests of an endpoint.
pub(crate) fn transaction_id(comm_id: u32) -> u64 {
    1 << 32 | u64::from(comm_id)
}

/// A node.
#[derive(Debug)]
pub struct Node<E: Environment> {
    pub env: E,
    /// The time, which the environment sets.
    pub now: Instant,
    pub gid: Gid,
    pub guid: u64,
    pub tuning: Tuning,
    /// True if the links are those of InfiniBand, false if they are those of RoCE.
    pub is_ib: bool,
    /// True if queue pairs can have an alternate path.
    pub can_migrate: bool,
    /// True if a destroyed connection waits out its time wait, false if it is forgotten at once.
    pub linger: bool,
    /// A bug, if there shall be one.
    pub plant: Option<Plant>,
    pub tables: Tables,
    pub answers: AnswerBudget,
    pub(crate) sources: Sources,
    pub listeners: BTreeMap<EpId, Listener>,
    pub(crate) backlogs: BTreeMap<EpId, Backlog>,
    /// The requests that were offered to the users of listeners, in the order in which they are read.
    /// Some of them may have been read already.
    pub(crate) turns: BTreeMap<EpId, BTreeMap<Turn, EpId>>,
    /// The positions of requests among those that wait for the users of listeners.
    positions: Numbers,
    pub endpoints: BTreeMap<EpId, Endpoint<E::Watch>>,
    next_ep: EpId,
}

impl<E: Environment> Node<E> {
    /// Creates a node without endpoints, whose communication ids and hashes depend on `key`. Its endpoints are
    /// numbered from `first_ep` on.
    pub fn new(env: E, gid: Gid, guid: u64, key: [u64; 2], first_ep: EpId) -> Self {
        Self {
            env,
            now: Instant::ZERO,
            gid,
            guid,
            tuning: Tuning::NONE,
            is_ib: false,
            can_migrate: true,
            linger: false,
            plant: None,
            tables: Tables {
                comm_ids: CommIds::new(key),
                remote_ids: RemoteIdTable::default(),
                sidr_requests: BTreeMap::new(),
            },
            answers: AnswerBudget::new(),
            sources: Sources::new(key),
            listeners: BTreeMap::new(),
            backlogs: BTreeMap::new(),
            turns: BTreeMap::new(),
            positions: Numbers::new(),
            endpoints: BTreeMap::new(),
            next_ep: first_ep,
        }
    }

    /// Returns the address that its messages come from.
    pub fn origin(&self) -> Origin {
        Origin::of_gid(self.gid)
    }

    /// Returns the number that the next endpoint will have.
    pub fn next_ep(&self) -> EpId {
        self.next_ep
    }

    pub(crate) fn take_ep(&mut self) -> EpId {
        let ep = self.next_ep;
        self.next_ep += 1;
        ep
    }

    /// Creates an endpoint, which messages do not find yet.
    pub(crate) fn insert(
        &mut self,
        mut machine: Machine,
        peer: Origin,
        listener: Option<EpId>,
        watch: E::Watch,
    ) -> EpId {
        let early = self.tuning.early_retry();
        machine.set_retry_policy(early.map_or(RetryPolicy::Classic, RetryPolicy::After));
        let ep = self.take_ep();
        let endpoint = Endpoint::new(machine, peer, listener, watch);
        self.endpoints.insert(ep, endpoint);
        ep
    }

    /// Removes an endpoint, and its communication id with it.
    pub(crate) fn remove(&mut self, ep: EpId) {
        if let Some(endpoint) = self.endpoints.remove(&ep) {
            if let Some(ids) = endpoint.remote_ids {
                self.tables.remote_ids.release(&ids, ep);
            }
            if let Some(comm_id) = endpoint.comm_id() {
                self.tables.comm_ids.free(comm_id);
            }
        }
    }

    // The verbs of the users
    // ------------------------------------------------------------------------------------------

    /// Connects to the service of `dst`.
    ///
    /// # Errors
    ///
    /// The errors of [`RequestData::new`] and [`Connection::connect`].
    pub fn connect(
        &mut self,
        src: SockAddr,
        dst: SockAddr,
        params: &ConnectParams,
        private_data: &[u8],
        watch: E::Watch,
    ) -> Result<EpId, Errno> {
        let data = RequestData::<{ Req::PRIVATE_DATA_LEN }>::new(&src, &dst, private_data)?;
        let now = self.now;
        let comm_id = self.tables.comm_ids.reserve();
        let params = ConnectParams {
            service_id: ServiceId::of_address(PortSpace::Tcp, &dst).0,
            starting_psn: starting_psn(comm_id),
            primary: ReqPath {
                local_lid: 0xffff,
                remote_lid: 0xffff,
                local_gid: src.to_gid(),
                remote_gid: dst.to_gid(),
                hop_limit: 64,
                ..ReqPath::default()
            },
            ..*params
        };
        let mut machine = Connection::new(comm_id, self.guid, transaction_id(comm_id));
        machine.set_limits(&self.tuning.limits());
        let ep = self.ask(
            Machine::Connection(machine),
            comm_id,
            &dst,
            watch,
            |machine| {
                let actions = machine
                    .connection_mut()?
                    .connect(&params, data.bytes(), now)?;
                Ok(actions.into())
            },
        )?;
        self.live(ep)?.paths = Paths::of_own_req(&params);
        Ok(ep)
    }

    /// Resolves the datagram service of `dst`.
    ///
    /// # Errors
    ///
    /// The errors of [`RequestData::new`] and [`Resolution::resolve`].
    pub fn resolve(
        &mut self,
        src: SockAddr,
        dst: SockAddr,
        params: &ResolveParams,
        private_data: &[u8],
        watch: E::Watch,
    ) -> Result<EpId, Errno> {
        let data = RequestData::<{ SidrReq::PRIVATE_DATA_LEN }>::new(&src, &dst, private_data)?;
        let now = self.now;
        let request_id = self.tables.comm_ids.reserve();
        let params = ResolveParams {
            service_id: ServiceId::of_address(PortSpace::Udp, &dst).0,
            ..*params
        };
        let machine = Resolution::new(request_id, transaction_id(request_id));
        self.ask(
            Machine::Resolution(machine),
            request_id,
            &dst,
            watch,
            |machine| {
                let actions = machine
                    .resolution_mut()?
                    .resolve(&params, data.bytes(), now)?;
                Ok(actions.into())
            },
        )
    }

    /// Creates an endpoint that sends a request.
    fn ask(
        &mut self,
        machine: Machine,
        comm_id: u32,
        dst: &SockAddr,
        watch: E::Watch,
        request: impl FnOnce(&mut Machine) -> Result<crate::Actions, Errno>,
    ) -> Result<EpId, Errno> {
        let ep = self.insert(machine, Origin::of_gid(dst.to_gid()), None, watch);
        self.tables.comm_ids.publish(comm_id, ep);
        let asked = self.step(ep, &Cause::Verb, request);
        if asked.is_err() {
            self.remove(ep);
        }
        asked.map(|()| ep)
    }

    /// Accepts a request with `params`, or a reply with none. If that fails, it is rejected, so that
    /// the peer is not left without an answer.
    ///
    /// # Errors
    ///
    /// `EINVAL` if nothing waits for an answer; those of the state machine.
    pub fn accept(
        &mut self,
        ep: EpId,
        params: Option<&AcceptParams>,
        private_data: &[u8],
    ) -> Result<(), Errno> {
        let now = self.now;
        let endpoint = self.live(ep)?;
        if endpoint.state != cma::State::Connect {
            return Err(Errno::EINVAL);
        }
        let comm_id = endpoint.comm_id().unwrap_or(0);
        let mut qkey = endpoint.qkey;
        qkey.take_default(PortSpace::Udp)?;
        let accepted = self.step(ep, &Cause::Verb, |machine| match (machine, params) {
            (Machine::Connection(machine), None) => {
                Ok(machine.establish(private_data, now)?.into())
            }
            (Machine::Connection(machine), Some(params)) => {
                let params = AcceptParams {
                    starting_psn: starting_psn(comm_id),
                    target_ack_delay: ACK_DELAY,
                    ..*params
                };
                Ok(machine.accept(&params, private_data, now)?.into())
            }
            (Machine::Resolution(machine), params) => {
                let params = params.copied().unwrap_or_default();
                let params = ReplyParams {
                    vendor_id: params.vendor_id,
                    attr_mod: params.attr_mod,
                    ..ReplyParams::success(params.local_qpn, qkey.value())
                };
                Ok(machine.reply(&params, &[], private_data, now)?.into())
            }
        });
        if accepted.is_err() {
            let _ = self.reject(ep, Reason::CONSUMER_DEFINED, &[]);
        }
        accepted
    }

    /// Rejects a request or a reply.
    ///
    /// # Errors
    ///
    /// The errors of the state machine.
    pub fn reject(&mut self, ep: EpId, reason: Reason, private_data: &[u8]) -> Result<(), Errno> {
        let now = self.now;
        self.live(ep)?;
        self.step(ep, &Cause::Reject, |machine| match machine {
            Machine::Connection(machine) => {
                Ok(machine.reject(reason, &[], private_data, now)?.into())
            }
            Machine::Resolution(machine) => {
                let params = ReplyParams::failure(Status::REJECT);
                Ok(machine.reply(&params, &[], private_data, now)?.into())
            }
        })
    }

    /// Disconnects, or confirms that the peer did. A datagram endpoint has nothing to disconnect.
    ///
    /// # Errors
    ///
    /// The errors of the state machine.
    pub fn disconnect(&mut self, ep: EpId) -> Result<(), Errno> {
        let now = self.now;
        if let Machine::Resolution(_) = self.live(ep)?.machine {
            return Ok(());
        }
        let disconnected = self.step(ep, &Cause::Verb, |machine| {
            Ok(machine.connection_mut()?.disconnect(&[], now)?.into())
        });
        disconnected.or_else(|_| {
            self.step(ep, &Cause::Verb, |machine| {
                let machine = machine.connection_mut()?;
                Ok(machine.confirm_disconnect(&[], now)?.into())
            })
        })
    }

    /// Reports that data has arrived.
    ///
    /// # Errors
    ///
    /// The errors of [`Connection::notify_established`], and `EADDRINUSE` if another connection has
    /// the queue pair of the peer.
    pub fn notify(&mut self, ep: EpId) -> Result<(), Errno> {
        let now = self.now;
        let endpoint = self.live(ep)?;
        let connection = endpoint.machine.connection();
        let connection = connection.filter(|connection| connection.wants_rtu());
        if let Some(ids) = connection.map(|own| RemoteIds::of(own, endpoint.peer)) {
            if let Err(other) = self.confirm(ep, &ids) {
                self.stale_peer(other);
                return Err(Errno::EADDRINUSE);
            }
        }
        self.step(ep, &Cause::Verb, |machine| {
            Ok(machine.connection_mut()?.notify_established(now)?.into())
        })
    }

    /// Destroys an endpoint or a listener. Its user hears nothing more.
    pub fn destroy(&mut self, ep: EpId, cause: DestroyCause) {
        self.listeners.remove(&ep);
        self.backlogs.remove(&ep);
        self.turns.remove(&ep);
        let now = self.now;
        let Ok(endpoint) = self.live(ep) else {
            return;
        };
        endpoint.is_destroyed = true;
        endpoint.has_user = false;
        let is_connection = endpoint.machine.connection().is_some();
        let _ = self.step(ep, &Cause::Destroy, |machine| {
            Ok(machine.destroy(cause, now))
        });
        if is_connection && !self.linger {
            self.remove(ep);
        }
    }

    /// Returns an endpoint that is not destroyed.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub(crate) fn live(&mut self, ep: EpId) -> Result<&mut Endpoint<E::Watch>, Errno> {
        let endpoint = self.endpoints.get_mut(&ep);
        endpoint
            .filter(|endpoint| !endpoint.is_destroyed)
            .ok_or(Errno::ENOENT)
    }

    // Reports of the environment
    // -----------------------------------------------------------------------------------------

    /// Lets the timer of an endpoint run out.
    pub fn timeout(&mut self, ep: EpId) {
        let now = self.now;
        let _ = self.step(ep, &Cause::Timer, |machine| Ok(machine.timeout(now)));
    }

    /// Asks the listener's user, as the sender's link address is known.
    pub fn offer(&mut self, ep: EpId, request: Option<&Arrived<'_>>) {
        let Ok(endpoint) = self.live(ep) else {
            return;
        };
        let is_sidr = endpoint.machine.resolution().is_some();
        let Some(listener) = endpoint.listener else {
            return;
        };
        let asker = endpoint.asker;
        let admitted = self.admit(listener, asker);
        let position = self.positions.take();
        if let Ok(endpoint) = self.live(ep) {
            endpoint.has_user = admitted.is_ok();
        }
        if admitted.is_ok() {
            let parked = asker.filter(|_| admitted != Ok(Admission::Queued));
            let turn = Turn::new(parked.map(|asker| asker.priority), position);
            self.take_turn(listener, turn, ep);
        }
        match admitted {
            // A SIDR_REQ gets no MRA.
            Ok(_) if is_sidr => {}
            Ok(Admission::Parked) => {
                let _ = self.step(ep, &Cause::Park, |machine| {
                    let machine = machine.connection_mut()?;
                    Ok(machine.park(Connection::PARKING_TIMEOUT)?.into())
                });
            }
            Ok(Admission::Replaces) => self.prepare_mra(ep, Connection::PARKING_TIMEOUT),
            Ok(Admission::Queued) => self.prepare_mra(ep, Connection::SERVICE_TIMEOUT),
            Err(declined) => {
                let end = match is_sidr {
                    true => RequestEnd::sidr_req(declined),
                    false => RequestEnd::req(declined),
                };
                if let Some(reason) = end.reject {
                    let _ = self.reject(ep, reason, &[]);
                }
                return self.destroy(ep, end.cause);
            }
        }
        E::offer(self, ep, request);
    }

    /// Lets the next repetition of the message that the user has to answer be answered by an MRA.
    pub(crate) fn prepare_mra(&mut self, ep: EpId, timeout: u8) {
        let endpoint = self.endpoints.get_mut(&ep);
        if let Some(Machine::Connection(machine)) = endpoint.map(|own| &mut own.machine) {
            let _ = machine.prepare_mra(timeout);
        }
    }
}
