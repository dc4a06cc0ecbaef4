// SPDX-License-Identifier: GPL-2.0

//! The devices of the tests, and numbers that no other test uses.

use crate::rdma::{
    device::Device,
    gid::{Gid, GidAttr, GidIdentity},
    path::{Link, Path, MTU_1024},
};
use core::net::Ipv4Addr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The port of the device that is used, and how many GIDs are looked at.
const PORT: u32 = 1;
const GIDS: i32 = 16;

/// A LID that nobody has.
const NO_LID: u16 = 99;

/// The device, its GID of InfiniBand or of RoCE v2 over IPv4, and the way from it to itself.
pub(crate) struct World {
    pub(crate) device: Device,
    pub(crate) gid: GidAttr,
    pub(crate) link: Link,
    /// The number of LIDs of the port, less one; 0 over RoCE.
    pub(crate) path_bits: u8,
}

impl World {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Self::at(Device::find()?)
    }

    /// Returns the world of the other device.
    pub(crate) fn other(&self) -> Result<Arc<Self>> {
        Self::at(self.device.other()?)
    }

    fn at(device: Device) -> Result<Arc<Self>> {
        let mut gids = (0..GIDS).filter_map(|index| GidAttr::get(&device, PORT, index).ok());
        let (gid, link) = if device.is_ib(PORT) {
            let link = Link::to_itself(device.lid(PORT)?);
            (gids.find(GidAttr::is_ib).ok_or(ENODEV)?, link)
        } else {
            gids.filter(|gid| gid.is_roce_v2() && gid.gid().is_ipv4())
                .find_map(|gid| gid.mac().ok().map(|mac| (gid, Link::Roce(mac))))
                .ok_or(ENODEV)?
        };
        let path_bits = if link.is_ib() {
            device.path_bits(PORT)?
        } else {
            0
        };
        let this = Self {
            device,
            gid,
            link,
            path_bits,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The path from the device to itself.
    pub(crate) fn path(&self) -> Path {
        Path {
            sgid: self.gid.gid(),
            dgid: self.gid.gid(),
            link: self.link,
            pkey: 0xffff,
            // Over InfiniBand, without a global header.
            hop_limit: if self.link.is_ib() { 0 } else { 64 },
            traffic_class: 8,
            mtu: MTU_1024 as u8,
            packet_life_time: 14,
            service_id: 0,
        }
    }

    /// The path from this device to that of another.
    pub(crate) fn path_to(&self, to: &Self) -> Path {
        let link = match (self.link, to.link) {
            (Link::Ib { slid, .. }, Link::Ib { dlid, .. }) => Link::Ib { slid, dlid },
            (Link::Opa { slid, .. }, Link::Opa { dlid, .. }) => Link::Opa { slid, dlid },
            (_, link) => link,
        };
        Path {
            dgid: to.gid.gid(),
            link,
            ..self.path()
        }
    }

    /// A path to nobody.
    pub(crate) fn path_to_nobody(&self) -> Path {
        let link = match self.link {
            Link::Roce(_) => Link::Roce([2, 0, 0, 0, 0, 0]),
            Link::Ib { slid, .. } => Link::Ib { slid, dlid: NO_LID },
            Link::Opa { slid, .. } => Link::Opa {
                slid,
                dlid: (slid & !0xffff) | u32::from(NO_LID),
            },
        };
        Path {
            dgid: Gid::from_ipv4(Ipv4Addr::new(10, 0, 0, 99)),
            link,
            ..self.path()
        }
    }

    /// The GID that messages are said to be for: over InfiniBand, without a global header, none.
    pub(crate) fn said_gid(&self) -> GidIdentity {
        match self.link {
            Link::Ib { .. } => GidIdentity::default(),
            Link::Roce(_) | Link::Opa { .. } => self.gid.identity(),
        }
    }

    /// The GID that an answer to a question is said to be for: that of the path, with a global
    /// header only.
    pub(crate) fn answered_gid(&self) -> GidIdentity {
        match self.link {
            Link::Roce(_) => self.gid.identity(),
            Link::Ib { .. } | Link::Opa { .. } => GidIdentity::default(),
        }
    }

    /// The GID of this end as the peer sees it in a REQ: over Omni-Path it is made from the LID.
    pub(crate) fn named_gid(&self) -> Gid {
        match self.link {
            Link::Opa { slid, .. } => self.gid.gid().with_opa_lid(slid),
            _ => self.gid.gid(),
        }
    }
}

/// The number of a queue pair that there is not.
pub(crate) fn next_qpn() -> u32 {
    static NEXT: Atomic<u32> = Atomic::new(0x1000);
    NEXT.fetch_add(1, Relaxed)
}

/// The number of a service. Each listener has its own, so that no late request is for another.
pub(crate) fn next_service() -> u64 {
    static NEXT: Atomic<u64> = Atomic::new(0x1000_0000_cafe_0001);
    NEXT.fetch_add(1, Relaxed)
}
