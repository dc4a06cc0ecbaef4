// SPDX-License-Identifier: GPL-2.0

//! Bit fields, in the notation of the InfiniBand specification: byte offset, bit, width.
//!
//! The specification draws messages as big-endian words with bit 31 on the left. A field is given
//! here by the byte that holds its most significant bit, by the number of that bit in the byte,
//! counted from the *left* (0 is the most significant bit), and by its width in bits.
//!
//! A field is a type, so that its position is part of the program and not of its data: the compiler
//! checks that the field is inside the buffer and fits its value type, and neither reading nor
//! writing can fail or panic.

use crate::{addr::Gid, bytes::fill};
use core::{marker::PhantomData, mem::size_of};

/// A type for the value of a field.
pub trait Value: Copy {
    /// The width of the widest field that the type can hold, in bits.
    const BITS: usize;

    /// Creates a value from its bits. Bits above [`Value::BITS`] must be zero.
    fn from_bits(bits: u64) -> Self;

    /// Returns the bits of the value.
    fn to_bits(self) -> u64;
}

macro_rules! impl_value {
    ($($ty:ty: [$($byte:ident),*],)*) => {
        $(impl Value for $ty {
            const BITS: usize = <$ty>::BITS as usize;

            fn from_bits(bits: u64) -> Self {
                let [.., $($byte),*] = bits.to_be_bytes();
                <$ty>::from_be_bytes([$($byte),*])
            }

            fn to_bits(self) -> u64 {
                u64::from(self)
            }
        })*
    };
}

impl_value! {
    u8: [a],
    u16: [a, b],
    u32: [a, b, c, d],
    u64: [a, b, c, d, e, f, g, h],
}

/// Implements [`Value`] for an enumeration by its functions `from_code` and `code`. Its codes have
/// `$bits` bits.
macro_rules! impl_code_value {
    ($ty:ty: $bits:literal) => {
        impl $crate::wire::field::Value for $ty {
            const BITS: usize = $bits;

            fn from_bits(bits: u64) -> Self {
                Self::from_code(<u8 as $crate::wire::field::Value>::from_bits(bits))
            }

            fn to_bits(self) -> u64 {
                self.code().into()
            }
        }
    };
}
pub(crate) use impl_code_value;

impl Value for bool {
    const BITS: usize = 1;

    fn from_bits(bits: u64) -> Self {
        bits != 0
    }

    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

/// A field of `WIDTH` bits that starts at bit `BIT` (from the left) of byte `BYTE`.
pub struct Field<T, const BYTE: usize, const BIT: usize, const WIDTH: usize>(PhantomData<T>);

impl<T: Value, const BYTE: usize, const BIT: usize, const WIDTH: usize> Field<T, BYTE, BIT, WIDTH> {
    /// The number of bytes that hold a part of the field.
    const SPAN: usize = (BIT + WIDTH).div_ceil(8);
    /// The offset of the first byte behind the field.
    const END: usize = BYTE + Self::SPAN;
    /// The number of bits behind the field in its last byte.
    const SHIFT: u32 = (Self::SPAN * 8 - BIT - WIDTH) as u32;
    /// The bits of a value that fit into the field.
    const MASK: u64 = u64::MAX >> (64 - WIDTH);
    /// The bits of the field, in the bytes from `BYTE` to `END`.
    const SHIFTED_MASK: u64 = Self::MASK << Self::SHIFT;

    const fn check(len: usize) {
        assert!(BIT < 8, "a bit is counted within its byte");
        assert!(WIDTH > 0, "field without bits");
        assert!(WIDTH <= T::BITS, "value type too narrow");
        assert!(Self::SPAN <= 8, "field spans more than 8 bytes");
        assert!(Self::END <= len, "field beyond the end");
    }

    /// Reads the field.
    pub fn get<const N: usize>(buf: &[u8; N]) -> T {
        const { Self::check(N) };
        let bytes = buf.get(BYTE..Self::END).unwrap_or(&[]);
        T::from_bits(load(bytes).wrapping_shr(Self::SHIFT) & Self::MASK)
    }

    /// Writes the field, and leaves the bits around it as they are. Bits of the value that do not
    /// fit are dropped, as in C.
    pub fn set<const N: usize>(buf: &mut [u8; N], value: T) {
        const { Self::check(N) };
        let bytes = buf.get_mut(BYTE..Self::END).unwrap_or(&mut []);
        let value = (value.to_bits() & Self::MASK).wrapping_shl(Self::SHIFT);
        store(bytes, load(bytes) & !Self::SHIFTED_MASK | value);
    }
}

/// Returns the big-endian number in up to 8 bytes. Whole words are read at once.
fn load(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u16::from_be_bytes(bytes).into();
    }
    if let Ok(bytes) = bytes.try_into() {
        return u32::from_be_bytes(bytes).into();
    }
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_be_bytes(bytes);
    }
    bytes
        .iter()
        .fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

/// Writes the low bits of a number to up to 8 bytes, big-endian.
fn store(bytes: &mut [u8], word: u64) {
    let unused = size_of::<u64>().saturating_sub(bytes.len());
    if let Some(low) = word.to_be_bytes().get(unused..) {
        fill(bytes, low);
    }
}

/// A field of `LEN` bytes that starts at byte `BYTE`.
pub struct Bytes<const BYTE: usize, const LEN: usize>;

impl<const BYTE: usize, const LEN: usize> Bytes<BYTE, LEN> {
    const END: usize = BYTE + LEN;
    const ZERO: &'static [u8; LEN] = &[0; LEN];

    /// Borrows the field.
    pub fn get<const N: usize>(buf: &[u8; N]) -> &[u8; LEN] {
        const { assert!(Self::END <= N, "bytes beyond the end") };
        buf.get(BYTE..)
            .and_then(<[u8]>::first_chunk)
            .unwrap_or(Self::ZERO)
    }

    /// Writes the field.
    pub fn set<const N: usize>(buf: &mut [u8; N], value: &[u8; LEN]) {
        const { assert!(Self::END <= N, "bytes beyond the end") };
        if let Some(bytes) = buf.get_mut(BYTE..).and_then(<[u8]>::first_chunk_mut) {
            *bytes = *value;
        }
    }
}

/// A GID that starts at byte `BYTE`.
pub struct GidField<const BYTE: usize>;

impl<const BYTE: usize> GidField<BYTE> {
    /// Reads the field.
    pub fn get<const N: usize>(buf: &[u8; N]) -> Gid {
        Gid(*Bytes::<BYTE, 16>::get(buf))
    }

    /// Writes the field.
    pub fn set<const N: usize>(buf: &mut [u8; N], value: Gid) {
        Bytes::<BYTE, 16>::set(buf, &value.0);
    }
}

/// A number of 24 bits in three separate bytes, the highest one first.
pub struct SplitField<const HIGH: usize, const MIDDLE: usize, const LOW: usize>;

impl<const HIGH: usize, const MIDDLE: usize, const LOW: usize> SplitField<HIGH, MIDDLE, LOW> {
    /// Reads the field.
    pub fn get<const N: usize>(buf: &[u8; N]) -> u32 {
        u32::from_be_bytes([
            0,
            Field::<_, HIGH, 0, 8>::get(buf),
            Field::<_, MIDDLE, 0, 8>::get(buf),
            Field::<_, LOW, 0, 8>::get(buf),
        ])
    }

    /// Writes the field.
    pub fn set<const N: usize>(buf: &mut [u8; N], value: u32) {
        let [_, high, middle, low] = value.to_be_bytes();
        Field::<_, HIGH, 0, 8>::set(buf, high);
        Field::<_, MIDDLE, 0, 8>::set(buf, middle);
        Field::<_, LOW, 0, 8>::set(buf, low);
    }
}

/// Declares a structure, and where its fields are in a buffer of the given length: behind each
/// field stands its place, a type with the functions `get` and `set`.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident$(<$lt:lifetime>)?: $len:path {
            $($(#[$doc:meta])* $field:ident: $ty:ty = $place:ty,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name$(<$lt>)? {
            $($(#[$doc])* pub $field: $ty,)*
        }

        impl$(<$lt>)? $name$(<$lt>)? {
            /// Reads the fields. All other bits are ignored.
            pub(crate) fn decode(buf: &$($lt)? [u8; $len]) -> Self {
                Self {
                    $($field: <$place>::get(buf),)*
                }
            }

            /// Writes the fields, and leaves all other bits as they are. Numbers are cut to the
            /// width of their fields.
            pub(crate) fn encode(&self, buf: &mut [u8; $len]) {
                $(<$place>::set(buf, self.$field);)*
            }
        }
    };
}
pub(crate) use layout;

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_field)
)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_left() {
        let mut buf = [0u8; 4];
        Field::<u8, 1, 5, 2>::set(&mut buf, 0b11);
        assert_eq!(buf, [0, 0b0000_0110, 0, 0]);
        Field::<bool, 1, 7, 1>::set(&mut buf, true);
        assert_eq!(buf, [0, 0b0000_0111, 0, 0]);
        Field::<u8, 1, 0, 5>::set(&mut buf, 0b10001);
        assert_eq!(buf, [0, 0b1000_1111, 0, 0]);
        assert_eq!(Field::<u8, 1, 0, 5>::get(&buf), 0b10001);
        assert_eq!(Field::<u8, 1, 5, 2>::get(&buf), 0b11);
        assert!(Field::<bool, 1, 7, 1>::get(&buf));
    }

    #[test]
    fn neighbours_are_left_alone() {
        let mut buf = [0xffu8; 8];
        Field::<u32, 2, 0, 20>::set(&mut buf, 0);
        assert_eq!(buf, [0xff, 0xff, 0, 0, 0x0f, 0xff, 0xff, 0xff]);
        Field::<u32, 2, 0, 20>::set(&mut buf, 0x12345);
        assert_eq!(buf, [0xff, 0xff, 0x12, 0x34, 0x5f, 0xff, 0xff, 0xff]);
        assert_eq!(Field::<u32, 2, 0, 20>::get(&buf), 0x12345);
        assert_eq!(Field::<u32, 3, 4, 17>::get(&buf), 0x08bff);
    }

    #[test]
    fn whole_words() {
        let mut buf = [0u8; 8];
        Field::<u64, 0, 0, 64>::set(&mut buf, 0x0102_0304_0506_0708);
        assert_eq!(buf, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Field::<u64, 0, 0, 64>::get(&buf), 0x0102_0304_0506_0708);
        assert_eq!(Field::<u16, 6, 0, 16>::get(&buf), 0x0708);
    }

    #[test]
    fn what_does_not_fit_is_dropped() {
        let mut buf = [0u8; 4];
        Field::<u32, 0, 0, 24>::set(&mut buf, 0xffff_ffff);
        assert_eq!(buf, [0xff, 0xff, 0xff, 0]);
    }

    /// The check otherwise runs in the compiler only.
    #[test]
    fn a_field_within_its_buffer_is_allowed() {
        Field::<u8, 1, 5, 2>::check(2);
        Field::<u64, 0, 0, 64>::check(8);
    }

    #[test]
    fn bytes() {
        let mut buf = [9u8; 6];
        Bytes::<1, 3>::set(&mut buf, &[1, 2, 3]);
        assert_eq!(buf, [9, 1, 2, 3, 9, 9]);
        assert_eq!(Bytes::<1, 3>::get(&buf), &[1, 2, 3]);
    }
}
