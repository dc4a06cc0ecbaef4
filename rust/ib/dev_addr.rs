// SPDX-License-Identifier: GPL-2.0

//! Link-layer addresses, the result of address resolution.
//!
//! C header: [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h)

use super::gid::NetworkType;
use crate::{bindings, kext::netdev::NetDevice};
use cmproto::{addr::Gid, bytes::fill, ipoib};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// The length of a link-layer address in the C struct (`MAX_ADDR_LEN`), in bytes.
const HW_ADDR_LEN: usize = bindings::MAX_ADDR_LEN as usize;

/// A link-layer address in the C struct.
pub(super) type HwAddr = [u8; HW_ADDR_LEN];

/// The link-layer addresses of both ends and the broadcast address.
#[derive(Clone, Debug)]
pub(super) enum LinkAddrs {
    /// The MAC addresses of an Ethernet link, or zeros.
    Mac {
        /// The address of this end.
        own: [u8; 6],
        /// The address of the peer or of the router.
        peer: [u8; 6],
        /// The broadcast address.
        broadcast: [u8; 6],
    },
    /// The addresses of IP over InfiniBand.
    Ipoib(Arc<ipoib::Link>),
}

/// The result of address resolution (`struct rdma_dev_addr`).
#[derive(Clone, Debug)]
pub(crate) struct DevAddr {
    pub(super) addrs: LinkAddrs,
    /// The type of the link (`ARPHRD_*`).
    pub(crate) link_type: u16,
    /// The type of the network.
    ///
    /// It is [`NetworkType::Ipv4`] or [`NetworkType::Ipv6`] if the route has a gateway and the link
    /// is not InfiniBand, else [`NetworkType::Ib`].
    pub(crate) network: NetworkType,
    /// The index of the network device; 0 if the device was given by a GID.
    pub(crate) bound_dev_if: i32,
    /// The hop limit or time to live of the route.
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

    /// Creates an address of which only the MAC address of the peer or the router is known.
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

    /// Creates an address for a peer that is reached by LIDs, with the hop limit `hop_limit`.
    pub(crate) fn by_lid(hop_limit: u8) -> Self {
        Self {
            hop_limit,
            ..Self::NONE
        }
    }

    /// Creates the address of a link between native InfiniBand addresses, one of which may be
    /// unknown.
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

    /// Returns the address of the link of a network device.
    ///
    /// Fails with [`ENOMEM`].
    pub(crate) fn of_netdev(netdev: &NetDevice) -> Result<Self> {
        let mut addr: bindings::rdma_dev_addr = pin_init::zeroed();
        // SAFETY: Both are valid.
        unsafe { bindings::rdma_copy_src_l2_addr(&raw mut addr, netdev.as_raw()) };
        // SAFETY: The struct is ours.
        unsafe { Self::read(&raw const addr) }
    }

    /// Replaces the peer's GID of an address of IP over InfiniBand; other addresses stay unchanged.
    ///
    /// Fails with [`ENOMEM`].
    pub(crate) fn with_peer(mut self, gid: Gid) -> Result<Self> {
        if let LinkAddrs::Ipoib(link) = &self.addrs {
            self.addrs = LinkAddrs::Ipoib(Arc::new(link.to_gid(gid), GFP_KERNEL_ACCOUNT)?);
        }
        Ok(self)
    }

    /// Converts an address of C.
    ///
    /// Fails with [`ENOMEM`].
    ///
    /// # Safety
    ///
    /// `addr` must be valid, and must not be written to during the call.
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

    /// Returns the MAC address of this end, or zeros on another kind of link.
    pub(crate) fn src_mac(&self) -> [u8; 6] {
        match &self.addrs {
            LinkAddrs::Mac { own, .. } => *own,
            LinkAddrs::Ipoib(_) => [0; 6],
        }
    }

    /// Returns the MAC address of the peer or the router, or zeros on another kind of link.
    pub(crate) fn dst_mac(&self) -> [u8; 6] {
        match &self.addrs {
            LinkAddrs::Mac { peer, .. } => *peer,
            LinkAddrs::Ipoib(_) => [0; 6],
        }
    }

    /// Returns the addresses of IP over InfiniBand, if the link is of that kind.
    pub(crate) fn ipoib(&self) -> Option<&ipoib::Link> {
        match &self.addrs {
            LinkAddrs::Ipoib(link) => Some(link),
            LinkAddrs::Mac { .. } => None,
        }
    }

    /// Returns the P_Key of an interface of IP over InfiniBand, in host byte order, or 0 for
    /// others.
    pub(crate) fn pkey(&self) -> u16 {
        self.ipoib().map_or(0, ipoib::Link::pkey)
    }

    /// Returns the addresses of this end and of the peer or router, and the broadcast address, for
    /// C.
    pub(crate) fn hw_addrs(&self) -> [HwAddr; 3] {
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

/// Returns the first `LEN` bytes of an address.
fn start<const LEN: usize>(addr: &HwAddr) -> [u8; LEN] {
    let mut start = [0; LEN];
    fill(&mut start, addr);
    start
}
