// SPDX-License-Identifier: GPL-2.0

//! A consistent snapshot of an endpoint, for queries.

use crate::endpoint::{Endpoint, Inner};
use cmproto::{
    addr::{Gid, SockAddr},
    bytes::fill,
    path::Path,
    ucma::query::{shown_peer, DeviceView, Protocol, Snapshot},
};

/// Returns the GID of an IP address. On RoCE, a native address has none.
fn gid(addr: &SockAddr) -> Gid {
    match addr {
        SockAddr::Ib { .. } => Gid::ZERO,
        addr => addr.to_gid(),
    }
}

/// Returns a link-layer address in the form of a GID, as on iWARP.
fn link_gid(mac: [u8; 6]) -> Gid {
    let mut gid = Gid::ZERO;
    fill(&mut gid.0, &mac);
    gid
}

/// Returns the GIDs of both ends.
fn gids(inner: &Inner, protocol: Protocol) -> (Gid, Gid) {
    match (protocol, &inner.resolution.dev_addr) {
        (Protocol::Ib, _) => inner.ends(),
        (Protocol::Roce, _) => {
            let peer = shown_peer(&inner.addr.src, &inner.addr.dst);
            (gid(&inner.addr.src), gid(&peer))
        }
        (Protocol::Iwarp, Some(link)) => (link_gid(link.src_mac()), link_gid(link.dst_mac())),
        (Protocol::Iwarp, None) => (Gid::ZERO, Gid::ZERO),
    }
}

/// The parts of a snapshot that are needed, besides the addresses and the device.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotParts {
    /// Set if the GIDs of both ends are needed.
    pub(crate) gids: bool,
    /// Set if the path is needed.
    pub(crate) path: bool,
}

impl Endpoint {
    /// Takes a snapshot of the endpoint. Parts that are not in `parts` are as if they were not
    /// known.
    pub(crate) fn snapshot(&self, parts: SnapshotParts) -> Snapshot {
        let inner = self.inner.lock();
        let device = inner.device.as_ref().map(|attachment| {
            let device = &attachment.device.device;
            let protocol = attachment.protocol;
            let (sgid, dgid) = match parts.gids {
                true => gids(&inner, protocol),
                false => (Gid::ZERO, Gid::ZERO),
            };
            DeviceView {
                node_guid: device.node_guid(),
                index: device.index(),
                port_num: u8::try_from(attachment.port_num).unwrap_or(0),
                pkey: inner.addr.pkey,
                sgid,
                dgid,
                path: match &inner.route.path_record {
                    _ if !parts.path => None,
                    Some(given) => Some(**given),
                    None => inner.route.path.map(Path::to_record),
                },
                protocol,
            }
        });
        Snapshot {
            ps: self.ps,
            src: inner.addr.src,
            dst: inner.addr.dst,
            device,
        }
    }
}
