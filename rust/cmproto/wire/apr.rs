// SPDX-License-Identifier: GPL-2.0

//! The message APR: alternate path response (IBTA 12.8.2).

use super::field::{Bytes, Field};
use super::{InfoLength, INFO_LEN};

message! {
    /// An APR: the answer to a LAP (IBTA 12.8.2).
    pub struct Apr<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
        /// The number of bytes of `info` that are used, 0 to 72. A peer can send up to 255, which
        /// reads as 72.
        info_len: u8 = InfoLength<8, 8>,
        /// Status: 0 if the path was loaded.
        status: u8 = Field<_, 9, 0, 8>,
        /// Additional information, zeros if there is none.
        info: &'a [u8; INFO_LEN] = Bytes<12, INFO_LEN>,
    }
    private data: 148
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_apr)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, encoded, round_trip, FieldSpec, ZEROS};
    use crate::wire::{decode, Message, HEADER_LEN};

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
        check_layout(Apr::decode(&ZEROS), LAYOUT, Message::Apr);
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
                ..Apr::decode(&ZEROS)
            }));
            assert_eq!(mad[HEADER_LEN + 8], len.min(72));
            mad[HEADER_LEN + 8] = len;
            let Ok((_, Message::Apr(m))) = decode(&mad) else {
                panic!()
            };
            assert_eq!(m.info_len, len.min(72));
        }
    }
}
