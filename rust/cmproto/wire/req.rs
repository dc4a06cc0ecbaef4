// SPDX-License-Identifier: GPL-2.0

//! The message REQ: request for communication (IBTA 12.6.5).

use super::field::{Bytes, Field};
use super::{Data, EncodeError, PrivateData};
use crate::addr::Gid;

/// The transport service of a connection (IBTA 12.6.5, annex A14 for XRC).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Extended reliable connection: the sender is the initiator, the receiver the target.
    Xrc,
    /// Any other: the transport service type (0 to 3) and, if that is 3, the extended transport
    /// type (0 to 7). Never a combination that has a name above.
    Other(u8, u8),
}

impl Transport {
    const fn from_codes(code: u8, extended: u8) -> Self {
        match (code, extended) {
            (0, _) => Self::Rc,
            (1, _) => Self::Uc,
            (3, 1) => Self::Xrc,
            _ => Self::Other(code, extended),
        }
    }

    const fn codes(self) -> (u8, u8) {
        match self {
            Self::Rc => (0, 0),
            Self::Uc => (1, 0),
            Self::Xrc => (3, 1),
            Self::Other(code, extended) => (code, extended),
        }
    }
}

/// A path in a REQ, as seen from the sender: "local" is the sender's end (IBTA 12.6.5).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReqPath {
    /// LID of the sender's port; 0xffff (permissive) if the path leaves the subnet.
    pub local_lid: u16,
    /// LID of the receiver's port; 0xffff if the path leaves the subnet.
    pub remote_lid: u16,
    /// GID of the sender's port.
    pub local_gid: Gid,
    /// GID of the receiver's port.
    pub remote_gid: Gid,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Static rate, a 6-bit code (`enum ib_rate`; IBTA 15.2.5.16).
    pub packet_rate: u8,
    /// Traffic class, 8 bits.
    pub traffic_class: u8,
    /// Hop limit, 8 bits.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Set if the path stays in the subnet, so that no GRH is needed.
    pub subnet_local: bool,
    /// Local ack timeout of the sender: a [time code](crate::time::TimeCode), 5 bits.
    pub local_ack_timeout: u8,
}

/// Fields of a path. Offsets are relative to the start of the path (IBTA 12.6.5).
mod path {
    use super::{Bytes, Field};

    pub(super) type LocalPortLid = Field<u16, 0, 0, 16>;
    pub(super) type RemotePortLid = Field<u16, 2, 0, 16>;
    pub(super) type LocalPortGid = Bytes<4, 16>;
    pub(super) type RemotePortGid = Bytes<20, 16>;
    pub(super) type FlowLabel = Field<u32, 36, 0, 20>;
    pub(super) type PacketRate = Field<u8, 39, 2, 6>;
    pub(super) type TrafficClass = Field<u8, 40, 0, 8>;
    pub(super) type HopLimit = Field<u8, 41, 0, 8>;
    pub(super) type Sl = Field<u8, 42, 0, 4>;
    pub(super) type SubnetLocal = Field<bool, 42, 4, 1>;
    pub(super) type LocalAckTimeout = Field<u8, 43, 0, 5>;
}

impl ReqPath {
    const LEN: usize = 44;

    /// Returns whether the path is empty, as the alternate path of a REQ without one. As in C, a
    /// path with a local LID, or with a local GID that is made from an OPA LID, is not empty; so on
    /// RoCE there is no alternate path.
    pub const fn is_empty(&self) -> bool {
        self.local_lid == 0 && !self.local_gid.is_opa()
    }

    fn decode(buf: &[u8; Self::LEN]) -> Self {
        Self {
            local_lid: path::LocalPortLid::get(buf),
            remote_lid: path::RemotePortLid::get(buf),
            local_gid: Gid(*path::LocalPortGid::get(buf)),
            remote_gid: Gid(*path::RemotePortGid::get(buf)),
            flow_label: path::FlowLabel::get(buf),
            packet_rate: path::PacketRate::get(buf),
            traffic_class: path::TrafficClass::get(buf),
            hop_limit: path::HopLimit::get(buf),
            sl: path::Sl::get(buf),
            subnet_local: path::SubnetLocal::get(buf),
            local_ack_timeout: path::LocalAckTimeout::get(buf),
        }
    }

    fn encode(&self) -> [u8; Self::LEN] {
        let mut buf = [0; Self::LEN];
        path::LocalPortLid::set(&mut buf, self.local_lid);
        path::RemotePortLid::set(&mut buf, self.remote_lid);
        path::LocalPortGid::set(&mut buf, &self.local_gid.0);
        path::RemotePortGid::set(&mut buf, &self.remote_gid.0);
        path::FlowLabel::set(&mut buf, self.flow_label);
        path::PacketRate::set(&mut buf, self.packet_rate);
        path::TrafficClass::set(&mut buf, self.traffic_class);
        path::HopLimit::set(&mut buf, self.hop_limit);
        path::Sl::set(&mut buf, self.sl);
        path::SubnetLocal::set(&mut buf, self.subnet_local);
        path::LocalAckTimeout::set(&mut buf, self.local_ack_timeout);
        buf
    }
}

/// A REQ: a request for a connection (IBTA 12.6.5). "Local" is the sender of the REQ.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Req<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Vendor id of ECE, 24 bits, 0 for none.
    pub vendor_id: u32,
    /// Service id that the request is for.
    pub service_id: u64,
    /// GUID of the sender's channel adapter.
    pub local_ca_guid: u64,
    /// Q_Key of the sender, for reliable datagrams only.
    pub local_qkey: u32,
    /// QPN of the sender, 24 bits.
    pub local_qpn: u32,
    /// The most RDMA reads and atomics that the sender serves at a time.
    pub responder_resources: u8,
    /// End-to-end context of the sender, 24 bits, for reliable datagrams only.
    pub local_eecn: u32,
    /// The most RDMA reads and atomics that the sender will have outstanding at a time.
    pub initiator_depth: u8,
    /// End-to-end context of the receiver, 24 bits, for reliable datagrams only.
    pub remote_eecn: u32,
    /// Response timeout of the receiver: a time code, 5 bits.
    pub remote_cm_response_timeout: u8,
    /// Transport service.
    pub transport: Transport,
    /// Set if the sender does end-to-end flow control.
    pub flow_control: bool,
    /// Starting PSN, 24 bits: the first PSN that the sender expects, and so the first that the
    /// receiver of the REQ has to send (IBTA 12.7.31).
    pub starting_psn: u32,
    /// Response timeout of the sender: a time code, 5 bits.
    pub local_cm_response_timeout: u8,
    /// Retry count, 3 bits.
    pub retry_count: u8,
    /// P_Key.
    pub pkey: u16,
    /// Path MTU, 4 bits (`enum ib_mtu`): 1 for 256 bytes to 5 for 4096 bytes.
    pub path_mtu: u8,
    /// Set if a reliable datagram channel exists.
    pub rdc_exists: bool,
    /// RNR retry count, 3 bits; 7 for no limit.
    pub rnr_retry_count: u8,
    /// The most retries of a CM message, 4 bits.
    pub max_cm_retries: u8,
    /// Set if the sender's queue pair uses a shared receive queue.
    pub srq: bool,
    /// The primary path.
    pub primary: ReqPath,
    /// The alternate path, [empty](ReqPath::is_empty) if there is none.
    pub alternate: ReqPath,
    /// Set if the sender supports the suggested alternate path of annex A12.
    pub sap: bool,
    /// Private data, at most 92 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type VendorId = Field<u32, 5, 0, 24>;
type ServiceId = Field<u64, 8, 0, 64>;
type LocalCaGuid = Field<u64, 16, 0, 64>;
type LocalQkey = Field<u32, 28, 0, 32>;
type LocalQpn = Field<u32, 32, 0, 24>;
type ResponderResources = Field<u8, 35, 0, 8>;
type LocalEecn = Field<u32, 36, 0, 24>;
type InitiatorDepth = Field<u8, 39, 0, 8>;
type RemoteEecn = Field<u32, 40, 0, 24>;
type RemoteCmResponseTimeout = Field<u8, 43, 0, 5>;
type TransportServiceType = Field<u8, 43, 5, 2>;
type EndToEndFlowControl = Field<bool, 43, 7, 1>;
type StartingPsn = Field<u32, 44, 0, 24>;
type LocalCmResponseTimeout = Field<u8, 47, 0, 5>;
type RetryCount = Field<u8, 47, 5, 3>;
type PartitionKey = Field<u16, 48, 0, 16>;
type PathMtu = Field<u8, 50, 0, 4>;
type RdcExists = Field<bool, 50, 4, 1>;
type RnrRetryCount = Field<u8, 50, 5, 3>;
type MaxCmRetries = Field<u8, 51, 0, 4>;
type Srq = Field<bool, 51, 4, 1>;
type ExtendedTransportType = Field<u8, 51, 5, 3>;
type PrimaryPath = Bytes<52, { ReqPath::LEN }>;
type AlternatePath = Bytes<96, { ReqPath::LEN }>;
/// The bit "SAP supported", in the last byte of the alternate path.
type SapSupported = Field<bool, 139, 5, 1>;
type ReqPrivateData = PrivateData<140, { Req::PRIVATE_DATA_LEN }>;

impl<'a> Req<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 92;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            vendor_id: VendorId::get(data),
            service_id: ServiceId::get(data),
            local_ca_guid: LocalCaGuid::get(data),
            local_qkey: LocalQkey::get(data),
            local_qpn: LocalQpn::get(data),
            responder_resources: ResponderResources::get(data),
            local_eecn: LocalEecn::get(data),
            initiator_depth: InitiatorDepth::get(data),
            remote_eecn: RemoteEecn::get(data),
            remote_cm_response_timeout: RemoteCmResponseTimeout::get(data),
            transport: Transport::from_codes(
                TransportServiceType::get(data),
                ExtendedTransportType::get(data),
            ),
            flow_control: EndToEndFlowControl::get(data),
            starting_psn: StartingPsn::get(data),
            local_cm_response_timeout: LocalCmResponseTimeout::get(data),
            retry_count: RetryCount::get(data),
            pkey: PartitionKey::get(data),
            path_mtu: PathMtu::get(data),
            rdc_exists: RdcExists::get(data),
            rnr_retry_count: RnrRetryCount::get(data),
            max_cm_retries: MaxCmRetries::get(data),
            srq: Srq::get(data),
            primary: ReqPath::decode(PrimaryPath::get(data)),
            alternate: ReqPath::decode(AlternatePath::get(data)),
            sap: SapSupported::get(data),
            private_data: ReqPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        let (transport, extended) = self.transport.codes();
        LocalCommId::set(data, self.local_comm_id);
        VendorId::set(data, self.vendor_id);
        ServiceId::set(data, self.service_id);
        LocalCaGuid::set(data, self.local_ca_guid);
        LocalQkey::set(data, self.local_qkey);
        LocalQpn::set(data, self.local_qpn);
        ResponderResources::set(data, self.responder_resources);
        LocalEecn::set(data, self.local_eecn);
        InitiatorDepth::set(data, self.initiator_depth);
        RemoteEecn::set(data, self.remote_eecn);
        RemoteCmResponseTimeout::set(data, self.remote_cm_response_timeout);
        TransportServiceType::set(data, transport);
        EndToEndFlowControl::set(data, self.flow_control);
        StartingPsn::set(data, self.starting_psn);
        LocalCmResponseTimeout::set(data, self.local_cm_response_timeout);
        RetryCount::set(data, self.retry_count);
        PartitionKey::set(data, self.pkey);
        PathMtu::set(data, self.path_mtu);
        RdcExists::set(data, self.rdc_exists);
        RnrRetryCount::set(data, self.rnr_retry_count);
        MaxCmRetries::set(data, self.max_cm_retries);
        Srq::set(data, self.srq);
        ExtendedTransportType::set(data, extended);
        PrimaryPath::set(data, &self.primary.encode());
        AlternatePath::set(data, &self.alternate.encode());
        SapSupported::set(data, self.sap);
        ReqPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_req)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, round_trip, FieldSpec};
    use crate::wire::Message;

    const PATH: ReqPath = ReqPath {
        local_lid: 0,
        remote_lid: 0,
        local_gid: Gid::ZERO,
        remote_gid: Gid::ZERO,
        flow_label: 0,
        packet_rate: 0,
        traffic_class: 0,
        hop_limit: 0,
        sl: 0,
        subnet_local: false,
        local_ack_timeout: 0,
    };

    const ZERO: Req<'static> = Req {
        local_comm_id: 0,
        vendor_id: 0,
        service_id: 0,
        local_ca_guid: 0,
        local_qkey: 0,
        local_qpn: 0,
        responder_resources: 0,
        local_eecn: 0,
        initiator_depth: 0,
        remote_eecn: 0,
        remote_cm_response_timeout: 0,
        transport: Transport::Rc,
        flow_control: false,
        starting_psn: 0,
        local_cm_response_timeout: 0,
        retry_count: 0,
        pkey: 0,
        path_mtu: 0,
        rdc_exists: false,
        rnr_retry_count: 0,
        max_cm_retries: 0,
        srq: false,
        primary: PATH,
        alternate: PATH,
        sap: false,
        private_data: &[],
    };

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Req<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.vendor_id = !0, 5, 0, 24),
        (|m| m.service_id = !0, 8, 0, 64),
        (|m| m.local_ca_guid = !0, 16, 0, 64),
        (|m| m.local_qkey = !0, 28, 0, 32),
        (|m| m.local_qpn = !0, 32, 0, 24),
        (|m| m.responder_resources = !0, 35, 0, 8),
        (|m| m.local_eecn = !0, 36, 0, 24),
        (|m| m.initiator_depth = !0, 39, 0, 8),
        (|m| m.remote_eecn = !0, 40, 0, 24),
        (|m| m.remote_cm_response_timeout = !0, 43, 0, 5),
        (|m| m.transport = Transport::Other(!0, 0), 43, 5, 2),
        (|m| m.flow_control = true, 43, 7, 1),
        (|m| m.starting_psn = !0, 44, 0, 24),
        (|m| m.local_cm_response_timeout = !0, 47, 0, 5),
        (|m| m.retry_count = !0, 47, 5, 3),
        (|m| m.pkey = !0, 48, 0, 16),
        (|m| m.path_mtu = !0, 50, 0, 4),
        (|m| m.rdc_exists = true, 50, 4, 1),
        (|m| m.rnr_retry_count = !0, 50, 5, 3),
        (|m| m.max_cm_retries = !0, 51, 0, 4),
        (|m| m.srq = true, 51, 4, 1),
        (|m| m.transport = Transport::Other(0, !0), 51, 5, 3),
        (|m| m.primary.local_lid = !0, 52, 0, 16),
        (|m| m.primary.remote_lid = !0, 54, 0, 16),
        (|m| m.primary.local_gid = Gid([!0; 16]), 56, 0, 128),
        (|m| m.primary.remote_gid = Gid([!0; 16]), 72, 0, 128),
        (|m| m.primary.flow_label = !0, 88, 0, 20),
        (|m| m.primary.packet_rate = !0, 91, 2, 6),
        (|m| m.primary.traffic_class = !0, 92, 0, 8),
        (|m| m.primary.hop_limit = !0, 93, 0, 8),
        (|m| m.primary.sl = !0, 94, 0, 4),
        (|m| m.primary.subnet_local = true, 94, 4, 1),
        (|m| m.primary.local_ack_timeout = !0, 95, 0, 5),
        (|m| m.alternate.local_lid = !0, 96, 0, 16),
        (|m| m.alternate.remote_lid = !0, 98, 0, 16),
        (|m| m.alternate.local_gid = Gid([!0; 16]), 100, 0, 128),
        (|m| m.alternate.remote_gid = Gid([!0; 16]), 116, 0, 128),
        (|m| m.alternate.flow_label = !0, 132, 0, 20),
        (|m| m.alternate.packet_rate = !0, 135, 2, 6),
        (|m| m.alternate.traffic_class = !0, 136, 0, 8),
        (|m| m.alternate.hop_limit = !0, 137, 0, 8),
        (|m| m.alternate.sl = !0, 138, 0, 4),
        (|m| m.alternate.subnet_local = true, 138, 4, 1),
        (|m| m.alternate.local_ack_timeout = !0, 139, 0, 5),
        (|m| m.sap = true, 139, 5, 1),
        (|m| m.private_data = &[!0; 92], 140, 0, 92 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(ZERO, LAYOUT, Message::Req);
        check_private_data(Req::PRIVATE_DATA_LEN, |private_data| {
            Message::Req(Req {
                private_data,
                ..ZERO
            })
        });
    }

    #[test]
    fn round_trips() {
        let primary = ReqPath {
            local_lid: 0x1234,
            remote_lid: 0xffff,
            local_gid: Gid::from_v4([10, 0, 0, 1]),
            remote_gid: Gid::from_v4([10, 0, 0, 2]),
            flow_label: 0xabcde,
            packet_rate: 0x3f,
            traffic_class: 0x81,
            hop_limit: 64,
            sl: 9,
            subnet_local: true,
            local_ack_timeout: 17,
        };
        round_trip(Message::Req(Req {
            local_comm_id: 0xdead_beef,
            vendor_id: 0x15b3,
            service_id: 0x0106_4ee4,
            local_ca_guid: 0x0102_0304_0506_0708,
            local_qpn: 0x11,
            responder_resources: 128,
            initiator_depth: 16,
            remote_cm_response_timeout: 20,
            transport: Transport::Xrc,
            flow_control: true,
            starting_psn: 0xfffffe,
            local_cm_response_timeout: 21,
            retry_count: 7,
            pkey: 0xffff,
            path_mtu: 3,
            rnr_retry_count: 6,
            max_cm_retries: 15,
            srq: true,
            primary,
            alternate: ReqPath {
                hop_limit: 1,
                ..primary
            },
            sap: true,
            private_data: &[0x5a; Req::PRIVATE_DATA_LEN],
            ..ZERO
        }));
    }

    #[test]
    fn transports() {
        for code in 0..4 {
            for extended in 0..8 {
                let transport = Transport::from_codes(code, extended);
                let (c, e) = transport.codes();
                assert_eq!(Transport::from_codes(c, e), transport);
                assert_eq!(
                    matches!(transport, Transport::Other(..)),
                    code == 2 || code == 3 && extended != 1
                );
            }
        }
    }

    #[test]
    fn a_path_without_local_lid_is_empty() {
        assert!(PATH.is_empty());
        let mut path = PATH;
        path.local_lid = 1;
        assert!(!path.is_empty());
        path = PATH;
        path.local_gid = Gid::from_v4([10, 0, 0, 1]);
        assert!(path.is_empty());
        path.local_gid = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 6, 0x6a, 0, 1, 2, 3, 4]);
        assert!(!path.is_empty());
    }
}
