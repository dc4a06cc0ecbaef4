// SPDX-License-Identifier: GPL-2.0

//! The messages SIDR_REQ and SIDR_REP: service ID resolution (IBTA 12.11).

use super::field::{Bytes, Field, SplitField};
use super::{InfoLength, INFO_LEN};

message! {
    /// A SIDR_REQ: asks for the queue pair of a service id (IBTA 12.11.1).
    pub struct SidrReq<'a> {
        /// Request id, chosen by the sender.
        request_id: u32 = Field<_, 0, 0, 32>,
        /// P_Key.
        pkey: u16 = Field<_, 4, 0, 16>,
        /// Service id that the request is for.
        service_id: u64 = Field<_, 8, 0, 64>,
    }
    private data: 216
}

message! {
    /// A SIDR_REP: the answer to a SIDR_REQ (IBTA 12.11.2).
    pub struct SidrRep<'a> {
        /// Request id of the SIDR_REQ.
        request_id: u32 = Field<_, 0, 0, 32>,
        /// Status: 0 success, 1 service id not supported, 2 rejected by the service, 3 no queue
        /// pair, 4 redirect, 5 version not supported (IBTA 12.11.2.3).
        status: u8 = Field<_, 4, 0, 8>,
        /// The number of bytes of `info` that are used, 0 to 72. A peer can send up to 255, which
        /// reads as 72.
        info_len: u8 = InfoLength<5, 8>,
        /// Vendor id of ECE, 24 bits, 0 for none. C sends only its low 16 bits, and does not read
        /// it.
        vendor_id: u32 = SplitField<6, 7, 11>,
        /// QPN of the service, 24 bits.
        qpn: u32 = Field<_, 8, 0, 24>,
        /// Service id.
        service_id: u64 = Field<_, 12, 0, 64>,
        /// Q_Key of the queue pair.
        qkey: u32 = Field<_, 20, 0, 32>,
        /// Additional information, zeros if there is none.
        info: &'a [u8; INFO_LEN] = Bytes<24, INFO_LEN>,
    }
    private data: 136
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_sidr)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, encoded, round_trip, FieldSpec, ZEROS};
    use crate::wire::{decode, Message, HEADER_LEN};

    #[rustfmt::skip]
    const REQ_LAYOUT: &[FieldSpec<SidrReq<'static>>] = &[
        (|m| m.request_id = !0, 0, 0, 32),
        (|m| m.pkey = !0, 4, 0, 16),
        (|m| m.service_id = !0, 8, 0, 64),
        (|m| m.private_data = &[!0; 216], 16, 0, 216 * 8),
    ];

    #[test]
    fn request_layout() {
        check_layout(SidrReq::decode(&ZEROS), REQ_LAYOUT, Message::SidrReq);
    }

    #[rustfmt::skip]
    const REP_LAYOUT: &[FieldSpec<SidrRep<'static>>] = &[
        (|m| m.request_id = !0, 0, 0, 32),
        (|m| m.status = !0, 4, 0, 8),
        (|m| m.vendor_id = 0xffff00, 6, 0, 16),
        (|m| m.vendor_id = 0x0000ff, 11, 0, 8),
        (|m| m.qpn = !0, 8, 0, 24),
        (|m| m.service_id = !0, 12, 0, 64),
        (|m| m.qkey = !0, 20, 0, 32),
        (|m| m.info = &[!0; INFO_LEN], 24, 0, 72 * 8),
        (|m| m.private_data = &[!0; 136], 96, 0, 136 * 8),
    ];

    #[test]
    fn reply_layout() {
        check_layout(SidrRep::decode(&ZEROS), REP_LAYOUT, Message::SidrRep);
    }

    #[test]
    fn request_round_trips() {
        round_trip(Message::SidrReq(SidrReq {
            request_id: 0xdead_beef,
            pkey: 0xffff,
            service_id: 0x0111_4ee4,
            private_data: &[0x5a; SidrReq::PRIVATE_DATA_LEN],
        }));
    }

    #[test]
    fn reply_round_trips() {
        round_trip(Message::SidrRep(SidrRep {
            request_id: 0xdead_beef,
            status: 1,
            info_len: 9,
            vendor_id: 0x123456,
            qpn: 0x654321,
            service_id: 0x0111_4ee4,
            qkey: 0x0123_4567,
            info: &[0xa5; INFO_LEN],
            private_data: &[0x5a; SidrRep::PRIVATE_DATA_LEN],
        }));
    }

    #[test]
    fn information_length_is_clamped() {
        for len in 0..=255u8 {
            let mut mad = encoded(&Message::SidrRep(SidrRep {
                info_len: len,
                ..SidrRep::decode(&ZEROS)
            }));
            assert_eq!(mad[HEADER_LEN + 5], len.min(72));
            mad[HEADER_LEN + 5] = len;
            let Ok((_, Message::SidrRep(m))) = decode(&mad) else {
                panic!()
            };
            assert_eq!(m.info_len, len.min(72));
        }
    }
}
