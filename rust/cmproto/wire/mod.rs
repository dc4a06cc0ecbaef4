// SPDX-License-Identifier: GPL-2.0

//! The messages of the communication manager on the wire (IBTA 12.6 and 13.4.3).
//!
//! Every message is one management datagram (MAD) of 256 bytes: a common header of 24 bytes, then
//! 232 bytes whose layout depends on the attribute. [`decode`] and [`encode`] convert between a MAD
//! and a [`Message`]; [`Header`] has the fields of the common header that vary.
//!
//! Decoding accepts every MAD whose header is that of a CM message: fields are as the peer sent
//! them, and bits that the specification reserves are ignored. Encoding writes zeros there, so that
//! no memory of the sender leaks. The private data and additional information of a decoded message
//! borrow from the MAD; they have the full length of their field, because the length of the
//! sender's data is not on the wire.

use self::field::{Bytes, Field};
use crate::{bytes::fill, reject::Reason};
use core::ffi::CStr;

/// The data of a message, behind the common header.
pub trait MadData {
    /// Returns the attribute of the message.
    fn attribute(&self) -> Attribute;

    /// Returns the private data, at most as long as its field.
    fn private_data(&self) -> &[u8];

    /// Writes the fields to `data`, and leaves all other bits as they are.
    fn write(&self, data: &mut Data);
}

/// Declares a message: its fields as in [`layout`], and the length of the private data at its end.
macro_rules! message {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$lt:lifetime> {
            $($(#[$doc:meta])* $field:ident: $ty:ty = $place:ty,)*
        }
        private data: $len:literal
    ) => {
        $crate::wire::field::layout! {
            $(#[$meta])*
            #[derive(Copy, Clone, Debug, PartialEq, Eq)]
            pub struct $name<$lt>: $crate::wire::DATA_LEN {
                $($(#[$doc])* $field: $ty = $place,)*
                #[doc = concat!("Private data, at most ", $len, " bytes.")]
                private_data: &$lt [u8] = $crate::wire::PrivateData<$len>,
            }
        }

        impl<$lt> $name<$lt> {
            /// Length of the private data field, in bytes.
            pub const PRIVATE_DATA_LEN: usize = $len;

            /// Reads the fields like [`decode`](Self::decode), in a function of its own: inlined,
            /// the fields of all messages would be copied for each one.
            #[inline(never)]
            pub(super) fn read(data: &$lt $crate::wire::Data) -> Self {
                Self::decode(data)
            }
        }
    };
}

pub mod field;

mod apr;
mod drep;
mod dreq;
mod error;
mod lap;
mod mra;
mod rej;
mod rep;
mod req;
mod rtu;
mod sidr;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;
#[cfg(any(test, CONFIG_KUNIT))]
pub(crate) mod testing;

pub use self::apr::Apr;
pub use self::drep::Drep;
pub use self::dreq::Dreq;
pub use self::error::{EncodeError, ParseError};
pub use self::lap::Lap;
pub use self::mra::{Mra, MraMessage};
pub use self::rej::{Rej, RejMessage};
pub use self::rep::Rep;
pub use self::req::{Req, ReqPath, Transport};
pub use self::rtu::Rtu;
pub use self::sidr::{SidrRep, SidrReq};

/// Length of a MAD, in bytes.
pub const MAD_LEN: usize = 256;
/// Length of a global route header (GRH), in bytes (IBTA volume 1, 8.3).
pub const GRH_LEN: usize = 40;
/// Length of the common header, in bytes.
pub const HEADER_LEN: usize = 24;
/// Length of the data behind the common header, in bytes.
pub const DATA_LEN: usize = MAD_LEN - HEADER_LEN;
/// Length of the additional information in a REJ, APR or SIDR_REP, in bytes.
pub const INFO_LEN: usize = 72;
/// The value of [`INFO_LEN`], in the type of the length fields of these messages.
const MAX_INFO_LEN: u8 = 72;

/// Version of the common header.
pub const BASE_VERSION: u8 = 1;
/// Management class of the communication manager.
pub const MGMT_CLASS: u8 = 0x07;
/// Version of the CM class.
pub const CLASS_VERSION: u8 = 2;
/// The only method of CM messages: Send.
pub const METHOD_SEND: u8 = 0x03;

/// The data behind the common header. Offsets of fields are relative to its start.
pub type Data = [u8; DATA_LEN];

/// The private data, in the last `LEN` bytes of a message.
struct PrivateData<const LEN: usize>;

impl<const LEN: usize> PrivateData<LEN> {
    fn get(data: &Data) -> &[u8] {
        data.last_chunk::<LEN>().map_or(&[], <[u8; LEN]>::as_slice)
    }

    /// Writes the private data, as far as it fits. The rest of the field stays all zeros.
    fn set(data: &mut Data, value: &[u8]) {
        if let Some(field) = data.last_chunk_mut::<LEN>() {
            fill(field, value);
        }
    }
}

/// The number of bytes in use of an additional information: `WIDTH` bits at the start of byte
/// `BYTE`. A peer can send more than [`INFO_LEN`], which reads as that.
struct InfoLength<const BYTE: usize, const WIDTH: usize>;

impl<const BYTE: usize, const WIDTH: usize> InfoLength<BYTE, WIDTH> {
    fn get(data: &Data) -> u8 {
        Field::<u8, BYTE, 0, WIDTH>::get(data).min(MAX_INFO_LEN)
    }

    fn set(data: &mut Data, value: u8) {
        Field::<_, BYTE, 0, WIDTH>::set(data, value.min(MAX_INFO_LEN));
    }
}

/// Declares the attributes, with the names of their counters, and for each of them the message of
/// the same name.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $text:literal;)*) => {
        /// The attribute of a MAD, which selects the message (IBTA 16.7.1).
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Attribute {
            $($(#[$doc])* $name = $id,)*
        }

        impl Attribute {
            /// All attributes, in the order of their ids.
            pub const ALL: [Self; 11] = [$(Self::$name,)*];

            /// Returns the attribute id.
            pub const fn id(self) -> u16 {
                self as u16
            }

            /// Returns the name of the counters of the message.
            pub const fn name(self) -> &'static CStr {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }

        /// A message. The private data borrows from the MAD that it was decoded from.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum Message<'a> {
            $($(#[$doc])* $name($name<'a>),)*
        }

        impl<'a> Message<'a> {
            /// Returns the attribute of the message.
            pub const fn attribute(&self) -> Attribute {
                match self {
                    $(Self::$name(_) => Attribute::$name,)*
                }
            }

            /// Returns the private data. In a decoded message it is the whole field.
            pub const fn private_data(&self) -> &'a [u8] {
                match self {
                    $(Self::$name(message) => message.private_data,)*
                }
            }

            /// Returns the message with other private data.
            #[cfg(any(test, CONFIG_KUNIT))]
            fn with_private_data(self, private_data: &'a [u8]) -> Self {
                match self {
                    $(Self::$name(message) => Self::$name($name { private_data, ..message }),)*
                }
            }

            fn decode(attribute: Attribute, data: &'a Data) -> Self {
                match attribute {
                    $(Attribute::$name => Self::$name($name::read(data)),)*
                }
            }
        }

        impl MadData for Message<'_> {
            fn attribute(&self) -> Attribute {
                self.attribute()
            }

            fn private_data(&self) -> &[u8] {
                self.private_data()
            }

            fn write(&self, data: &mut Data) {
                match self {
                    $(Self::$name(message) => message.write(data),)*
                }
            }
        }

        $(impl MadData for $name<'_> {
            fn attribute(&self) -> Attribute {
                Attribute::$name
            }

            fn private_data(&self) -> &[u8] {
                self.private_data
            }

            fn write(&self, data: &mut Data) {
                self.encode(data);
            }
        })*

        /// Returns the length of a message's private data field, in bytes (IBTA 12.6).
        pub const fn private_data_len(attribute: Attribute) -> usize {
            match attribute {
                $(Attribute::$name => $name::PRIVATE_DATA_LEN,)*
            }
        }
    };
}

messages! {
    /// Request for communication.
    Req = 0x10, c"req";
    /// Message receipt acknowledgement.
    Mra = 0x11, c"mra";
    /// Rejection.
    Rej = 0x12, c"rej";
    /// Reply to a REQ.
    Rep = 0x13, c"rep";
    /// Ready to use.
    Rtu = 0x14, c"rtu";
    /// Disconnection request.
    Dreq = 0x15, c"dreq";
    /// Disconnection reply.
    Drep = 0x16, c"drep";
    /// Service ID resolution request.
    SidrReq = 0x17, c"sidr_req";
    /// Service ID resolution response.
    SidrRep = 0x18, c"sidr_rep";
    /// Load alternate path.
    Lap = 0x19, c"lap";
    /// Alternate path response.
    Apr = 0x1a, c"apr";
}

impl TryFrom<u16> for Attribute {
    type Error = ParseError;

    fn try_from(id: u16) -> Result<Self, ParseError> {
        Self::ALL
            .into_iter()
            .find(|attribute| attribute.id() == id)
            .ok_or(ParseError::Attribute(id))
    }
}

/// The fields of the common header that vary (IBTA 13.4.3).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Transaction id, 64 bits.
    pub tid: u64,
    /// The attribute.
    pub attr_id: Attribute,
    /// Attribute modifier: that of ECE in REQ, REP and SIDR_REP, 0 in other messages.
    pub attr_mod: u32,
    /// Status, 0 in all CM messages.
    pub status: u16,
}

impl Header {
    /// Creates the header of a message `attr_id` in the transaction `tid`, with the attribute
    /// modifier 0.
    pub const fn new(attr_id: Attribute, tid: u64) -> Self {
        Self {
            tid,
            attr_id,
            attr_mod: 0,
            status: 0,
        }
    }
}

/// Fields of the common header (IBTA 13.4.3). Offsets are relative to the start of the MAD.
mod header {
    use super::Field;

    pub(super) type BaseVersion = Field<u8, 0, 0, 8>;
    pub(super) type MgmtClass = Field<u8, 1, 0, 8>;
    pub(super) type ClassVersion = Field<u8, 2, 0, 8>;
    /// Includes the response bit, which is never set.
    pub(super) type Method = Field<u8, 3, 0, 8>;
    pub(super) type Status = Field<u16, 4, 0, 16>;
    pub(super) type TransactionId = Field<u64, 8, 0, 64>;
    pub(super) type AttributeId = Field<u16, 16, 0, 16>;
    pub(super) type AttributeModifier = Field<u32, 20, 0, 32>;
}

/// Checks that a device which reports `byte_len` received bytes has received a whole MAD.
///
/// For a datagram, a device also counts the 40 bytes of the GRH, or of the space for it (IBTA
/// volume 1, 11.4.2.1). A device that reports [`MAD_LEN`] does not count them. Bytes beyond the MAD
/// are padding.
///
/// # Errors
///
/// [`ParseError::Truncated`] with the length of the MAD.
pub const fn check_length(byte_len: usize) -> Result<(), ParseError> {
    let len = byte_len.saturating_sub(GRH_LEN);
    if len < MAD_LEN && byte_len != MAD_LEN {
        return Err(ParseError::Truncated(len));
    }
    Ok(())
}

/// Decodes a MAD.
///
/// # Errors
///
/// The first mismatch in the header, in the order of [`ParseError`]'s variants. Any data
/// behind the header are valid.
pub fn decode(mad: &[u8; MAD_LEN]) -> Result<(Header, Message<'_>), ParseError> {
    let header = decode_header(mad)?;
    let data = Bytes::<HEADER_LEN, DATA_LEN>::get(mad);
    Ok((header, Message::decode(header.attr_id, data)))
}

/// Returns the reason of a MAD that is a REJ.
pub fn reject_reason(mad: &[u8; MAD_LEN]) -> Option<Reason> {
    match decode(mad) {
        Ok((_, Message::Rej(rej))) => Some(Reason(rej.reason)),
        _ => None,
    }
}

/// Decodes the common header alone.
///
/// # Errors
///
/// The errors of [`decode`].
pub fn decode_header(mad: &[u8; MAD_LEN]) -> Result<Header, ParseError> {
    match header::BaseVersion::get(mad) {
        BASE_VERSION => (),
        other => return Err(ParseError::BaseVersion(other)),
    }
    match header::MgmtClass::get(mad) {
        MGMT_CLASS => (),
        other => return Err(ParseError::Class(other)),
    }
    match header::ClassVersion::get(mad) {
        CLASS_VERSION => (),
        other => return Err(ParseError::ClassVersion(other)),
    }
    match header::Method::get(mad) {
        METHOD_SEND => (),
        other => return Err(ParseError::Method(other)),
    }
    Ok(Header {
        tid: header::TransactionId::get(mad),
        attr_id: header::AttributeId::get(mad).try_into()?,
        attr_mod: header::AttributeModifier::get(mad),
        status: header::Status::get(mad),
    })
}

/// Encodes a message into `mad`, which must be all zeros: bytes that the message does not define
/// stay zero.
///
/// Numbers are cut to the width of their field, as in C. Private data that is shorter than its
/// field is padded with zeros.
///
/// # Errors
///
/// [`EncodeError::Attribute`] if the header is that of another message, or
/// [`EncodeError::PrivateData`] if the private data is too long. `mad` is all zeros then.
pub fn encode<M: MadData>(
    header: &Header,
    message: &M,
    mad: &mut [u8; MAD_LEN],
) -> Result<(), EncodeError> {
    if header.attr_id != message.attribute() {
        return Err(EncodeError::Attribute);
    }
    if message.private_data().len() > private_data_len(header.attr_id) {
        return Err(EncodeError::PrivateData);
    }
    let (_, data) = mad
        .split_last_chunk_mut::<DATA_LEN>()
        .ok_or(EncodeError::PrivateData)?;
    message.write(data);
    header::BaseVersion::set(mad, BASE_VERSION);
    header::MgmtClass::set(mad, MGMT_CLASS);
    header::ClassVersion::set(mad, CLASS_VERSION);
    header::Method::set(mad, METHOD_SEND);
    header::Status::set(mad, header.status);
    header::TransactionId::set(mad, header.tid);
    header::AttributeId::set(mad, header.attr_id.id());
    header::AttributeModifier::set(mad, header.attr_mod);
    Ok(())
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_wire))]
mod tests {
    use super::*;

    fn rtu() -> Message<'static> {
        Message::Rtu(Rtu {
            local_comm_id: 1,
            remote_comm_id: 2,
            private_data: &[],
        })
    }

    #[test]
    fn header_bytes() {
        let header = Header {
            tid: 0x0102_0304_0506_0708,
            attr_id: Attribute::Rtu,
            attr_mod: 0x1122_3344,
            status: 0x5566,
        };
        let mut mad = [0; MAD_LEN];
        encode(&header, &rtu(), &mut mad).unwrap();
        assert_eq!(
            mad[..24],
            [
                1, 7, 2, 3, 0x55, 0x66, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x14, 0, 0, 0x11, 0x22,
                0x33, 0x44
            ]
        );
        assert_eq!(mad[24..32], [0, 0, 0, 1, 0, 0, 0, 2]);
        assert!(mad[32..].iter().all(|b| *b == 0));
        assert_eq!(decode(&mad).unwrap().0, header);
    }

    #[test]
    fn headers_of_others_are_refused() {
        let mut good = [0; MAD_LEN];
        encode(&Header::new(Attribute::Rtu, 0), &rtu(), &mut good).unwrap();
        let errors: [fn(u8) -> ParseError; 4] = [
            ParseError::BaseVersion,
            ParseError::Class,
            ParseError::ClassVersion,
            ParseError::Method,
        ];
        for (byte, error) in errors.into_iter().enumerate() {
            for value in 0..=255 {
                let mut mad = good;
                mad[byte] = value;
                let want = match value == good[byte] {
                    true => Ok(Attribute::Rtu),
                    false => Err(error(value)),
                };
                assert_eq!(decode(&mad).map(|(h, _)| h.attr_id), want);
            }
        }
        for id in 0..=u16::MAX {
            let mut mad = good;
            mad[16..18].copy_from_slice(&id.to_be_bytes());
            match decode(&mad) {
                Ok((h, m)) => {
                    assert!((0x10..=0x1a).contains(&id));
                    assert_eq!((h.attr_id.id(), m.attribute().id()), (id, id));
                }
                Err(e) => {
                    assert!(!(0x10..=0x1a).contains(&id));
                    assert_eq!(e, ParseError::Attribute(id));
                }
            }
        }
    }

    #[test]
    fn datagrams_that_came_short_are_refused() {
        for byte_len in 0..=1024 {
            let want = match byte_len {
                256 | 296.. => Ok(()),
                0..=40 => Err(ParseError::Truncated(0)),
                _ => Err(ParseError::Truncated(byte_len - 40)),
            };
            assert_eq!((byte_len, check_length(byte_len)), (byte_len, want));
        }
        assert_eq!(check_length(usize::MAX), Ok(()));
    }

    #[test]
    fn header_and_message_must_agree() {
        let mut mad = [0; MAD_LEN];
        let header = Header::new(Attribute::Drep, 0);
        let error = encode(&header, &rtu(), &mut mad);
        assert_eq!(error, Err(EncodeError::Attribute));
        assert_eq!(mad, [0; MAD_LEN]);
    }

    #[test]
    fn private_data_lengths() {
        use Attribute::*;
        let table = [
            (Req, 92),
            (Mra, 222),
            (Rej, 148),
            (Rep, 196),
            (Rtu, 224),
            (Dreq, 220),
            (Drep, 224),
            (SidrReq, 216),
            (SidrRep, 136),
            (Lap, 168),
            (Apr, 148),
        ];
        for (attribute, len) in table {
            assert_eq!(private_data_len(attribute), len);
            let mut mad = [0; MAD_LEN];
            mad[..4].copy_from_slice(&[1, 7, 2, 3]);
            mad[16..18].copy_from_slice(&attribute.id().to_be_bytes());
            mad[MAD_LEN - len..].fill(0xab);
            let (header, message) = decode(&mad).unwrap();
            assert_eq!(*message.private_data(), [0xab; MAD_LEN][..len]);
            let mut out = [0; MAD_LEN];
            assert_eq!(encode(&header, &message, &mut out), Ok(()));
            assert_eq!((attribute, out), (attribute, mad));
        }
    }

    /// Tests that the longest private data that can be encoded fills its field.
    #[test]
    fn private_data_that_is_too_long() {
        static ONES: [u8; MAD_LEN] = [0xff; MAD_LEN];
        for attribute in Attribute::ALL {
            let (header, max) = (Header::new(attribute, 0), private_data_len(attribute));
            let empty = Message::decode(attribute, &testing::ZEROS);
            for len in 0..=MAD_LEN {
                let message = empty.with_private_data(&ONES[..len]);
                let mut mad = [0; MAD_LEN];
                let result = encode(&header, &message, &mut mad);
                if len > max {
                    assert_eq!(result, Err(EncodeError::PrivateData));
                    assert_eq!(mad, [0; MAD_LEN]);
                } else {
                    assert_eq!(result, Ok(()));
                    let (data, padding) = mad[MAD_LEN - max..].split_at(len);
                    assert!(data.iter().all(|b| *b == 0xff));
                    assert!(padding.iter().all(|b| *b == 0));
                }
            }
        }
    }
}
