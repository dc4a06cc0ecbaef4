// SPDX-License-Identifier: GPL-2.0

//! The view that queries have of an endpoint.

use crate::endpoint::{Endpoint, Inner};
use cmproto::{
    addr::{Gid, SockAddr},
    bytes::fill,
    ucma::{
        path::ShownPath,
        query::{shown_peer, DeviceView, Protocol, Snapshot},
    },
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

/// Returns the GIDs of both ends. It is inlined like the snapshot, of which it is a part.
#[inline(always)]
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

impl Endpoint {
    /// Calls `answer` on a snapshot of the endpoint, with the endpoint's lock held.
    ///
    /// It is inlined, so that only those parts of the snapshot are made that `answer` uses.
    #[inline]
    pub(crate) fn snapshot<R>(&self, answer: impl FnOnce(&Snapshot<'_>) -> R) -> R {
        let inner = self.inner.lock();
        let device = inner.device.as_ref().map(|attachment| {
            let device = &attachment.device.device;
            let protocol = attachment.protocol;
            let (sgid, dgid) = gids(&inner, protocol);
            DeviceView {
                node_guid: device.node_guid(),
                index: device.index(),
                port_num: u8::try_from(attachment.port_num).unwrap_or(0),
                pkey: inner.addr.pkey,
                sgid,
                dgid,
                path: match inner.route.path_record() {
                    Some(record) => Some(ShownPath::Record(record)),
                    None => inner.route.path.as_ref().map(ShownPath::Path),
                },
                protocol,
            }
        });
        answer(&Snapshot {
            ps: self.ps,
            src: inner.addr.src,
            dst: inner.addr.dst,
            device,
        })
    }
}
