// SPDX-License-Identifier: GPL-2.0

//! Connection requests that come in.
//!
//! What is cheap comes first: a REQ is decoded and matched against the known peers and the
//! listeners before anything is allocated for it.

use super::{
    ids::CommId,
    port::transaction_id,
    reach::{reach, Purpose, Sender, Waiting},
    receive::Arrived,
    remote::{Space, Track},
};
use crate::{
    cma::{
        listeners::{Listener, Wanted},
        neighbours::Interface,
        path::Path,
    },
    endpoint::{Attachment, Conn, ConnEventParam, Ece, Endpoint, Event, EventParam},
    ib::{
        addr::DevAddr,
        counters::Counts,
        gid::GidAttr,
        mad::Agent,
        trace::{
            self,
            icm::{self, IcmId},
        },
    },
    kext::{error::ToKernel, netdev::NetDevice},
};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::{self, Connection, DestroyCause, Limits},
    cma::State,
    dropped::Dropped,
    errno::Errno,
    listen::RequestView,
    private_data::{self, user_data},
    reject::Reason,
    service_id::ServiceId,
    ucma_abi::CmEvent,
    wire::{Header, Req, Transport},
};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, sync::Arc};

/// `enum ib_qp_type` of reliable connections.
const QPT_RC: u8 = 2;
/// `enum ib_qp_type` of unreliable connections.
const QPT_UC: u8 = 3;
/// `enum ib_qp_type` of the target end of extended reliable connections.
const QPT_XRC_TGT: u8 = 10;

/// The type of QP that can serve a REQ of this transport.
fn qp_type(transport: Transport) -> Option<u8> {
    match transport {
        Transport::Rc => Some(QPT_RC),
        Transport::Uc => Some(QPT_UC),
        Transport::Xrc => Some(QPT_XRC_TGT),
        Transport::Other(..) => None,
    }
}

/// Why a REQ does not become a connection request.
enum Refusal {
    /// The peer is told.
    Reject(Reason),
    /// The peer is told nothing and tries again.
    Drop,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        if error == ENOMEM {
            Refusal::Drop
        } else {
            Refusal::Reject(Reason::CONSUMER_DEFINED)
        }
    }
}

/// A request that waits until its sender can be answered.
struct Arrival {
    sender: Sender,
    agent: Arc<Agent>,
    counts: Arc<Counts>,
    listener: Arc<Endpoint>,
    child: Arc<Endpoint>,
    event: Event,
}

impl Waiting for Arrival {
    const PURPOSE: Purpose = Purpose::Request;

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn reached(&self, link: Result<&DevAddr>) {
        let found = link.and_then(|link| {
            let ah = self.sender.address(&self.agent, link)?;
            Ok((ah, link.hop_limit))
        });
        let Ok((ah, hop_limit)) = found else {
            // Nobody can be told.
            self.counts.dropped(Dropped::Unreachable);
            return self.child.end(DestroyCause::NoMemory);
        };
        {
            let mut inner = self.child.inner.lock();
            match &mut inner.conn {
                Some(conn) => conn.ah = Some(ah),
                // The peer took its request back meanwhile, or the device went away.
                None => return,
            }
            if let Some(path) = &mut inner.path {
                path.hop_limit = hop_limit;
            }
        }
        self.offer();
    }
}

impl Arrival {
    /// Offers the request to the listener's consumer.
    fn offer(&self) {
        let consumer = {
            let inner = self.listener.inner.lock();
            match inner.state {
                State::Listen => inner.consumer.clone(),
                _ => None,
            }
        };
        let offered = match consumer {
            Some(consumer) => self.child.traced(0, &self.event, || {
                consumer.connect_request(&self.child, &self.event)
            }),
            None => Err(Errno::ECONNABORTED.to_kernel()),
        };
        if let Err(error) = offered {
            let cause = match Refusal::from(error) {
                Refusal::Reject(_) => DestroyCause::User,
                Refusal::Drop => {
                    self.counts.dropped(Dropped::Overload);
                    DestroyCause::NoMemory
                }
            };
            return self.child.end(cause);
        }
        let mut inner = self.child.inner.lock();
        if inner.conn.is_some() {
            self.child.prepare_mra(&mut inner);
        }
    }
}

/// The event that reports a REQ, with the resources as this end sees them.
fn req_event(header: &Header, req: &Req<'_>, private_data: &[u8]) -> Event {
    Event {
        kind: CmEvent::ConnectRequest,
        status: 0,
        param: EventParam::Conn(ConnEventParam {
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            flow_control: u8::from(req.flow_control),
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            srq: u8::from(req.srq),
            qp_num: req.local_qpn,
            ..ConnEventParam::with_private_data(private_data)
        }),
        ece: Ece {
            vendor_id: req.vendor_id,
            attr_mod: header.attr_mod,
        },
    }
}

/// The connection that a REQ asks for as tracepoints name it, which has no identifier.
fn icm_id(req: &Req<'_>) -> IcmId<'static> {
    IcmId {
        head: None,
        local_id: 0,
        remote_id: req.local_comm_id,
        state: cm::State::ReqRcvd as u32,
    }
}

impl Arrived<'_> {
    /// Handles a REQ.
    pub(super) fn request(&self, req: &Req<'_>) {
        let remotes = &self.port.core.remotes;
        let peer = self.peer(req.local_ca_guid);
        if let Some(known) = remotes.by_comm_id(peer, req.local_comm_id) {
            known.duplicate_req(self.source());
            return icm::icm_no_listener_err(&icm_id(req));
        }
        let taken = match remotes.by_qpn(peer, req.local_qpn) {
            Some(other) => Err((Refusal::Reject(Reason::STALE_CONN), Some(other))),
            None => self.take(req),
        };
        let Err((refusal, stale)) = taken else {
            return;
        };
        let reason = match refusal {
            Refusal::Reject(reason) => reason,
            Refusal::Drop => return self.port.counts.dropped(Dropped::Overload),
        };
        let is_for_nobody = matches!(reason, Reason::INVALID_SERVICE_ID | Reason::STALE_CONN);
        if is_for_nobody {
            icm::icm_issue_rej(req.local_comm_id, 0);
        } else {
            icm::icm_send_rej(&icm_id(req), reason.0);
        }
        self.refuse_req(req, reason, self.right_gid(reason));
        if let Some(other) = stale {
            other.stale_peer(self.source());
        }
        if is_for_nobody {
            icm::icm_no_listener_err(&icm_id(req));
        }
    }

    /// The GID that whoever named a wrong one is told of.
    fn right_gid(&self, reason: Reason) -> Option<Gid> {
        match reason {
            Reason::INVALID_GID => self.device.device.query_gid(self.port.num, 0).ok(),
            Reason::INVALID_ALT_GID => Some(self.mad.source().dgid),
            _ => None,
        }
    }

    /// Makes a connection request of a REQ that is neither a duplicate nor from a stale peer.
    fn take(&self, req: &Req<'_>) -> Result<(), (Refusal, Option<Arc<Endpoint>>)> {
        let plain = |refusal| (refusal, None);
        let core = &self.port.core;
        let sender = Sender::of(self.device, self.mad).map_err(|_| plain(Refusal::Drop))?;
        if !core
            .listeners
            .has(ServiceId(req.service_id), self.device.device.index())
        {
            return Err(plain(Refusal::Reject(Reason::INVALID_SERVICE_ID)));
        }
        if self
            .device
            .device
            .find_pkey(self.port.num, req.pkey)
            .is_err()
        {
            return Err(plain(Refusal::Reject(Reason::INVALID_GID)));
        }
        if !req.alternate.is_empty() {
            // RoCE has no alternate paths.
            return Err(plain(Refusal::Reject(Reason::INVALID_ALT_GID)));
        }
        let request = Request::new(self.header, req).map_err(plain)?;
        let listener = self.find_listener(&request, &sender).map_err(plain)?;
        let tos = listener.endpoint.inner.lock().tos();
        trace::cma::cm_req_handler(&listener.endpoint.head, tos);
        // A full backlog costs nothing but this look at it.
        let consumer = listener.endpoint.inner.lock().consumer.clone();
        if consumer.is_some_and(|consumer| !consumer.takes_requests()) {
            return Err(plain(Refusal::Drop));
        }
        let space = Space::new().map_err(|error| plain(error.into()))?;
        let (child, event) = self
            .create(&sender, &request, &listener)
            .map_err(|error| plain(error.into()))?;
        let track = core.remotes.track(
            space,
            self.peer(req.local_ca_guid),
            req.local_comm_id,
            req.local_qpn,
            &child,
        );
        match track {
            Track::New(tracked) => {
                let mut inner = child.inner.lock();
                let Some(conn) = &mut inner.conn else {
                    // The device has gone since the endpoint was attached to it.
                    drop(inner);
                    core.remotes.untrack(tracked, &child);
                    return Ok(());
                };
                conn.tracked = Some(tracked);
                conn.comm_id.publish(&child);
            }
            // The same REQ is being handled at this moment.
            Track::Duplicate => {
                child.end(DestroyCause::NoMemory);
                return Ok(());
            }
            Track::Stale(other) => {
                child.end(DestroyCause::NoMemory);
                return Err((Refusal::Reject(Reason::STALE_CONN), Some(other)));
            }
        }
        let arrival = Arrival {
            sender,
            agent: self.agent.clone(),
            counts: self.port.counts.clone(),
            listener: listener.endpoint,
            child,
            event,
        };
        reach(core, arrival);
        Ok(())
    }

    /// Finds the listener that the request is for.
    fn find_listener(&self, request: &Request<'_>, sender: &Sender) -> Result<Listener, Refusal> {
        let mismatch = || Refusal::Reject(Reason::CONSUMER_DEFINED);
        let netdev = sender.local.ndev().map_err(|_| mismatch())?;
        let net = netdev.net().ok_or_else(mismatch)?;
        let found = self.port.core.listeners.find(&Wanted {
            service_id: ServiceId(request.req.service_id),
            net: net.hash_key(),
            device: self.device.device.index(),
            request: RequestView {
                header: &request.ip,
                interface: Some(netdev.ifindex()),
            },
        });
        let listener = found.ok_or_else(mismatch)?;
        // The way back to the sender must lead through where the request came from.
        if netdev.is_up() && leads_back(&netdev, &request.src, &request.dst) {
            Ok(listener)
        } else {
            Err(mismatch())
        }
    }

    /// The place of the new endpoint at the device.
    ///
    /// Fails with `ENODEV` if the listener's namespace may not use the device.
    fn attachment(
        &self,
        request: &Request<'_>,
        netdev: &NetDevice,
        listener: &Endpoint,
    ) -> Result<Attachment> {
        if !self.device.device.access_netns(&listener.net) {
            return Err(ENODEV);
        }
        let gid = GidAttr::find_by_port(
            &self.device.device,
            self.port.num,
            &request.src.to_gid(),
            self.port.default_gid_type(),
            Some(netdev),
        )?;
        Ok(Attachment {
            gid: Some(gid),
            device: self.device.clone(),
            port_num: self.port.num,
        })
    }

    /// Creates the endpoint of the request, and the event that offers it.
    fn create(
        &self,
        sender: &Sender,
        request: &Request<'_>,
        listener: &Listener,
    ) -> Result<(Arc<Endpoint>, Event)> {
        let req = request.req;
        let qp_type = qp_type(req.transport).ok_or(EINVAL)?;
        let wanted = listener.endpoint.qp_type;
        if wanted != 0 && wanted != qp_type {
            return Err(EINVAL);
        }
        let netdev = sender.local.ndev()?;
        let attachment = self.attachment(request, &netdev, &listener.endpoint)?;
        let child = Endpoint::create_child(&listener.endpoint, qp_type)?;
        let comm_id = CommId::new(&self.port.core)?;
        let tid = transaction_id(self.agent, comm_id.value());
        let limits = Limits::DEFAULT;
        let machine = Connection::from_req(
            comm_id.value(),
            self.port.guid,
            tid,
            request.header,
            req,
            &limits,
        )
        .map_err(|_| EINVAL)?;
        let conn = KBox::new(
            Conn {
                machine,
                comm_id,
                tracked: None,
                peer: sender.peer,
                ah: None,
                pkey_index: sender.pkey_index,
                before: cm::State::ReqRcvd,
            },
            GFP_KERNEL,
        )?;
        {
            let mut inner = child.inner.lock();
            inner.conn = Some(conn);
            inner.src = request.src;
            inner.dst = request.dst;
            inner.bound_if = netdev.ifindex();
            inner.interface = Interface::of(&netdev);
            inner.path = Some(Path::from_req(req));
            child.set_state(&mut inner, State::Connect);
            child.show(&inner);
            if let Err(error) = child.attach(&mut inner, attachment) {
                drop(inner);
                child.end(DestroyCause::NoMemory);
                return Err(error);
            }
        }
        let event = req_event(
            request.header,
            req,
            user_data(&listener.addr, req.private_data),
        );
        Ok((child, event))
    }
}

/// A REQ, and what its private data says.
struct Request<'a> {
    header: &'a Header,
    req: &'a Req<'a>,
    ip: private_data::Header,
    /// The address of this end.
    src: SockAddr,
    /// The address of the peer.
    dst: SockAddr,
}

impl<'a> Request<'a> {
    fn new(header: &'a Header, req: &'a Req<'a>) -> Result<Self, Refusal> {
        let ip = private_data::Header::decode(req.private_data)
            .map_err(|_| Refusal::Reject(Reason::CONSUMER_DEFINED))?;
        let (src, dst) = match &ip {
            private_data::Header::Ip(ip) => {
                (ip.dst.with_port(ServiceId(req.service_id).port()), ip.src)
            }
            private_data::Header::AfIb => (SockAddr::Unspec, SockAddr::Unspec),
        };
        Ok(Request {
            header,
            req,
            ip,
            src,
            dst,
        })
    }
}

/// Whether packets from `local` to `peer` leave by `netdev`.
fn leads_back(netdev: &NetDevice, local: &SockAddr, peer: &SockAddr) -> bool {
    match (local, peer) {
        (SockAddr::V4 { addr: local, .. }, SockAddr::V4 { addr: peer, .. }) => {
            netdev.is_route_v4(*local, *peer)
        }
        (SockAddr::V6 { addr: local, .. }, SockAddr::V6 { addr: peer, .. }) => {
            netdev.is_route_v6(*local, *peer)
        }
        _ => false,
    }
}
