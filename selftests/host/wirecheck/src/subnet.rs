// SPDX-License-Identifier: GPL-2.0

//! Addresses in a request: those of annex A11 and of its path, against those of its packet.
//!
//! On RoCE all of them are the packet's. On InfiniBand that has LIDs, often no GIDs and never an IP
//! address: there a GID, and an IP address, is that of one LID, and the GIDs of a LID are those that
//! the subnet administrator tells of. A GID that is made from a LID of Omni-Path is that of this LID.

use crate::{
    packet::{Address, Gid, Packet},
    rule::{Findings, Rule},
};
use cm_script::wire;
use cmproto::{
    gid, opa,
    private_data::{Header, IP_HEADER_LEN, VERSION},
    service_id::{PortSpace, ServiceId},
    wire::{Message, ReqPath},
};
use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv6Addr},
};

/// The LID of a path that leaves the subnet, or is none of InfiniBand.
const PERMISSIVE_LID: u16 = 0xffff;

/// The first LID of a group (IBTA volume 1, 4.1.1).
const MULTICAST_LID: u16 = 0xc000;

/// The version of the class on Omni-Path, where a record of a path has LIDs of 32 bits.
const OPA_VERSION: u8 = 0x80;

/// The class, the method and the attribute of an answer about a path, and where the path is.
const ADMINISTRATION: u8 = 3;
const GET_RESP: u8 = 0x81;
const PATH_RECORD: [u8; 2] = [0, 0x35];
const AT_PATH: usize = 56;

/// The observed part of a subnet.
#[derive(Debug, Default)]
pub struct Subnet {
    gids: HashMap<Gid, u32>,
    /// The GIDs of a LID in answers of the subnet administrator.
    told: HashMap<u32, HashSet<Gid>>,
    /// The LIDs of IP addresses, which are as in the header of annex A11.
    ips: HashMap<[u8; 16], u32>,
}

impl Subnet {
    /// Finds what is wrong with the addresses of a message.
    pub fn message(&mut self, packet: &Packet, message: &Message<'_>, found: &mut Findings) {
        if let (Some((src, dst)), Address::Lid(slid), Address::Lid(dlid)) =
            (packet.gids, packet.src, packet.dst)
        {
            self.gid(src, slid, found);
            self.gid(dst, dlid, found);
        }
        match message {
            Message::Req(req) => {
                self.primary(packet, &req.primary, found);
                self.alternate(packet, &req.alternate, found);
                self.ip_header(packet, req.service_id, req.private_data, found);
            }
            Message::SidrReq(sidr) => {
                self.ip_header(packet, sidr.service_id, sidr.private_data, found);
            }
            _ => (),
        }
    }

    /// Any datagram: the paths that the subnet administrator tells of (15.2.5.16) are right.
    pub fn administrator(&mut self, mad: &[u8]) {
        let is_path = mad.get(1) == Some(&ADMINISTRATION)
            && mad.get(3) == Some(&GET_RESP)
            && mad.get(4..6) == Some(&[0; 2])
            && mad.get(16..18) == Some(&PATH_RECORD);
        let Some(path) = mad.get(AT_PATH..).filter(|_| is_path) else {
            return;
        };
        let len = match mad.get(2) {
            Some(&OPA_VERSION) => 4,
            _ => 2,
        };
        // Beyond a router the LID is that of the router.
        if path.get(43 + 2 * len).is_none_or(|hops| *hops > 1) {
            return;
        }
        for (gid, lid) in [(8, 40), (24, 40 + len)] {
            let gid = path.get(gid..).and_then(|b| b.first_chunk::<16>());
            if let (Some(gid), Some(lid)) = (gid, path.get(lid..lid + len)) {
                let lid = lid.iter().fold(0, |lid, byte| lid << 8 | u32::from(*byte));
                self.told.entry(lid).or_default().insert(*gid);
            }
        }
    }

    fn gid(&mut self, gid: Gid, lid: u32, found: &mut Findings) {
        let made = gid::Gid(gid);
        if made.is_opa() {
            if made.opa_lid() != lid {
                let gid = Ipv6Addr::from(gid);
                found.breaks(Rule::W19, format!("GID {gid} with LID {lid:#x}"));
            }
            return;
        }
        let known = *self.gids.entry(gid).or_insert(lid);
        let told = self.told.get(&lid);
        if known != lid || told.is_some_and(|gids| !gids.contains(&gid)) {
            let why = match known == lid {
                true => "which the subnet administrator did not tell of".into(),
                false => format!("not {known:#x}"),
            };
            let gid = Ipv6Addr::from(gid);
            found.breaks(Rule::W19, format!("GID {gid} with LID {lid:#x}, {why}"));
        }
    }

    fn primary(&mut self, packet: &Packet, path: &ReqPath, found: &mut Findings) {
        let mut wrong = |what: String| found.breaks(Rule::W19, what);
        let gids = (path.local_gid.0, path.remote_gid.0);
        let (slid, dlid) = match (packet.src, packet.dst) {
            (Address::Lid(src), Address::Lid(dst)) => (src, dst),
            (Address::Ip(src), Address::Ip(dst)) => {
                if gids != (wire::gid(src), wire::gid(dst)) {
                    wrong("the GIDs of the path are not those of the packet".into());
                }
                return;
            }
            _ => return,
        };
        if path.sl != packet.sl {
            wrong(format!(
                "service level {}, and {} of the path",
                packet.sl, path.sl
            ));
        }
        // Long LIDs are in the GIDs.
        let is_extended = opa::is_extended(slid, dlid);
        let is_made = |gid| gid::Gid(gid).is_opa();
        if is_extended != is_made(gids.0) || is_extended != is_made(gids.1) {
            wrong("the GIDs of the path are not made from LIDs, or are".into());
        }
        if !is_extended && packet.gids.is_some_and(|packet| packet != gids) {
            wrong("the GIDs of the path are not those of the packet".into());
        }
        let lids = match path.subnet_local {
            true if is_extended => (0, 0),
            true => (opa::short_lid(slid), opa::short_lid(dlid)),
            // The sender may know by which LID its router reaches it.
            false if (1..MULTICAST_LID).contains(&path.local_lid) => {
                (path.local_lid, PERMISSIVE_LID)
            }
            false => (PERMISSIVE_LID, PERMISSIVE_LID),
        };
        if (path.local_lid, path.remote_lid) != lids {
            wrong(format!(
                "LIDs {:#x} and {:#x} of the path, not {:#x} and {:#x}",
                path.local_lid, path.remote_lid, lids.0, lids.1
            ));
        }
        if !path.subnet_local && packet.gids.is_none() {
            wrong("leaves the subnet without a global route".into());
        }
        // The LID of a router is not that of the GID.
        if path.subnet_local {
            self.gid(gids.0, slid, found);
            self.gid(gids.1, dlid, found);
        }
    }

    fn alternate(&mut self, packet: &Packet, path: &ReqPath, found: &mut Findings) {
        if matches!(packet.src, Address::Lid(_)) && !path.is_empty() && path.subnet_local {
            for (gid, lid) in [
                (path.local_gid, path.local_lid),
                (path.remote_gid, path.remote_lid),
            ] {
                let lid = if gid.is_opa() {
                    gid.opa_lid()
                } else {
                    lid.into()
                };
                self.gid(gid.0, lid, found);
            }
        }
    }

    /// Annex A11: what private data of a request to an IP address begins with.
    fn ip_header(
        &mut self,
        packet: &Packet,
        service: u64,
        private_data: &[u8],
        found: &mut Findings,
    ) {
        let service = ServiceId(service);
        if service.0 >> 32 != 0 || service.port_space() == Some(PortSpace::Ib) {
            return;
        }
        let mut wrong = |what: String| found.breaks(Rule::W15, what);
        let header = match Header::decode(private_data) {
            Ok(Header::Ip(header)) => header,
            // From an AF_IB address, which RoCE does not have.
            Ok(Header::AfIb) if matches!(packet.src, Address::Lid(_)) => return,
            Ok(Header::AfIb) => return wrong("no IP version".into()),
            Err(_) => return wrong(format!("not {IP_HEADER_LEN} bytes of version {VERSION}")),
        };
        if header.src.port() == 0 {
            wrong("source port 0".into());
        }
        if private_data.get(1).is_some_and(|byte| byte & 0x0f != 0) {
            wrong("the low half of byte 1".into());
        }
        let is_v4 = private_data.get(1).is_some_and(|byte| byte >> 4 == 4);
        for (at, address) in [(4, packet.src), (20, packet.dst)] {
            // As a whole, so that bytes before an IPv4 address are zero.
            let Some(bytes) = private_data.get(at..).and_then(|b| b.first_chunk::<16>()) else {
                continue;
            };
            match address {
                Address::Ip(ip) if *bytes == wire::address(ip) => (),
                Address::Ip(ip) => wrong(format!("the address in byte {at} is not {ip}")),
                Address::Lid(_) if is_v4 && bytes[..12] != [0; 12] => {
                    wrong(format!("bytes before the IPv4 address in byte {at}"));
                }
                Address::Lid(_) if *bytes == [0; 16] => wrong(format!("no address in byte {at}")),
                Address::Lid(lid) => {
                    let known = *self.ips.entry(*bytes).or_insert(lid);
                    if known != lid {
                        wrong(format!(
                            "{} in byte {at} is the address of LID {known:#x}, not {lid:#x}",
                            shown(bytes, is_v4)
                        ));
                    }
                }
            }
        }
    }
}

/// An address of annex A11.
fn shown(bytes: &[u8; 16], is_v4: bool) -> IpAddr {
    let [.., a, b, c, d] = *bytes;
    match is_v4 {
        true => IpAddr::from([a, b, c, d]),
        false => IpAddr::from(*bytes),
    }
}
