// SPDX-License-Identifier: GPL-2.0

//! What a request is for, and who hears it: the same for REQ and SIDR_REQ.

use super::{reach::Sender, receive::Arrived};
use crate::{
    cma::{
        listeners::{Listener, Wanted},
        neighbours::Interface,
    },
    endpoint::{Attachment, Endpoint, EndpointRef, Event, EventParam, Inner},
    ib::{dev_addr::DevAddr, gid::GidAttr, trace},
    kext::{error::ToKernel, net::Net, netdev::NetDevice},
};
use cmproto::{
    addr::SockAddr,
    cm::DestroyCause,
    cma::State,
    errno::Errno,
    listen::RequestView,
    path::Path,
    private_data,
    service_id::{PortSpace, ServiceId},
    ucma::backlog::Admission,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{aref::ARef, Arc},
};

/// What a request says of whom it is for.
pub(super) struct Asked<'a> {
    pub(super) service_id: u64,
    pub(super) private_data: &'a [u8],
    pub(super) pkey: u16,
    /// The path that it names, if it does.
    pub(super) path: Option<Path>,
}

/// What a request is for: a service, and the addresses in its private data.
pub(super) struct Target<'a> {
    service_id: ServiceId,
    private_data: &'a [u8],
    ip: private_data::Header,
    /// The network device that it is for; none if it is not for an IP address.
    netdev: Option<ARef<NetDevice>>,
    pkey: u16,
    path: Option<Path>,
    /// The address of this end.
    pub(super) src: SockAddr,
    /// The address of the peer.
    pub(super) dst: SockAddr,
}

impl<'a> Target<'a> {
    /// Reads the start of the private data of a request.
    ///
    /// Fails with `EINVAL` if that has another version than is known.
    fn new(asked: &Asked<'a>) -> Result<Self> {
        let service_id = ServiceId(asked.service_id);
        let ip = private_data::Header::decode(asked.private_data).map_err(|_| EINVAL)?;
        let (src, dst) = match &ip {
            private_data::Header::Ip(ip) => (ip.dst.with_port(service_id.port()), ip.src),
            private_data::Header::AfIb => (SockAddr::Unspec, SockAddr::Unspec),
        };
        Ok(Target {
            service_id,
            private_data: asked.private_data,
            ip,
            netdev: None,
            pkey: asked.pkey,
            path: asked.path,
            src,
            dst,
        })
    }

    /// The addresses become native ones if those of the listener are: those of the path, or if the request
    /// names none, that of the listener.
    fn suit(&mut self, listener: &Listener) {
        let bound = listener.addr;
        if let SockAddr::Ib { .. } = bound {
            (self.src, self.dst) = match &self.path {
                Some(path) => path.native_addresses(),
                None => (bound, bound.wildcard()),
            };
        }
    }

    /// What is known of the link to the sender, and the P_Key, where there is IP over InfiniBand or
    /// native addresses.
    fn link(&self) -> Result<(Option<DevAddr>, u16)> {
        let Some(netdev) = &self.netdev else {
            return Ok((None, self.pkey));
        };
        let mut link = DevAddr::of_netdev(netdev)?;
        if let Some(path) = &self.path {
            link = link.with_peer(path.dgid)?;
        }
        let pkey = link.pkey();
        Ok((Some(link), pkey))
    }

    /// The private data that is the consumer's.
    pub(super) fn user_data(&self, listener: &Listener) -> &'a [u8] {
        private_data::user_data(&listener.addr, self.private_data)
    }
}

/// Who hears a request.
#[allow(clippy::large_enum_variant)] // It lives on the stack, for one call.
pub(super) enum Heard<'a> {
    /// A listener on an address.
    Address(Target<'a>, Listener),
    /// One who speaks of messages.
    Messages(EndpointRef),
}

impl Heard<'_> {
    /// The endpoint that listens.
    pub(super) fn endpoint(&self) -> &EndpointRef {
        match self {
            Heard::Address(_, listener) => &listener.endpoint,
            Heard::Messages(endpoint) => endpoint,
        }
    }
}

impl Arrived<'_> {
    /// Whether anybody listens for a service at the device.
    pub(super) fn is_served(&self, service_id: u64) -> bool {
        let listeners = &self.port.core.listeners;
        listeners.has(ServiceId(service_id), &self.device.traits)
    }

    /// Finds out who hears a request; `EINVAL` if nobody does.
    pub(super) fn heard<'a>(&self, asked: &Asked<'a>, sender: &Sender) -> Result<Heard<'a>> {
        let device = self.device.device.index();
        if let Some(endpoint) = self.port.core.listeners.serving(asked.service_id, device) {
            return Ok(Heard::Messages(endpoint));
        }
        let mut target = Target::new(asked)?;
        target.netdev = self.netdev(&target, sender)?;
        let listener = self.find_listener(&target)?;
        target.suit(&listener);
        Ok(Heard::Address(target, listener))
    }

    /// The network device that a request is for; none if it is for a native address.
    ///
    /// Fails with `EINVAL` if there is no such device.
    fn netdev(&self, target: &Target<'_>, sender: &Sender) -> Result<Option<ARef<NetDevice>>> {
        if sender.link.is_none() {
            let local = sender.local.as_ref().ok_or(EINVAL)?;
            return local.ndev().map(Some).map_err(|_| EINVAL);
        }
        if matches!(target.ip, private_data::Header::AfIb) {
            return Ok(None);
        }
        let gid = target.path.as_ref().map(|path| &path.sgid);
        let (device, port) = (&self.device.device, self.port.num);
        let found = device.net_dev_by_params(port, target.pkey, gid, &target.src);
        found.map(Some).ok_or(EINVAL)
    }

    /// The message itself, for an event of who speaks of messages.
    ///
    /// Fails with `ENOMEM`.
    pub(super) fn message_param(&self) -> Result<EventParam<'static>> {
        let mad = Arc::new(*self.mad.bytes(), GFP_KERNEL)?;
        Ok(EventParam::Message(mad))
    }

    /// Finds the listener that a request is for; `EINVAL` if there is none.
    fn find_listener(&self, target: &Target<'_>) -> Result<Listener> {
        let netdev = target.netdev.as_ref();
        let net = match netdev {
            Some(netdev) => netdev.net().ok_or(EINVAL)?,
            None => Net::init().into(),
        };
        let found = self.port.core.listeners.find(&Wanted {
            service_id: target.service_id,
            net: net.hash_key(),
            device: &self.device.traits,
            request: RequestView {
                header: &target.ip,
                interface: netdev.map(|netdev| netdev.ifindex()),
                port: self.port.num,
            },
        });
        let listener = found.ok_or(EINVAL)?;
        // The way back to the sender must lead through where the request came from.
        if netdev
            .is_some_and(|netdev| !netdev.is_up() || !leads_back(netdev, &target.src, &target.dst))
        {
            return Err(EINVAL);
        }
        let tos = listener.endpoint.inner.lock().tos();
        trace::cma::cm_req_handler(&listener.endpoint.head, tos);
        Ok(listener)
    }

    /// The place of the endpoint of a request at the device.
    ///
    /// Fails with `ENODEV` if the listener's namespace may not use the device, and on RoCE with `EINVAL`
    /// if its address or its port space is one of InfiniBand.
    pub(super) fn attachment(&self, heard: &Heard<'_>, sender: &Sender) -> Result<Attachment> {
        let Heard::Address(target, listener) = heard else {
            return Ok(Attachment {
                gid: sender.local.clone(),
                device: self.device.clone(),
                port_num: self.port.num,
                protocol: self.port.protocol,
            });
        };
        let is_roce = sender.link.is_none();
        let is_native = matches!(listener.addr, SockAddr::Ib { .. });
        if is_roce && (is_native || listener.endpoint.ps == PortSpace::Ipoib) {
            return Err(EINVAL);
        }
        if !self.device.device.access_netns(&listener.endpoint.net) {
            return Err(ENODEV);
        }
        let netdev = target.netdev.as_deref();
        let gid = match netdev {
            // There the GID is in the link-layer address.
            Some(netdev) if !is_roce => {
                let link = DevAddr::of_netdev(netdev)?;
                link.ipoib().ok_or(ENODEV)?.own_gid()
            }
            _ => target.src.to_gid(),
        };
        let gid = GidAttr::find_by_port(
            &self.device.device,
            self.port.num,
            &gid,
            self.port.default_gid_type(),
            netdev.filter(|_| is_roce),
        )?;
        Ok(Attachment {
            gid: Some(gid),
            device: self.device.clone(),
            port_num: self.port.num,
            protocol: self.port.protocol,
        })
    }
}

/// Gives the endpoint of a request its addresses and its place at the device, after `fill` has put
/// the conversation into it. On failure the endpoint has ended.
pub(super) fn seat(
    child: &EndpointRef,
    heard: &Heard<'_>,
    attachment: Attachment,
    fill: impl FnOnce(&mut Inner) -> Result,
) -> Result {
    let link = match heard {
        Heard::Address(target, _) if !attachment.is_roce() => target.link(),
        _ => Ok((None, 0)),
    };
    let mut inner = child.inner.lock();
    let mut filled = fill(&mut inner);
    match link {
        Ok((link, pkey)) => (inner.link, inner.pkey) = (link, pkey),
        Err(error) => filled = Err(error),
    }
    if let Heard::Address(target, _) = heard {
        inner.src = target.src;
        inner.dst = target.dst;
        if let Some(netdev) = &target.netdev {
            inner.bound_if = netdev.ifindex();
            inner.interface = Interface::of(netdev);
        }
    }
    child.set_state(&mut inner, State::Connect);
    child.show(&inner);
    let attached = filled.and_then(|()| child.attach(&mut inner, attachment));
    drop(inner);
    if attached.is_err() {
        child.end(DestroyCause::NoMemory);
    }
    attached
}

/// Whether a request would be taken now, be it to be parked with up to `parking`: a full backlog costs
/// nothing but this look at it. Fails as [`offer`].
pub(super) fn takes_requests(listener: &Endpoint, parking: u32) -> Result {
    let consumer = listener.inner.lock().consumer.clone();
    consumer.map_or(Ok(()), |consumer| consumer.takes_requests(parking))
}

/// Offers the request that `child` stands for to the consumer of `listener`.
///
/// Fails with `ECONNABORTED` if the listener has gone, and as
/// [`Consumer::connect_request`](crate::endpoint::Consumer::connect_request).
pub(crate) fn offer(
    listener: &Endpoint,
    child: &EndpointRef,
    event: &Event<'_>,
    parking: u32,
) -> Result<Admission> {
    let consumer = {
        let inner = listener.inner.lock();
        match inner.state {
            State::Listen => inner.consumer.clone(),
            _ => None,
        }
    };
    match consumer {
        Some(consumer) => consumer.connect_request(child, event, parking),
        None => Err(Errno::ECONNABORTED.to_kernel()),
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
