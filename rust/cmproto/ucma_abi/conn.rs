// SPDX-License-Identifier: GPL-2.0

//! Requests of the commands that set up and end connections.

use super::qp_attr::UverbsAhAttr;
use super::MAX_PRIVATE_DATA;

abi_struct! {
    /// Parameters of a connection (`struct rdma_ucm_conn_param`).
    pub struct ConnParam: 272 {
        /// Queue pair number; bits above the 24 of a number are ignored.
        qp_num: u32 = 0,
        /// Q_Key, for datagrams over an `AF_IB` address only.
        qkey: u32 = 4,
        /// Private data.
        private_data: [u8; MAX_PRIVATE_DATA] = 8,
        /// Bytes of it that mean something.
        private_data_len: u8 = 264,
        /// Whether the queue pair uses a shared receive queue.
        srq: u8 = 265,
        /// Outstanding RDMA reads and atomics taken.
        responder_resources: u8 = 266,
        /// Outstanding RDMA reads and atomics made.
        initiator_depth: u8 = 267,
        /// Whether to do end-to-end flow control.
        flow_control: u8 = 268,
        /// Retries of the transport; more than 7 means 7.
        retry_count: u8 = 269,
        /// Retries after receiver-not-ready; more than 7 means 7.
        rnr_retry_count: u8 = 270,
        /// In a request, whether the parameters are there; 0 in events.
        valid: u8 = 271,
    }
}

abi_struct! {
    /// How to reach a datagram service, in events (`struct rdma_ucm_ud_param`).
    pub struct UdParam: 304 {
        /// Queue pair number.
        qp_num: u32 = 0,
        /// Q_Key.
        qkey: u32 = 4,
        /// Address.
        ah_attr: UverbsAhAttr = 8,
        /// Private data.
        private_data: [u8; MAX_PRIVATE_DATA] = 40,
        /// Bytes of it that mean something.
        private_data_len: u8 = 296,
        /// Zero.
        reserved: [u8; 7] = 297,
    }
}

abi_struct! {
    /// Enhanced connection establishment (`struct rdma_ucm_ece`; IBTA annex A19).
    pub struct Ece: 8 {
        /// Vendor id, 24 bits.
        vendor_id: u32 = 0,
        /// Attribute modifier.
        attr_mod: u32 = 4,
    }
}

abi_struct! {
    /// [`Connect`](super::Command::Connect) (`struct rdma_ucm_connect`).
    pub struct Connect: 288 {
        /// Parameters; must be valid.
        conn_param: ConnParam = 0,
        /// The id.
        id: u32 = 272,
        /// Ignored.
        reserved: u32 = 276,
        /// Only there if the request is at least [`Connect::LEN_WITH_ECE`] long.
        ece: Ece = 280,
    }
}

impl Connect {
    /// Size of the request before ECE, the least allowed, in bytes.
    pub const MIN_LEN: usize = 280;
    /// Size with ECE, in bytes.
    pub const LEN_WITH_ECE: usize = 288;
}

abi_struct! {
    /// [`Accept`](super::Command::Accept) (`struct rdma_ucm_accept`).
    pub struct Accept: 296 {
        /// What events of the connection shall carry.
        uid: u64 = 0,
        /// Parameters; not valid when the active side accepts the answer.
        conn_param: ConnParam = 8,
        /// The id.
        id: u32 = 280,
        /// Ignored.
        reserved: u32 = 284,
        /// Only there if the request is at least [`Accept::LEN_WITH_ECE`] long.
        ece: Ece = 288,
    }
}

impl Accept {
    /// Size of the request before ECE, the least allowed, in bytes.
    pub const MIN_LEN: usize = 288;
    /// Size with ECE, in bytes.
    pub const LEN_WITH_ECE: usize = 296;
}

abi_struct! {
    /// [`Reject`](super::Command::Reject) (`struct rdma_ucm_reject`).
    pub struct Reject: 264 {
        /// The id.
        id: u32 = 0,
        /// Bytes of private data that mean something.
        private_data_len: u8 = 4,
        /// Reason: 0 and 28 consumer defined, 35 vendor option not supported.
        reason: u8 = 5,
        /// Ignored.
        reserved: [u8; 2] = 6,
        /// Private data.
        private_data: [u8; MAX_PRIVATE_DATA] = 8,
    }
}

abi_struct! {
    /// [`Disconnect`](super::Command::Disconnect) (`struct rdma_ucm_disconnect`).
    pub struct Disconnect: 4 {
        /// The id.
        id: u32 = 0,
    }
}
