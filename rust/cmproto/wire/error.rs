// SPDX-License-Identifier: GPL-2.0

//! The reasons for which a MAD cannot be read, or a message not be written.

#[cfg(doc)]
use super::{Attribute, BASE_VERSION, CLASS_VERSION, MAD_LEN, METHOD_SEND, MGMT_CLASS};

/// The reason for which a MAD is not a CM message, with the value that was found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The MAD is shorter than [`MAD_LEN`].
    Truncated(usize),
    /// The base version is not [`BASE_VERSION`].
    BaseVersion(u8),
    /// The management class is not [`MGMT_CLASS`].
    Class(u8),
    /// The class version is not [`CLASS_VERSION`].
    ClassVersion(u8),
    /// The method is not [`METHOD_SEND`].
    Method(u8),
    /// The attribute is not one of [`Attribute`].
    Attribute(u16),
}

/// The reason for which a message cannot be encoded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The attribute in the header is not that of the message.
    Attribute,
    /// The private data is longer than its field.
    PrivateData,
}
