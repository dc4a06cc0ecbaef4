// SPDX-License-Identifier: GPL-2.0

//! Where an address is on its link.
//!
//! C header: [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h)

use super::gid::NetworkType;
use crate::{bindings, kext::netdev::NetDevice};
use cmproto::{addr::Gid, bytes::fill, ipoib};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// Length of a link-layer address in the C struct (`MAX_ADDR_LEN`).
const HW_ADDR_LEN: usize = bindings::MAX_ADDR_LEN as usize;

/// A link-layer address in the C struct.
pub(super) type HwAddr = [u8; HW_ADDR_LEN];

/// The addresses of a link.
#[derive(Clone, Debug)]
pub(super) enum LinkAddrs {
    /// Those of Ethernet, or none.
    Mac {
        /// The own one.
        own: [u8; 6],
        /// That of the peer or the router.
        peer: [u8; 6],
        /// The one for all.
        broadcast: [u8; 6],
    },
    /// Those of IP over InfiniBand.
    Ipoib(Arc<ipoib::Link>),
}

/// What address resolution finds out (`struct rdma_dev_addr`).
#[derive(Clone, Debug)]
pub(crate) struct DevAddr {
    pub(super) addrs: LinkAddrs,
    /// Kind of link, an `ARPHRD_*`.
    pub(super) link_type: u16,
    /// [`NetworkType::Ipv4`] or [`NetworkType::Ipv6`] if there is a router on the way (and the
    /// link is not InfiniBand), else [`NetworkType::Ib`].
    pub(super) network: NetworkType,
    /// Index of the network device; 0 if that was given by a GID.
    pub(crate) bound_dev_if: i32,
    /// Hop limit or time to live of the route.
    pub(crate) hop_limit: u8,
}

impl DevAddr {
    pub(super) const NONE: Self = Self {
        addrs: LinkAddrs::Mac {
            own: [0; 6],
            peer: [0; 6],
            broadcast: [0; 6],
        },
        link_type: 0,
        network: NetworkType::Ib,
        bound_dev_if: 0,
        hop_limit: 0,
    };

    /// A link of which nothing is known but the MAC address of the peer or the router.
    pub(crate) fn to_mac(dst_mac: [u8; 6]) -> Self {
        Self {
            addrs: LinkAddrs::Mac {
                own: [0; 6],
                peer: dst_mac,
                broadcast: [0; 6],
            },
            ..Self::NONE
        }
    }

    /// A link on which LIDs lead to the peer, by which messages pass up to `hop_limit` routers.
    pub(crate) fn by_lid(hop_limit: u8) -> Self {
        Self {
            hop_limit,
            ..Self::NONE
        }
    }

    /// The link between the ports of native addresses of InfiniBand, of which one may not be known.
    ///
    /// Fails with [`ENOMEM`].
    pub(crate) fn native(own: Gid, peer: Gid, pkey: u16) -> Result<Self> {
        let link = ipoib::Link::between(own, peer, pkey);
        Ok(Self {
            addrs: LinkAddrs::Ipoib(Arc::new(link, GFP_KERNEL_ACCOUNT)?),
            link_type: ipoib::ARPHRD_INFINIBAND,
            ..Self::NONE
        })
    }

    /// The link of a network device.
    ///
    /// Fails with [`ENOMEM`].
    pub(crate) fn of_netdev(netdev: &NetDevice) -> Result<Self> {
        let mut addr: bindings::rdma_dev_addr = pin_init::zeroed();
        // SAFETY: Both are valid.
        unsafe { bindings::rdma_copy_src_l2_addr(&raw mut addr, netdev.as_raw()) };
        // SAFETY: The struct is ours.
        unsafe { Self::read(&raw const addr) }
    }

    /// The same link, of IP over InfiniBand, to the port with this GID; others stay.
    ///
    /// Fails with [`ENOMEM`].
    pub(crate) fn with_peer(mut self, gid: Gid) -> Result<Self> {
        if let LinkAddrs::Ipoib(link) = &self.addrs {
            self.addrs = LinkAddrs::Ipoib(Arc::new(link.to_gid(gid), GFP_KERNEL_ACCOUNT)?);
        }
        Ok(self)
    }

    /// Fails with [`ENOMEM`].
    ///
    /// # Safety
    ///
    /// `addr` must be valid, and not be written meanwhile.
    pub(super) unsafe fn read(addr: *const bindings::rdma_dev_addr) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let addr = unsafe { &*addr };
        let addrs = if addr.dev_type == ipoib::ARPHRD_INFINIBAND {
            let link = ipoib::Link {
                own: start(&addr.src_dev_addr),
                peer: start(&addr.dst_dev_addr),
                broadcast: start(&addr.broadcast),
            };
            LinkAddrs::Ipoib(Arc::new(link, GFP_KERNEL_ACCOUNT)?)
        } else {
            LinkAddrs::Mac {
                own: start(&addr.src_dev_addr),
                peer: start(&addr.dst_dev_addr),
                broadcast: start(&addr.broadcast),
            }
        };
        Ok(Self {
            addrs,
            link_type: addr.dev_type,
            network: NetworkType::from_raw(addr.network),
            bound_dev_if: addr.bound_dev_if,
            hop_limit: u8::try_from(addr.hoplimit).unwrap_or(u8::MAX),
        })
    }

    /// The own MAC address, on a link that has them.
    pub(crate) fn src_mac(&self) -> [u8; 6] {
        match &self.addrs {
            LinkAddrs::Mac { own, .. } => *own,
            LinkAddrs::Ipoib(_) => [0; 6],
        }
    }

    /// The MAC address of the peer or the router, on a link that has them.
    pub(crate) fn dst_mac(&self) -> [u8; 6] {
        match &self.addrs {
            LinkAddrs::Mac { peer, .. } => *peer,
            LinkAddrs::Ipoib(_) => [0; 6],
        }
    }

    /// The addresses of IP over InfiniBand, if it is that.
    pub(crate) fn ipoib(&self) -> Option<&ipoib::Link> {
        match &self.addrs {
            LinkAddrs::Ipoib(link) => Some(link),
            LinkAddrs::Mac { .. } => None,
        }
    }

    /// The P_Key of the interface, where it has one; else 0.
    pub(crate) fn pkey(&self) -> u16 {
        self.ipoib().map_or(0, ipoib::Link::pkey)
    }

    /// The own address, that of the peer or the router, and the one for all, whatever the link is.
    pub(super) fn hw_addrs(&self) -> [HwAddr; 3] {
        let wide = |addr: &[u8]| {
            let mut wide = [0; HW_ADDR_LEN];
            fill(&mut wide, addr);
            wide
        };
        match &self.addrs {
            LinkAddrs::Mac {
                own,
                peer,
                broadcast,
            } => [wide(own), wide(peer), wide(broadcast)],
            LinkAddrs::Ipoib(link) => [wide(&link.own), wide(&link.peer), wide(&link.broadcast)],
        }
    }
}

/// The first bytes of an address, as many as count.
fn start<const LEN: usize>(addr: &HwAddr) -> [u8; LEN] {
    let mut start = [0; LEN];
    fill(&mut start, addr);
    start
}
