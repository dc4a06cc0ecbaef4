// SPDX-License-Identifier: GPL-2.0

//! The message REJ: rejection (IBTA 12.6.7).

use super::field::{impl_code_value, Bytes, Field};
use super::{InfoLength, INFO_LEN};
use crate::reject::Reason;

/// The message that a REJ rejects (IBTA 12.6.7).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum RejMessage {
    /// REQ (0).
    Req,
    /// REP (1).
    Rep,
    /// An unspecified message (2; the reserved code 3 reads as this, too).
    Other,
}

impl RejMessage {
    /// Returns the message of a code. Only the two low bits of `code` are used.
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::Req,
            1 => Self::Rep,
            _ => Self::Other,
        }
    }

    /// Returns the code, 0 to 2.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl_code_value!(RejMessage: 2);

message! {
    /// A REJ: rejects a message and ends the connection (IBTA 12.6.7).
    pub struct Rej<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
        /// The message that is rejected.
        message: RejMessage = Field<_, 8, 0, 2>,
        /// The number of bytes of `ari` that are used, 0 to 72. A peer can send up to 127, which
        /// reads as 72.
        ari_len: u8 = InfoLength<9, 7>,
        /// The reason, a [`Reason`](crate::reject::Reason).
        reason: u16 = Field<_, 10, 0, 16>,
        /// Additional rejection information (ARI), zeros if there is none.
        ari: &'a [u8; INFO_LEN] = Bytes<12, INFO_LEN>,
    }
    private data: 148
}

impl<'a> Rej<'a> {
    /// Returns the ARI that is used: the first `ari_len` bytes of `ari`.
    pub fn information(&self) -> &'a [u8] {
        let len = usize::from(self.ari_len);
        self.ari.get(..len).unwrap_or(self.ari)
    }

    /// Returns the CA GUID of a sender that gave up waiting for an answer (IBTA 12.6.7.2, reason
    /// 4). It does not know the communication id of the receiver.
    pub fn timed_out_guid(&self) -> Option<u64> {
        if Reason(self.reason) != Reason::TIMEOUT {
            return None;
        }
        self.ari.first_chunk().copied().map(u64::from_be_bytes)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_rej)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, encoded, round_trip, FieldSpec, ZEROS};
    use crate::wire::{decode, Message, HEADER_LEN};

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Rej<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.message = RejMessage::Rep, 8, 1, 1),
        (|m| m.message = RejMessage::Other, 8, 0, 1),
        (|m| m.reason = !0, 10, 0, 16),
        (|m| m.ari = &[!0; INFO_LEN], 12, 0, 72 * 8),
        (|m| m.private_data = &[!0; 148], 84, 0, 148 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(Rej::decode(&ZEROS), LAYOUT, Message::Rej);
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Rej(Rej {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            message: RejMessage::Other,
            ari_len: 8,
            reason: 28,
            ari: &[0xa5; INFO_LEN],
            private_data: &[0x5a; Rej::PRIVATE_DATA_LEN],
        }));
    }

    #[test]
    fn information_length_is_clamped() {
        for len in 0..=255u8 {
            let mut mad = encoded(&Message::Rej(Rej {
                ari_len: len,
                ..Rej::decode(&ZEROS)
            }));
            assert_eq!(mad[HEADER_LEN + 9], len.min(72) << 1);
            mad[HEADER_LEN + 9] = len;
            let Ok((_, Message::Rej(m))) = decode(&mad) else {
                panic!()
            };
            assert_eq!(m.ari_len, (len >> 1).min(72));
            assert_eq!(m.information().len(), usize::from(m.ari_len));
        }
    }

    #[test]
    fn codes() {
        for code in 0..=255 {
            assert_eq!(RejMessage::from_code(code).code(), (code & 3).min(2));
        }
    }
}
