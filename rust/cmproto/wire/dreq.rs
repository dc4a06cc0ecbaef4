// SPDX-License-Identifier: GPL-2.0

//! The message DREQ: request to disconnect (IBTA 12.6.10).

use super::field::Field;
use super::{Data, EncodeError, PrivateData};

/// A DREQ: a request to disconnect (IBTA 12.6.10).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Dreq<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// QPN of the receiver, or its end-to-end context, 24 bits.
    pub remote_qpn_eecn: u32,
    /// Private data, at most 220 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type RemoteQpnEecn = Field<u32, 8, 0, 24>;
type DreqPrivateData = PrivateData<12, { Dreq::PRIVATE_DATA_LEN }>;

impl<'a> Dreq<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 220;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            remote_qpn_eecn: RemoteQpnEecn::get(data),
            private_data: DreqPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        RemoteQpnEecn::set(data, self.remote_qpn_eecn);
        DreqPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_dreq)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, round_trip, FieldSpec};
    use crate::wire::Message;

    const ZERO: Dreq<'static> = Dreq {
        local_comm_id: 0,
        remote_comm_id: 0,
        remote_qpn_eecn: 0,
        private_data: &[],
    };

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Dreq<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.remote_qpn_eecn = !0, 8, 0, 24),
        (|m| m.private_data = &[!0; 220], 12, 0, 220 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(ZERO, LAYOUT, Message::Dreq);
        check_private_data(Dreq::PRIVATE_DATA_LEN, |private_data| {
            Message::Dreq(Dreq {
                private_data,
                ..ZERO
            })
        });
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Dreq(Dreq {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            remote_qpn_eecn: 0x123456,
            private_data: &[0x5a; Dreq::PRIVATE_DATA_LEN],
        }));
    }
}
