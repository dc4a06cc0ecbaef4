// SPDX-License-Identifier: GPL-2.0

//! The message MRA: message receipt acknowledgement, which asks the peer for patience (IBTA
//! 12.6.6).

use super::field::Field;
use super::{Data, EncodeError, PrivateData};

/// The message that an MRA acknowledges (IBTA 12.6.6).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum MraMessage {
    /// REQ (0).
    Req,
    /// REP (1).
    Rep,
    /// LAP (2).
    Other,
    /// The reserved code (3): such an MRA is ignored.
    Reserved,
}

impl MraMessage {
    /// Returns the message of a code. Only the two low bits of `code` are used.
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::Req,
            1 => Self::Rep,
            2 => Self::Other,
            _ => Self::Reserved,
        }
    }

    /// Returns the code, 0 to 3.
    pub const fn code(self) -> u8 {
        match self {
            Self::Req => 0,
            Self::Rep => 1,
            Self::Other => 2,
            Self::Reserved => 3,
        }
    }
}

/// An MRA: acknowledges a message that will be answered later (IBTA 12.6.6).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mra<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// The message that was received.
    pub message: MraMessage,
    /// The time for which the receiver of the MRA should wait: a [time
    /// code](crate::time::TimeCode), 5 bits.
    pub service_timeout: u8,
    /// Private data, at most 222 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type MessageMraed = Field<u8, 8, 0, 2>;
type ServiceTimeout = Field<u8, 9, 0, 5>;
type MraPrivateData = PrivateData<10, { Mra::PRIVATE_DATA_LEN }>;

impl<'a> Mra<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 222;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            message: MraMessage::from_code(MessageMraed::get(data)),
            service_timeout: ServiceTimeout::get(data),
            private_data: MraPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        MessageMraed::set(data, self.message.code());
        ServiceTimeout::set(data, self.service_timeout);
        MraPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_mra)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, round_trip, FieldSpec};
    use crate::wire::Message;

    const ZERO: Mra<'static> = Mra {
        local_comm_id: 0,
        remote_comm_id: 0,
        message: MraMessage::Req,
        service_timeout: 0,
        private_data: &[],
    };

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Mra<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.message = MraMessage::Reserved, 8, 0, 2),
        (|m| m.service_timeout = !0, 9, 0, 5),
        (|m| m.private_data = &[!0; 222], 10, 0, 222 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(ZERO, LAYOUT, Message::Mra);
        check_private_data(Mra::PRIVATE_DATA_LEN, |private_data| {
            Message::Mra(Mra {
                private_data,
                ..ZERO
            })
        });
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Mra(Mra {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            message: MraMessage::Rep,
            service_timeout: 24,
            private_data: &[0x5a; Mra::PRIVATE_DATA_LEN],
        }));
    }

    #[test]
    fn codes() {
        for code in 0..=255 {
            assert_eq!(MraMessage::from_code(code).code(), code & 3);
        }
    }
}
