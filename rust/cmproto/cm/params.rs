// SPDX-License-Identifier: GPL-2.0

//! Parameters of `connect` and `accept`, and limits of the times that a peer may ask for.

#[cfg(doc)]
use super::retransmit::TotalTimeout;
use crate::{
    qp::low24,
    time::{Duration, TimeCode},
    wire::{ReqPath, Transport},
};

/// Limits of the times and counts that a peer may ask for.
///
/// Times in messages are 5-bit codes of up to 2.4 hours, so that without limits a peer could occupy
/// resources for days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of retries of the passive side. (A REQ asks for 0 to 15.)
    pub passive_retries: u8,
    /// Longest interval between two sends on the passive side.
    pub passive_interval: Duration,
    /// Longest wait for one MRA. One MRA is effective for each classic send of a request.
    pub mra_wait: Duration,
    /// Longest time wait.
    pub timewait: TimeCode,
    /// Longest time from the first send of a request until it is given up, even if there are
    /// retries left or MRAs ask for more time. At most [`TotalTimeout::LONGEST`], or
    /// [`Duration::MAX`] for no limit.
    pub total: Duration,
    /// Longest time between two questions to the peer of an established connection whether it still
    /// has the connection, in whole seconds, at most 18 hours. `None` not to ask.
    pub keepalive: Option<Duration>,
}

impl Limits {
    /// The default limits: 15 retries at intervals of 8 s, 60 s for each MRA, a time wait of 2^22 x
    /// 4.096 us (17 s), no limit of the total, and no questions to a peer.
    pub const DEFAULT: Self = Self {
        passive_retries: 15,
        passive_interval: Duration::from_millis(8_000),
        mra_wait: Duration::from_millis(60_000),
        timewait: TimeCode::new(22),
        total: Duration::MAX,
        keepalive: None,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Parameters of the active side: the contents of a REQ (IBTA volume 1, 12.6.5), in host order.
///
/// Values that are too large for their field are reduced: retry counts and time codes to the
/// largest value, QPN and PSN to their low 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectParams {
    /// Service id to connect to.
    pub service_id: u64,
    /// QPN of the own queue pair, 24 bits.
    pub local_qpn: u32,
    /// Q_Key of the own queue pair. The kernel always sends 0.
    pub local_qkey: u32,
    /// Set if the own queue pair uses a shared receive queue. Not sent for XRC.
    pub srq: bool,
    /// Transport type. [`Transport::Other`] is refused.
    pub transport: Transport,
    /// First PSN that the own queue pair expects, 24 bits.
    pub starting_psn: u32,
    /// Number of RDMA reads and atomics that the own side handles at a time. Not sent for XRC.
    pub responder_resources: u8,
    /// Number of RDMA reads and atomics that the own side may have outstanding.
    pub initiator_depth: u8,
    /// Set if end-to-end flow control is supported.
    pub flow_control: bool,
    /// Retry count of the queue pair, 0 to 7. Not sent for XRC.
    pub retry_count: u8,
    /// RNR retry count of the queue pair, 0 to 7, where 7 means no limit. Not sent for XRC.
    pub rnr_retry_count: u8,
    /// P_Key.
    pub pkey: u16,
    /// Path MTU, an IBA code of 4 bits: 1 (256 bytes) to 5 (4096 bytes).
    pub path_mtu: u8,
    /// Path to the peer. Its `local_ack_timeout` is computed from the two following fields.
    pub primary: ReqPath,
    /// Packet life time of the path, a time code.
    pub packet_life_time: u8,
    /// Ack delay of the own channel adapter, a time code.
    pub ca_ack_delay: u8,
    /// Response timeout of the peer's communication manager, a time code.
    pub remote_cm_response_timeout: u8,
    /// Response timeout of the own communication manager, a time code.
    pub local_cm_response_timeout: u8,
    /// Maximum number of retries of a request on either side, 0 to 15.
    pub max_cm_retries: u8,
    /// Vendor id of the enhanced connection establishment, 24 bits.
    pub vendor_id: u32,
    /// Attribute modifier of the enhanced connection establishment.
    pub attr_mod: u32,
}

impl ConnectParams {
    /// Default of [`remote_cm_response_timeout`](Self::remote_cm_response_timeout) and
    /// [`local_cm_response_timeout`](Self::local_cm_response_timeout), as in the kernel: 4.3 s.
    pub const RESPONSE_TIMEOUT: u8 = 20;
    /// Default of [`max_cm_retries`](Self::max_cm_retries), as in the kernel.
    pub const MAX_RETRIES: u8 = 15;

    /// Returns the parameters with all values reduced to their fields.
    pub(super) fn sanitized(&self) -> Self {
        let mut params = *self;
        params.local_qpn = low24(self.local_qpn);
        params.starting_psn = low24(self.starting_psn);
        params.vendor_id = low24(self.vendor_id);
        params.retry_count = self.retry_count.min(7);
        params.rnr_retry_count = self.rnr_retry_count.min(7);
        params.path_mtu = self.path_mtu & 0xf;
        params.packet_life_time = self.packet_life_time.min(31);
        params.ca_ack_delay = self.ca_ack_delay.min(31);
        params.remote_cm_response_timeout = self.remote_cm_response_timeout.min(31);
        params.local_cm_response_timeout = self.local_cm_response_timeout.min(31);
        params.max_cm_retries = self.max_cm_retries.min(15);
        params.primary = params.req_path(self.primary, params.packet_life_time);
        params
    }

    /// Returns a path of the REQ with all values reduced to their fields, and with the ack timeout
    /// for its packet life time.
    pub(super) fn req_path(&self, path: ReqPath, packet_life_time: u8) -> ReqPath {
        ReqPath {
            flow_label: path.flow_label & 0x000f_ffff,
            packet_rate: path.packet_rate & 0x3f,
            sl: path.sl & 0xf,
            local_ack_timeout: TimeCode::ack_timeout(self.ca_ack_delay, packet_life_time).get(),
            ..path
        }
    }
}

/// Parameters of the passive side: the contents of a REP (IBTA volume 1, 12.6.8), in host order.
///
/// Values that are too large for their field are reduced as in [`ConnectParams`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptParams {
    /// QPN of the own queue pair, 24 bits. For XRC it is sent in the field of the end-to-end
    /// context.
    pub local_qpn: u32,
    /// Q_Key of the own queue pair. The kernel always sends 0.
    pub qkey: u32,
    /// First PSN that the own queue pair expects, 24 bits.
    pub starting_psn: u32,
    /// Number of RDMA reads and atomics that the own side handles at a time.
    pub responder_resources: u8,
    /// Number of RDMA reads and atomics that the own side may have outstanding. Not sent for XRC.
    pub initiator_depth: u8,
    /// Ack delay of the own channel adapter, a time code.
    pub target_ack_delay: u8,
    /// Failover accepted: the result for the alternate path, 2 bits.
    pub failover_accepted: u8,
    /// Set if end-to-end flow control is supported. Not sent for XRC.
    pub flow_control: bool,
    /// RNR retry count of the peer's queue pair, 0 to 7, where 7 means no limit.
    pub rnr_retry_count: u8,
    /// Set if the own queue pair uses a shared receive queue. Always sent as set for XRC.
    pub srq: bool,
    /// Vendor id of the enhanced connection establishment, 24 bits.
    pub vendor_id: u32,
    /// Attribute modifier of the enhanced connection establishment.
    pub attr_mod: u32,
}

impl AcceptParams {
    /// Returns the parameters with all values reduced to their fields.
    pub(super) fn sanitized(&self) -> Self {
        let mut params = *self;
        params.local_qpn = low24(self.local_qpn);
        params.starting_psn = low24(self.starting_psn);
        params.vendor_id = low24(self.vendor_id);
        params.target_ack_delay = self.target_ack_delay.min(31);
        params.failover_accepted = self.failover_accepted & 0x3;
        params.rnr_retry_count = self.rnr_retry_count.min(7);
        params
    }
}
