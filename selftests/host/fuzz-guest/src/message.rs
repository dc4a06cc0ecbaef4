// SPDX-License-Identifier: GPL-2.0

//! Messages on the wire that nobody but the fuzzer sends: valid ones of a conversation that was
//! heard, and changed ones.

use cmproto::{
    addr::{Gid, SockAddr},
    private_data::{IpHeader, IP_HEADER_LEN},
    wire::{self, Attribute, Header, Message, HEADER_LEN, MAD_LEN},
};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The receiver of all messages: the device in the program's network namespace.
pub const TARGETS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
];

/// The senders: the other device, whom the fuzzer impersonates; the fuzzer, whom the target can
/// reach; and somebody whom nobody can reach. Each has an address of either family.
pub const SENDERS: [[IpAddr; 2]; 3] = [sender(2), sender(9), sender(0x77)];

const fn sender(host: u8) -> [IpAddr; 2] {
    [
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host as u16)),
    ]
}

/// A communication id.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommId {
    /// The n-th one of the fuzzer.
    Own(u8),
    /// The sender's in the n-th newest message of the target.
    Target(u8),
    /// The sender's in the n-th newest message to the target.
    Other(u8),
    Number(u32),
}

/// The content of a message, before it is changed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The n-th newest message that was heard.
    Heard(u8),
    /// A valid message with the n-th attribute of [`Attribute::ALL`].
    New {
        attribute: u8,
        local: CommId,
        remote: CommId,
        /// The port of the service, in REQ and SIDR_REQ.
        port: u16,
    },
}

/// Bytes that take the place of others.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edit {
    pub at: u8,
    pub bytes: Vec<u8>,
}

/// A message to the target.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forged {
    /// The index of the sender in [`SENDERS`].
    pub sender: u8,
    pub ipv6: bool,
    pub base: Base,
    pub edits: Vec<Edit>,
    /// The number of bytes that are cut off at its end.
    pub cut: u8,
    /// The number of times that it is sent.
    pub copies: u8,
}

/// A message that was heard.
#[derive(Clone, Debug)]
pub struct Heard {
    pub from: IpAddr,
    pub mad: [u8; MAD_LEN],
}

impl Heard {
    fn is_of_target(&self) -> bool {
        TARGETS.contains(&self.from)
    }

    /// Returns the sender's communication id: the first word of each message.
    fn comm_id(&self) -> u32 {
        let word = self.mad[HEADER_LEN..].first_chunk();
        word.map_or(0, |word| u32::from_be_bytes(*word))
    }

    /// Returns the number of the sender's queue pair, if the message has it.
    fn qpn(&self) -> Option<u32> {
        match wire::decode(&self.mad) {
            Ok((_, Message::Req(req))) => Some(req.local_qpn),
            Ok((_, Message::Rep(rep))) => Some(rep.local_qpn),
            _ => None,
        }
    }
}

/// Returns the n-th newest message that the target has sent, or that it was sent.
fn nth(heard: &[Heard], of_target: bool, n: u8) -> Option<&Heard> {
    let mut all = heard
        .iter()
        .rev()
        .filter(|heard| heard.is_of_target() == of_target);
    all.nth(n.into())
}

fn gid(address: IpAddr) -> Gid {
    Gid(match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    })
}

fn sockaddr(address: IpAddr, port: u16) -> SockAddr {
    match address {
        IpAddr::V4(v4) => SockAddr::V4 {
            addr: v4.octets(),
            port,
        },
        IpAddr::V6(v6) => SockAddr::V6 {
            addr: v6.octets(),
            port,
            flowinfo: 0,
            scope_id: 0,
        },
    }
}

impl CommId {
    fn find(self, heard: &[Heard]) -> u32 {
        let of = |of_target, n| nth(heard, of_target, n).map_or(0, Heard::comm_id);
        match self {
            Self::Own(n) => 0x0f00_0000 + u32::from(n),
            Self::Target(n) => of(true, n),
            Self::Other(n) => of(false, n),
            Self::Number(number) => number,
        }
    }
}

impl Forged {
    /// Returns the sender and the receiver.
    pub fn way(&self) -> (IpAddr, IpAddr) {
        let family = usize::from(self.ipv6);
        let sender = SENDERS[usize::from(self.sender) % SENDERS.len()];
        (sender[family], TARGETS[family])
    }

    /// Returns the message, after those that were heard so far, the newest one last.
    pub fn compose(&self, heard: &[Heard]) -> Vec<u8> {
        let mad = match self.base {
            Base::Heard(n) => heard.iter().rev().nth(n.into()).map(|heard| heard.mad),
            Base::New {
                attribute,
                local,
                remote,
                port,
            } => {
                let all = Attribute::ALL;
                let attribute = all[usize::from(attribute) % all.len()];
                let tid = match remote {
                    CommId::Target(n) => nth(heard, true, n).map(|heard| heard.mad),
                    _ => None,
                };
                let tid = tid.and_then(|mad| wire::decode_header(&mad).ok());
                let header = Header::new(attribute, tid.map_or(0x7000, |header| header.tid));
                self.new_message(&header, local.find(heard), remote.find(heard), port, heard)
            }
        };
        let mut mad = mad.unwrap_or([0; MAD_LEN]);
        for edit in &self.edits {
            let place = mad.iter_mut().skip(edit.at.into());
            place.zip(&edit.bytes).for_each(|(to, from)| *to = *from);
        }
        let len = MAD_LEN - usize::from(self.cut);
        mad[..len].to_vec()
    }

    fn new_message(
        &self,
        header: &Header,
        local: u32,
        remote: u32,
        port: u16,
        heard: &[Heard],
    ) -> Option<[u8; MAD_LEN]> {
        let mut zeros = [0; MAD_LEN];
        zeros[..4].copy_from_slice(&[
            wire::BASE_VERSION,
            wire::MGMT_CLASS,
            wire::CLASS_VERSION,
            wire::METHOD_SEND,
        ]);
        zeros[16..18].copy_from_slice(&header.attr_id.id().to_be_bytes());
        let (_, mut message) = wire::decode(&zeros).ok()?;

        let (from, to) = self.way();
        let mut data = [0; IP_HEADER_LEN];
        let ip_header = IpHeader {
            src: sockaddr(from, 1000),
            dst: sockaddr(to, port),
        };
        ip_header.encode(&mut data).ok()?;
        let qpn = heard
            .iter()
            .rev()
            .filter(|heard| heard.is_of_target() && heard.comm_id() == remote)
            .find_map(Heard::qpn);
        let qpn = qpn.unwrap_or(0x11);
        match &mut message {
            Message::Req(req) => {
                req.local_comm_id = local;
                req.service_id = 0x0106_0000 | u64::from(port);
                req.local_ca_guid = 0x0200_00ff_fe00_0009;
                req.local_qpn = 0x800 + (local & 0xff);
                req.responder_resources = 1;
                req.initiator_depth = 1;
                req.remote_cm_response_timeout = 20;
                req.local_cm_response_timeout = 20;
                req.retry_count = 7;
                req.rnr_retry_count = 7;
                req.max_cm_retries = 15;
                req.pkey = 0xffff;
                req.path_mtu = 3;
                req.primary.local_lid = 0xffff;
                req.primary.remote_lid = 0xffff;
                req.primary.local_gid = gid(from);
                req.primary.remote_gid = gid(to);
                req.primary.packet_rate = 3;
                req.primary.hop_limit = 64;
                req.primary.local_ack_timeout = 18;
                req.private_data = &data;
            }
            Message::SidrReq(req) => {
                req.request_id = local;
                req.pkey = 0xffff;
                req.service_id = 0x0111_0000 | u64::from(port);
                req.private_data = &data;
            }
            Message::SidrRep(rep) => {
                rep.request_id = remote;
                rep.qpn = 0x11;
                rep.qkey = 0x0123_4567;
            }
            Message::Rep(rep) => {
                (rep.local_comm_id, rep.remote_comm_id) = (local, remote);
                rep.local_qpn = 0x800 + (local & 0xff);
                rep.local_ca_guid = 0x0200_00ff_fe00_0009;
                rep.responder_resources = 1;
                rep.initiator_depth = 1;
            }
            Message::Mra(mra) => {
                (mra.local_comm_id, mra.remote_comm_id) = (local, remote);
                mra.service_timeout = 16;
            }
            Message::Rej(rej) => {
                (rej.local_comm_id, rej.remote_comm_id) = (local, remote);
                rej.reason = 28;
            }
            Message::Rtu(rtu) => (rtu.local_comm_id, rtu.remote_comm_id) = (local, remote),
            Message::Dreq(dreq) => {
                (dreq.local_comm_id, dreq.remote_comm_id) = (local, remote);
                dreq.remote_qpn_eecn = qpn;
            }
            Message::Drep(drep) => (drep.local_comm_id, drep.remote_comm_id) = (local, remote),
            Message::Lap(lap) => {
                (lap.local_comm_id, lap.remote_comm_id) = (local, remote);
                lap.remote_qpn_eecn = qpn;
                lap.alternate_local_gid = gid(from);
                lap.alternate_remote_gid = gid(to);
            }
            Message::Apr(apr) => (apr.local_comm_id, apr.remote_comm_id) = (local, remote),
        }
        let mut mad = [0; MAD_LEN];
        wire::encode(header, &message, &mut mad).ok()?;
        Some(mad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forged(attribute: Attribute, local: CommId, remote: CommId) -> Forged {
        let index = Attribute::ALL.iter().position(|one| *one == attribute);
        Forged {
            sender: 1,
            ipv6: false,
            base: Base::New {
                attribute: index.unwrap() as u8,
                local,
                remote,
                port: 7000,
            },
            edits: Vec::new(),
            cut: 0,
            copies: 1,
        }
    }

    fn heard(message: &Forged, from: IpAddr) -> Heard {
        Heard {
            from,
            mad: message.compose(&[]).try_into().unwrap(),
        }
    }

    #[test]
    fn each_message_is_valid_and_has_its_ids() {
        for attribute in Attribute::ALL {
            let mad = forged(attribute, CommId::Own(1), CommId::Number(7)).compose(&[]);
            let mad = mad.try_into().unwrap();
            let (header, message) = wire::decode(&mad).unwrap();
            assert_eq!(header.attr_id, attribute);
            match message {
                Message::Req(req) => assert_eq!(req.local_comm_id, 0x0f00_0001),
                Message::Dreq(dreq) => assert_eq!(dreq.remote_comm_id, 7),
                Message::SidrRep(rep) => assert_eq!(rep.request_id, 7),
                _ => {}
            }
        }
    }

    #[test]
    fn an_answer_takes_its_ids_and_queue_pair_from_what_was_heard() {
        let req = forged(Attribute::Req, CommId::Number(5), CommId::Number(0));
        let all = [
            heard(&req, SENDERS[0][0]),
            heard(
                &forged(Attribute::Rep, CommId::Number(6), CommId::Number(5)),
                TARGETS[0],
            ),
            heard(
                &forged(Attribute::Rtu, CommId::Number(5), CommId::Number(6)),
                SENDERS[0][0],
            ),
        ];
        let dreq = forged(Attribute::Dreq, CommId::Other(0), CommId::Target(0));
        let mad = dreq.compose(&all).try_into().unwrap();
        let Ok((_, Message::Dreq(dreq))) = wire::decode(&mad) else {
            panic!("no DREQ");
        };
        assert_eq!((dreq.local_comm_id, dreq.remote_comm_id), (5, 6));
        assert_eq!(dreq.remote_qpn_eecn, 0x806);
    }

    #[test]
    fn bytes_are_changed_and_cut() {
        let message = Forged {
            base: Base::Heard(0),
            edits: vec![Edit {
                at: 250,
                bytes: vec![1; 9],
            }],
            cut: 4,
            ..forged(Attribute::Rtu, CommId::Own(0), CommId::Own(0))
        };
        let bytes = message.compose(&[]);
        assert_eq!(bytes.len(), 252);
        assert_eq!(bytes[248..], [0, 0, 1, 1]);
    }
}
