// SPDX-License-Identifier: GPL-2.0

//! The view that queries have of an endpoint.

use crate::endpoint::{Endpoint, Inner};
use cmproto::{
    addr::{Gid, AF_IB},
    bytes::fill,
    stored_addr::StoredAddr,
    ucma::{
        path::ShownPath,
        query::{DeviceView, Ends, Protocol, Snapshot},
    },
};

/// Returns the GID of an IP address. On RoCE, a native address has none.
#[inline]
fn gid(addr: &impl StoredAddr) -> Gid {
    match addr.family() {
        AF_IB => Gid::ZERO,
        _ => addr.to_gid(),
    }
}

/// Returns a link-layer address in the form of a GID, as on iWARP.
fn link_gid(mac: [u8; 6]) -> Gid {
    let mut gid = Gid::ZERO;
    fill(&mut gid.0, &mac);
    gid
}

/// The addresses of an endpoint, which are read when they are asked for.
pub(crate) struct SeenEnds<'a> {
    endpoint: &'a Endpoint,
    inner: &'a Inner,
}

impl Ends for SeenEnds<'_> {
    #[inline(always)]
    fn src(&self) -> impl StoredAddr {
        self.endpoint.src(self.inner)
    }

    #[inline(always)]
    fn dst(&self) -> impl StoredAddr {
        self.endpoint.shown_dst(self.inner)
    }

    #[inline(always)]
    fn gids(&self) -> (Gid, Gid) {
        let Some(attachment) = &self.inner.device else {
            return (Gid::ZERO, Gid::ZERO);
        };
        match (attachment.protocol, &self.inner.resolution.dev_addr) {
            (Protocol::Ib, _) => self.endpoint.ends(self.inner),
            (Protocol::Roce, _) => (gid(&self.src()), gid(&self.dst())),
            (Protocol::Iwarp, Some(link)) => (link_gid(link.src_mac()), link_gid(link.dst_mac())),
            (Protocol::Iwarp, None) => (Gid::ZERO, Gid::ZERO),
        }
    }
}

impl Endpoint {
    /// Calls `answer` on a snapshot of the endpoint, with the endpoint's lock held.
    ///
    /// It is inlined, so that only those parts of the snapshot are made that `answer` uses.
    #[inline]
    pub(crate) fn snapshot<R>(&self, answer: impl FnOnce(&Snapshot<'_, SeenEnds<'_>>) -> R) -> R {
        let inner = self.inner.lock();
        let device = inner.device.as_ref().map(|attachment| {
            let device = &attachment.device.device;
            DeviceView {
                node_guid: device.node_guid(),
                index: device.index(),
                port_num: u8::try_from(attachment.port_num).unwrap_or(0),
                pkey: inner.addr.pkey,
                path: match inner.route.path_record() {
                    Some(record) => Some(ShownPath::Record(record)),
                    None => inner.route.path.as_ref().map(ShownPath::Path),
                },
                protocol: attachment.protocol,
            }
        });
        answer(&Snapshot {
            ps: self.ps,
            ends: SeenEnds {
                endpoint: self,
                inner: &inner,
            },
            device,
        })
    }
}
