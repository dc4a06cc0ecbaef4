// SPDX-License-Identifier: GPL-2.0

//! The message DREP: reply to a request to disconnect (IBTA 12.6.11).

use super::field::Field;
use super::{Data, EncodeError, PrivateData};

/// A DREP: the answer to a DREQ (IBTA 12.6.11).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Drep<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// Private data, at most 224 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type DrepPrivateData = PrivateData<8, { Drep::PRIVATE_DATA_LEN }>;

impl<'a> Drep<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 224;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            private_data: DrepPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        DrepPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_drep)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, round_trip, FieldSpec};
    use crate::wire::Message;

    const ZERO: Drep<'static> = Drep {
        local_comm_id: 0,
        remote_comm_id: 0,
        private_data: &[],
    };

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Drep<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.private_data = &[!0; 224], 8, 0, 224 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(ZERO, LAYOUT, Message::Drep);
        check_private_data(Drep::PRIVATE_DATA_LEN, |private_data| {
            Message::Drep(Drep {
                private_data,
                ..ZERO
            })
        });
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Drep(Drep {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            private_data: &[0x5a; Drep::PRIVATE_DATA_LEN],
        }));
    }
}
