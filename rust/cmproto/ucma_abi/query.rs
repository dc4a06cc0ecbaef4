// SPDX-License-Identifier: GPL-2.0

//! The request to query an id, and its responses.

use zerocopy::big_endian;

use super::path::UserPathRec;
use super::SOCKADDR_IN6_LEN;
use crate::addr::STORAGE_LEN;
use crate::errno::Errno;
use crate::numbered::{from_number, numbered};

abi_structs! {
    /// The request of [`Query`](super::Command::Query) and
    /// [`QueryRoute`](super::Command::QueryRoute) (`struct rdma_ucm_query`).
    pub struct Query: 16 {
        /// Address of the response.
        response: u64 = 0,
        /// The id.
        id: u32 = 8,
        /// The [`QueryOption`]; ignored by `QueryRoute`.
        option: u32 = 12,
    }

    /// The response to [`QueryRoute`](super::Command::QueryRoute) (`struct
    /// rdma_ucm_query_route_resp`).
    pub struct QueryRouteResp: 208 {
        /// Node GUID of the device, in network byte order.
        node_guid: big_endian::U64 = 0,
        /// The paths.
        ib_route: [UserPathRec; 2] = 8,
        /// Source address.
        src_addr: [u8; SOCKADDR_IN6_LEN] = 136,
        /// Destination address.
        dst_addr: [u8; SOCKADDR_IN6_LEN] = 164,
        /// The number of paths in `ib_route`, 0 to 2.
        num_paths: u32 = 192,
        /// Number of the port.
        port_num: u8 = 196,
        /// Zero.
        reserved: [u8; 3] = 197,
        /// Index of the device.
        ibdev_index: u32 = 200,
        /// Zero.
        reserved1: u32 = 204,
    }

    /// The response to [`QueryOption::Addr`] and [`QueryOption::Gid`] (`struct
    /// rdma_ucm_query_addr_resp`).
    pub struct QueryAddrResp: 280 {
        /// Node GUID of the device, in network byte order.
        node_guid: big_endian::U64 = 0,
        /// Number of the port.
        port_num: u8 = 8,
        /// Zero.
        reserved: u8 = 9,
        /// P_Key, in network byte order.
        pkey: big_endian::U16 = 10,
        /// Size of the source address, in bytes.
        src_size: u16 = 12,
        /// Size of the destination address, in bytes.
        dst_size: u16 = 14,
        /// Source address.
        src_addr: [u8; STORAGE_LEN] = 16,
        /// Destination address.
        dst_addr: [u8; STORAGE_LEN] = 144,
        /// Index of the device.
        ibdev_index: u32 = 272,
        /// Zero.
        reserved1: u32 = 276,
    }

    /// The start of the response to [`QueryOption::Path`] (`struct rdma_ucm_query_path_resp`).
    pub struct QueryPathResp: 8 {
        /// The number of paths, whether or not they fit into the buffer.
        num_paths: u32 = 0,
        /// Zero.
        reserved: u32 = 4,
    }

    /// The start of the response to [`QueryOption::IbService`] (`struct
    /// rdma_ucm_query_ib_service_resp`).
    pub struct QueryIbServiceResp: 8 {
        /// The number of service records, whether or not they fit into the buffer.
        num_service_recs: u32 = 0,
        /// Zero.
        reserved: u32 = 4,
    }

    /// A service record (`struct ib_user_service_rec`; IBTA 15.2.5.14).
    pub struct UserServiceRec: 176 {
        /// Service id.
        id: big_endian::U64 = 0,
        /// GID of the port that has the service.
        gid: [u8; 16] = 8,
        /// P_Key.
        pkey: big_endian::U16 = 24,
        /// Zero.
        reserved: [u8; 2] = 26,
        /// Lease, in seconds.
        lease: big_endian::U32 = 28,
        /// Service key.
        key: [u8; 16] = 32,
        /// Service name.
        name: [u8; 64] = 48,
        /// Service data, in bytes.
        data_8: [u8; 16] = 112,
        /// Service data, in words of two bytes.
        data_16: [big_endian::U16; 8] = 128,
        /// Service data, in words of four bytes.
        data_32: [big_endian::U32; 4] = 144,
        /// Service data, in words of eight bytes.
        data_64: [big_endian::U64; 2] = 160,
    }
}

numbered! {
    /// The subject of a [`Query`].
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum QueryOption {
        /// Addresses: a [`QueryAddrResp`].
        Addr = 0,
        /// Paths: a [`QueryPathResp`] and [`PathRecData`](super::PathRecData)s.
        Path = 1,
        /// Addresses in the form of GIDs: a [`QueryAddrResp`].
        Gid = 2,
        /// Service records: a [`QueryIbServiceResp`] and [`UserServiceRec`]s.
        IbService = 3,
    }
}

from_number!(QueryOption, Errno::ENOSYS);

impl QueryRouteResp {
    /// The least size of a program's buffer, in bytes.
    pub const MIN_LEN: usize = 200;
}

impl QueryAddrResp {
    /// The least size of a program's buffer, in bytes.
    pub const MIN_LEN: usize = 272;
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_abi_query)
)]
mod tests {
    use super::*;

    #[test]
    fn unknown_questions_are_not_implemented() {
        for n in 0..4 {
            assert_eq!(QueryOption::try_from(n).map(|o| o as u32), Ok(n));
        }
        assert_eq!(QueryOption::try_from(4), Err(Errno::ENOSYS));
    }
}
