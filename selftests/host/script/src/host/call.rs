// SPDX-License-Identifier: GPL-2.0

//! The calls of the user.

use super::{
    sock, Cause, Conn, Listen, Node, Object, ACK_DELAY, EPHEMERAL, GUID, HOP_LIMIT, LIFE_TIME, MTU,
};
use crate::world::{Answer, Call, ConnParam, Endpoint, QpAttr, Space};
use cmproto::{
    addr::SockAddr,
    cm::{AcceptParams, ConnectParams, Connection, DestroyCause, QpState, RetryPolicy},
    cma,
    errno::Errno,
    origin::Origin,
    private_data::{IpHeader, IP_HEADER_LEN},
    reject::Reason,
    service_id::{PortSpace, ServiceId},
    ucma::backlog::Backlog,
    wire::{ReqPath, Transport},
};
use std::{collections::VecDeque, net::IpAddr};

impl Node {
    pub(super) fn destroy(&mut self, index: usize, cause: DestroyCause) {
        let now = self.now;
        if let Some(conn) = self.conn(index) {
            let actions = conn.machine.destroy(cause, now);
            self.execute(index, actions, &Cause::None);
        }
        if let Some(sidr) = self.sidr(index) {
            let actions = sidr.machine.destroy(cause, now);
            self.execute_sidr(index, actions, None);
        }
        self.release_remote_ids(index);
        let Some(object) = self.objects.get_mut(index) else {
            return;
        };
        object.conn = None;
        object.sidr = None;
        object.listen = None;
        object.state = cma::State::Destroying;
        self.by_id.retain(|_, owner| *owner != index);
        // Unread events go, and with them the connections that nobody has seen.
        let (gone, kept) = self
            .events
            .drain(..)
            .partition::<VecDeque<_>, _>(|event| event.endpoint == Endpoint(index));
        self.events = kept;
        for child in gone.into_iter().filter_map(|event| event.child) {
            self.destroy(child.0, DestroyCause::User);
        }
    }

    fn listen(&mut self, space: PortSpace, addr: SockAddr, backlog: u32, afonly: bool) -> Answer {
        let mut queue = Backlog::new();
        queue.set(cmproto::ucma::backlog::clamp(backlog, 1024));
        let index = self.object(Object {
            listen: Some(Listen {
                addr,
                service: ServiceId::of_address(space, &addr).0,
                space,
                afonly: afonly || matches!(addr, SockAddr::V4 { .. }),
                backlog: queue,
            }),
            ..Object::new(cma::State::Listen, true)
        });
        Answer::Endpoint(Endpoint(index))
    }

    /// How soon requests are sent early: the peers of a script are fast.
    pub(super) fn retry_policy(&self) -> RetryPolicy {
        self.tuning
            .early_retry()
            .map_or(RetryPolicy::Classic, RetryPolicy::After)
    }

    /// The addresses of a new connection.
    pub(super) fn ends(&self, to: IpAddr, port: u16) -> (SockAddr, SockAddr) {
        let source_port = EPHEMERAL + u16::try_from(self.objects.len()).unwrap_or(0);
        (sock(self.names.local, source_port), sock(to, port))
    }

    /// The private data of a request.
    pub(super) fn request_data(
        src: SockAddr,
        dst: SockAddr,
        param: &ConnParam,
    ) -> Result<Vec<u8>, Errno> {
        let mut header = [0; IP_HEADER_LEN];
        IpHeader { src, dst }.encode(&mut header)?;
        Ok([&header[..], &param.private].concat())
    }

    fn connect(&mut self, to: IpAddr, port: u16, param: &ConnParam) -> Result<Answer, Errno> {
        let comm_id = self.comm_id();
        let (src, dst) = self.ends(to, port);
        let data = Self::request_data(src, dst, param)?;
        let psn = comm_id & 0x00ff_ffff;
        let params = ConnectParams {
            service_id: ServiceId::of_address(PortSpace::Tcp, &dst).0,
            local_qpn: param.qpn,
            local_qkey: 0,
            srq: param.srq != 0,
            transport: Transport::Rc,
            starting_psn: psn,
            responder_resources: param.responder,
            initiator_depth: param.initiator,
            flow_control: param.flow & 1 != 0,
            retry_count: param.retry,
            rnr_retry_count: param.rnr,
            pkey: 0xffff,
            path_mtu: MTU,
            primary: ReqPath {
                local_lid: 0xffff,
                remote_lid: 0xffff,
                local_gid: src.to_gid(),
                remote_gid: dst.to_gid(),
                hop_limit: HOP_LIMIT,
                ..ReqPath::default()
            },
            packet_life_time: LIFE_TIME,
            ca_ack_delay: ACK_DELAY,
            remote_cm_response_timeout: self.tuning.response_timeout().get(),
            local_cm_response_timeout: self.tuning.response_timeout().get(),
            max_cm_retries: self.tuning.max_retries(),
            vendor_id: param.vendor,
            attr_mod: param.attr_mod,
        };
        let mut machine = Connection::new(comm_id, GUID, 0x1000_0000_0000 | u64::from(comm_id));
        machine.set_limits(&self.tuning.limits());
        machine.set_retry_policy(self.retry_policy());
        let actions = machine.connect(&params, &data, self.now)?;
        let index = self.object(Object {
            conn: Some(Conn {
                machine,
                peer: Origin::of_gid(dst.to_gid()),
                is_active: true,
                tracked: None,
            }),
            psn,
            ..Object::new(cma::State::Connect, true)
        });
        self.by_id.insert(comm_id, index);
        self.execute(index, actions, &Cause::None);
        Ok(Answer::Endpoint(Endpoint(index)))
    }

    fn accept(&mut self, index: usize, param: Option<&ConnParam>) -> Result<(), Errno> {
        let now = self.now;
        let object = self.objects.get_mut(index).ok_or(Errno::ENOENT)?;
        if object.state != cma::State::Connect {
            return Err(Errno::EINVAL);
        }
        if object.sidr.is_some() {
            let answered = self.answer_question(index, param);
            if answered.is_err() {
                let _ = self.refuse_question(index, &[]);
            }
            return answered;
        }
        let psn = object.psn;
        let machine = &mut object.conn.as_mut().ok_or(Errno::EINVAL)?.machine;
        let answered = match param {
            None => machine.establish(&[], now),
            Some(param) => {
                let params = AcceptParams {
                    local_qpn: param.qpn,
                    qkey: 0,
                    starting_psn: psn,
                    responder_resources: param.responder,
                    initiator_depth: param.initiator,
                    target_ack_delay: ACK_DELAY,
                    failover_accepted: 0,
                    flow_control: param.flow & 1 != 0,
                    rnr_retry_count: param.rnr,
                    srq: param.srq != 0,
                    vendor_id: param.vendor,
                    attr_mod: param.attr_mod,
                };
                machine.accept(&params, &param.private, now)
            }
        };
        match answered {
            Ok(actions) => {
                object.has_uid = true;
                self.execute(index, actions, &Cause::None);
                Ok(())
            }
            Err(errno) => {
                let _ = self.reject(index, Reason::CONSUMER_DEFINED, &[]);
                Err(errno)
            }
        }
    }

    pub(super) fn reject(
        &mut self,
        index: usize,
        reason: Reason,
        private: &[u8],
    ) -> Result<(), Errno> {
        if self.sidr(index).is_some() {
            return self.refuse_question(index, private);
        }
        let now = self.now;
        let conn = self.conn(index).ok_or(Errno::EINVAL)?;
        let actions = conn.machine.reject(reason, &[], private, now)?;
        self.execute(index, actions, &Cause::None);
        Ok(())
    }

    fn disconnect(&mut self, index: usize) -> Result<(), Errno> {
        if self.sidr(index).is_some() {
            return Ok(());
        }
        let now = self.now;
        let conn = self.conn(index).ok_or(Errno::EINVAL)?;
        let actions = conn
            .machine
            .disconnect(&[], now)
            .or_else(|_| conn.machine.confirm_disconnect(&[], now));
        if let Ok(actions) = actions {
            self.execute(index, actions, &Cause::None);
        }
        Ok(())
    }

    fn notify(&mut self, index: usize) -> Result<(), Errno> {
        let now = self.now;
        let conn = self.conn(index).ok_or(Errno::EINVAL)?;
        let actions = conn.machine.notify_established(now)?;
        self.execute(index, actions, &Cause::None);
        Ok(())
    }

    fn qp_attr(&mut self, index: usize, state: u32) -> Result<Answer, Errno> {
        let object = self.objects.get(index).ok_or(Errno::ENOENT)?;
        let machine = &object.conn.as_ref().ok_or(Errno::EINVAL)?.machine;
        let known = machine.qp_attr(QpState::try_from(state)?)?;
        Ok(Answer::QpAttr(QpAttr {
            mask: known.mask.0,
            dest_qpn: known.dest_qpn,
            rq_psn: known.rq_psn,
            sq_psn: known.sq_psn,
            mtu: known.path_mtu,
            max_rd: known.max_rd_atomic,
            max_dest_rd: known.max_dest_rd_atomic,
            timeout: known.timeout,
            retry: known.retry_cnt,
            rnr: known.rnr_retry,
            access: known.access_flags,
        }))
    }

    pub(super) fn make(&mut self, call: &Call) -> Result<Answer, Errno> {
        let family = sock(self.names.local, 0).family();
        match call {
            Call::Listen {
                space,
                address,
                port,
                backlog,
                afonly,
            } => {
                let space = match space {
                    Space::Tcp => PortSpace::Tcp,
                    Space::Udp => PortSpace::Udp,
                };
                let addr = sock(address.unwrap_or(self.names.local), *port);
                debug_assert!(addr.family() == family || address.is_some());
                return Ok(self.listen(space, addr, *backlog, *afonly));
            }
            Call::Connect {
                space,
                to,
                port,
                param,
            } => {
                return match space {
                    Space::Tcp => self.connect(*to, *port, param),
                    Space::Udp => self.ask(*to, *port, param),
                };
            }
            Call::QpAttr(endpoint, state) => return self.qp_attr(endpoint.0, *state),
            Call::Accept(endpoint, param) => self.accept(endpoint.0, Some(param))?,
            Call::Establish(endpoint) => self.accept(endpoint.0, None)?,
            Call::Reject(endpoint, reason, private) => {
                self.reject(endpoint.0, Reason(u16::from(*reason)), private)?;
            }
            Call::Disconnect(endpoint) => self.disconnect(endpoint.0)?,
            Call::Notify(endpoint) => self.notify(endpoint.0)?,
            Call::Destroy(endpoint) => self.destroy(endpoint.0, DestroyCause::User),
            Call::Close => {
                for index in 0..self.objects.len() {
                    self.destroy(index, DestroyCause::User);
                }
            }
        }
        Ok(Answer::None)
    }
}
