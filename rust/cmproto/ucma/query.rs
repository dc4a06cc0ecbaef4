// SPDX-License-Identifier: GPL-2.0

//! The responses to queries about an endpoint.

use super::path::ShownPath;
use crate::{
    addr::{Gid, SockAddr, AF_IB, STORAGE_LEN},
    bytes::fill,
    service_id::PortSpace,
    stored_addr::StoredAddr,
    ucma_abi::{
        PathRecData, QueryAddrResp, QueryPathResp, QueryRouteResp, SaPathRecord, UserPathRec,
        SOCKADDR_IN6_LEN,
    },
};
use core::mem::size_of;
use zerocopy::{big_endian, FromZeros, IntoBytes};

/// The P_Key that is reported for a RoCE port, which has none, as long as there is no path.
const ROCE_PKEY: u16 = 0xffff;

/// Size of the largest response to a query for paths, in bytes.
pub const PATHS_LEN: usize = size_of::<QueryPathResp>() + size_of::<PathRecData>();

/// The addresses of the ends of an endpoint. A query asks for those that it reports.
pub trait Ends {
    /// Returns the source address.
    fn src(&self) -> impl StoredAddr;

    /// Returns the destination address as it is shown ([`shown_peer`]).
    fn dst(&self) -> impl StoredAddr;

    /// Returns the GIDs of this end and of the peer, if there is a device: on RoCE those of the
    /// addresses, else those of the interfaces.
    fn gids(&self) -> (Gid, Gid);
}

/// A snapshot of an endpoint.
#[derive(Copy, Clone, Debug)]
pub struct Snapshot<'a, E> {
    /// The port space.
    pub ps: PortSpace,
    /// The addresses.
    pub ends: E,
    /// The device, if the endpoint is attached to one.
    pub device: Option<DeviceView<'a>>,
}

/// The protocol of a port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// InfiniBand.
    Ib,
    /// RoCE.
    Roce,
    /// iWARP, which has no paths and no P_Keys.
    Iwarp,
}

/// A snapshot of an endpoint's device.
#[derive(Copy, Clone, Debug)]
pub struct DeviceView<'a> {
    /// Node GUID, in network byte order.
    pub node_guid: [u8; 8],
    /// Index of the device, as in netlink.
    pub index: u32,
    /// Number of the port.
    pub port_num: u8,
    /// P_Key of the interface; 0 if there is none.
    pub pkey: u16,
    /// Protocol of the port.
    pub protocol: Protocol,
    /// The path, once the route is resolved.
    pub path: Option<ShownPath<'a>>,
}

impl DeviceView<'_> {
    /// Returns the record that is reported instead of a path as long as the route is not resolved.
    fn ends(&self, (sgid, dgid): (Gid, Gid)) -> UserPathRec {
        let pkey = match self.protocol {
            Protocol::Ib => self.pkey,
            Protocol::Roce => ROCE_PKEY,
            Protocol::Iwarp => 0,
        };
        SaPathRecord {
            dgid,
            sgid,
            pkey,
            ..SaPathRecord::default()
        }
        .to_user()
    }
}

/// Returns as much of an address as C copies into a field of the size of `struct sockaddr_in6`: an
/// address that is larger is cut.
fn cut(addr: &impl StoredAddr) -> [u8; SOCKADDR_IN6_LEN] {
    let mut storage = [0; STORAGE_LEN];
    put(addr, &mut storage);
    storage
        .first_chunk()
        .copied()
        .unwrap_or([0; SOCKADDR_IN6_LEN])
}

/// Returns the destination address as queries and ib_core report it. As in C, an unspecified
/// address gets the family of the source address as soon as that is known, so that its GID is that
/// of a wildcard.
#[inline]
pub fn shown_peer(src: &SockAddr, dst: &SockAddr) -> SockAddr {
    if dst.is_unspec() {
        src.wildcard()
    } else {
        *dst
    }
}

impl<E: Ends> Snapshot<'_, E> {
    /// Returns the response to [`QueryRoute`](crate::ucma_abi::Command::QueryRoute).
    pub fn route(&self) -> QueryRouteResp {
        let mut resp = QueryRouteResp::new_zeroed();
        resp.src_addr = cut(&self.ends.src());
        resp.dst_addr = cut(&self.ends.dst());
        let Some(device) = &self.device else {
            return resp;
        };
        resp.node_guid = big_endian::U64::from_bytes(device.node_guid);
        resp.ibdev_index = device.index;
        resp.port_num = device.port_num;
        let [first, _] = &mut resp.ib_route;
        let path = device.path;
        match path.filter(|_| device.protocol != Protocol::Iwarp) {
            Some(path) => {
                resp.num_paths = 1;
                *first = path.to_ib().to_user();
            }
            None => *first = device.ends(self.ends.gids()),
        }
        resp
    }

    /// Returns a response with nothing but the device.
    #[inline]
    fn device(&self) -> QueryAddrResp {
        let mut resp = QueryAddrResp::new_zeroed();
        if let Some(device) = &self.device {
            resp.node_guid = big_endian::U64::from_bytes(device.node_guid);
            resp.ibdev_index = device.index;
            resp.port_num = device.port_num;
            resp.pkey = device.pkey.into();
        }
        resp
    }

    /// Returns the response to [`QueryOption::Addr`](crate::ucma_abi::QueryOption::Addr).
    #[inline]
    pub fn addresses(&self) -> QueryAddrResp {
        let mut resp = self.device();
        resp.src_size = put(&self.ends.src(), &mut resp.src_addr);
        resp.dst_size = put(&self.ends.dst(), &mut resp.dst_addr);
        resp
    }

    /// Returns the response to [`QueryOption::Gid`](crate::ucma_abi::QueryOption::Gid): the
    /// addresses in the form of InfiniBand addresses.
    #[inline]
    pub fn gids(&self) -> QueryAddrResp {
        let (pkey, (sgid, dgid)) = match &self.device {
            Some(device) => (device.pkey, self.ends.gids()),
            None => (0, (Gid::ZERO, Gid::ZERO)),
        };
        let mut resp = self.device();
        resp.src_size = self.put_as_ib(&self.ends.src(), pkey, sgid, &mut resp.src_addr);
        resp.dst_size = self.put_as_ib(&self.ends.dst(), pkey, dgid, &mut resp.dst_addr);
        resp
    }

    /// Writes an address in the form of an InfiniBand address, like [`put`]. A native address is
    /// written as it is.
    #[inline]
    fn put_as_ib(
        &self,
        addr: &impl StoredAddr,
        pkey: u16,
        gid: Gid,
        field: &mut [u8; STORAGE_LEN],
    ) -> u16 {
        if addr.family() == AF_IB {
            return put(addr, field);
        }
        let addr = SockAddr::ib(pkey, gid, addr.service_id(self.ps).0);
        put(&addr.to_words(), field)
    }

    /// Returns the path, once the route is resolved.
    #[inline]
    fn path(&self) -> Option<ShownPath<'_>> {
        self.device.as_ref()?.path
    }

    /// Returns the response to [`QueryOption::Path`](crate::ucma_abi::QueryOption::Path) for a
    /// buffer of `response_len` bytes, and the length of the response.
    ///
    /// The response always has the number of paths. A path that does not fit is left out.
    #[inline]
    pub fn paths(&self, response_len: usize) -> ([u8; PATHS_LEN], usize) {
        let path = self.path();
        let head = QueryPathResp {
            num_paths: path.is_some().into(),
            reserved: 0,
        };
        let data = path
            .filter(|_| response_len >= PATHS_LEN)
            .map(|path| path.to_ib().to_data());
        let data = data.as_ref().map_or(&[][..], PathRecData::as_bytes);
        let mut answer = [0; PATHS_LEN];
        let (first, second) = answer.split_at_mut(size_of::<QueryPathResp>());
        let len = fill(first, head.as_bytes()).saturating_add(fill(second, data));
        (answer, len)
    }
}

/// Writes an address to `field`, which must be all zeros. Returns the size of the address, in
/// bytes.
#[inline]
fn put(addr: &impl StoredAddr, field: &mut [u8; STORAGE_LEN]) -> u16 {
    let words = field.chunks_exact_mut(size_of::<u64>());
    for (index, word) in words.take(SockAddr::MAX_WORDS).enumerate() {
        word.copy_from_slice(&addr.word(index).to_ne_bytes());
    }
    // The size is at most 48.
    u16::try_from(SockAddr::len_of_family(addr.family())).unwrap_or(0)
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_query))]
mod tests {
    use super::*;
    use crate::ucma::path::PathRecord;
    use zerocopy::IntoBytes;

    const V4: SockAddr = SockAddr::v4([10, 0, 0, 1], 0x1234);
    const V6: SockAddr = SockAddr::V6 {
        addr: [0xfd; 16],
        port: 7,
        flowinfo: 0,
        scope_id: 3,
    };
    const IB: SockAddr = SockAddr::Ib {
        pkey: 0x8001,
        flowinfo: 5,
        gid: Gid([0xfe; 16]),
        sid: 0x0106_0007,
        sid_mask: u64::MAX,
        scope_id: 9,
    };

    const GIDS: (Gid, Gid) = (Gid([0x50; 16]), Gid([0xd0; 16]));

    #[derive(Clone, Copy, Debug)]
    struct Pair(SockAddr, SockAddr);

    impl Ends for Pair {
        fn src(&self) -> impl StoredAddr {
            self.0.to_words()
        }

        fn dst(&self) -> impl StoredAddr {
            shown_peer(&self.0, &self.1).to_words()
        }

        fn gids(&self) -> (Gid, Gid) {
            GIDS
        }
    }

    fn device() -> DeviceView<'static> {
        DeviceView {
            node_guid: [1, 2, 3, 4, 5, 6, 7, 8],
            index: 2,
            port_num: 1,
            pkey: 0x8001,
            protocol: Protocol::Ib,
            path: None,
        }
    }

    fn snapshot(
        src: SockAddr,
        dst: SockAddr,
        device: Option<DeviceView<'_>>,
    ) -> Snapshot<'_, Pair> {
        Snapshot {
            ps: PortSpace::Tcp,
            ends: Pair(src, dst),
            device,
        }
    }

    #[test]
    fn a_new_endpoint_says_nothing() {
        let new = snapshot(SockAddr::Unspec, SockAddr::Unspec, None);
        assert_eq!(new.route(), QueryRouteResp::new_zeroed());
        assert_eq!(new.addresses(), QueryAddrResp::new_zeroed());
        assert_eq!(new.paths(PATHS_LEN), ([0; PATHS_LEN], 8));
        let gids = new.gids();
        assert_eq!((gids.src_size, gids.dst_size), (48, 48));
        assert_eq!(gids.src_addr[..2], 27u16.to_ne_bytes());
        // The service id of port 0.
        assert_eq!(gids.src_addr[24..32], [0, 0, 0, 0, 1, 6, 0, 0]);
    }

    #[test]
    fn addresses_without_a_device() {
        let bound = snapshot(V4, V6, None);
        let route = bound.route();
        assert_eq!(route.src_addr[2..8], [0x12, 0x34, 10, 0, 0, 1]);
        assert_eq!(route.src_addr[8..], [0; 20]);
        assert_eq!(route.dst_addr[8..24], [0xfd; 16]);
        assert_eq!(route.dst_addr[24..], 3u32.to_ne_bytes());
        let addresses = bound.addresses();
        assert_eq!((addresses.src_size, addresses.dst_size), (16, 28));
        assert_eq!(addresses.dst_addr[28..], [0; 100]);
        let ib = snapshot(IB, SockAddr::Unspec, None);
        assert_eq!(ib.addresses().src_size, 48);
        assert_eq!(ib.route().src_addr, ib.addresses().src_addr[..28]);
        assert_eq!(ib.gids().src_addr, ib.addresses().src_addr);
    }

    #[test]
    fn the_peer_of_a_bound_endpoint_has_a_family() {
        for (src, len) in [(V4, 16), (V6, 28), (IB, 48)] {
            let bound = snapshot(src, SockAddr::Unspec, None);
            let addresses = bound.addresses();
            assert_eq!(addresses.dst_size, len);
            assert_eq!(addresses.dst_addr[..2], addresses.src_addr[..2]);
            assert_eq!(addresses.dst_addr[2..], [0; 126]);
            assert_eq!(bound.route().dst_addr, addresses.dst_addr[..28]);
        }
    }

    #[test]
    fn a_peer_that_is_not_known_is_a_wildcard() {
        let peer = shown_peer(&V4, &SockAddr::Unspec);
        assert_eq!(peer, V4.wildcard());
        assert_eq!(peer.to_gid(), Gid::from_v4([0; 4]));
        assert_eq!(shown_peer(&V4, &V4), V4);
        let nobody = shown_peer(&SockAddr::Unspec, &SockAddr::Unspec);
        assert_eq!(nobody.to_gid(), Gid::ZERO);
    }

    #[test]
    fn the_device_is_named_everywhere() {
        let bound = snapshot(V4, V4, Some(device()));
        let route = bound.route();
        assert_eq!(route.as_bytes()[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((route.port_num, route.ibdev_index), (1, 2));
        for answer in [bound.addresses(), bound.gids()] {
            assert_eq!(answer.as_bytes()[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!((answer.port_num, answer.ibdev_index), (1, 2));
            assert_eq!(answer.as_bytes()[10..12], [0x80, 0x01]);
        }
        let gids = bound.gids();
        assert_eq!(gids.src_addr[2..4], [0x80, 0x01]);
        assert_eq!(gids.src_addr[8..24], [0x50; 16]);
        assert_eq!(gids.dst_addr[8..24], [0xd0; 16]);
        assert_eq!(gids.dst_addr[24..32], [0, 0, 0, 0, 1, 6, 0x12, 0x34]);
        assert_eq!(gids.dst_addr[32..40], [0; 8]);
    }

    #[test]
    fn ends_stand_for_a_path() {
        let mut view = device();
        let route = snapshot(V4, V4, Some(view)).route();
        let [first, second] = route.ib_route;
        assert_eq!(route.num_paths, 0);
        assert_eq!(first.dgid, [0xd0; 16]);
        assert_eq!(first.sgid, [0x50; 16]);
        assert_eq!(first.pkey.get(), 0x8001);
        assert_eq!(second, UserPathRec::new_zeroed());
        view.protocol = Protocol::Roce;
        view.pkey = 0;
        let route = snapshot(V4, V4, Some(view)).route();
        let [first, _] = route.ib_route;
        assert_eq!(first.pkey.get(), 0xffff);
    }

    #[test]
    fn iwarp_has_ends_but_no_paths() {
        let record = PathRecord::from(SaPathRecord {
            pkey: 0x1111,
            ..SaPathRecord::default()
        });
        let view = DeviceView {
            protocol: Protocol::Iwarp,
            path: Some(ShownPath::Record(&record)),
            ..device()
        };
        let snapshot = snapshot(V4, V4, Some(view));
        let route = snapshot.route();
        let [first, _] = route.ib_route;
        assert_eq!(route.num_paths, 0);
        assert_eq!((first.dgid, first.sgid), ([0xd0; 16], [0x50; 16]));
        assert_eq!(first.pkey.get(), 0);
        // A path that the user has set is reported by a query for paths only.
        let (answer, _) = snapshot.paths(PATHS_LEN);
        assert_eq!(answer[..4], 1u32.to_ne_bytes());
    }

    #[test]
    fn a_path_is_one_path() {
        let path = SaPathRecord {
            pkey: 0x1111,
            mtu: 3,
            ..SaPathRecord::default()
        };
        let record = PathRecord::from(path);
        let resolved = snapshot(
            V4,
            V4,
            Some(DeviceView {
                path: Some(ShownPath::Record(&record)),
                ..device()
            }),
        );
        let route = resolved.route();
        let [first, _] = route.ib_route;
        assert_eq!(route.num_paths, 1);
        assert_eq!(first, path.to_user());
        for (response_len, len) in [(8, 8), (79, 8), (80, 80), (1000, 80)] {
            let (answer, answer_len) = resolved.paths(response_len);
            assert_eq!((response_len, answer_len), (response_len, len));
            assert_eq!(answer[..4], 1u32.to_ne_bytes());
            if len == PATHS_LEN {
                assert_eq!(answer[8..], *path.to_data().as_bytes());
            }
        }
    }
}
