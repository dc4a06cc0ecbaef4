// SPDX-License-Identifier: GPL-2.0

//! The messages SIDR_REQ and SIDR_REP: service ID resolution (IBTA 12.11).

use super::field::{Bytes, Field};
use super::{Data, EncodeError, PrivateData, INFO_LEN, MAX_INFO_LEN};

/// A SIDR_REQ: asks for the queue pair of a service id (IBTA 12.11.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SidrReq<'a> {
    /// Request id, chosen by the sender.
    pub request_id: u32,
    /// P_Key.
    pub pkey: u16,
    /// Service id that the request is for.
    pub service_id: u64,
    /// Private data, at most 216 bytes.
    pub private_data: &'a [u8],
}

type ReqRequestId = Field<u32, 0, 0, 32>;
type ReqPartitionKey = Field<u16, 4, 0, 16>;
type ReqServiceId = Field<u64, 8, 0, 64>;
type SidrReqPrivateData = PrivateData<16, { SidrReq::PRIVATE_DATA_LEN }>;

impl<'a> SidrReq<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 216;

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            request_id: ReqRequestId::get(data),
            pkey: ReqPartitionKey::get(data),
            service_id: ReqServiceId::get(data),
            private_data: SidrReqPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        ReqRequestId::set(data, self.request_id);
        ReqPartitionKey::set(data, self.pkey);
        ReqServiceId::set(data, self.service_id);
        SidrReqPrivateData::set(data, self.private_data)
    }
}

/// A SIDR_REP: the answer to a SIDR_REQ (IBTA 12.11.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SidrRep<'a> {
    /// Request id of the SIDR_REQ.
    pub request_id: u32,
    /// Status: 0 success, 1 service id not supported, 2 rejected by the service, 3 no queue pair, 4
    /// redirect, 5 version not supported (IBTA 12.11.2.3).
    pub status: u8,
    /// The number of bytes of `info` that are used, 0 to 72. A peer can send up to 255, which reads
    /// as 72.
    pub info_len: u8,
    /// Vendor id of ECE, 24 bits, 0 for none. C sends only its low 16 bits, and does not read it.
    pub vendor_id: u32,
    /// QPN of the service, 24 bits.
    pub qpn: u32,
    /// Service id.
    pub service_id: u64,
    /// Q_Key of the queue pair.
    pub qkey: u32,
    /// Additional information, zeros if there is none.
    pub info: &'a [u8; INFO_LEN],
    /// Private data, at most 136 bytes.
    pub private_data: &'a [u8],
}

type RepRequestId = Field<u32, 0, 0, 32>;
type RepStatus = Field<u8, 4, 0, 8>;
type RepInformationLength = Field<u8, 5, 0, 8>;
type VendorIdH = Field<u16, 6, 0, 16>;
type VendorIdL = Field<u8, 11, 0, 8>;
type RepQpn = Field<u32, 8, 0, 24>;
type RepServiceId = Field<u64, 12, 0, 64>;
type RepQkey = Field<u32, 20, 0, 32>;
type RepInformation = Bytes<24, INFO_LEN>;
type SidrRepPrivateData = PrivateData<96, { SidrRep::PRIVATE_DATA_LEN }>;

impl<'a> SidrRep<'a> {
    /// Length of the private data field, in bytes.
    pub const PRIVATE_DATA_LEN: usize = 136;

    /// Returns the additional information that is used: the first `info_len` bytes of `info`.
    pub fn information(&self) -> &'a [u8] {
        let len = usize::from(self.info_len);
        self.info.get(..len).unwrap_or(self.info)
    }

    pub(super) fn decode(data: &'a Data) -> Self {
        Self {
            request_id: RepRequestId::get(data),
            status: RepStatus::get(data),
            info_len: RepInformationLength::get(data).min(MAX_INFO_LEN),
            vendor_id: {
                let [high, middle] = VendorIdH::get(data).to_be_bytes();
                u32::from_be_bytes([0, high, middle, VendorIdL::get(data)])
            },
            qpn: RepQpn::get(data),
            service_id: RepServiceId::get(data),
            qkey: RepQkey::get(data),
            info: RepInformation::get(data),
            private_data: SidrRepPrivateData::get(data),
        }
    }

    pub(super) fn encode(&self, data: &mut Data) -> Result<(), EncodeError> {
        RepRequestId::set(data, self.request_id);
        RepStatus::set(data, self.status);
        RepInformationLength::set(data, self.info_len.min(MAX_INFO_LEN));
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        VendorIdH::set(data, u16::from_be_bytes([high, middle]));
        VendorIdL::set(data, low);
        RepQpn::set(data, self.qpn);
        RepServiceId::set(data, self.service_id);
        RepQkey::set(data, self.qkey);
        RepInformation::set(data, self.info);
        SidrRepPrivateData::set(data, self.private_data)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_sidr)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, check_private_data, encoded, round_trip, FieldSpec};
    use crate::wire::{decode, Message, HEADER_LEN};

    const REQ_ZERO: SidrReq<'static> = SidrReq {
        request_id: 0,
        pkey: 0,
        service_id: 0,
        private_data: &[],
    };

    #[rustfmt::skip]
    const REQ_LAYOUT: &[FieldSpec<SidrReq<'static>>] = &[
        (|m| m.request_id = !0, 0, 0, 32),
        (|m| m.pkey = !0, 4, 0, 16),
        (|m| m.service_id = !0, 8, 0, 64),
        (|m| m.private_data = &[!0; 216], 16, 0, 216 * 8),
    ];

    #[test]
    fn request_layout() {
        check_layout(REQ_ZERO, REQ_LAYOUT, Message::SidrReq);
        check_private_data(SidrReq::PRIVATE_DATA_LEN, |private_data| {
            Message::SidrReq(SidrReq {
                private_data,
                ..REQ_ZERO
            })
        });
    }

    const REP_ZERO: SidrRep<'static> = SidrRep {
        request_id: 0,
        status: 0,
        info_len: 0,
        vendor_id: 0,
        qpn: 0,
        service_id: 0,
        qkey: 0,
        info: &[0; INFO_LEN],
        private_data: &[],
    };

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
        check_layout(REP_ZERO, REP_LAYOUT, Message::SidrRep);
        check_private_data(SidrRep::PRIVATE_DATA_LEN, |private_data| {
            Message::SidrRep(SidrRep {
                private_data,
                ..REP_ZERO
            })
        });
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
                ..REP_ZERO
            }));
            assert_eq!(mad[HEADER_LEN + 5], len.min(72));
            mad[HEADER_LEN + 5] = len;
            let Ok((_, Message::SidrRep(m))) = decode(&mad) else {
                panic!()
            };
            assert_eq!(m.info_len, len.min(72));
            assert_eq!(m.information().len(), usize::from(m.info_len));
        }
    }
}
