// SPDX-License-Identifier: GPL-2.0

//! Helpers for the tests of the messages.

#[cfg(CONFIG_KUNIT)]
use crate::kunit::assert_eq;

use super::{decode, encode, Data, Header, Message, DATA_LEN, HEADER_LEN, MAD_LEN};

/// The data of a message in which every field is zero.
pub(crate) static ZEROS: Data = [0; DATA_LEN];

/// A line of a message's layout: a function that sets a field to ones, and the position of these
/// ones: byte in the message, bit from the left, width.
pub(crate) type FieldSpec<M> = (fn(&mut M), usize, usize, usize);

/// Encodes `message` with a header of its own.
pub(crate) fn encoded(message: &Message<'_>) -> [u8; MAD_LEN] {
    let header = Header::new(message.attribute(), 0x0123_4567_89ab_cdef);
    let mut mad = [0; MAD_LEN];
    encode(&header, message, &mut mad).unwrap();
    mad
}

/// Checks that `message`, whose private data fills its field, is the same after encoding and
/// decoding.
pub(crate) fn round_trip(message: Message<'_>) {
    let mad = encoded(&message);
    let (header, decoded) = decode(&mad).unwrap();
    assert_eq!(header.attr_id, message.attribute());
    assert_eq!(decoded, message);
}

/// Checks that each field has exactly the bits of its line in `layout`, that no two fields overlap,
/// and that reserved bits are ignored.
pub(crate) fn check_layout<'a, M: Copy>(
    zero: M,
    layout: &[FieldSpec<M>],
    wrap: fn(M) -> Message<'a>,
) {
    assert_eq!(encoded(&wrap(zero))[HEADER_LEN..], [0; DATA_LEN]);
    let mut taken = [0u8; DATA_LEN];
    for (set, byte, bit, width) in layout {
        let mut message = zero;
        set(&mut message);
        let mut want = [0u8; DATA_LEN];
        for n in byte * 8 + bit..byte * 8 + bit + width {
            want[n / 8] |= 0x80 >> (n % 8);
        }
        let mad = encoded(&wrap(message));
        assert_eq!(mad[HEADER_LEN..], want, "field at {byte}[{bit}]/{width}");
        for (t, w) in taken.iter_mut().zip(want) {
            assert_eq!(*t & w, 0, "field at {byte}[{bit}]/{width} overlaps");
            *t |= w;
        }
        // Ones in all other bits must not change this field; nor must ones in reserved bits.
        let mut others = mad;
        for (byte, want) in others[HEADER_LEN..].iter_mut().zip(want) {
            *byte = !want;
        }
        let (_, decoded) = decode(&others).unwrap();
        let again = encoded(&decoded);
        for (byte, want) in again[HEADER_LEN..].iter().zip(want) {
            assert_eq!(byte & want, 0, "field at {byte}[{bit}]/{width} leaks");
        }
    }
}
