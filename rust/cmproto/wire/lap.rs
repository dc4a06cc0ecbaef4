// SPDX-License-Identifier: GPL-2.0

//! The message LAP: load alternate path (IBTA 12.8.1).

use super::field::{Bytes, Field};
use super::{Data, EncodeError, PrivateData};
use crate::addr::Gid;

/// A LAP: a request to load an alternate path into an established connection (IBTA 12.8.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lap<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// QPN of the receiver, or its end-to-end context, 24 bits.
    pub remote_qpn_eecn: u32,
    /// Response timeout of the receiver: a [time code](crate::time::TimeCode), 5 bits.
    pub remote_cm_response_timeout: u8,
    /// LID of the sender's port.
    pub alternate_local_lid: u16,
    /// LID of the receiver's port.
    pub alternate_remote_lid: u16,
    /// GID of the sender's port.
    pub alternate_local_gid: Gid,
    /// GID of the receiver's port.
    pub alternate_remote_gid: Gid,
    /// Flow label, 20 bits.
    pub alternate_flow_label: u32,
    /// Traffic class, 8 bits.
    pub alternate_traffic_class: u8,
    /// Hop limit, 8 bits.
    pub alternate_hop_limit: u8,
    /// Static rate, a 6-bit code (`enum ib_rate`).
    pub alternate_packet_rate: u8,
    /// Service level, 4 bits.
    pub alternate_sl: u8,
    /// Set if the path stays in the subnet.
    pub alternate_subnet_local: bool,
    /// Local ack timeout of the sender: a time code, 5 bits.
    pub alternate_local_ack_timeout: u8,
    /// Private data, at most 168 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type RemoteQpnEecn = Field<u32, 12, 0, 24>;
type RemoteCmResponseTimeout = Field<u8, 15, 0, 5>;
type LocalPortLid = Field<u16, 20, 0, 16>;
type RemotePortLid = Field<u16, 22, 0, 16>;
type LocalPortGid = Bytes<24, 16>;
type RemotePortGid = Bytes<40, 16>;
type FlowLabel = Field<u32, 56, 0, 20>;
type TrafficClass = Field<u8, 59, 0, 8>;
type HopLimit = Field<u8, 60, 0, 8>;
type PacketRate = Field<u8, 61, 2, 6>;
type Sl = Field<u8, 62, 0, 4>;
type SubnetLocal = Field<bool, 62, 4, 1>;
type LocalAckTimeout = Field<u8, 63, 0, 5>;
type LapPrivateData = PrivateData<64, { Lap::PRIVATE_DATA_LEN }>;

impl<'a> Lap<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 168;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            remote_qpn_eecn: RemoteQpnEecn::get(data),
            remote_cm_response_timeout: RemoteCmResponseTimeout::get(data),
            alternate_local_lid: LocalPortLid::get(data),
            alternate_remote_lid: RemotePortLid::get(data),
            alternate_local_gid: Gid(*LocalPortGid::get(data)),
            alternate_remote_gid: Gid(*RemotePortGid::get(data)),
            alternate_flow_label: FlowLabel::get(data),
            alternate_traffic_class: TrafficClass::get(data),
            alternate_hop_limit: HopLimit::get(data),
            alternate_packet_rate: PacketRate::get(data),
            alternate_sl: Sl::get(data),
            alternate_subnet_local: SubnetLocal::get(data),
            alternate_local_ack_timeout: LocalAckTimeout::get(data),
            private_data: LapPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        RemoteQpnEecn::set(data, self.remote_qpn_eecn);
        RemoteCmResponseTimeout::set(data, self.remote_cm_response_timeout);
        LocalPortLid::set(data, self.alternate_local_lid);
        RemotePortLid::set(data, self.alternate_remote_lid);
        LocalPortGid::set(data, &self.alternate_local_gid.0);
        RemotePortGid::set(data, &self.alternate_remote_gid.0);
        FlowLabel::set(data, self.alternate_flow_label);
        TrafficClass::set(data, self.alternate_traffic_class);
        HopLimit::set(data, self.alternate_hop_limit);
        PacketRate::set(data, self.alternate_packet_rate);
        Sl::set(data, self.alternate_sl);
        SubnetLocal::set(data, self.alternate_subnet_local);
        LocalAckTimeout::set(data, self.alternate_local_ack_timeout);
        LapPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_lap)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, round_trip, FieldSpec};
    use crate::wire::Message;

    const ZERO: Lap<'static> = Lap {
        local_comm_id: 0,
        remote_comm_id: 0,
        remote_qpn_eecn: 0,
        remote_cm_response_timeout: 0,
        alternate_local_lid: 0,
        alternate_remote_lid: 0,
        alternate_local_gid: Gid::ZERO,
        alternate_remote_gid: Gid::ZERO,
        alternate_flow_label: 0,
        alternate_traffic_class: 0,
        alternate_hop_limit: 0,
        alternate_packet_rate: 0,
        alternate_sl: 0,
        alternate_subnet_local: false,
        alternate_local_ack_timeout: 0,
        private_data: &[],
    };

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Lap<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.remote_qpn_eecn = !0, 12, 0, 24),
        (|m| m.remote_cm_response_timeout = !0, 15, 0, 5),
        (|m| m.alternate_local_lid = !0, 20, 0, 16),
        (|m| m.alternate_remote_lid = !0, 22, 0, 16),
        (|m| m.alternate_local_gid = Gid([!0; 16]), 24, 0, 128),
        (|m| m.alternate_remote_gid = Gid([!0; 16]), 40, 0, 128),
        (|m| m.alternate_flow_label = !0, 56, 0, 20),
        (|m| m.alternate_traffic_class = !0, 59, 0, 8),
        (|m| m.alternate_hop_limit = !0, 60, 0, 8),
        (|m| m.alternate_packet_rate = !0, 61, 2, 6),
        (|m| m.alternate_sl = !0, 62, 0, 4),
        (|m| m.alternate_subnet_local = true, 62, 4, 1),
        (|m| m.alternate_local_ack_timeout = !0, 63, 0, 5),
        (|m| m.private_data = &[!0; 168], 64, 0, 168 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(ZERO, LAYOUT, Message::Lap);
        check_private_data(Lap::PRIVATE_DATA_LEN, |private_data| {
            Message::Lap(Lap {
                private_data,
                ..ZERO
            })
        });
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Lap(Lap {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            remote_qpn_eecn: 0x123456,
            remote_cm_response_timeout: 20,
            alternate_local_lid: 0x1234,
            alternate_remote_lid: 0x4321,
            alternate_local_gid: Gid([1; 16]),
            alternate_remote_gid: Gid([2; 16]),
            alternate_flow_label: 0xabcde,
            alternate_traffic_class: 0x81,
            alternate_hop_limit: 64,
            alternate_packet_rate: 0x3f,
            alternate_sl: 9,
            alternate_subnet_local: true,
            alternate_local_ack_timeout: 17,
            private_data: &[0x5a; Lap::PRIVATE_DATA_LEN],
        }));
    }
}
