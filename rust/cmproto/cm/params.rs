// SPDX-License-Identifier: GPL-2.0

//! What a user gives to `connect` and `accept`, and how far a peer is believed.

#[cfg(doc)]
use super::retransmit::Total;
use crate::{
    time::{Duration, TimeCode},
    wire::{ReqPath, Transport},
};

/// A queue pair number or packet sequence number, cut to its 24 bits.
pub(super) const fn low24(value: u32) -> u32 {
    value & 0x00ff_ffff
}

/// Type of a connected queue pair; the numbers are those of the kernel's `enum ib_qp_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum QpType {
    /// Reliable connection.
    Rc = 2,
    /// Unreliable connection.
    Uc = 3,
    /// Initiator of an extended reliable connection: what connects.
    XrcIni = 9,
    /// Target of an extended reliable connection: what accepts.
    XrcTgt = 10,
}

impl QpType {
    /// The type of the queue pair that sends a REQ with `transport`.
    pub(super) const fn of_sender(transport: Transport) -> Option<Self> {
        match transport {
            Transport::Rc => Some(Self::Rc),
            Transport::Uc => Some(Self::Uc),
            Transport::Xrc => Some(Self::XrcIni),
            Transport::Other(..) => None,
        }
    }

    /// The type of the queue pair that answers a REQ with `transport`.
    pub const fn of_receiver(transport: Transport) -> Option<Self> {
        match transport {
            Transport::Rc => Some(Self::Rc),
            Transport::Uc => Some(Self::Uc),
            Transport::Xrc => Some(Self::XrcTgt),
            Transport::Other(..) => None,
        }
    }
}

/// How far the times and counts that a peer names are believed.
///
/// A peer names times as 5-bit codes of up to 2.3 hours, and so could hold resources for days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most times that a passive side sends one request again (a REQ asks for 0 to 15).
    pub passive_retries: u8,
    /// Longest time that a passive side waits for the answer to one request.
    pub passive_interval: Duration,
    /// Longest time that an MRA is waited for. One counts for each classic send of a request.
    pub mra_wait: Duration,
    /// Longest time wait.
    pub timewait: TimeCode,
    /// Longest time from the first send of a request until it is given up, whatever retries are
    /// left and whatever MRAs ask for; at most [`Total::LONGEST`], or [`Duration::MAX`] for no such
    /// limit.
    pub total: Duration,
}

impl Limits {
    /// 15 retries, 8 s for each, 60 s for each MRA, 2^22 x 4.096 us (17 s) of time wait, and all
    /// the time that retries take.
    pub const DEFAULT: Self = Self {
        passive_retries: 15,
        passive_interval: Duration::from_millis(8_000),
        mra_wait: Duration::from_millis(60_000),
        timewait: TimeCode::new(22),
        total: Duration::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What the active side asks for: the contents of a REQ (IBTA volume 1, 12.6.5), in host order.
///
/// Values too large for their field are brought into it: retry counts, depths of retry and time
/// codes to the largest that fits, queue pair and sequence numbers to their low 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectParams {
    /// What to connect to.
    pub service_id: u64,
    /// Number of the own queue pair (24 bits).
    pub local_qpn: u32,
    /// Q_Key of the own queue pair; the kernel always sends 0.
    pub local_qkey: u32,
    /// Whether the own queue pair uses a shared receive queue. Not sent for XRC.
    pub srq: bool,
    /// Kind of connection; [`Transport::Other`] is refused.
    pub transport: Transport,
    /// First packet sequence number that the own queue pair expects (24 bits).
    pub starting_psn: u32,
    /// RDMA reads and atomics that the own side serves at once. Not sent for XRC.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the own side may have outstanding.
    pub initiator_depth: u8,
    /// Whether end-to-end flow control is supported.
    pub flow_control: bool,
    /// Times (0 to 7) that a queue pair sends a packet again. Not sent for XRC.
    pub retry_count: u8,
    /// Times (0 to 7, 7 for ever) that a queue pair waits for a busy receiver. Not sent for XRC.
    pub rnr_retry_count: u8,
    /// Partition key.
    pub pkey: u16,
    /// Path MTU as IBA code (4 bits, 1 for 256 to 5 for 4096 bytes).
    pub path_mtu: u8,
    /// Path to the peer. Its `local_ack_timeout` is computed from the two following fields.
    pub primary: ReqPath,
    /// Time that a packet may take one way, as time code.
    pub packet_life_time: u8,
    /// Time that the own channel adapter takes to acknowledge, as time code.
    pub ca_ack_delay: u8,
    /// Time that the peer's communication manager may take to answer, as time code.
    pub remote_cm_response_timeout: u8,
    /// Time that the own communication manager may take to answer, as time code.
    pub local_cm_response_timeout: u8,
    /// Times (0 to 15) that either side sends a request again.
    pub max_cm_retries: u8,
    /// Vendor id of the enhanced connection establishment (24 bits).
    pub vendor_id: u32,
    /// Attribute modifier of the enhanced connection establishment.
    pub attr_mod: u32,
}

impl ConnectParams {
    /// The kernel's [`remote_cm_response_timeout`](Self::remote_cm_response_timeout) and
    /// [`local_cm_response_timeout`](Self::local_cm_response_timeout): 4.3 s.
    pub const RESPONSE_TIMEOUT: u8 = 20;
    /// The kernel's [`max_cm_retries`](Self::max_cm_retries).
    pub const MAX_RETRIES: u8 = 15;

    /// The same with every value brought into its field.
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
        params.primary = ReqPath {
            flow_label: self.primary.flow_label & 0x000f_ffff,
            packet_rate: self.primary.packet_rate & 0x3f,
            sl: self.primary.sl & 0xf,
            local_ack_timeout: TimeCode::ack_timeout(params.ca_ack_delay, params.packet_life_time)
                .get(),
            ..self.primary
        };
        params
    }
}

/// What the passive side answers: the contents of a REP (IBTA volume 1, 12.6.8), in host order.
///
/// Values too large for their field are brought into it as in [`ConnectParams`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptParams {
    /// Number of the own queue pair (24 bits). For XRC it is sent as number of an EE context.
    pub local_qpn: u32,
    /// Q_Key of the own queue pair; the kernel always sends 0.
    pub qkey: u32,
    /// First packet sequence number that the own queue pair expects (24 bits).
    pub starting_psn: u32,
    /// RDMA reads and atomics that the own side serves at once.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the own side may have outstanding. Not sent for XRC.
    pub initiator_depth: u8,
    /// Time that the own channel adapter takes to acknowledge, as time code.
    pub target_ack_delay: u8,
    /// What was done about the alternate path (2 bits).
    pub failover_accepted: u8,
    /// Whether end-to-end flow control is supported. Not sent for XRC.
    pub flow_control: bool,
    /// Times (0 to 7, 7 for ever) that the peer's queue pair waits for a busy receiver.
    pub rnr_retry_count: u8,
    /// Whether the own queue pair uses a shared receive queue; always sent as true for XRC.
    pub srq: bool,
    /// Vendor id of the enhanced connection establishment (24 bits).
    pub vendor_id: u32,
    /// Attribute modifier of the enhanced connection establishment.
    pub attr_mod: u32,
}

impl AcceptParams {
    /// Of [`failover_accepted`](Self::failover_accepted): there is no failover.
    pub const FAILOVER_NOT_SUPPORTED: u8 = 1;

    /// The same with every value brought into its field.
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
