// SPDX-License-Identifier: GPL-2.0

//! The destination of a REQ or SIDR_REQ, and the listener that it matches.

use super::{receive::Arrived, resolve::Sender};
use crate::{
    endpoint::{Admitted, Attachment, Endpoint, EndpointRef, Event, EventParam, Inner},
    ib::{dev_addr::DevAddr, gid::GidAttr, interface::Interface, trace},
    kext::{net::Net, netdev::NetDevice},
    table::listeners::{AddressListener, Destination},
};
use cmproto::{
    addr::SockAddr,
    cm::DestroyCause,
    cma::{State, Trigger},
    listen::RequestView,
    node::Declined,
    path::Path,
    private_data,
    service_id::{PortSpace, ServiceId},
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{aref::ARef, Arc},
};

/// The fields of a request that determine its listener.
pub(super) struct Asked<'a> {
    pub(super) service_id: u64,
    pub(super) private_data: &'a [u8],
    pub(super) pkey: u16,
    /// The path in the request, if it is a REQ.
    pub(super) path: Option<Path>,
}

/// The destination of a request: its service id, and the addresses in its private data.
pub(super) struct Target<'a> {
    service_id: ServiceId,
    private_data: &'a [u8],
    ip: private_data::Header,
    /// The network device of the destination. `None` if the request is not for an IP address.
    netdev: Option<ARef<NetDevice>>,
    pkey: u16,
    path: Option<Path>,
    /// The address of this side.
    pub(super) src: SockAddr,
    /// The address of the peer.
    pub(super) dst: SockAddr,
}

impl<'a> Target<'a> {
    /// Decodes the header in the private data of a request. Returns `None` if the version of the
    /// header is not known.
    fn new(asked: &Asked<'a>) -> Option<Self> {
        let service_id = ServiceId(asked.service_id);
        let ip = private_data::Header::decode(asked.private_data).ok()?;
        let (src, dst) = match &ip {
            private_data::Header::Ip(ip) => (ip.dst.with_port(service_id.port()), ip.src),
            private_data::Header::AfIb => (SockAddr::Unspec, SockAddr::Unspec),
        };
        Some(Target {
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

    /// Replaces the addresses by native ones (AF_IB) if the listener has a native address. They are
    /// those of the path, or that of the listener if the request has no path.
    fn suit(&mut self, listener: &AddressListener<EndpointRef>) {
        let bound = listener.addr;
        if let SockAddr::Ib { .. } = bound {
            (self.src, self.dst) = match &self.path {
                Some(path) => path.native_addresses(),
                None => (bound, bound.wildcard()),
            };
        }
    }

    /// Returns the link to the sender, and the P_Key, of a request on InfiniBand. A request for a
    /// native address has no link.
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

    /// Returns the consumer's part of the private data.
    pub(super) fn user_data(&self, listener: &AddressListener<EndpointRef>) -> &'a [u8] {
        private_data::user_data(&listener.addr, self.private_data)
    }
}

/// The listener that a request matches.
#[allow(clippy::large_enum_variant)] // A value lives on the stack, for one call.
pub(super) enum Heard<'a> {
    /// A listener of the RDMA CM, on an address.
    Address(Target<'a>, AddressListener<EndpointRef>),
    /// A listener of the InfiniBand CM, on a service id.
    Messages(EndpointRef),
}

impl Heard<'_> {
    /// Returns the endpoint that listens.
    pub(super) fn endpoint(&self) -> &EndpointRef {
        match self {
            Heard::Address(_, listener) => &listener.endpoint,
            Heard::Messages(endpoint) => endpoint,
        }
    }
}

impl Arrived<'_> {
    /// Returns whether there is a listener for a service id at the device.
    pub(super) fn is_served(&self, service_id: u64) -> bool {
        let listeners = &self.core.listeners;
        listeners.has(ServiceId(service_id), &self.device.traits)
    }

    /// Finds the listener for a request, if there is one.
    pub(super) fn heard<'a>(&self, asked: &Asked<'a>, sender: &Sender) -> Option<Heard<'a>> {
        let device = self.device.device.index();
        if let Some(endpoint) = self.core.listeners.find_service(asked.service_id, device) {
            return Some(Heard::Messages(endpoint));
        }
        let mut target = Target::new(asked)?;
        target.netdev = self.netdev(&target, sender)?;
        let listener = self.find_listener(&target)?;
        target.suit(&listener);
        Some(Heard::Address(target, listener))
    }

    /// Returns the network device that a request is for, which is `Some(None)` if it is for a
    /// native address. Returns `None` if there is no such device.
    fn netdev(&self, target: &Target<'_>, sender: &Sender) -> Option<Option<ARef<NetDevice>>> {
        if sender.link.is_none() {
            return sender.local.as_ref()?.ndev().ok().map(Some);
        }
        if matches!(target.ip, private_data::Header::AfIb) {
            return Some(None);
        }
        let gid = target.path.as_ref().map(|path| &path.sgid);
        let (device, port) = (&self.device.device, self.port.num);
        let found = device.net_dev_by_params(port, target.pkey, gid, &target.src);
        found.map(Some)
    }

    /// Returns the message, as parameter of an event for a consumer of the InfiniBand CM.
    ///
    /// Fails with `ENOMEM`.
    pub(super) fn message_param(&self) -> Result<EventParam<'static>> {
        let mad = Arc::new(*self.mad.bytes(), GFP_KERNEL)?;
        Ok(EventParam::Message(mad))
    }

    /// Finds the listener of the RDMA CM for a request, if there is one.
    fn find_listener(&self, target: &Target<'_>) -> Option<AddressListener<EndpointRef>> {
        let netdev = target.netdev.as_ref();
        let net = match netdev {
            Some(netdev) => netdev.net()?,
            None => Net::init().into(),
        };
        let listener = self.core.listeners.find(&Destination {
            service_id: target.service_id,
            net: net.hash_key(),
            device: &self.device.traits,
            request: RequestView {
                header: &target.ip,
                interface: netdev.map(|netdev| netdev.ifindex()),
                port: self.port.num,
            },
        })?;
        // The route back to the sender must use the network device that the request was for.
        if netdev
            .is_some_and(|netdev| !netdev.is_up() || !leads_back(netdev, &target.src, &target.dst))
        {
            return None;
        }
        let tos = listener.endpoint.inner.lock().tos();
        trace::cma::cm_req_handler(&listener.endpoint.head, tos);
        Some(listener)
    }

    /// Returns the attachment to the device for the endpoint of a request.
    ///
    /// Fails with `ENODEV` if the listener's network namespace may not use the device, and with
    /// `EINVAL` on RoCE if the address or the port space of the listener is one of InfiniBand.
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
            // On IP over InfiniBand the link-layer address contains the GID.
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

/// Initializes the endpoint of a request: its addresses and its attachment to the device, after
/// `fill` has set the connection or resolution. If that fails, the endpoint is ended.
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
    let started = filled.and_then(|()| child.step(&mut inner, Trigger::Request));
    child.show(&inner);
    let attached = started.and_then(|()| child.attach(&mut inner, attachment));
    drop(inner);
    if attached.is_err() {
        child.end(DestroyCause::NoMemory);
    }
    attached
}

/// Checks whether the consumer would accept a request now, even if only to park it as one of up to
/// `parking`.
///
/// A request that meets a full backlog costs no more than this check. Fails like [`offer`].
pub(super) fn takes_requests(listener: &Endpoint, parking: u32) -> Result<(), Declined> {
    let consumer = listener.inner.lock().consumer.clone();
    consumer.map_or(Ok(()), |consumer| consumer.takes_requests(parking))
}

/// Offers the request of `child` to the consumer of `listener`.
///
/// A listener that has ended refuses it.
pub(crate) fn offer<'a>(
    listener: &Endpoint,
    child: &'a EndpointRef,
    event: &Event<'_>,
    parking: u32,
) -> Result<Admitted<'a>, Declined> {
    let consumer = {
        let inner = listener.inner.lock();
        match inner.state() {
            State::Listen => inner.consumer.clone(),
            _ => None,
        }
    };
    match consumer {
        Some(consumer) => consumer.connect_request(child, event, parking),
        None => Err(Declined::Refused),
    }
}

/// Returns whether the route from `local` to `peer` uses `netdev`.
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
