// SPDX-License-Identifier: GPL-2.0

//! The calls of the user.

use super::{sock, surroundings::Watch, Node};
use crate::world::{Called, ConnParam, Endpoint, Event, QpAttr, Service, Space, User};
use cmnode::{EpId, Listener};
use cmproto::{
    addr::SockAddr,
    cm::{AcceptParams, ConnectParams, DestroyCause, QpState},
    errno::Errno,
    qp::QpType,
    reject::Reason,
    service_id::{PortSpace, ServiceId},
    sidr::ResolveParams,
    ucma::backlog,
    ucma_abi::UverbsQpAttr,
};

const EPHEMERAL: u16 = 40_000;

fn number(endpoint: Endpoint) -> EpId {
    EpId::try_from(endpoint.0).unwrap_or(EpId::MAX)
}

impl Node {
    /// Reads an event for the user. A request is read when it is its turn among those to its
    /// listener.
    pub(super) fn read(&mut self) -> Option<Event> {
        let node = &mut self.0;
        let at = node.env.events.iter().position(|event| {
            let next = || node.next_request(number(event.endpoint));
            event
                .child
                .is_none_or(|child| next() == Some(number(child)))
        })?;
        let event = node.env.events.remove(at)?;
        let child = event.child.map(number);
        if let Some(child) = child.and_then(|ep| node.endpoints.get_mut(&ep)) {
            child.watch.is_unread = false;
        }
        Some(event)
    }

    fn destroy_ep(&mut self, ep: EpId) {
        self.0.destroy(ep, DestroyCause::User);
        // Unread events go, and with them the connections that nobody has seen.
        let mut children = Vec::new();
        self.0.env.events.retain(|event| {
            let is_gone = number(event.endpoint) == ep;
            children.extend(event.child.filter(|_| is_gone));
            !is_gone
        });
        for child in children {
            self.destroy_ep(number(child));
        }
    }

    fn attributes(&self, ep: EpId, state: u32) -> Result<UverbsQpAttr, Errno> {
        let endpoint = self.0.endpoints.get(&ep).ok_or(Errno::ENOENT)?;
        let machine = endpoint.machine.connection().ok_or(Errno::EINVAL)?;
        machine.qp_attr(QpState::try_from(state)?)
    }
}

impl User for Node {
    fn listen(&mut self, service: Service, limit: u32, afonly: bool) -> Called<Endpoint> {
        let (space, qp_type) = match service.space {
            Space::Tcp => (PortSpace::Tcp, QpType::RC),
            Space::Udp => (PortSpace::Udp, QpType::UD),
        };
        let addr = sock(service.address, service.port);
        let ep = self.0.listen(Listener {
            addr,
            service_id: ServiceId::of_address(space, &addr).0,
            afonly: afonly || matches!(addr, SockAddr::V4 { .. }),
            backlog: backlog::clamp(limit, 1024),
            qp_type,
        });
        Ok(Endpoint(ep as usize))
    }

    fn connect(&mut self, service: Service, param: &ConnParam) -> Called<Endpoint> {
        let node = &mut self.0;
        let source_port = EPHEMERAL + u16::try_from(node.next_ep()).unwrap_or(0);
        let src = sock(node.env.names.local, source_port);
        let dst = sock(service.address, service.port);
        let tuning = node.tuning;
        let watch = Watch {
            has_uid: true,
            ..Watch::default()
        };
        let connected = match service.space {
            Space::Tcp => {
                let params = ConnectParams {
                    local_qpn: param.qpn,
                    srq: param.srq != 0,
                    responder_resources: param.responder,
                    initiator_depth: param.initiator,
                    flow_control: param.flow & 1 != 0,
                    retry_count: param.retry,
                    rnr_retry_count: param.rnr,
                    remote_cm_response_timeout: tuning.response_timeout().get(),
                    local_cm_response_timeout: tuning.response_timeout().get(),
                    max_cm_retries: tuning.max_retries(),
                    vendor_id: param.vendor,
                    attr_mod: param.attr_mod,
                    ..cmnode::connect_params()
                };
                node.connect(src, dst, &params, &param.private, watch)
            }
            Space::Udp => {
                let params = ResolveParams {
                    timeout: tuning.response_timeout().to_duration(),
                    max_cm_retries: tuning.max_retries(),
                    total: tuning.limits().total,
                    ..ResolveParams::new(0, 0xffff)
                };
                node.resolve(src, dst, &params, &param.private, watch)
            }
        };
        let ep = connected.map_err(Errno::code)?;
        Ok(Endpoint(ep as usize))
    }

    fn accept(&mut self, endpoint: Endpoint, param: &ConnParam) -> Called {
        let ep = number(endpoint);
        let params = AcceptParams {
            local_qpn: param.qpn,
            responder_resources: param.responder,
            initiator_depth: param.initiator,
            flow_control: param.flow & 1 != 0,
            rnr_retry_count: param.rnr,
            srq: param.srq != 0,
            vendor_id: param.vendor,
            attr_mod: param.attr_mod,
            ..AcceptParams::default()
        };
        let accepted = self.0.accept(ep, Some(&params), &param.private);
        accepted.map_err(Errno::code)?;
        if let Some(endpoint) = self.0.endpoints.get_mut(&ep) {
            endpoint.watch.has_uid = true;
        }
        Ok(())
    }

    fn establish(&mut self, endpoint: Endpoint) -> Called {
        let accepted = self.0.accept(number(endpoint), None, &[]);
        accepted.map_err(Errno::code)
    }

    fn reject(&mut self, endpoint: Endpoint, reason: u8, private: &[u8]) -> Called {
        let reason = Reason(reason.into());
        let rejected = self.0.reject(number(endpoint), reason, private);
        rejected.map_err(Errno::code)
    }

    fn disconnect(&mut self, endpoint: Endpoint) -> Called {
        // In no state does this fail: there may be nothing to do any more.
        let _ = self.0.disconnect(number(endpoint));
        Ok(())
    }

    fn notify(&mut self, endpoint: Endpoint) -> Called {
        self.0.notify(number(endpoint)).map_err(Errno::code)
    }

    fn load(&mut self, endpoint: Endpoint, dlid: u16) -> Called {
        let loaded = self.0.load_alternate(number(endpoint), dlid);
        loaded.map_err(Errno::code)
    }

    fn qp_attr(&mut self, endpoint: Endpoint, state: u32) -> Called<QpAttr> {
        let known = self.attributes(number(endpoint), state);
        let known = known.map_err(Errno::code)?;
        Ok(QpAttr {
            mask: known.qp_attr_mask,
            dest_qpn: known.dest_qp_num,
            rq_psn: known.rq_psn,
            sq_psn: known.sq_psn,
            mtu: u8::try_from(known.path_mtu).unwrap_or(0),
            max_rd: known.max_rd_atomic,
            max_dest_rd: known.max_dest_rd_atomic,
            timeout: known.timeout,
            retry: known.retry_cnt,
            rnr: known.rnr_retry,
            access: known.qp_access_flags,
            alt_timeout: known.alt_timeout,
        })
    }

    fn destroy(&mut self, endpoint: Endpoint) -> Called {
        self.destroy_ep(number(endpoint));
        Ok(())
    }

    fn close(&mut self) -> Called {
        for ep in 0..self.0.next_ep() {
            self.destroy_ep(ep);
        }
        Ok(())
    }
}
