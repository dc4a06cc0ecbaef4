// SPDX-License-Identifier: GPL-2.0

//! The message LAP: load alternate path (IBTA 12.8.1).

use super::{
    field::{Field, GidField},
    ReqPath,
};
use crate::addr::Gid;

message! {
    /// A LAP: a request to load an alternate path into an established connection (IBTA 12.8.1).
    pub struct Lap<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
        /// QPN of the receiver, or its end-to-end context, 24 bits.
        remote_qpn_eecn: u32 = Field<_, 12, 0, 24>,
        /// Response timeout of the receiver: a [time code](crate::time::TimeCode), 5 bits.
        remote_cm_response_timeout: u8 = Field<_, 15, 0, 5>,
        /// LID of the sender's port.
        alternate_local_lid: u16 = Field<_, 20, 0, 16>,
        /// LID of the receiver's port.
        alternate_remote_lid: u16 = Field<_, 22, 0, 16>,
        /// GID of the sender's port.
        alternate_local_gid: Gid = GidField<24>,
        /// GID of the receiver's port.
        alternate_remote_gid: Gid = GidField<40>,
        /// Flow label, 20 bits.
        alternate_flow_label: u32 = Field<_, 56, 0, 20>,
        /// Traffic class, 8 bits.
        alternate_traffic_class: u8 = Field<_, 59, 0, 8>,
        /// Hop limit, 8 bits.
        alternate_hop_limit: u8 = Field<_, 60, 0, 8>,
        /// Static rate, a 6-bit code (`enum ib_rate`).
        alternate_packet_rate: u8 = Field<_, 61, 2, 6>,
        /// Service level, 4 bits.
        alternate_sl: u8 = Field<_, 62, 0, 4>,
        /// Set if the path stays in the subnet.
        alternate_subnet_local: bool = Field<_, 62, 4, 1>,
        /// Local ack timeout of the sender: a time code, 5 bits.
        alternate_local_ack_timeout: u8 = Field<_, 63, 0, 5>,
    }
    private data: 168
}

impl Lap<'_> {
    /// Returns the path as one of a REQ.
    pub const fn path(&self) -> ReqPath {
        ReqPath {
            local_lid: self.alternate_local_lid,
            remote_lid: self.alternate_remote_lid,
            local_gid: self.alternate_local_gid,
            remote_gid: self.alternate_remote_gid,
            flow_label: self.alternate_flow_label,
            packet_rate: self.alternate_packet_rate,
            traffic_class: self.alternate_traffic_class,
            hop_limit: self.alternate_hop_limit,
            sl: self.alternate_sl,
            subnet_local: self.alternate_subnet_local,
            local_ack_timeout: self.alternate_local_ack_timeout,
        }
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
    use crate::wire::testing::{check_layout, round_trip, FieldSpec, ZEROS};
    use crate::wire::Message;

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
        check_layout(Lap::decode(&ZEROS), LAYOUT, Message::Lap);
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
