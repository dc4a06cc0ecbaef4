// SPDX-License-Identifier: GPL-2.0

//! The resources that all sides share.

use super::side::{Side, Sides};
use crate::rdma::{
    address::Address,
    device::Device,
    gid::{Gid, GidAttr},
    parameter,
    path::Link,
    queue_pair::{CompletionQueue, ProtectionDomain},
    word::Word,
};
use core::net::{Ipv4Addr, SocketAddrV4};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// An address of nobody, to which nothing leads.
pub(crate) const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The port of the device that is used.
const PORT: u32 = 1;

/// A socket address.
pub(crate) fn at(ip: Ipv4Addr, port: u16) -> Address {
    Address::from(core::net::SocketAddr::from(SocketAddrV4::new(ip, port)))
}

/// The device, what is made of it, and what is counted.
#[pin_data]
pub(crate) struct Ground {
    pub(crate) device: Device,
    /// None where the device is to go before the tests are over.
    pd: Option<Arc<ProtectionDomain>>,
    cq: Option<Arc<CompletionQueue>>,
    /// The address of the device.
    pub(crate) ip: Ipv4Addr,
    /// The GID that stands for it, and the way to itself by it.
    pub(crate) gid: Gid,
    pub(crate) link: Link,
    port: Atomic<u32>,
    next_qpn: Atomic<u32>,
    /// The word that is on its way.
    #[pin]
    pub(crate) word: Mutex<Option<Arc<Word>>>,
    /// All that have been: one that is called too late is still there to complain.
    #[pin]
    sides: Mutex<Sides>,
}

impl Ground {
    pub(crate) fn new(device: &Device) -> Result<Arc<Self>> {
        let (pd, cq) = if parameter::lock() {
            (None, None)
        } else {
            (
                Some(ProtectionDomain::new(device)?),
                Some(CompletionQueue::new(device, 256)?),
            )
        };
        let ip = parameter::ipv4()?;
        let (gid, link) = if device.is_ib(PORT) {
            let link = Link::to_itself(device.lid(PORT)?);
            (GidAttr::get(device, PORT, 0)?.gid(), link)
        } else {
            (Gid::from_ipv4(ip), Link::default())
        };
        Arc::pin_init(
            pin_init!(Self {
                device: device.clone(),
                pd,
                cq,
                ip,
                gid,
                link,
                port: Atomic::new(20000),
                next_qpn: Atomic::new(0x2000),
                word <- new_mutex!(None),
                sides <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the protection domain of queue pairs.
    pub(crate) fn pd(&self) -> Result<&Arc<ProtectionDomain>> {
        self.pd.as_ref().ok_or(ENODEV)
    }

    /// Returns the completion queue of queue pairs.
    pub(crate) fn cq(&self) -> Result<&Arc<CompletionQueue>> {
        self.cq.as_ref().ok_or(ENODEV)
    }

    /// The port of the listener.
    pub(crate) fn port(&self) -> u16 {
        self.port.load(Relaxed) as u16
    }

    /// Each listener has its own, so that no late request is for another.
    pub(crate) fn next_port(&self) {
        self.port.add(1, Relaxed);
    }

    /// The number of a queue pair that there is not.
    pub(crate) fn next_qpn(&self) -> u32 {
        self.next_qpn.fetch_add(1, Relaxed)
    }

    /// An address in the network of the device.
    pub(crate) fn neighbour(&self, number: u8) -> Ipv4Addr {
        let [a, b, c, _] = self.ip.octets();
        Ipv4Addr::new(a, b, c, number)
    }

    pub(super) fn keep(&self, side: &Arc<Side>) -> Result {
        Ok(self.sides.lock().push(side.clone(), GFP_KERNEL)?)
    }

    /// Ends all sides, and forgets them.
    pub(super) fn clear(&self) {
        let sides = core::mem::take(&mut *self.sides.lock());
        for side in &sides {
            side.end();
            side.forget();
        }
    }
}
