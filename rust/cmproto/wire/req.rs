// SPDX-License-Identifier: GPL-2.0

//! The message REQ: request for communication (IBTA 12.6.5).

use super::field::{layout, Bytes, Field, GidField};
use super::{Data, MAD_LEN};
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

/// The transport service: the transport service type, and the extended transport type.
struct TransportField;

impl TransportField {
    fn get(data: &Data) -> Transport {
        Transport::from_codes(
            Field::<_, 43, 5, 2>::get(data),
            Field::<_, 51, 5, 3>::get(data),
        )
    }

    fn set(data: &mut Data, value: Transport) {
        let (code, extended) = value.codes();
        Field::<_, 43, 5, 2>::set(data, code);
        Field::<_, 51, 5, 3>::set(data, extended);
    }
}

/// Length of a path in a REQ, in bytes.
const REQ_PATH_LEN: usize = 44;

layout! {
    /// A path in a REQ, as seen from the sender: "local" is the sender's end (IBTA 12.6.5).
    #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ReqPath: REQ_PATH_LEN {
        /// LID of the sender's port; 0xffff (permissive) if the path leaves the subnet.
        local_lid: u16 = Field<_, 0, 0, 16>,
        /// LID of the receiver's port; 0xffff if the path leaves the subnet.
        remote_lid: u16 = Field<_, 2, 0, 16>,
        /// GID of the sender's port.
        local_gid: Gid = GidField<4>,
        /// GID of the receiver's port.
        remote_gid: Gid = GidField<20>,
        /// Flow label, 20 bits.
        flow_label: u32 = Field<_, 36, 0, 20>,
        /// Static rate, a 6-bit code (`enum ib_rate`; IBTA 15.2.5.16).
        packet_rate: u8 = Field<_, 39, 2, 6>,
        /// Traffic class, 8 bits.
        traffic_class: u8 = Field<_, 40, 0, 8>,
        /// Hop limit, 8 bits.
        hop_limit: u8 = Field<_, 41, 0, 8>,
        /// Service level, 4 bits.
        sl: u8 = Field<_, 42, 0, 4>,
        /// Set if the path stays in the subnet, so that no GRH is needed.
        subnet_local: bool = Field<_, 42, 4, 1>,
        /// Local ack timeout of the sender: a [time code](crate::time::TimeCode), 5 bits.
        local_ack_timeout: u8 = Field<_, 43, 0, 5>,
    }
}

impl ReqPath {
    /// Returns whether the path is empty, as the alternate path of a REQ without one. As in C, a
    /// path with a local LID, or with a local GID that is made from an OPA LID, is not empty; so on
    /// RoCE there is no alternate path.
    pub const fn is_empty(&self) -> bool {
        self.local_lid == 0 && !self.local_gid.is_opa()
    }
}

/// A path that starts at byte `BYTE` of a REQ.
struct PathField<const BYTE: usize>;

impl<const BYTE: usize> PathField<BYTE> {
    fn get(data: &Data) -> ReqPath {
        ReqPath::decode(Bytes::<BYTE, REQ_PATH_LEN>::get(data))
    }

    fn set(data: &mut Data, value: ReqPath) {
        let mut path = [0; REQ_PATH_LEN];
        value.encode(&mut path);
        Bytes::<BYTE, REQ_PATH_LEN>::set(data, &path);
    }
}

/// The alternate path of a REQ.
type AlternatePath = PathField<96>;

message! {
    /// A REQ: a request for a connection (IBTA 12.6.5). "Local" is the sender of the REQ.
    pub struct Req<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Vendor id of ECE, 24 bits, 0 for none.
        vendor_id: u32 = Field<_, 5, 0, 24>,
        /// Service id that the request is for.
        service_id: u64 = Field<_, 8, 0, 64>,
        /// GUID of the sender's channel adapter.
        local_ca_guid: u64 = Field<_, 16, 0, 64>,
        /// Q_Key of the sender, for reliable datagrams only.
        local_qkey: u32 = Field<_, 28, 0, 32>,
        /// QPN of the sender, 24 bits.
        local_qpn: u32 = Field<_, 32, 0, 24>,
        /// The most RDMA reads and atomics that the sender serves at a time.
        responder_resources: u8 = Field<_, 35, 0, 8>,
        /// End-to-end context of the sender, 24 bits, for reliable datagrams only.
        local_eecn: u32 = Field<_, 36, 0, 24>,
        /// The most RDMA reads and atomics that the sender will have outstanding at a time.
        initiator_depth: u8 = Field<_, 39, 0, 8>,
        /// End-to-end context of the receiver, 24 bits, for reliable datagrams only.
        remote_eecn: u32 = Field<_, 40, 0, 24>,
        /// Response timeout of the receiver: a time code, 5 bits.
        remote_cm_response_timeout: u8 = Field<_, 43, 0, 5>,
        /// Transport service.
        transport: Transport = TransportField,
        /// Set if the sender does end-to-end flow control.
        flow_control: bool = Field<_, 43, 7, 1>,
        /// Starting PSN, 24 bits: the first PSN that the sender expects, and so the first that the
        /// receiver of the REQ has to send (IBTA 12.7.31).
        starting_psn: u32 = Field<_, 44, 0, 24>,
        /// Response timeout of the sender: a time code, 5 bits.
        local_cm_response_timeout: u8 = Field<_, 47, 0, 5>,
        /// Retry count, 3 bits.
        retry_count: u8 = Field<_, 47, 5, 3>,
        /// P_Key.
        pkey: u16 = Field<_, 48, 0, 16>,
        /// Path MTU, 4 bits (`enum ib_mtu`): 1 for 256 bytes to 5 for 4096 bytes.
        path_mtu: u8 = Field<_, 50, 0, 4>,
        /// Set if a reliable datagram channel exists.
        rdc_exists: bool = Field<_, 50, 4, 1>,
        /// RNR retry count, 3 bits; 7 for no limit.
        rnr_retry_count: u8 = Field<_, 50, 5, 3>,
        /// The most retries of a CM message, 4 bits.
        max_cm_retries: u8 = Field<_, 51, 0, 4>,
        /// Set if the sender's queue pair uses a shared receive queue.
        srq: bool = Field<_, 51, 4, 1>,
        /// The primary path.
        primary: ReqPath = PathField<52>,
        /// The alternate path, [empty](ReqPath::is_empty) if there is none.
        alternate: ReqPath = AlternatePath,
        /// Set if the sender supports the suggested alternate path of annex A12.
        sap: bool = Field<_, 139, 5, 1>,
    }
    private data: 92
}

impl Req<'_> {
    /// Writes the alternate path to a REQ that has none yet.
    pub fn write_alternate(mad: &mut [u8; MAD_LEN], path: ReqPath) {
        if let Some((_, data)) = mad.split_last_chunk_mut() {
            AlternatePath::set(data, path);
        }
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
    use crate::wire::testing::{check_layout, round_trip, FieldSpec, ZEROS};
    use crate::wire::Message;

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
        check_layout(Req::decode(&ZEROS), LAYOUT, Message::Req);
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
            ..Req::decode(&ZEROS)
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
        assert!(ReqPath::default().is_empty());
        let mut path = ReqPath::default();
        path.local_lid = 1;
        assert!(!path.is_empty());
        path = ReqPath::default();
        path.local_gid = Gid::from_v4([10, 0, 0, 1]);
        assert!(path.is_empty());
        path.local_gid = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 6, 0x6a, 0, 1, 2, 3, 4]);
        assert!(!path.is_empty());
    }
}
