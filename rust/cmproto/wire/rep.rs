// SPDX-License-Identifier: GPL-2.0

//! The message REP: reply to a request for communication (IBTA 12.6.8).

use super::field::Field;
use super::{Data, EncodeError, PrivateData};

/// A REP: the answer to a REQ (IBTA 12.6.8). "Local" is the sender of the REP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rep<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// Q_Key of the sender, for reliable datagrams only.
    pub local_qkey: u32,
    /// QPN of the sender, 24 bits. It is 0 if the sender is the target of an extended reliable
    /// connection, whose QPN is in `local_eecn`.
    pub local_qpn: u32,
    /// End-to-end context of the sender, 24 bits.
    pub local_eecn: u32,
    /// Vendor id of ECE, 24 bits, 0 for none. On the wire it is three separate bytes.
    pub vendor_id: u32,
    /// Starting PSN, 24 bits: the first PSN that the sender expects, and so the first that the
    /// receiver of the REP has to send (IBTA 12.7.31).
    pub starting_psn: u32,
    /// The most RDMA reads and atomics that the sender serves at a time.
    pub responder_resources: u8,
    /// The most RDMA reads and atomics that the sender will have outstanding at a time.
    pub initiator_depth: u8,
    /// Ack delay of the sender: a [time code](crate::time::TimeCode), 5 bits.
    pub target_ack_delay: u8,
    /// Result for the alternate path, 2 bits: 0 accepted, 1 not supported, 2 rejected.
    pub failover_accepted: u8,
    /// Set if the sender does end-to-end flow control.
    pub flow_control: bool,
    /// RNR retry count, 3 bits; 7 for no limit.
    pub rnr_retry_count: u8,
    /// Set if the sender's queue pair uses a shared receive queue.
    pub srq: bool,
    /// GUID of the sender's channel adapter.
    pub local_ca_guid: u64,
    /// Private data, at most 196 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type LocalQkey = Field<u32, 8, 0, 32>;
type LocalQpn = Field<u32, 12, 0, 24>;
type LocalEecn = Field<u32, 16, 0, 24>;
type VendorIdH = Field<u8, 15, 0, 8>;
type VendorIdM = Field<u8, 19, 0, 8>;
type VendorIdL = Field<u8, 23, 0, 8>;
type StartingPsn = Field<u32, 20, 0, 24>;
type ResponderResources = Field<u8, 24, 0, 8>;
type InitiatorDepth = Field<u8, 25, 0, 8>;
type TargetAckDelay = Field<u8, 26, 0, 5>;
type FailoverAccepted = Field<u8, 26, 5, 2>;
type EndToEndFlowControl = Field<bool, 26, 7, 1>;
type RnrRetryCount = Field<u8, 27, 0, 3>;
type Srq = Field<bool, 27, 3, 1>;
type LocalCaGuid = Field<u64, 28, 0, 64>;
type RepPrivateData = PrivateData<36, { Rep::PRIVATE_DATA_LEN }>;

impl<'a> Rep<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 196;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            local_qkey: LocalQkey::get(data),
            local_qpn: LocalQpn::get(data),
            local_eecn: LocalEecn::get(data),
            vendor_id: u32::from_be_bytes([
                0,
                VendorIdH::get(data),
                VendorIdM::get(data),
                VendorIdL::get(data),
            ]),
            starting_psn: StartingPsn::get(data),
            responder_resources: ResponderResources::get(data),
            initiator_depth: InitiatorDepth::get(data),
            target_ack_delay: TargetAckDelay::get(data),
            failover_accepted: FailoverAccepted::get(data),
            flow_control: EndToEndFlowControl::get(data),
            rnr_retry_count: RnrRetryCount::get(data),
            srq: Srq::get(data),
            local_ca_guid: LocalCaGuid::get(data),
            private_data: RepPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        LocalQkey::set(data, self.local_qkey);
        LocalQpn::set(data, self.local_qpn);
        LocalEecn::set(data, self.local_eecn);
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        VendorIdH::set(data, high);
        VendorIdM::set(data, middle);
        VendorIdL::set(data, low);
        StartingPsn::set(data, self.starting_psn);
        ResponderResources::set(data, self.responder_resources);
        InitiatorDepth::set(data, self.initiator_depth);
        TargetAckDelay::set(data, self.target_ack_delay);
        FailoverAccepted::set(data, self.failover_accepted);
        EndToEndFlowControl::set(data, self.flow_control);
        RnrRetryCount::set(data, self.rnr_retry_count);
        Srq::set(data, self.srq);
        LocalCaGuid::set(data, self.local_ca_guid);
        RepPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_rep)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, round_trip, FieldSpec};
    use crate::wire::Message;

    const ZERO: Rep<'static> = Rep {
        local_comm_id: 0,
        remote_comm_id: 0,
        local_qkey: 0,
        local_qpn: 0,
        local_eecn: 0,
        vendor_id: 0,
        starting_psn: 0,
        responder_resources: 0,
        initiator_depth: 0,
        target_ack_delay: 0,
        failover_accepted: 0,
        flow_control: false,
        rnr_retry_count: 0,
        srq: false,
        local_ca_guid: 0,
        private_data: &[],
    };

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
        check_layout(ZERO, LAYOUT, Message::Rep);
        check_private_data(Rep::PRIVATE_DATA_LEN, |private_data| {
            Message::Rep(Rep {
                private_data,
                ..ZERO
            })
        });
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
