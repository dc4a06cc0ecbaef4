// SPDX-License-Identifier: GPL-2.0

//! Requests and responses of the commands that create, bind, resolve and destroy ids.

use super::SOCKADDR_IN6_LEN;
use crate::addr::STORAGE_LEN;

abi_structs! {
    /// The request of [`CreateId`](super::Command::CreateId) (`struct rdma_ucm_create_id`).
    pub struct CreateId: 24 {
        /// The uid that events of the id carry; 0 for no events.
        uid: u64 = 0,
        /// Address of an [`IdResp`].
        response: u64 = 8,
        /// Number of the [port space](crate::service_id::PortSpace).
        ps: u16 = 16,
        /// Queue pair type, used in port space `Ib` only.
        qp_type: u8 = 18,
        /// Ignored.
        reserved: [u8; 5] = 19,
    }

    /// The response with a new id or multicast membership (`struct rdma_ucm_create_id_resp`).
    pub struct IdResp: 4 {
        /// The id, or the number of the multicast membership.
        id: u32 = 0,
    }

    /// The request of [`DestroyId`](super::Command::DestroyId) and
    /// [`LeaveMcast`](super::Command::LeaveMcast) (`struct rdma_ucm_destroy_id`).
    pub struct DestroyId: 16 {
        /// Address of an [`EventsReportedResp`].
        response: u64 = 0,
        /// The id, or the number of the multicast membership.
        id: u32 = 8,
        /// Ignored.
        reserved: u32 = 12,
    }

    /// The response with the number of events of an id that were read (`struct
    /// rdma_ucm_destroy_id_resp`, `struct rdma_ucm_migrate_resp`).
    pub struct EventsReportedResp: 4 {
        /// The number of events.
        events_reported: u32 = 0,
    }

    /// The request of [`BindIp`](super::Command::BindIp) (`struct rdma_ucm_bind_ip`).
    pub struct BindIp: 40 {
        /// This field is not used.
        response: u64 = 0,
        /// The IPv4 or IPv6 address.
        addr: [u8; SOCKADDR_IN6_LEN] = 8,
        /// The id.
        id: u32 = 36,
    }

    /// The request of [`Bind`](super::Command::Bind) (`struct rdma_ucm_bind`).
    pub struct Bind: 136 {
        /// The id.
        id: u32 = 0,
        /// Size of the address, in bytes.
        addr_size: u16 = 4,
        /// Must be 0.
        reserved: u16 = 6,
        /// The address.
        addr: [u8; STORAGE_LEN] = 8,
    }

    /// The request of [`ResolveIp`](super::Command::ResolveIp) (`struct rdma_ucm_resolve_ip`).
    pub struct ResolveIp: 64 {
        /// Source address; family 0 for any.
        src_addr: [u8; SOCKADDR_IN6_LEN] = 0,
        /// Destination address.
        dst_addr: [u8; SOCKADDR_IN6_LEN] = 28,
        /// The id.
        id: u32 = 56,
        /// Timeout, in milliseconds.
        timeout_ms: u32 = 60,
    }

    /// The request of [`ResolveAddr`](super::Command::ResolveAddr) (`struct
    /// rdma_ucm_resolve_addr`).
    pub struct ResolveAddr: 272 {
        /// The id.
        id: u32 = 0,
        /// Timeout, in milliseconds.
        timeout_ms: u32 = 4,
        /// Size of the source address, in bytes; 0 for any.
        src_size: u16 = 8,
        /// Size of the destination address, in bytes.
        dst_size: u16 = 10,
        /// Must be 0.
        reserved: u32 = 12,
        /// Source address.
        src_addr: [u8; STORAGE_LEN] = 16,
        /// Destination address.
        dst_addr: [u8; STORAGE_LEN] = 144,
    }

    /// The request of [`ResolveRoute`](super::Command::ResolveRoute) (`struct
    /// rdma_ucm_resolve_route`).
    pub struct ResolveRoute: 8 {
        /// The id.
        id: u32 = 0,
        /// Timeout, in milliseconds; not 0.
        timeout_ms: u32 = 4,
    }

    /// The request of [`Listen`](super::Command::Listen) (`struct rdma_ucm_listen`).
    pub struct Listen: 8 {
        /// The id.
        id: u32 = 0,
        /// The most requests that may wait; 0 for as many as the administrator allows.
        backlog: u32 = 4,
    }

    /// The request of [`InitQpAttr`](super::Command::InitQpAttr) (`struct rdma_ucm_init_qp_attr`).
    pub struct InitQpAttr: 16 {
        /// Address of an [`UverbsQpAttr`](super::UverbsQpAttr).
        response: u64 = 0,
        /// The id.
        id: u32 = 8,
        /// The queue pair state to enter, 0 to 6.
        qp_state: u32 = 12,
    }

    /// The request of [`Notify`](super::Command::Notify) (`struct rdma_ucm_notify`).
    pub struct Notify: 8 {
        /// The id.
        id: u32 = 0,
        /// The event (`enum ib_event_type`): 4 communication established, 6 path migrated.
        event: u32 = 4,
    }

    /// The request of [`JoinIpMcast`](super::Command::JoinIpMcast) (`struct
    /// rdma_ucm_join_ip_mcast`).
    pub struct JoinIpMcast: 48 {
        /// Address of an [`IdResp`].
        response: u64 = 0,
        /// The uid that events of the membership carry.
        uid: u64 = 8,
        /// The IPv4 or IPv6 address of the group.
        addr: [u8; SOCKADDR_IN6_LEN] = 16,
        /// The id.
        id: u32 = 44,
    }

    /// The request of [`JoinMcast`](super::Command::JoinMcast) (`struct rdma_ucm_join_mcast`).
    pub struct JoinMcast: 152 {
        /// Address of an [`IdResp`].
        response: u64 = 0,
        /// The uid that events of the membership carry.
        uid: u64 = 8,
        /// The id.
        id: u32 = 16,
        /// Size of the address, in bytes.
        addr_size: u16 = 20,
        /// [`JOIN_FULLMEMBER`] or [`JOIN_SENDONLY_FULLMEMBER`].
        join_flags: u16 = 22,
        /// The address of the group.
        addr: [u8; STORAGE_LEN] = 24,
    }

    /// The request of [`MigrateId`](super::Command::MigrateId) (`struct rdma_ucm_migrate_id`).
    pub struct MigrateId: 16 {
        /// Address of an [`EventsReportedResp`].
        response: u64 = 0,
        /// The id.
        id: u32 = 8,
        /// The file descriptor to which the id belongs now.
        fd: u32 = 12,
    }

    /// The service to look for (`struct rdma_ucm_ib_service`).
    pub struct IbService: 80 {
        /// Service id.
        service_id: u64 = 0,
        /// Service name, with or without a final zero.
        service_name: [u8; 64] = 8,
        /// [`IB_SERVICE_BY_ID`] and [`IB_SERVICE_BY_NAME`]; other bits are ignored.
        flags: u32 = 72,
        /// Ignored.
        reserved: u32 = 76,
    }

    /// The request of [`ResolveIbService`](super::Command::ResolveIbService) (`struct
    /// rdma_ucm_resolve_ib_service`).
    pub struct ResolveIbService: 88 {
        /// The id.
        id: u32 = 0,
        /// Ignored.
        reserved: u32 = 4,
        /// The service.
        ibs: IbService = 8,
    }
}

/// The join flags of a full member.
pub const JOIN_FULLMEMBER: u16 = 0;
/// The join flags of a full member that only sends.
pub const JOIN_SENDONLY_FULLMEMBER: u16 = 1;

/// The flag to look for a service by its id.
pub const IB_SERVICE_BY_ID: u32 = 1 << 0;
/// The flag to look for a service by its name.
pub const IB_SERVICE_BY_NAME: u32 = 1 << 1;
