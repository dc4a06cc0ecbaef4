// SPDX-License-Identifier: GPL-2.0

//! Attributes of queue pairs and addresses (`include/uapi/rdma/ib_user_verbs.h`).

abi_struct! {
    /// A global route (`struct ib_uverbs_global_route`).
    pub struct UverbsGlobalRoute: 24 {
        /// GID of the other end.
        dgid: [u8; 16] = 0,
        /// Flow label, 20 bits.
        flow_label: u32 = 16,
        /// Index of the own GID.
        sgid_index: u8 = 20,
        /// Hop limit.
        hop_limit: u8 = 21,
        /// Traffic class.
        traffic_class: u8 = 22,
        /// Zero.
        reserved: u8 = 23,
    }
}

abi_struct! {
    /// An address (`struct ib_uverbs_ah_attr`).
    pub struct UverbsAhAttr: 32 {
        /// Global route.
        grh: UverbsGlobalRoute = 0,
        /// LID of the other end.
        dlid: u16 = 24,
        /// Service level.
        sl: u8 = 26,
        /// Low bits of the own LID.
        src_path_bits: u8 = 27,
        /// Static rate code.
        static_rate: u8 = 28,
        /// Whether the global route is used.
        is_global: u8 = 29,
        /// Own port.
        port_num: u8 = 30,
        /// Zero.
        reserved: u8 = 31,
    }
}

abi_struct! {
    /// Attributes of a queue pair (`struct ib_uverbs_qp_attr`).
    pub struct UverbsQpAttr: 144 {
        /// Which of the others count (`enum ib_qp_attr_mask`).
        qp_attr_mask: u32 = 0,
        /// State to enter.
        qp_state: u32 = 4,
        /// State to leave.
        cur_qp_state: u32 = 8,
        /// Path MTU code.
        path_mtu: u32 = 12,
        /// Path migration state.
        path_mig_state: u32 = 16,
        /// Q_Key.
        qkey: u32 = 20,
        /// First packet sequence number to receive.
        rq_psn: u32 = 24,
        /// First packet sequence number to send.
        sq_psn: u32 = 28,
        /// Queue pair number of the other end.
        dest_qp_num: u32 = 32,
        /// What the other end may do (`enum ib_access_flags`).
        qp_access_flags: u32 = 36,
        /// The path.
        ah_attr: UverbsAhAttr = 40,
        /// The alternate path.
        alt_ah_attr: UverbsAhAttr = 72,
        /// Capability: send requests.
        max_send_wr: u32 = 104,
        /// Capability: receive requests.
        max_recv_wr: u32 = 108,
        /// Capability: pieces of a send request.
        max_send_sge: u32 = 112,
        /// Capability: pieces of a receive request.
        max_recv_sge: u32 = 116,
        /// Capability: inline data.
        max_inline_data: u32 = 120,
        /// Index of the partition key.
        pkey_index: u16 = 124,
        /// Index of the alternate path's partition key.
        alt_pkey_index: u16 = 126,
        /// Whether to tell when the send queue is drained.
        en_sqd_async_notify: u8 = 128,
        /// Whether the send queue is draining.
        sq_draining: u8 = 129,
        /// Outstanding RDMA reads and atomics made.
        max_rd_atomic: u8 = 130,
        /// Outstanding RDMA reads and atomics taken.
        max_dest_rd_atomic: u8 = 131,
        /// Receiver-not-ready timer code.
        min_rnr_timer: u8 = 132,
        /// Own port.
        port_num: u8 = 133,
        /// Timeout of an acknowledgement, a time code.
        timeout: u8 = 134,
        /// Retries of the transport.
        retry_cnt: u8 = 135,
        /// Retries after receiver-not-ready.
        rnr_retry: u8 = 136,
        /// Port of the alternate path.
        alt_port_num: u8 = 137,
        /// Timeout on the alternate path.
        alt_timeout: u8 = 138,
        /// Zero.
        reserved: [u8; 5] = 139,
    }
}
