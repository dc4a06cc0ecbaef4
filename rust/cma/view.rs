// SPDX-License-Identifier: GPL-2.0

//! One consistent view of an endpoint, for queries.

use crate::endpoint::{Endpoint, Inner};
use cmproto::{
    addr::{Gid, SockAddr},
    bytes::fill,
    path::Path,
    ucma::query::{shown_peer, DeviceView, Protocol, Snapshot},
};

/// The GID that an IP address stands for. A native address stands for none on RoCE.
fn gid(addr: &SockAddr) -> Gid {
    match addr {
        SockAddr::Ib { .. } => Gid::ZERO,
        addr => addr.to_gid(),
    }
}

/// A link-layer address as iWARP has it for a GID.
fn link_gid(mac: [u8; 6]) -> Gid {
    let mut gid = Gid::ZERO;
    fill(&mut gid.0, &mac);
    gid
}

/// The GIDs of both ends.
fn gids(inner: &Inner, protocol: Protocol) -> (Gid, Gid) {
    match (protocol, &inner.link) {
        (Protocol::Ib, _) => inner.ends(),
        (Protocol::Roce, _) => {
            let peer = shown_peer(&inner.src, &inner.dst);
            (gid(&inner.src), gid(&peer))
        }
        (Protocol::Iwarp, Some(link)) => (link_gid(link.src_mac()), link_gid(link.dst_mac())),
        (Protocol::Iwarp, None) => (Gid::ZERO, Gid::ZERO),
    }
}

/// What is asked about an endpoint, besides its addresses and its device.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// The GIDs of both ends.
    pub(crate) gids: bool,
    /// The path.
    pub(crate) path: bool,
}

impl Endpoint {
    /// Looks at the endpoint, all at one moment. What is not asked for is as if it were not known.
    pub(crate) fn snapshot(&self, asked: Asked) -> Snapshot {
        let inner = self.inner.lock();
        let device = inner.device.as_ref().map(|attachment| {
            let device = &attachment.device.device;
            let protocol = attachment.protocol;
            let (sgid, dgid) = match asked.gids {
                true => gids(&inner, protocol),
                false => (Gid::ZERO, Gid::ZERO),
            };
            DeviceView {
                node_guid: device.node_guid(),
                index: device.index(),
                port_num: u8::try_from(attachment.port_num).unwrap_or(0),
                pkey: inner.pkey,
                sgid,
                dgid,
                path: match &inner.given_path {
                    _ if !asked.path => None,
                    Some(given) => Some(**given),
                    None => inner.path.map(Path::to_record),
                },
                protocol,
            }
        });
        Snapshot {
            ps: self.ps,
            src: inner.src,
            dst: inner.dst,
            device,
        }
    }
}
