// SPDX-License-Identifier: GPL-2.0

//! The layout of the messages, as a table (IBTA volume 1, 12.6 and 13.4.3).
//!
//! Written from the specification's tables and independent of the crate under test.

use std::net::IpAddr;

/// Length of a management datagram.
pub const MAD_LEN: usize = 256;
/// Length of its common header.
const HEADER_LEN: usize = 24;

/// A message of the communication manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Req,
    Mra,
    Rej,
    Rep,
    Rtu,
    Dreq,
    Drep,
    SidrReq,
    SidrRep,
    Lap,
    Apr,
}

/// The contents of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A number.
    Number,
    /// A GID; IPv4 addresses are mapped.
    Gid,
    /// An IP address as in the header of annex A11: IPv4 in the last four of 16 bytes.
    Address,
    /// Bytes, padded with zeros.
    Data,
}

/// A field: its first byte in the datagram, its first bit from the left, its width in bits.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    byte: usize,
    bit: usize,
    width: usize,
    pub holds: Holds,
}

const fn field(name: &'static str, byte: usize, bit: usize, width: usize, holds: Holds) -> Field {
    Field {
        name,
        byte,
        bit,
        width,
        holds,
    }
}

const fn number(name: &'static str, byte: usize, bit: usize, width: usize) -> Field {
    field(name, HEADER_LEN + byte, bit, width, Holds::Number)
}

const fn bytes(name: &'static str, byte: usize, len: usize, holds: Holds) -> Field {
    field(name, HEADER_LEN + byte, 0, len * 8, holds)
}

const fn head(name: &'static str, byte: usize, width: usize) -> Field {
    field(name, byte, 0, width, Holds::Number)
}

/// The common header.
const HEAD: &[Field] = &[
    head("base_version", 0, 8),
    head("class", 1, 8),
    head("class_version", 2, 8),
    head("method", 3, 8),
    head("status", 4, 16),
    head("class_specific", 6, 16),
    head("tid", 8, 64),
    head("attribute", 16, 16),
    head("attr_mod", 20, 32),
];

const LOCAL: Field = number("local", 0, 0, 32);
const REMOTE: Field = number("remote", 4, 0, 32);

const REQ: &[Field] = &[
    LOCAL,
    number("vendor", 5, 0, 24),
    number("service", 8, 0, 64),
    number("guid", 16, 0, 64),
    number("qkey", 28, 0, 32),
    number("qpn", 32, 0, 24),
    number("responder", 35, 0, 8),
    number("eecn", 36, 0, 24),
    number("initiator", 39, 0, 8),
    number("remote_eecn", 40, 0, 24),
    number("remote_timeout", 43, 0, 5),
    number("transport", 43, 5, 2),
    number("flow", 43, 7, 1),
    number("psn", 44, 0, 24),
    number("timeout", 47, 0, 5),
    number("retry", 47, 5, 3),
    number("pkey", 48, 0, 16),
    number("mtu", 50, 0, 4),
    number("rdc", 50, 4, 1),
    number("rnr", 50, 5, 3),
    number("retries", 51, 0, 4),
    number("srq", 51, 4, 1),
    number("ext_transport", 51, 5, 3),
    number("local_lid", 52, 0, 16),
    number("remote_lid", 54, 0, 16),
    bytes("local_gid", 56, 16, Holds::Gid),
    bytes("remote_gid", 72, 16, Holds::Gid),
    number("flow_label", 88, 0, 20),
    number("rate", 91, 2, 6),
    number("tclass", 92, 0, 8),
    number("hops", 93, 0, 8),
    number("sl", 94, 0, 4),
    number("subnet_local", 94, 4, 1),
    number("ack_timeout", 95, 0, 5),
    number("alt_local_lid", 96, 0, 16),
    number("alt_remote_lid", 98, 0, 16),
    bytes("alt_local_gid", 100, 16, Holds::Gid),
    bytes("alt_remote_gid", 116, 16, Holds::Gid),
    number("alt_flow_label", 132, 0, 20),
    number("alt_rate", 135, 2, 6),
    number("alt_tclass", 136, 0, 8),
    number("alt_hops", 137, 0, 8),
    number("alt_sl", 138, 0, 4),
    number("alt_subnet_local", 138, 4, 1),
    number("alt_ack_timeout", 139, 0, 5),
    number("sap", 139, 5, 1),
    bytes("all_private", 140, 92, Holds::Data),
    number("ip_version", 140, 0, 8),
    number("ip_family", 141, 0, 4),
    number("ip_port", 142, 0, 16),
    bytes("ip_src", 144, 16, Holds::Address),
    bytes("ip_dst", 160, 16, Holds::Address),
    bytes("private", 176, 56, Holds::Data),
];

const MRA: &[Field] = &[
    LOCAL,
    REMOTE,
    number("message", 8, 0, 2),
    number("timeout", 9, 0, 5),
    bytes("private", 10, 222, Holds::Data),
];

const REJ: &[Field] = &[
    LOCAL,
    REMOTE,
    number("message", 8, 0, 2),
    number("ari_len", 9, 0, 7),
    number("reason", 10, 0, 16),
    bytes("ari", 12, 72, Holds::Data),
    number("ari_guid", 12, 0, 64),
    bytes("ari_gid", 12, 16, Holds::Gid),
    bytes("private", 84, 148, Holds::Data),
];

const REP: &[Field] = &[
    LOCAL,
    REMOTE,
    number("qkey", 8, 0, 32),
    number("qpn", 12, 0, 24),
    number("vendor_high", 15, 0, 8),
    number("eecn", 16, 0, 24),
    number("vendor_middle", 19, 0, 8),
    number("psn", 20, 0, 24),
    number("vendor_low", 23, 0, 8),
    number("responder", 24, 0, 8),
    number("initiator", 25, 0, 8),
    number("ack_delay", 26, 0, 5),
    number("failover", 26, 5, 2),
    number("flow", 26, 7, 1),
    number("rnr", 27, 0, 3),
    number("srq", 27, 3, 1),
    number("guid", 28, 0, 64),
    bytes("private", 36, 196, Holds::Data),
];

const RTU: &[Field] = &[LOCAL, REMOTE, bytes("private", 8, 224, Holds::Data)];

const DREQ: &[Field] = &[
    LOCAL,
    REMOTE,
    number("qpn", 8, 0, 24),
    bytes("private", 12, 220, Holds::Data),
];

const DREP: &[Field] = &[LOCAL, REMOTE, bytes("private", 8, 224, Holds::Data)];

const LAP: &[Field] = &[
    LOCAL,
    REMOTE,
    number("qpn", 12, 0, 24),
    number("timeout", 15, 0, 5),
    number("alt_local_lid", 20, 0, 16),
    number("alt_remote_lid", 22, 0, 16),
    bytes("alt_local_gid", 24, 16, Holds::Gid),
    bytes("alt_remote_gid", 40, 16, Holds::Gid),
    number("alt_flow_label", 56, 0, 20),
    number("alt_tclass", 59, 0, 8),
    number("alt_hops", 60, 0, 8),
    number("alt_rate", 61, 2, 6),
    number("alt_sl", 62, 0, 4),
    number("alt_subnet_local", 62, 4, 1),
    number("alt_ack_timeout", 63, 0, 5),
    bytes("private", 64, 168, Holds::Data),
];

const APR: &[Field] = &[
    LOCAL,
    REMOTE,
    number("info_len", 8, 0, 8),
    number("ap_status", 9, 0, 8),
    bytes("info", 12, 72, Holds::Data),
    bytes("private", 84, 148, Holds::Data),
];

const SIDR_REQ: &[Field] = &[
    number("request", 0, 0, 32),
    number("pkey", 4, 0, 16),
    number("service", 8, 0, 64),
    bytes("all_private", 16, 216, Holds::Data),
    number("ip_version", 16, 0, 8),
    number("ip_family", 17, 0, 4),
    number("ip_port", 18, 0, 16),
    bytes("ip_src", 20, 16, Holds::Address),
    bytes("ip_dst", 36, 16, Holds::Address),
    bytes("private", 52, 180, Holds::Data),
];

const SIDR_REP: &[Field] = &[
    number("request", 0, 0, 32),
    number("sidr_status", 4, 0, 8),
    number("info_len", 5, 0, 8),
    number("vendor_high", 6, 0, 16),
    number("qpn", 8, 0, 24),
    number("vendor_low", 11, 0, 8),
    number("service", 12, 0, 64),
    number("qkey", 20, 0, 32),
    bytes("info", 24, 72, Holds::Data),
    bytes("private", 96, 136, Holds::Data),
];

impl Kind {
    /// Every message, with its name, its attribute id, and its own fields.
    pub const ALL: [(Self, &'static str, u16, &'static [Field]); 11] = [
        (Self::Req, "REQ", 0x10, REQ),
        (Self::Mra, "MRA", 0x11, MRA),
        (Self::Rej, "REJ", 0x12, REJ),
        (Self::Rep, "REP", 0x13, REP),
        (Self::Rtu, "RTU", 0x14, RTU),
        (Self::Dreq, "DREQ", 0x15, DREQ),
        (Self::Drep, "DREP", 0x16, DREP),
        (Self::SidrReq, "SIDR_REQ", 0x17, SIDR_REQ),
        (Self::SidrRep, "SIDR_REP", 0x18, SIDR_REP),
        (Self::Lap, "LAP", 0x19, LAP),
        (Self::Apr, "APR", 0x1a, APR),
    ];

    /// The message with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The message in a datagram.
    pub fn of(mad: &Mad) -> Option<Self> {
        let id = u16::from_be_bytes([mad.0[16], mad.0[17]]);
        Self::ALL.iter().find(|row| row.2 == id).map(|row| row.0)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The own fields.
    pub fn fields(self) -> &'static [Field] {
        Self::ALL[self as usize].3
    }

    /// A field of the message or of the common header.
    pub fn field(self, name: &str) -> Option<&'static Field> {
        self.fields()
            .iter()
            .chain(HEAD)
            .find(|field| field.name == name)
    }
}

/// A management datagram.
#[derive(Clone, PartialEq, Eq)]
pub struct Mad(pub [u8; MAD_LEN]);

impl Mad {
    /// A message whose fields are all zero.
    pub fn new(kind: Kind) -> Self {
        let mut mad = Self([0; MAD_LEN]);
        mad.0[..4].copy_from_slice(&[1, 0x07, 2, 0x03]);
        mad.0[16..18].copy_from_slice(&Kind::ALL[kind as usize].2.to_be_bytes());
        mad
    }

    /// The number in a field of at most 64 bits.
    pub fn number(&self, field: &Field) -> u64 {
        let mut value = 0;
        for bit in 0..field.width {
            let at = field.bit + bit;
            let byte = self.0[field.byte + at / 8];
            value = value << 1 | u64::from(byte >> (7 - at % 8) & 1);
        }
        value
    }

    /// Writes a number; too large a one is an error.
    pub fn set_number(&mut self, field: &Field, value: u64) -> Result<(), String> {
        if field.width < 64 && value >> field.width != 0 {
            return Err(format!(
                "{} has {} bits: {value:#x}",
                field.name, field.width
            ));
        }
        for bit in 0..field.width {
            let at = field.bit + bit;
            let mask = 1 << (7 - at % 8);
            let byte = &mut self.0[field.byte + at / 8];
            *byte &= !mask;
            if value >> (field.width - 1 - bit) & 1 != 0 {
                *byte |= mask;
            }
        }
        Ok(())
    }

    /// Sets all bits of a number.
    pub fn set_ones(&mut self, field: &Field) {
        let ones = u64::MAX.checked_shr(64 - u32::try_from(field.width).unwrap_or(64));
        self.set_number(field, ones.unwrap_or(0)).unwrap_or(());
    }

    /// The bytes of a field.
    pub fn bytes(&self, field: &Field) -> &[u8] {
        &self.0[field.byte..field.byte + field.width / 8]
    }

    /// Writes bytes, and zeros after them.
    pub fn set_bytes(&mut self, field: &Field, value: &[u8]) -> Result<(), String> {
        let place = &mut self.0[field.byte..field.byte + field.width / 8];
        if value.len() > place.len() {
            return Err(format!("{} has {} bytes", field.name, place.len()));
        }
        place.fill(0);
        place[..value.len()].copy_from_slice(value);
        Ok(())
    }

    /// The bits that the specification reserves, as a mask.
    fn reserved(kind: Kind) -> Self {
        let mut mask = Self([0xff; MAD_LEN]);
        for field in kind.fields().iter().chain(HEAD) {
            match field.holds {
                Holds::Number => mask.set_number(field, 0).unwrap_or(()),
                _ => mask.set_bytes(field, &[]).unwrap_or(()),
            }
        }
        mask
    }

    /// Sets all reserved bits.
    pub fn set_reserved(&mut self, kind: Kind) {
        for (byte, mask) in self.0.iter_mut().zip(Self::reserved(kind).0) {
            *byte |= mask;
        }
    }

    /// The communication ids of its sender and of its receiver, if it has both.
    pub fn ids(&self) -> Option<(u32, u32)> {
        let kind = Kind::of(self)?;
        let id = |name| u32::try_from(self.number(kind.field(name)?)).ok();
        Some((id("local")?, id("remote")?))
    }

    /// Returns true if a reserved bit is set.
    pub fn has_reserved(&self, kind: Kind) -> bool {
        let mask = Self::reserved(kind);
        self.0
            .iter()
            .zip(mask.0)
            .any(|(byte, mask)| byte & mask != 0)
    }

    /// One line with everything that is not zero.
    pub fn describe(&self) -> String {
        let Some(kind) = Kind::of(self) else {
            return format!(
                "attribute {:#x}",
                u16::from_be_bytes([self.0[16], self.0[17]])
            );
        };
        let mut line = kind.name().to_string();
        for field in kind.fields() {
            if field.holds == Holds::Number {
                let value = self.number(field);
                let is_copy = matches!(field.name, "ari_guid");
                if value != 0 && !is_copy {
                    line += &format!(" {}={value:#x}", field.name);
                }
            }
        }
        line + &format!(
            " tid={:#x}",
            u64::from_be_bytes(self.0[8..16].try_into().unwrap_or([0; 8]))
        )
    }
}

/// An address as a GID.
pub fn gid(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// An address as in the header of annex A11.
pub fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[12..].copy_from_slice(&v4.octets());
            bytes
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_names() {
        for (number, row) in Kind::ALL.iter().enumerate() {
            assert_eq!(row.0 as usize, number);
            assert_eq!(Kind::of(&Mad::new(row.0)), Some(row.0));
        }
    }

    #[test]
    fn numbers_stay_in_their_bits() {
        for (kind, ..) in Kind::ALL {
            for field in kind.fields().iter().filter(|f| f.holds == Holds::Number) {
                let ones = u64::MAX >> (64 - field.width);
                let mut mad = Mad::new(kind);
                mad.set_number(field, ones).unwrap();
                assert_eq!(mad.number(field), ones);
                assert!(!mad.has_reserved(kind), "{} {}", kind.name(), field.name);
                let set: u32 = mad.0[HEADER_LEN..]
                    .iter()
                    .map(|byte| byte.count_ones())
                    .sum();
                assert_eq!(set as usize, field.width);
            }
        }
    }

    #[test]
    fn messages_end_with_the_datagram() {
        for (kind, ..) in Kind::ALL {
            let last = kind
                .fields()
                .iter()
                .map(|f| f.byte + f.width.div_ceil(8))
                .max();
            assert_eq!(last, Some(MAD_LEN), "{}", kind.name());
        }
    }
}
