// SPDX-License-Identifier: GPL-2.0

//! The message REP: reply to a request for communication (IBTA 12.6.8).

use super::field::{Field, SplitField};

message! {
    /// A REP: the answer to a REQ (IBTA 12.6.8). "Local" is the sender of the REP.
    pub struct Rep<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
        /// Q_Key of the sender, for reliable datagrams only.
        local_qkey: u32 = Field<_, 8, 0, 32>,
        /// QPN of the sender, 24 bits. It is 0 if the sender is the target of an extended reliable
        /// connection, whose QPN is in `local_eecn`.
        local_qpn: u32 = Field<_, 12, 0, 24>,
        /// End-to-end context of the sender, 24 bits.
        local_eecn: u32 = Field<_, 16, 0, 24>,
        /// Vendor id of ECE, 24 bits, 0 for none. On the wire it is three separate bytes.
        vendor_id: u32 = SplitField<15, 19, 23>,
        /// Starting PSN, 24 bits: the first PSN that the sender expects, and so the first that the
        /// receiver of the REP has to send (IBTA 12.7.31).
        starting_psn: u32 = Field<_, 20, 0, 24>,
        /// The most RDMA reads and atomics that the sender serves at a time.
        responder_resources: u8 = Field<_, 24, 0, 8>,
        /// The most RDMA reads and atomics that the sender will have outstanding at a time.
        initiator_depth: u8 = Field<_, 25, 0, 8>,
        /// Ack delay of the sender: a [time code](crate::time::TimeCode), 5 bits.
        target_ack_delay: u8 = Field<_, 26, 0, 5>,
        /// Result for the alternate path, 2 bits: 0 accepted, 1 not supported, 2 rejected.
        failover_accepted: u8 = Field<_, 26, 5, 2>,
        /// Set if the sender does end-to-end flow control.
        flow_control: bool = Field<_, 26, 7, 1>,
        /// RNR retry count, 3 bits; 7 for no limit.
        rnr_retry_count: u8 = Field<_, 27, 0, 3>,
        /// Set if the sender's queue pair uses a shared receive queue.
        srq: bool = Field<_, 27, 3, 1>,
        /// GUID of the sender's channel adapter.
        local_ca_guid: u64 = Field<_, 28, 0, 64>,
    }
    private data: 196
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_rep)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, round_trip, FieldSpec, ZEROS};
    use crate::wire::Message;

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Rep<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.local_qkey = !0, 8, 0, 32),
        (|m| m.local_qpn = !0, 12, 0, 24),
        (|m| m.local_eecn = !0, 16, 0, 24),
        (|m| m.vendor_id = 0xff0000, 15, 0, 8),
        (|m| m.vendor_id = 0x00ff00, 19, 0, 8),
        (|m| m.vendor_id = 0x0000ff, 23, 0, 8),
        (|m| m.starting_psn = !0, 20, 0, 24),
        (|m| m.responder_resources = !0, 24, 0, 8),
        (|m| m.initiator_depth = !0, 25, 0, 8),
        (|m| m.target_ack_delay = !0, 26, 0, 5),
        (|m| m.failover_accepted = !0, 26, 5, 2),
        (|m| m.flow_control = true, 26, 7, 1),
        (|m| m.rnr_retry_count = !0, 27, 0, 3),
        (|m| m.srq = true, 27, 3, 1),
        (|m| m.local_ca_guid = !0, 28, 0, 64),
        (|m| m.private_data = &[!0; 196], 36, 0, 196 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(Rep::decode(&ZEROS), LAYOUT, Message::Rep);
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Rep(Rep {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            local_qkey: 0x8001_0000,
            local_qpn: 0x123456,
            local_eecn: 0x654321,
            vendor_id: 0x0015b3,
            starting_psn: 0xfffffe,
            responder_resources: 16,
            initiator_depth: 128,
            target_ack_delay: 15,
            failover_accepted: 2,
            flow_control: true,
            rnr_retry_count: 6,
            srq: true,
            local_ca_guid: 0x0102_0304_0506_0708,
            private_data: &[0x5a; Rep::PRIVATE_DATA_LEN],
        }));
    }
}
