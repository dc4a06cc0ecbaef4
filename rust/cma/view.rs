// SPDX-License-Identifier: GPL-2.0

//! One consistent view of an endpoint, for queries.

use crate::endpoint::Endpoint;
use cmproto::{
    addr::{Gid, SockAddr},
    ucma::query::{shown_peer, DeviceView, Snapshot},
};

/// The GID that an IP address stands for. A native address stands for none on RoCE.
fn gid(addr: &SockAddr) -> Gid {
    match addr {
        SockAddr::Ib { .. } => Gid::ZERO,
        addr => addr.to_gid(),
    }
}

impl Endpoint {
    /// Looks at the endpoint, all at one moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        let device = inner.device.as_ref().map(|attachment| {
            let device = &attachment.device.device;
            DeviceView {
                node_guid: device.node_guid(),
                index: device.index(),
                port_num: u8::try_from(attachment.port_num).unwrap_or(0),
                pkey: inner.pkey,
                sgid: gid(&inner.src),
                dgid: gid(&shown_peer(&inner.src, &inner.dst)),
                path: inner.path.map(|path| path.to_record()),
                is_roce: device.protocol_roce(attachment.port_num),
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
