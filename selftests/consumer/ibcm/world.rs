// SPDX-License-Identifier: GPL-2.0

//! Where the tests take place, and numbers that nobody else uses.

use crate::rdma::{
    device::Device,
    gid::{GidAttr, Mac},
    roce_path::{RocePath, MTU_1024},
};
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

/// The device, and its GID of RoCE v2 over IPv4.
pub(crate) struct World {
    pub(crate) device: Device,
    pub(crate) gid: GidAttr,
    pub(crate) mac: Mac,
}

impl World {
    pub(crate) fn new() -> Result<Arc<Self>> {
        let device = Device::find()?;
        let (gid, mac) = (0..GIDS)
            .filter_map(|index| GidAttr::get(&device, PORT, index).ok())
            .filter(|gid| gid.is_roce_v2() && gid.gid().is_ipv4())
            .find_map(|gid| gid.mac().ok().map(|mac| (gid, mac)))
            .ok_or(ENODEV)?;
        Ok(Arc::new(Self { device, gid, mac }, GFP_KERNEL)?)
    }

    /// The path from the device to itself.
    pub(crate) fn path(&self) -> RocePath {
        RocePath {
            sgid: self.gid.gid(),
            dgid: self.gid.gid(),
            dmac: self.mac,
            pkey: 0xffff,
            hop_limit: 64,
            traffic_class: 8,
            mtu: MTU_1024 as u8,
            packet_life_time: 14,
            service_id: 0,
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
