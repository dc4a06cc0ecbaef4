// SPDX-License-Identifier: GPL-2.0

//! The message APR: alternate path response (IBTA 12.8.2).

use super::field::{Bytes, Field};
use super::{Data, EncodeError, PrivateData, INFO_LEN, MAX_INFO_LEN};

/// An APR: the answer to a LAP (IBTA 12.8.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Apr<'a> {
    /// Communication id of the sender.
    pub local_comm_id: u32,
    /// Communication id of the receiver.
    pub remote_comm_id: u32,
    /// The number of bytes of `info` that are used, 0 to 72. A peer can send up to 255, which reads
    /// as 72.
    pub info_len: u8,
    /// Status: 0 if the path was loaded.
    pub status: u8,
    /// Additional information, zeros if there is none.
    pub info: &'a [u8; INFO_LEN],
    /// Private data, at most 148 bytes.
    pub private_data: &'a [u8],
}

type LocalCommId = Field<u32, 0, 0, 32>;
type RemoteCommId = Field<u32, 4, 0, 32>;
type AdditionalInformationLength = Field<u8, 8, 0, 8>;
type ApStatus = Field<u8, 9, 0, 8>;
type AdditionalInformation = Bytes<12, INFO_LEN>;
type AprPrivateData = PrivateData<84, { Apr::PRIVATE_DATA_LEN }>;

impl<'a> Apr<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 148;

    /// Returns the additional information that is used: the first `info_len` bytes of `info`.
    pub fn information(&self) -> &'a [u8] {
        let len = usize::from(self.info_len);
        self.info.get(..len).unwrap_or(self.info)
    }

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            local_comm_id: LocalCommId::get(data),
            remote_comm_id: RemoteCommId::get(data),
            info_len: AdditionalInformationLength::get(data).min(MAX_INFO_LEN),
            status: ApStatus::get(data),
            info: AdditionalInformation::get(data),
            private_data: AprPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        LocalCommId::set(data, self.local_comm_id);
        RemoteCommId::set(data, self.remote_comm_id);
        AdditionalInformationLength::set(data, self.info_len.min(MAX_INFO_LEN));
        ApStatus::set(data, self.status);
        AdditionalInformation::set(data, self.info);
        AprPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_apr)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, encoded, round_trip, FieldSpec};
    use crate::wire::{decode, Message, HEADER_LEN};

    const ZERO: Apr<'static> = Apr {
        local_comm_id: 0,
        remote_comm_id: 0,
        info_len: 0,
        status: 0,
        info: &[0; INFO_LEN],
        private_data: &[],
    };

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Apr<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.status = !0, 9, 0, 8),
        (|m| m.info = &[!0; INFO_LEN], 12, 0, 72 * 8),
        (|m| m.private_data = &[!0; 148], 84, 0, 148 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(ZERO, LAYOUT, Message::Apr);
        check_private_data(Apr::PRIVATE_DATA_LEN, |private_data| {
            Message::Apr(Apr {
                private_data,
                ..ZERO
            })
        });
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Apr(Apr {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            info_len: 3,
            status: 2,
            info: &[0xa5; INFO_LEN],
            private_data: &[0x5a; Apr::PRIVATE_DATA_LEN],
        }));
    }

    #[test]
    fn information_length_is_clamped() {
        for len in 0..=255u8 {
            let mut mad = encoded(&Message::Apr(Apr {
                info_len: len,
                ..ZERO
            }));
            assert_eq!(mad[HEADER_LEN + 8], len.min(72));
            mad[HEADER_LEN + 8] = len;
            let Ok((_, Message::Apr(m))) = decode(&mad) else {
                panic!()
            };
            assert_eq!(m.info_len, len.min(72));
            assert_eq!(m.information().len(), usize::from(m.info_len));
        }
    }
}
