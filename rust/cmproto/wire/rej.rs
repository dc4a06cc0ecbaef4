// SPDX-License-Identifier: GPL-2.0

//! The message REJ: rejection (IBTA 12.6.7).

use super::field::{Bytes, Field};
use super::{Data, EncodeError, PrivateData, INFO_LEN, MAX_INFO_LEN};
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
        match self {
            Self::Req => 0,
            Self::Rep => 1,
            Self::Other => 2,
        }
    }
}

/// A REJ: rejects a message and ends the connection (IBTA 12.6.7).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rej<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// The message that is rejected.
    pub message: RejMessage,
    /// The number of bytes of `ari` that are used, 0 to 72. A peer can send up to 127, which reads
    /// as 72.
    pub ari_len: u8,
    /// The reason, a [`Reason`](crate::reject::Reason).
    pub reason: u16,
    /// Additional rejection information (ARI), zeros if there is none.
    pub ari: &'a [u8; INFO_LEN],
    /// Private data, at most 148 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type MessageRejected = Field<u8, 8, 0, 2>;
type RejectedInfoLength = Field<u8, 9, 0, 7>;
type RejReason = Field<u16, 10, 0, 16>;
type Ari = Bytes<12, INFO_LEN>;
type RejPrivateData = PrivateData<84, { Rej::PRIVATE_DATA_LEN }>;

impl<'a> Rej<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 148;

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

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            message: RejMessage::from_code(MessageRejected::get(data)),
            ari_len: RejectedInfoLength::get(data).min(MAX_INFO_LEN),
            reason: RejReason::get(data),
            ari: Ari::get(data),
            private_data: RejPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        MessageRejected::set(data, self.message.code());
        RejectedInfoLength::set(data, self.ari_len.min(MAX_INFO_LEN));
        RejReason::set(data, self.reason);
        Ari::set(data, self.ari);
        RejPrivateData::set(data, self.private_data)
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
    use crate::wire::testing::{check_layout, check_private_data, encoded, round_trip, FieldSpec};
    use crate::wire::{decode, Message, HEADER_LEN};

    const ZERO: Rej<'static> = Rej {
        local_comm_id: 0,
        remote_comm_id: 0,
        message: RejMessage::Req,
        ari_len: 0,
        reason: 0,
        ari: &[0; INFO_LEN],
        private_data: &[],
    };

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
        check_layout(ZERO, LAYOUT, Message::Rej);
        check_private_data(Rej::PRIVATE_DATA_LEN, |private_data| {
            Message::Rej(Rej {
                private_data,
                ..ZERO
            })
        });
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
                ..ZERO
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
