// SPDX-License-Identifier: GPL-2.0

//! Packets of InfiniBand and of RoCE v2 (IBTA annex A17): what of a frame the rules look at.

use crate::capture::Frame;
use cm_script::guest::frame::{crc32, icrc};
use pcap_parser::Linktype;
use std::{fmt, net::IpAddr};

const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const LRH_LEN: usize = 8;
/// The link version of softib's ports with the LIDs of Omni-Path, whose upper halves, of the
/// destination and of the source, are behind the local route header.
const LONG_LIDS: u8 = 1;
const UPPER_LEN: usize = 4;
const GRH_LEN: usize = 40;
const BTH_LEN: usize = 12;
const DETH_LEN: usize = 8;
const ICRC_LEN: usize = 4;
const UDP: u8 = 17;
const ROCE_PORT: u16 = 4791;
/// Records of ERF, whose header has this length, and their type for InfiniBand.
const ERF: Linktype = Linktype(197);
const ERF_LEN: usize = 16;
const ERF_INFINIBAND: u8 = 21;
/// Unreliable datagram, SEND only.
const UD_SEND_ONLY: u8 = 0x64;
/// The queue pair of the general services.
pub const GSI_QPN: u32 = 1;
/// The well-known Q_Key.
pub const GSI_QKEY: u32 = 0x8001_0000;

/// The address of the source or destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// On RoCE.
    Ip(IpAddr),
    /// On InfiniBand, or on Omni-Path, where a LID has 32 bits.
    Lid(u32),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Lid(lid) => write!(f, "LID {lid:#x}"),
        }
    }
}

/// A global identifier.
pub type Gid = [u8; 16];

/// A packet for a queue pair.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The number of its frame.
    pub frame: usize,
    /// When it was captured, in microseconds.
    pub time: u64,
    /// The source of the packet.
    pub src: Address,
    /// The destination of the packet.
    pub dst: Address,
    /// The service level; 0 on RoCE, which has none.
    pub sl: u8,
    /// The GIDs of both, where there is a global route header.
    pub gids: Option<(Gid, Gid)>,
    /// The queue pair that it goes to.
    pub qpn: u32,
    /// The contents of the packet.
    pub body: Body,
}

/// The contents of a packet.
#[derive(Clone, Debug)]
pub enum Body {
    /// A datagram of the general services.
    Mad(Datagram),
    /// Anything else, for instance data of a connection.
    Data,
}

/// A datagram of the general services.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The Q_Key.
    pub qkey: u32,
    /// The queue pair that it comes from.
    pub src_qpn: u32,
    /// The packet sequence number, which each send of a message has anew.
    pub psn: u32,
    /// True if its invariant CRC is right.
    pub icrc: bool,
    /// The payload.
    pub mad: Vec<u8>,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn be24(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = bytes.get(at..)?.first_chunk().copied()?;
    Some(u32::from_be_bytes([0, a, b, c]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The Ethernet type of a frame, and what follows it.
fn network(frame: &Frame) -> Option<(u16, &[u8])> {
    let bytes = &frame.bytes;
    match frame.link {
        Linktype::ETHERNET => match be16(bytes, 12)? {
            // A VLAN.
            0x8100 => Some((be16(bytes, 16)?, bytes.get(18..)?)),
            kind => Some((kind, bytes.get(14..)?)),
        },
        Linktype::LINUX_SLL => Some((be16(bytes, 14)?, bytes.get(16..)?)),
        Linktype::LINUX_SLL2 => Some((be16(bytes, 0)?, bytes.get(20..)?)),
        _ => None,
    }
}

/// The packet in a frame; `None` if it is none of InfiniBand or RoCE v2.
pub fn parse(frame: &Frame) -> Option<Packet> {
    match frame.link {
        ERF => infiniband(frame),
        _ => roce(frame),
    }
}

fn roce(frame: &Frame) -> Option<Packet> {
    let (kind, ip) = network(frame)?;
    let (ip_len, protocol, src, dst) = match kind {
        0x0800 => {
            let at = |at: usize| ip.get(at..)?.first_chunk::<4>().map(|a| IpAddr::from(*a));
            (V4_LEN, *ip.get(9)?, at(12)?, at(16)?)
        }
        0x86dd => {
            let at = |at: usize| ip.get(at..)?.first_chunk::<16>().map(|a| IpAddr::from(*a));
            (V6_LEN, *ip.get(6)?, at(8)?, at(24)?)
        }
        _ => return None,
    };
    // RoCE has no options and no fragments.
    if protocol != UDP || kind == 0x0800 && ip.first() != Some(&0x45) {
        return None;
    }
    let udp = ip.get(ip_len..)?;
    if be16(udp, 2)? != ROCE_PORT {
        return None;
    }
    let end = ip_len + usize::from(be16(udp, 4)?);
    let (qpn, body) = body(ip, ip_len + UDP_LEN, end, |covered| icrc(covered, ip_len))?;
    Some(Packet {
        frame: frame.number,
        time: frame.time,
        src: Address::Ip(src),
        dst: Address::Ip(dst),
        sl: 0,
        gids: None,
        qpn,
        body,
    })
}

fn infiniband(frame: &Frame) -> Option<Packet> {
    let mut bytes = erf(&frame.bytes)?.to_vec();
    let mut end = usize::from(be16(&bytes, 4)? & 0x07ff) * 4;
    // The invariant CRC does not cover the upper halves of LIDs.
    let upper = if bytes.first()? & 0x0f == LONG_LIDS {
        bytes.get(LRH_LEN..LRH_LEN + UPPER_LEN)?;
        end = end.checked_sub(UPPER_LEN)?;
        let upper: Vec<u8> = bytes.drain(LRH_LEN..LRH_LEN + UPPER_LEN).collect();
        (be16(&upper, 0)?, be16(&upper, 2)?)
    } else {
        (0, 0)
    };
    let bytes = &bytes[..];
    let lid = |upper: u16, lower: u16| Address::Lid(u32::from(upper) << 16 | u32::from(lower));
    let (sl, at) = match bytes.get(1)? {
        lnh if lnh & 3 == 2 => (lnh >> 4, LRH_LEN),
        lnh if lnh & 3 == 3 => (lnh >> 4, LRH_LEN + GRH_LEN),
        // Raw.
        _ => return None,
    };
    let gid = |at: usize| bytes.get(at..)?.first_chunk().copied();
    let gids = match at {
        LRH_LEN => None,
        _ => Some((gid(LRH_LEN + 8)?, gid(LRH_LEN + 24)?)),
    };
    let (qpn, body) = body(bytes, at, end, |covered| infiniband_icrc(covered, at))?;
    Some(Packet {
        frame: frame.number,
        time: frame.time,
        src: lid(upper.1, be16(bytes, 6)?),
        dst: lid(upper.0, be16(bytes, 2)?),
        sl,
        gids,
        qpn,
        body,
    })
}

/// Returns the packet in an ERF record of InfiniBand, from the local route header on.
fn erf(record: &[u8]) -> Option<&[u8]> {
    let kind = *record.get(8)?;
    let mut rest = record.get(ERF_LEN..)?;
    let mut more = kind & 0x80 != 0;
    while more {
        more = rest.first()? & 0x80 != 0;
        rest = rest.get(8..)?;
    }
    (kind & 0x7f == ERF_INFINIBAND).then_some(rest)
}

/// The invariant CRC over a packet of InfiniBand (IBTA 7.8.1) whose base transport header is at
/// `bth`: what a switch or, where there is a global route header, a router changes counts as ones.
pub fn infiniband_icrc(packet: &[u8], bth: usize) -> [u8; ICRC_LEN] {
    let mut masked = packet.to_vec();
    if bth == LRH_LEN {
        masked[0] |= 0xf0;
    } else {
        masked[..LRH_LEN].fill(0xff);
        masked[LRH_LEN] |= 0x0f;
        masked[LRH_LEN + 1..LRH_LEN + 4].fill(0xff);
        masked[LRH_LEN + 7] = 0xff;
    }
    masked[bth + 4] = 0xff;
    (!crc32(u32::MAX, &masked)).to_le_bytes()
}

/// The queue pair that a packet goes to and what it carries. Its base transport header is at `bth`,
/// and the invariant CRC, over all that is before it, ends at `end`.
fn body(
    bytes: &[u8],
    bth: usize,
    end: usize,
    icrc: impl Fn(&[u8]) -> [u8; ICRC_LEN],
) -> Option<(u32, Body)> {
    let header = bytes.get(bth..)?;
    let (opcode, padding) = (*header.first()?, usize::from(*header.get(1)? >> 4 & 3));
    let qpn = be24(header, 5)?;
    if opcode != UD_SEND_ONLY {
        return Some((qpn, Body::Data));
    }
    let deth = header.get(BTH_LEN..)?;
    let (qkey, src_qpn) = (be32(deth, 0)?, be24(deth, 5)?);
    if qpn != GSI_QPN && src_qpn != GSI_QPN {
        return Some((qpn, Body::Data));
    }
    let covered = bytes.get(..end.checked_sub(ICRC_LEN)?)?;
    let mad = covered.get(bth + BTH_LEN + DETH_LEN..)?;
    let datagram = Datagram {
        qkey,
        src_qpn,
        psn: be24(header, 9)?,
        icrc: bytes.get(covered.len()..end)? == icrc(covered),
        mad: mad.get(..mad.len().checked_sub(padding)?)?.to_vec(),
    };
    Some((qpn, Body::Mad(datagram)))
}
