// SPDX-License-Identifier: GPL-2.0

//! Attributes of queue pairs and address handles (`include/uapi/rdma/ib_user_verbs.h`).

abi_structs! {
    /// The global route of an address vector (`struct ib_uverbs_global_route`).
    pub struct UverbsGlobalRoute: 24 {
        /// GID of the peer.
        dgid: [u8; 16] = 0,
        /// Flow label, 20 bits.
        flow_label: u32 = 16,
        /// Index of this end's GID.
        sgid_index: u8 = 20,
        /// Hop limit.
        hop_limit: u8 = 21,
        /// Traffic class.
        traffic_class: u8 = 22,
        /// Zero.
        reserved: u8 = 23,
    }

    /// An address vector (`struct ib_uverbs_ah_attr`).
    pub struct UverbsAhAttr: 32 {
        /// Global route.
        grh: UverbsGlobalRoute = 0,
        /// LID of the peer.
        dlid: u16 = 24,
        /// Service level, 4 bits.
        sl: u8 = 26,
        /// Path bits of this end: the low bits of its LID.
        src_path_bits: u8 = 27,
        /// Static rate, `enum ib_rate`.
        static_rate: u8 = 28,
        /// Non-zero if the global route is used.
        is_global: u8 = 29,
        /// Number of this end's port.
        port_num: u8 = 30,
        /// Zero.
        reserved: u8 = 31,
    }

    /// Attributes of a queue pair (`struct ib_uverbs_qp_attr`).
    pub struct UverbsQpAttr: 144 {
        /// The attributes that are set (`enum ib_qp_attr_mask`).
        qp_attr_mask: u32 = 0,
        /// New state, `enum ib_qp_state`.
        qp_state: u32 = 4,
        /// Current state, `enum ib_qp_state`.
        cur_qp_state: u32 = 8,
        /// Path MTU, `enum ib_mtu`.
        path_mtu: u32 = 12,
        /// Path migration state, `enum ib_mig_state`.
        path_mig_state: u32 = 16,
        /// Q_Key.
        qkey: u32 = 20,
        /// First PSN to receive.
        rq_psn: u32 = 24,
        /// First PSN to send.
        sq_psn: u32 = 28,
        /// QPN of the peer.
        dest_qp_num: u32 = 32,
        /// Operations that the peer may use (`enum ib_access_flags`).
        qp_access_flags: u32 = 36,
        /// Address vector of the path.
        ah_attr: UverbsAhAttr = 40,
        /// Address vector of the alternate path.
        alt_ah_attr: UverbsAhAttr = 72,
        /// Capability: the most send requests.
        max_send_wr: u32 = 104,
        /// Capability: the most receive requests.
        max_recv_wr: u32 = 108,
        /// Capability: the most scatter/gather elements of a send request.
        max_send_sge: u32 = 112,
        /// Capability: the most scatter/gather elements of a receive request.
        max_recv_sge: u32 = 116,
        /// Capability: the most bytes of inline data.
        max_inline_data: u32 = 120,
        /// Index of the P_Key.
        pkey_index: u16 = 124,
        /// Index of the alternate path's P_Key.
        alt_pkey_index: u16 = 126,
        /// Non-zero to notify when the send queue is drained.
        en_sqd_async_notify: u8 = 128,
        /// Non-zero while the send queue is draining.
        sq_draining: u8 = 129,
        /// The most RDMA reads and atomics that this end has outstanding at a time.
        max_rd_atomic: u8 = 130,
        /// The most RDMA reads and atomics that this end serves at a time.
        max_dest_rd_atomic: u8 = 131,
        /// Minimum RNR NAK timer, a 5-bit code.
        min_rnr_timer: u8 = 132,
        /// Number of this end's port.
        port_num: u8 = 133,
        /// Local ack timeout, a 5-bit IBTA time code.
        timeout: u8 = 134,
        /// Retry count.
        retry_cnt: u8 = 135,
        /// RNR retry count.
        rnr_retry: u8 = 136,
        /// Number of the alternate path's port.
        alt_port_num: u8 = 137,
        /// Local ack timeout of the alternate path.
        alt_timeout: u8 = 138,
        /// Zero.
        reserved: [u8; 5] = 139,
    }
}
