// SPDX-License-Identifier: GPL-2.0

//! One consistent view of an endpoint, for queries.

use crate::endpoint::{Attachment, Endpoint, Inner};
use cmproto::{
    addr::{Gid, SockAddr},
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
fn link_gid(addr: &[u8]) -> Gid {
    Gid(addr.first_chunk().copied().unwrap_or_default())
}

impl Attachment {
    fn protocol(&self) -> Protocol {
        if self.is_iwarp() {
            Protocol::Iwarp
        } else if self.device.device.protocol_roce(self.port_num) {
            Protocol::Roce
        } else {
            Protocol::Ib
        }
    }
}

/// The GIDs of both ends.
fn gids(inner: &Inner, protocol: Protocol) -> (Gid, Gid) {
    if protocol != Protocol::Iwarp {
        let peer = shown_peer(&inner.src, &inner.dst);
        return (gid(&inner.src), gid(&peer));
    }
    match &inner.link {
        Some(link) => (link_gid(&link.src_dev_addr), link_gid(&link.dst_dev_addr)),
        None => (Gid::ZERO, Gid::ZERO),
    }
}

impl Endpoint {
    /// Looks at the endpoint, all at one moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        let device = inner.device.as_ref().map(|attachment| {
            let device = &attachment.device.device;
            let protocol = attachment.protocol();
            let (sgid, dgid) = gids(&inner, protocol);
            DeviceView {
                node_guid: device.node_guid(),
                index: device.index(),
                port_num: u8::try_from(attachment.port_num).unwrap_or(0),
                pkey: inner.pkey,
                sgid,
                dgid,
                path: inner.path.map(|path| path.to_record()),
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
