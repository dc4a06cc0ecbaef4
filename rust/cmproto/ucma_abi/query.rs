// SPDX-License-Identifier: GPL-2.0

//! Questions about an id, and their answers.

use zerocopy::big_endian;

use super::path::UserPathRec;
use super::SOCKADDR_IN6_LEN;
use crate::addr::STORAGE_LEN;
use crate::errno::Errno;

abi_struct! {
    /// [`Query`](super::Command::Query) and [`QueryRoute`](super::Command::QueryRoute)
    /// (`struct rdma_ucm_query`).
    pub struct Query: 16 {
        /// Address of the answer.
        response: u64 = 0,
        /// The id.
        id: u32 = 8,
        /// The [`QueryOption`]; ignored by `QueryRoute`.
        option: u32 = 12,
    }
}

/// What a [`Query`] asks for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QueryOption {
    /// Addresses: a [`QueryAddrResp`].
    Addr = 0,
    /// Paths: a [`QueryPathResp`] and [`PathRecData`](super::PathRecData)s.
    Path = 1,
    /// Addresses as GIDs: a [`QueryAddrResp`].
    Gid = 2,
    /// Service records: a [`QueryIbServiceResp`] and [`UserServiceRec`]s.
    IbService = 3,
}

impl TryFrom<u32> for QueryOption {
    type Error = Errno;

    /// [`Errno::ENOSYS`] for a number that is no option.
    fn try_from(number: u32) -> Result<Self, Errno> {
        match number {
            0 => Ok(Self::Addr),
            1 => Ok(Self::Path),
            2 => Ok(Self::Gid),
            3 => Ok(Self::IbService),
            _ => Err(Errno::ENOSYS),
        }
    }
}

abi_struct! {
    /// Answer to [`QueryRoute`](super::Command::QueryRoute)
    /// (`struct rdma_ucm_query_route_resp`).
    pub struct QueryRouteResp: 208 {
        /// GUID of the device, in network byte order.
        node_guid: big_endian::U64 = 0,
        /// The paths.
        ib_route: [UserPathRec; 2] = 8,
        /// Own address.
        src_addr: [u8; SOCKADDR_IN6_LEN] = 136,
        /// The other end's address.
        dst_addr: [u8; SOCKADDR_IN6_LEN] = 164,
        /// How many of the paths there are, 0 to 2.
        num_paths: u32 = 192,
        /// Own port.
        port_num: u8 = 196,
        /// Zero.
        reserved: [u8; 3] = 197,
        /// Index of the device.
        ibdev_index: u32 = 200,
        /// Zero.
        reserved1: u32 = 204,
    }
}

impl QueryRouteResp {
    /// The least that a program must take, in bytes.
    pub const MIN_LEN: usize = 200;
}

abi_struct! {
    /// Answer to [`QueryOption::Addr`] and [`QueryOption::Gid`]
    /// (`struct rdma_ucm_query_addr_resp`).
    pub struct QueryAddrResp: 280 {
        /// GUID of the device, in network byte order.
        node_guid: big_endian::U64 = 0,
        /// Own port.
        port_num: u8 = 8,
        /// Zero.
        reserved: u8 = 9,
        /// Partition key, in network byte order.
        pkey: big_endian::U16 = 10,
        /// Size of the own address.
        src_size: u16 = 12,
        /// Size of the other end's address.
        dst_size: u16 = 14,
        /// Own address.
        src_addr: [u8; STORAGE_LEN] = 16,
        /// The other end's address.
        dst_addr: [u8; STORAGE_LEN] = 144,
        /// Index of the device.
        ibdev_index: u32 = 272,
        /// Zero.
        reserved1: u32 = 276,
    }
}

impl QueryAddrResp {
    /// The least that a program must take, in bytes.
    pub const MIN_LEN: usize = 272;
}

abi_struct! {
    /// Start of the answer to [`QueryOption::Path`] (`struct rdma_ucm_query_path_resp`).
    pub struct QueryPathResp: 8 {
        /// How many paths there are, whether or not they fit.
        num_paths: u32 = 0,
        /// Zero.
        reserved: u32 = 4,
    }
}

abi_struct! {
    /// Start of the answer to [`QueryOption::IbService`]
    /// (`struct rdma_ucm_query_ib_service_resp`).
    pub struct QueryIbServiceResp: 8 {
        /// How many records there are, whether or not they fit.
        num_service_recs: u32 = 0,
        /// Zero.
        reserved: u32 = 4,
    }
}

abi_struct! {
    /// A service record (`struct ib_user_service_rec`; IBTA 15.2.5.14).
    pub struct UserServiceRec: 176 {
        /// Service id.
        id: big_endian::U64 = 0,
        /// GID of the port with the service.
        gid: [u8; 16] = 8,
        /// Partition key.
        pkey: big_endian::U16 = 24,
        /// Zero.
        reserved: [u8; 2] = 26,
        /// Lease, in seconds.
        lease: big_endian::U32 = 28,
        /// Key.
        key: [u8; 16] = 32,
        /// Name.
        name: [u8; 64] = 48,
        /// Data, by byte.
        data_8: [u8; 16] = 112,
        /// Data, by two bytes.
        data_16: [big_endian::U16; 8] = 128,
        /// Data, by four bytes.
        data_32: [big_endian::U32; 4] = 144,
        /// Data, by eight bytes.
        data_64: [big_endian::U64; 2] = 160,
    }
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
