// SPDX-License-Identifier: GPL-2.0

//! The message MRA: message receipt acknowledgement, which asks the peer for patience (IBTA
//! 12.6.6).

use super::field::{impl_code_value, Field};

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
        self as u8
    }
}

impl_code_value!(MraMessage: 2);

message! {
    /// An MRA: acknowledges a message that will be answered later (IBTA 12.6.6).
    pub struct Mra<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
        /// The message that was received.
        message: MraMessage = Field<_, 8, 0, 2>,
        /// The time for which the receiver of the MRA should wait: a [time
        /// code](crate::time::TimeCode), 5 bits.
        service_timeout: u8 = Field<_, 9, 0, 5>,
    }
    private data: 222
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_mra)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, round_trip, FieldSpec, ZEROS};
    use crate::wire::Message;

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
        check_layout(Mra::decode(&ZEROS), LAYOUT, Message::Mra);
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
