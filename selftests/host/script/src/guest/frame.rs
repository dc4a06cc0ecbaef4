// SPDX-License-Identifier: GPL-2.0

//! RoCE v2 frames (IBTA annex A17): Ethernet, IP, UDP, BTH, DETH, a MAD, and the invariant CRC.

use crate::wire::{Mad, MAD_LEN};
use std::net::IpAddr;

pub type Mac = [u8; 6];

const ETH_LEN: usize = 14;
const ETHERTYPE_V4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_V6: [u8; 2] = [0x86, 0xdd];
const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const UDP: u8 = 17;
const ROCE_PORT: u16 = 4791;
const BTH_LEN: usize = 12;
const DETH_LEN: usize = 8;
const ICRC_LEN: usize = 4;
/// Unreliable datagram, SEND only.
const UD_SEND_ONLY: u8 = 0x64;
const PKEY: u16 = 0xffff;
const GSI_QPN: u32 = 1;
const GSI_QKEY: u32 = 0x8001_0000;

/// The CRC of Ethernet, continued.
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            1 => crc >> 1 ^ 0xedb8_8320,
            _ => crc >> 1,
        })
    })
}

/// The sum of annex RFC 1071.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for pair in parts.concat().chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The invariant CRC over a packet without Ethernet header: what a router changes counts as ones.
///
/// `packet` goes from the IP header, of `ip_len` bytes (20 or 40), to what the CRC follows.
pub fn icrc(packet: &[u8], ip_len: usize) -> [u8; ICRC_LEN] {
    let mut masked = packet.to_vec();
    if ip_len == V4_LEN {
        masked[1] = 0xff;
        masked[8] = 0xff;
        masked[10..12].fill(0xff);
    } else {
        masked[0] |= 0x0f;
        masked[1..4].fill(0xff);
        masked[7] = 0xff;
    }
    let udp = ip_len;
    masked[udp + 6..udp + 8].fill(0xff);
    masked[udp + UDP_LEN + 4] = 0xff;
    let crc = crc32(crc32(u32::MAX, &[0xff; 8]), &masked);
    (!crc).to_le_bytes()
}

/// The source and the destination of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub src_mac: Mac,
    pub dst_mac: Mac,
    pub src: IpAddr,
    pub dst: IpAddr,
}

/// A frame with a datagram for QP1. `psn` numbers the packets of a sender.
pub fn build(way: &Way, psn: u32, mad: &[u8]) -> Vec<u8> {
    let pad = (4 - mad.len() % 4) % 4;
    let udp_len = UDP_LEN + BTH_LEN + DETH_LEN + mad.len() + pad + ICRC_LEN;
    let udp_len = u16::try_from(udp_len).unwrap_or(0);
    let mut packet = Vec::new();
    let ip_len = match (way.src, way.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            packet.extend([0x45, 0]);
            packet.extend((20 + udp_len).to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, UDP, 0, 0]);
            packet.extend(src.octets());
            packet.extend(dst.octets());
            let sum = checksum(&[&packet]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            V4_LEN
        }
        (src, dst) => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend(udp_len.to_be_bytes());
            packet.extend([UDP, 64]);
            packet.extend(crate::wire::gid(src));
            packet.extend(crate::wire::gid(dst));
            V6_LEN
        }
    };
    packet.extend(0xc0deu16.to_be_bytes());
    packet.extend(ROCE_PORT.to_be_bytes());
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend([UD_SEND_ONLY, u8::try_from(pad << 4).unwrap_or(0)]);
    packet.extend(PKEY.to_be_bytes());
    packet.extend(GSI_QPN.to_be_bytes());
    packet.extend((psn & 0x00ff_ffff).to_be_bytes());
    packet.extend(GSI_QKEY.to_be_bytes());
    packet.extend(GSI_QPN.to_be_bytes());
    packet.extend(mad);
    packet.resize(packet.len() + pad, 0);
    packet.extend(icrc(&packet, ip_len));
    if ip_len == V6_LEN {
        // Over IPv4 there need not be one.
        let udp = &packet[V6_LEN..];
        let length = u32::from(udp_len).to_be_bytes();
        let sum = checksum(&[&packet[8..V6_LEN], &length, &[0, 0, 0, UDP], udp]);
        let sum = if sum == 0 { 0xffff } else { sum };
        packet[V6_LEN + 6..V6_LEN + 8].copy_from_slice(&sum.to_be_bytes());
    }
    let ethertype = if ip_len == V4_LEN {
        ETHERTYPE_V4
    } else {
        ETHERTYPE_V6
    };
    [&way.dst_mac[..], &way.src_mac, &ethertype, &packet].concat()
}

/// The datagram for QP1 in a frame, and the IP addresses of its sender and receiver.
///
/// `Ok(None)` if it is something else; an error if it is a RoCE frame that is not right.
pub fn parse(frame: &[u8]) -> Result<Option<(IpAddr, IpAddr, Mad)>, String> {
    let Some((ethernet, packet)) = frame.split_at_checked(ETH_LEN) else {
        return Ok(None);
    };
    let (ip_len, protocol) = match [ethernet[12], ethernet[13]] {
        ETHERTYPE_V4 if packet.len() > V4_LEN => (V4_LEN, packet[9]),
        ETHERTYPE_V6 if packet.len() > V6_LEN => (V6_LEN, packet[6]),
        _ => return Ok(None),
    };
    let end = ip_len + UDP_LEN + BTH_LEN + DETH_LEN + MAD_LEN + ICRC_LEN;
    if protocol != UDP || packet.len() < end {
        return Ok(None);
    }
    let packet = &packet[..end];
    let udp = &packet[ip_len..];
    if udp[2..4] != ROCE_PORT.to_be_bytes() || udp[UDP_LEN] != UD_SEND_ONLY {
        return Ok(None);
    }
    let (src, dst) = match ip_len {
        V4_LEN => {
            let at = |at: usize| {
                IpAddr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap_or([0; 4]))
            };
            (at(12), at(16))
        }
        _ => {
            let at = |at: usize| {
                IpAddr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap_or([0; 16]))
            };
            (at(8), at(24))
        }
    };
    let (body, crc) = packet.split_at(end - ICRC_LEN);
    if crc != icrc(body, ip_len) {
        return Err("the invariant CRC is wrong".into());
    }
    let bth = &udp[UDP_LEN..];
    if bth[5..8] != [0, 0, 1] {
        return Err("it is not for QP 1".into());
    }
    if bth[BTH_LEN..BTH_LEN + 4] != GSI_QKEY.to_be_bytes() {
        return Err("the Q_Key is wrong".into());
    }
    let mad = body[end - ICRC_LEN - MAD_LEN..].try_into();
    Ok(mad.ok().map(|mad| (src, dst, Mad(mad))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn crc_of_the_classic_text() {
        assert_eq!(!crc32(u32::MAX, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_is_built_can_be_parsed() {
        for (src, dst) in [("10.0.0.9", "10.0.0.1"), ("fd00::9", "fd00::1")] {
            let way = Way {
                src_mac: [2; 6],
                dst_mac: [4; 6],
                src: src.parse().unwrap(),
                dst: dst.parse().unwrap(),
            };
            let mad = Mad::new(Kind::Rtu);
            let frame = build(&way, 1, &mad.0);
            let (from, to, parsed) = parse(&frame).unwrap().unwrap();
            assert_eq!((from, to), (way.src, way.dst));
            assert!(parsed == mad);
            let mut bad = frame;
            bad[100] ^= 1;
            assert!(parse(&bad).is_err());
        }
    }
}
