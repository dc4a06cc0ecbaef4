// SPDX-License-Identifier: GPL-2.0

//! Packets of RoCE v2 (IBTA annex A17): what of a frame the rules look at.

use crate::capture::Frame;
use cm_script::guest::frame::icrc;
use pcap_parser::Linktype;
use std::net::IpAddr;

const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const BTH_LEN: usize = 12;
const DETH_LEN: usize = 8;
const ICRC_LEN: usize = 4;
const UDP: u8 = 17;
const ROCE_PORT: u16 = 4791;
/// Unreliable datagram, SEND only.
const UD_SEND_ONLY: u8 = 0x64;
/// The queue pair of the general services.
pub const GSI_QPN: u32 = 1;
/// Its well-known Q_Key.
pub const GSI_QKEY: u32 = 0x8001_0000;

/// A packet for a queue pair.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The number of its frame.
    pub frame: usize,
    /// When it was captured, in microseconds.
    pub time: u64,
    /// Where it comes from.
    pub src: IpAddr,
    /// Where it goes to.
    pub dst: IpAddr,
    /// The queue pair that it goes to.
    pub qpn: u32,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
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
    /// Its packet sequence number, which each send of a message has anew.
    pub psn: u32,
    /// Whether its invariant CRC is right.
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

/// The packet in a frame; `None` if it is none of RoCE v2.
pub fn parse(frame: &Frame) -> Option<Packet> {
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
    let len = usize::from(be16(udp, 4)?);
    let bth = udp.get(UDP_LEN..)?;
    let (opcode, padding) = (*bth.first()?, usize::from(*bth.get(1)? >> 4 & 3));
    let qpn = be24(bth, 5)?;
    let packet = |body| Packet {
        frame: frame.number,
        time: frame.time,
        src,
        dst,
        qpn,
        body,
    };
    if opcode != UD_SEND_ONLY {
        return Some(packet(Body::Data));
    }
    let deth = bth.get(BTH_LEN..)?;
    let (qkey, src_qpn) = (be32(deth, 0)?, be24(deth, 5)?);
    if qpn != GSI_QPN && src_qpn != GSI_QPN {
        return Some(packet(Body::Data));
    }
    let end = ip_len + len;
    let covered = ip.get(..end.checked_sub(ICRC_LEN)?)?;
    let mad = covered.get(ip_len + UDP_LEN + BTH_LEN + DETH_LEN..)?;
    Some(packet(Body::Mad(Datagram {
        qkey,
        src_qpn,
        psn: be24(bth, 9)?,
        icrc: ip.get(covered.len()..end)? == icrc(covered, ip_len),
        mad: mad.get(..mad.len().checked_sub(padding)?)?.to_vec(),
    })))
}
