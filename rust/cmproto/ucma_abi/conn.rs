// SPDX-License-Identifier: GPL-2.0

//! Requests of the commands that make and end connections.

use super::qp_attr::UverbsAhAttr;
use super::MAX_PRIVATE_DATA;

abi_structs! {
    /// Parameters of a connection (`struct rdma_ucm_conn_param`).
    pub struct ConnParam: 272 {
        /// Queue pair number, 24 bits; bits above these are ignored.
        qp_num: u32 = 0,
        /// Q_Key, for datagrams over `AF_IB` addresses only.
        qkey: u32 = 4,
        /// Private data.
        private_data: [u8; MAX_PRIVATE_DATA] = 8,
        /// Number of bytes of `private_data` that are used.
        private_data_len: u8 = 264,
        /// Non-zero if the queue pair uses a shared receive queue.
        srq: u8 = 265,
        /// The most RDMA reads and atomics that this end serves at a time.
        responder_resources: u8 = 266,
        /// The most RDMA reads and atomics that this end has outstanding at a time.
        initiator_depth: u8 = 267,
        /// Non-zero for end-to-end flow control.
        flow_control: u8 = 268,
        /// Retry count; more than 7 means 7.
        retry_count: u8 = 269,
        /// RNR retry count; more than 7 means 7.
        rnr_retry_count: u8 = 270,
        /// Non-zero in a request with parameters; 0 in events.
        valid: u8 = 271,
    }

    /// The destination of a datagram service, in events (`struct rdma_ucm_ud_param`).
    pub struct UdParam: 304 {
        /// Queue pair number.
        qp_num: u32 = 0,
        /// Q_Key.
        qkey: u32 = 4,
        /// Address vector.
        ah_attr: UverbsAhAttr = 8,
        /// Private data.
        private_data: [u8; MAX_PRIVATE_DATA] = 40,
        /// Number of bytes of `private_data` that are used.
        private_data_len: u8 = 296,
        /// Zero.
        reserved: [u8; 7] = 297,
    }

    /// Enhanced connection establishment (`struct rdma_ucm_ece`; IBTA annex A19).
    pub struct Ece: 8 {
        /// Vendor id, 24 bits.
        vendor_id: u32 = 0,
        /// Attribute modifier.
        attr_mod: u32 = 4,
    }

    /// The request of [`Connect`](super::Command::Connect) (`struct rdma_ucm_connect`).
    pub struct Connect: 288 {
        /// Parameters; `valid` must not be 0.
        conn_param: ConnParam = 0,
        /// The id.
        id: u32 = 272,
        /// Ignored.
        reserved: u32 = 276,
        /// ECE, used if the request has at least [`Connect::LEN_WITH_ECE`] bytes.
        ece: Ece = 280,
    }

    /// The request of [`Accept`](super::Command::Accept) (`struct rdma_ucm_accept`).
    pub struct Accept: 296 {
        /// The uid that events of the connection carry.
        uid: u64 = 0,
        /// Parameters; `valid` is 0 if the active side confirms the peer's answer.
        conn_param: ConnParam = 8,
        /// The id.
        id: u32 = 280,
        /// Ignored.
        reserved: u32 = 284,
        /// ECE, used if the request has at least [`Accept::LEN_WITH_ECE`] bytes.
        ece: Ece = 288,
    }

    /// The request of [`Reject`](super::Command::Reject) (`struct rdma_ucm_reject`).
    pub struct Reject: 264 {
        /// The id.
        id: u32 = 0,
        /// Number of bytes of `private_data` that are used.
        private_data_len: u8 = 4,
        /// REJ reason: 0 or 28 for consumer defined, 35 for vendor option not supported.
        reason: u8 = 5,
        /// Ignored.
        reserved: [u8; 2] = 6,
        /// Private data.
        private_data: [u8; MAX_PRIVATE_DATA] = 8,
    }

    /// The request of [`Disconnect`](super::Command::Disconnect) (`struct rdma_ucm_disconnect`).
    pub struct Disconnect: 4 {
        /// The id.
        id: u32 = 0,
    }
}

impl Connect {
    /// The least length of the request, which is without ECE, in bytes.
    pub const MIN_LEN: usize = 280;
    /// Length of the request with ECE, in bytes.
    pub const LEN_WITH_ECE: usize = 288;
}

impl Accept {
    /// The least length of the request, which is without ECE, in bytes.
    pub const MIN_LEN: usize = 288;
    /// Length of the request with ECE, in bytes.
    pub const LEN_WITH_ECE: usize = 296;
}
