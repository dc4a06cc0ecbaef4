// SPDX-License-Identifier: GPL-2.0

//! Properties of all MADs and all messages.

use proptest::prelude::*;

use super::*;

/// A range of bits: byte, bit from the left, width.
type Bits = (usize, usize, usize);

/// The reserved bits in the data of each message (IBTA 12.6, 12.8, 12.11).
const RESERVED: &[(Attribute, &[Bits])] = &[
    (
        Attribute::Req,
        &[
            (4, 0, 8),
            (24, 0, 32),
            (90, 4, 6),
            (94, 5, 3),
            (95, 5, 3),
            (134, 4, 6),
            (138, 5, 3),
            (139, 6, 2),
            // The extended transport type, which is reserved if the transport type is not 3.
            (51, 5, 3),
        ],
    ),
    (Attribute::Mra, &[(8, 2, 6), (9, 5, 3)]),
    (Attribute::Rej, &[(8, 2, 6), (9, 7, 1)]),
    (Attribute::Rep, &[(27, 4, 4)]),
    (Attribute::Rtu, &[]),
    (Attribute::Dreq, &[(11, 0, 8)]),
    (Attribute::Drep, &[]),
    (Attribute::SidrReq, &[(6, 0, 16)]),
    (Attribute::SidrRep, &[]),
    (
        Attribute::Lap,
        &[
            (8, 0, 32),
            (15, 5, 3),
            (16, 0, 32),
            (58, 4, 4),
            (61, 0, 2),
            (62, 5, 3),
            (63, 5, 3),
        ],
    ),
    (Attribute::Apr, &[(10, 0, 16)]),
];

/// Returns a MAD with a valid header and this data.
fn datagram(attribute: Attribute, tid: u64, data: &[u8; DATA_LEN]) -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    mad[..4].copy_from_slice(&[BASE_VERSION, MGMT_CLASS, CLASS_VERSION, METHOD_SEND]);
    mad[8..16].copy_from_slice(&tid.to_be_bytes());
    mad[16..18].copy_from_slice(&attribute.id().to_be_bytes());
    mad[HEADER_LEN..].copy_from_slice(data);
    mad
}

fn encoded(header: &Header, message: &Message<'_>) -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    assert_eq!(encode(header, message, &mut mad), Ok(()));
    mad
}

#[test]
fn exactly_the_reserved_bits_are_lost() {
    assert_eq!(RESERVED.len(), Attribute::ALL.len());
    for (attribute, reserved) in RESERVED {
        for bit in 0..DATA_LEN * 8 {
            let mut data = [0; DATA_LEN];
            data[bit / 8] = 0x80 >> (bit % 8);
            let mad = datagram(*attribute, 0, &data);
            let (header, message) = decode(&mad).unwrap();
            let again = encoded(&header, &message);
            let is_reserved = reserved
                .iter()
                .any(|(byte, first, width)| (byte * 8 + first..).take(*width).any(|n| n == bit));
            if is_reserved {
                assert_eq!(again[HEADER_LEN..], [0; DATA_LEN], "{attribute:?} {bit}");
            } else if again != mad {
                // A length of additional information above 72 reads as 72.
                let byte = HEADER_LEN + bit / 8;
                assert!(again[byte] & !1 == 72 || again[byte] == 72 << 1);
            }
        }
    }
}

fn any_mad() -> impl Strategy<Value = [u8; MAD_LEN]> {
    prop::collection::vec(any::<u8>(), MAD_LEN).prop_map(|v| v.try_into().unwrap())
}

fn any_data() -> impl Strategy<Value = [u8; DATA_LEN]> {
    prop::collection::vec(any::<u8>(), DATA_LEN).prop_map(|v| v.try_into().unwrap())
}

fn any_attribute() -> impl Strategy<Value = Attribute> {
    prop::sample::select(&Attribute::ALL[..])
}

proptest! {
    #[test]
    fn no_bytes_panic(mad in any_mad()) {
        let _ = decode(&mad);
    }

    #[test]
    fn no_data_is_an_error(attribute in any_attribute(), tid: u64, data in any_data()) {
        let mad = datagram(attribute, tid, &data);
        let (header, message) = decode(&mad).unwrap();
        prop_assert_eq!((header.attr_id, header.tid), (attribute, tid));
        prop_assert_eq!(message.attribute(), attribute);
        prop_assert_eq!(message.private_data().len(), private_data_len(attribute));
    }

    #[test]
    fn encoding_inverts_decoding(attribute in any_attribute(), tid: u64, data in any_data()) {
        let mad = datagram(attribute, tid, &data);
        let (header, message) = decode(&mad).unwrap();
        let again = encoded(&header, &message);
        prop_assert_eq!(decode(&again).unwrap(), (header, message));
        // Another round gives the same bits.
        prop_assert_eq!(encoded(&header, &decode(&again).unwrap().1), again);
    }

    #[test]
    fn short_private_data_is_padded(
        attribute in any_attribute(),
        private_data in prop::collection::vec(any::<u8>(), 0..MAD_LEN),
    ) {
        let mad = datagram(attribute, 0, &[0; DATA_LEN]);
        let (header, mut message) = decode(&mad).unwrap();
        set_private_data(&mut message, &private_data);
        let mut out = [0; MAD_LEN];
        let result = encode(&header, &message, &mut out);
        let max = private_data_len(attribute);
        if private_data.len() > max {
            prop_assert_eq!(result, Err(EncodeError::PrivateData));
        } else {
            let (_, decoded) = decode(&out).unwrap();
            let mut padded = private_data.clone();
            padded.resize(max, 0);
            prop_assert_eq!(decoded.private_data(), &padded[..]);
        }
    }
}

fn set_private_data<'a>(message: &mut Message<'a>, private_data: &'a [u8]) {
    match message {
        Message::Req(m) => m.private_data = private_data,
        Message::Mra(m) => m.private_data = private_data,
        Message::Rej(m) => m.private_data = private_data,
        Message::Rep(m) => m.private_data = private_data,
        Message::Rtu(m) => m.private_data = private_data,
        Message::Dreq(m) => m.private_data = private_data,
        Message::Drep(m) => m.private_data = private_data,
        Message::SidrReq(m) => m.private_data = private_data,
        Message::SidrRep(m) => m.private_data = private_data,
        Message::Lap(m) => m.private_data = private_data,
        Message::Apr(m) => m.private_data = private_data,
    }
}
