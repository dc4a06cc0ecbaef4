// SPDX-License-Identifier: GPL-2.0

//! Values of the fields of a request, and how they become bytes.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A piece of memory that an answer or an option is to be in.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// A buffer that is long enough.
    Good,
    /// The last two bytes before a page that is not there.
    Edge,
    /// A page that can be read only.
    ReadOnly,
    /// Address 0.
    Null,
    /// An address of the kernel.
    Kernel,
}

impl Memory {
    pub const ALL: [Self; 5] = [
        Self::Good,
        Self::Edge,
        Self::ReadOnly,
        Self::Null,
        Self::Kernel,
    ];
}

/// The value of a field.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Number(u64),
    /// The id, or the membership, that was made as the n-th one.
    Made(u8),
    /// The number of a queue pair: 0 and 1 are RC and UD of the first device, 2 and 3 of the second, and
    /// others do not exist.
    QueuePair(u8),
    /// The descriptor of a file of the device.
    File(u8),
    Memory(Memory),
    /// The address of these bytes.
    Content(Vec<u8>),
    /// One of [`ADDRESSES`], with a port.
    Address(u8, u16),
    /// The length of the address, or of the content, that the field is for.
    Fitting,
    Bytes(Vec<u8>),
}

/// The numbers and addresses that values stand for while a sequence runs.
pub trait Surroundings {
    fn id(&self, n: u8) -> u32;
    fn membership(&self, n: u8) -> u32;
    fn queue_pair(&self, n: u8) -> u32;
    fn file(&self, n: u8) -> u32;
    fn memory(&self, memory: Memory) -> u64;
    /// Puts the bytes into memory and returns their address.
    fn content(&self, bytes: &[u8]) -> u64;
}

/// The ports: free ones, one that only root may use, the one that stands for any, and that of a
/// listener of the kernel.
pub const PORTS: [u16; 7] = [7000, 7001, 7002, 7003, 80, 0, 4420];

/// The addresses: those of the devices, of nobody, of everybody, of groups, what is none, and those
/// of the fuzzer on the wire.
pub const ADDRESSES: [&str; 26] = [
    "10.0.0.1",
    "10.0.0.2",
    "fd00::1",
    "fd00::2",
    "10.0.2.1",
    "0.0.0.0",
    "::",
    "127.0.0.1",
    "::1",
    "10.0.0.77",
    "10.9.9.9",
    "fd00::77",
    "239.1.2.3",
    "224.0.0.1",
    "ff15::1234",
    "ff12:a01b:fe80::1",
    "::ffff:10.0.0.2",
    "255.255.255.255",
    "fe80::1",
    "ib 10.0.0.1",
    "ib 10.0.0.2",
    "ib ::",
    "family 0",
    "family 99",
    "10.0.0.9",
    "fd00::9",
];

/// Returns the socket address as the kernel has it.
pub fn sockaddr(index: u8, port: u16) -> Vec<u8> {
    let text = ADDRESSES[usize::from(index) % ADDRESSES.len()];
    let mut bytes = Vec::new();
    if let Some(family) = text.strip_prefix("family ") {
        bytes.extend(family.parse().unwrap_or(0u16).to_ne_bytes());
        bytes.resize(16, 0);
    } else if let Some(gid) = text.strip_prefix("ib ") {
        let gid = match gid.parse() {
            Ok(IpAddr::V4(v4)) => v4.to_ipv6_mapped().octets(),
            Ok(IpAddr::V6(v6)) => v6.octets(),
            Err(_) => [0; 16],
        };
        let service = 0x0000_0000_0106_0000u64 | u64::from(port);
        bytes.extend(27u16.to_ne_bytes());
        bytes.extend(0xffffu16.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(gid);
        bytes.extend(service.to_be_bytes());
        bytes.extend(0xffffu64.to_be_bytes());
        bytes.extend([0; 8]);
    } else {
        match text.parse() {
            Ok(IpAddr::V4(v4)) => {
                bytes.extend(2u16.to_ne_bytes());
                bytes.extend(port.to_be_bytes());
                bytes.extend(v4.octets());
                bytes.resize(16, 0);
            }
            Ok(IpAddr::V6(v6)) => {
                bytes.extend(10u16.to_ne_bytes());
                bytes.extend(port.to_be_bytes());
                bytes.extend([0; 4]);
                bytes.extend(v6.octets());
                bytes.resize(28, 0);
            }
            Err(_) => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_lengths_of_their_families() {
        for (index, text) in (0..).zip(ADDRESSES) {
            let bytes = sockaddr(index, 7000);
            let want = match bytes[0] {
                10 => 28,
                27 => 48,
                _ => 16,
            };
            assert_eq!(bytes.len(), want, "{text}");
        }
    }
}
