// SPDX-License-Identifier: GPL-2.0

//! The destination of a REQ or SIDR_REQ, and the listener that it matches.

use super::{incoming_mad::IncomingMad, reply_path::ReplyPath};
use crate::{
    endpoint::{Attachment, EndpointRef, EventParam},
    ib::{dev_addr::DevAddr, gid::GidAttr, trace},
    kext::{net::Net, netdev::NetDevice},
    table::listeners::{AddressListener, Destination, Listens},
};
use cmproto::{
    addr::{Gid, SockAddr, AF_IB},
    listen::RequestView,
    path::Path,
    private_data,
    reuseport::Sender,
    service_id::{PortSpace, ServiceId},
    stored_addr::StoredAddr,
    wire::{Req, SidrReq},
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    sync::{aref::ARef, Arc},
};

/// The fields of a request that determine its listener.
pub(super) struct RequestKey<'a> {
    pub(super) service_id: u64,
    pub(super) private_data: &'a [u8],
    pub(super) pkey: u16,
    /// The path in the request, if it is a REQ.
    pub(super) path: Option<Path>,
    /// The sender's communication id or request id, and the number of its queue pair.
    ids: (u32, u32),
}

impl<'a> RequestKey<'a> {
    /// Returns the fields of a REQ, which has this path.
    pub(super) fn of_req(req: &Req<'a>, path: Path) -> Self {
        RequestKey {
            service_id: req.service_id,
            private_data: req.private_data,
            pkey: req.pkey,
            path: Some(path),
            ids: (req.local_comm_id, req.local_qpn),
        }
    }

    /// Returns the header in the private data. Returns `None` if the version of the header is not
    /// known.
    fn header(&self) -> Option<private_data::Header> {
        private_data::Header::decode(self.private_data).ok()
    }

    /// Returns the fields of a SIDR_REQ.
    pub(super) fn of_sidr_req(req: &SidrReq<'a>) -> Self {
        RequestKey {
            service_id: req.service_id,
            private_data: req.private_data,
            pkey: req.pkey,
            path: None,
            ids: (req.request_id, 0),
        }
    }
}

/// The destination of a request: its service id, and the addresses in its private data.
pub(super) struct RequestTarget<'a> {
    service_id: ServiceId,
    private_data: &'a [u8],
    /// The network device of the destination. `None` if the request is not for an IP address.
    pub(super) netdev: Option<ARef<NetDevice>>,
    pkey: u16,
    /// The GID of the peer, if the request is a REQ.
    peer_gid: Option<Gid>,
    /// The address of this side.
    pub(super) src: SockAddr,
    /// The address of the peer.
    pub(super) dst: SockAddr,
}

impl<'a> RequestTarget<'a> {
    /// Returns the destination of a request with this header in its private data.
    fn new(key: &RequestKey<'a>, header: &private_data::Header) -> Self {
        let service_id = ServiceId(key.service_id);
        let (src, dst) = match header {
            private_data::Header::Ip(ip) => (ip.dst.with_port(service_id.port()), ip.src),
            private_data::Header::AfIb => (SockAddr::Unspec, SockAddr::Unspec),
        };
        RequestTarget {
            service_id,
            private_data: key.private_data,
            netdev: None,
            pkey: key.pkey,
            peer_gid: key.path.as_ref().map(|path| path.dgid),
            src,
            dst,
        }
    }

    /// Replaces the addresses by native ones (AF_IB) if the listener has a native address. They are
    /// those of the path, or that of the listener if the request has no path.
    fn use_native_addresses(
        &mut self,
        path: Option<&Path>,
        listener: &AddressListener<EndpointRef>,
    ) {
        let bound = listener.endpoint.addr();
        if bound.family() == AF_IB {
            (self.src, self.dst) = path.map_or_else(
                || {
                    let bound = bound.read();
                    (bound, bound.wildcard())
                },
                Path::native_addresses,
            );
        }
    }

    /// Returns the link to the sender, and the P_Key, of a request on InfiniBand. A request for a
    /// native address has no link.
    pub(super) fn link(&self) -> Result<(Option<DevAddr>, u16)> {
        let Some(netdev) = &self.netdev else {
            return Ok((None, self.pkey));
        };
        let mut link = DevAddr::of_netdev(netdev)?;
        if let Some(gid) = self.peer_gid {
            link = link.with_peer(gid)?;
        }
        let pkey = link.pkey();
        Ok((Some(link), pkey))
    }

    /// Returns the consumer's part of the private data.
    pub(super) fn user_data(&self, listener: &AddressListener<EndpointRef>) -> &'a [u8] {
        private_data::user_data(listener.endpoint.addr().family(), self.private_data)
    }
}

/// The listener that a request matches.
#[allow(clippy::large_enum_variant)] // A value lives on the stack, for one call.
pub(super) enum MatchedListener<'a> {
    /// A listener of the RDMA CM, on an address.
    Address(RequestTarget<'a>, AddressListener<EndpointRef>),
    /// A listener of the InfiniBand CM, on a service id.
    Service(EndpointRef),
}

impl MatchedListener<'_> {
    /// Returns the endpoint that listens.
    pub(super) fn endpoint(&self) -> &EndpointRef {
        match self {
            MatchedListener::Address(_, listener) => &listener.endpoint,
            MatchedListener::Service(endpoint) => endpoint,
        }
    }
}

impl IncomingMad<'_> {
    /// Returns whether there is a listener for a service id at the device.
    pub(super) fn is_served(&self, service_id: u64) -> bool {
        let listeners = &self.globals.listeners;
        listeners.has(ServiceId(service_id), &self.device.traits)
    }

    /// Finds the listener for a request, if there is one, and puts it into `place`, as it is large.
    pub(super) fn match_listener<'m, 'a>(
        &self,
        key: &RequestKey<'a>,
        reply_path: &ReplyPath,
        place: &'m mut Option<MatchedListener<'a>>,
    ) -> Option<&'m MatchedListener<'a>> {
        let device = self.device.device.index();
        if let Some(endpoint) = self.globals.listeners.find_service(key.service_id, device) {
            return Some(place.insert(MatchedListener::Service(endpoint)));
        }
        let header = key.header()?;
        let mut target = RequestTarget::new(key, &header);
        target.netdev = self.netdev(key, &header, &target.src, reply_path)?;
        let (comm_id, qpn) = key.ids;
        let sender = Sender {
            origin: self.origin,
            comm_id,
            qpn,
        };
        let listener = self.find_listener(&target, &header, sender)?;
        target.use_native_addresses(key.path.as_ref(), &listener);
        Some(place.insert(MatchedListener::Address(target, listener)))
    }

    /// Returns the network device that a request is for, which is `Some(None)` if it is for a
    /// native address. Returns `None` if there is no such device.
    fn netdev(
        &self,
        key: &RequestKey<'_>,
        header: &private_data::Header,
        own: &SockAddr,
        reply_path: &ReplyPath,
    ) -> Option<Option<ARef<NetDevice>>> {
        if reply_path.link.is_none() {
            return reply_path.local.as_ref()?.ndev().ok().map(Some);
        }
        if matches!(header, private_data::Header::AfIb) {
            return Some(None);
        }
        let gid = key.path.as_ref().map(|path| &path.sgid);
        let (device, port) = (&self.device.device, self.port.num);
        let found = device.net_dev_by_params(port, key.pkey, gid, own);
        found.map(Some)
    }

    /// Returns the network namespace that a request is for, and the addresses of both ends, if it
    /// names them, that of this end first.
    pub(super) fn target(
        &self,
        key: &RequestKey<'_>,
        reply_path: &ReplyPath,
    ) -> (ARef<Net>, Option<(SockAddr, SockAddr)>) {
        let named = key.header().map(|header| {
            let target = RequestTarget::new(key, &header);
            let netdev = self.netdev(key, &header, &target.src, reply_path);
            let net = netdev.flatten().and_then(|netdev| netdev.net());
            (net, (target.src, target.dst))
        });
        let (net, ends) = named.unzip();
        (
            net.flatten().unwrap_or_else(|| Net::init().into()),
            ends.filter(|(_, peer)| !peer.is_unspec()),
        )
    }

    /// Returns the message, as parameter of an event for a consumer of the InfiniBand CM.
    ///
    /// Fails with `ENOMEM`.
    pub(super) fn message_param(&self) -> Result<EventParam<'static>> {
        let mad = Arc::new(*self.received.bytes(), GFP_KERNEL)?;
        Ok(EventParam::Message(mad))
    }

    /// Finds the listener of the RDMA CM for a request, if there is one.
    fn find_listener(
        &self,
        target: &RequestTarget<'_>,
        header: &private_data::Header,
        sender: Sender,
    ) -> Option<AddressListener<EndpointRef>> {
        let netdev = target.netdev.as_ref();
        let net = match netdev {
            Some(netdev) => netdev.net()?,
            None => Net::init().into(),
        };
        let listener = self.globals.listeners.find(&Destination {
            service_id: target.service_id,
            net: net.hash_key(),
            device: &self.device.traits,
            request: RequestView {
                header,
                interface: netdev.map(|netdev| netdev.ifindex()),
                port: self.port.num,
            },
            sender,
        })?;
        // The route back to the sender must use the network device that the request was for.
        if netdev.is_some_and(|netdev| {
            !netdev.is_up() || !has_route_back(netdev, &target.src, &target.dst)
        }) {
            return None;
        }
        let tos = listener.endpoint.inner.lock().tos();
        trace::cma::cm_req_handler(&listener.endpoint.id_priv, tos);
        Some(listener)
    }

    /// Returns the attachment to the device for the endpoint of a request.
    ///
    /// Fails with `ENODEV` if the listener's network namespace may not use the device, and with
    /// `EINVAL` on RoCE if the address or the port space of the listener is one of InfiniBand.
    pub(super) fn attachment(
        &self,
        matched: &MatchedListener<'_>,
        reply_path: &ReplyPath,
    ) -> Result<Attachment> {
        let MatchedListener::Address(target, listener) = matched else {
            let gid = reply_path.local.clone();
            return Ok(Attachment::new(self.device, self.port, gid));
        };
        let is_roce = reply_path.link.is_none();
        let is_native = listener.endpoint.addr().family() == AF_IB;
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
        Ok(Attachment::new(self.device, self.port, Some(gid)))
    }
}

/// Returns whether the route from `local` to `peer` uses `netdev`.
fn has_route_back(netdev: &NetDevice, local: &SockAddr, peer: &SockAddr) -> bool {
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
