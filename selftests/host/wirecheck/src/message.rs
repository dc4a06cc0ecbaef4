// SPDX-License-Identifier: GPL-2.0

//! The checks of a message that need no knowledge of its exchange.

use crate::{
    packet::{Datagram, GSI_QKEY, GSI_QPN},
    rule::{Findings, Rule},
};
use cm_script::wire::{Kind, Mad, MAD_LEN};
use cmproto::{
    reject::Reason,
    service_id::{PortSpace, ServiceId},
    wire::{self, Header, Message, RejMessage, Req, Transport, INFO_LEN},
};

/// Reasons that Linux gives by itself, and those that a program can give.
const BY_KERNEL: &[Reason] = &[
    Reason::NO_RESOURCES,
    Reason::TIMEOUT,
    Reason::INVALID_COMM_ID,
    Reason::INVALID_SERVICE_ID,
    Reason::STALE_CONN,
    Reason::INVALID_GID,
    Reason::INVALID_ALT_GID,
    Reason::CONSUMER_DEFINED,
];
const BY_PROGRAM: &[Reason] = &[
    Reason::CONSUMER_DEFINED,
    Reason::VENDOR_OPTION_NOT_SUPPORTED,
];

/// The datagram, if it is a CM message at all. Finds what is wrong with what surrounds it.
pub fn envelope(datagram: &Datagram, qpn: u32, found: &mut Findings) -> Option<[u8; MAD_LEN]> {
    // Another class of the general services: nothing of this is meant for it.
    if datagram
        .mad
        .get(1)
        .is_some_and(|class| *class != wire::MGMT_CLASS)
    {
        return None;
    }
    found.check(Rule::W2, datagram.icrc, "the CRC is wrong");
    let mut header = |what: &str| found.breaks(Rule::W1, what);
    if datagram.qkey != GSI_QKEY {
        header(&format!("the Q_Key is {:#x}", datagram.qkey));
    }
    if (datagram.src_qpn, qpn) != (GSI_QPN, GSI_QPN) {
        header(&format!("from QP {} to QP {qpn}", datagram.src_qpn));
    }
    let Ok(mad) = <[u8; MAD_LEN]>::try_from(datagram.mad.as_slice()) else {
        header(&format!("{} bytes", datagram.mad.len()));
        return None;
    };
    match wire::decode_header(&mad) {
        Ok(decoded) if decoded.status != 0 => header(&format!("status {:#x}", decoded.status)),
        Ok(_) => (),
        Err(error) => {
            header(&format!("{error:?}"));
            return None;
        }
    }
    Some(mad)
}

/// Finds what is wrong with a message by itself.
pub fn content(mad: &[u8; MAD_LEN], header: &Header, message: &Message<'_>, found: &mut Findings) {
    let is_reserved = Kind::of(&Mad(*mad)).is_some_and(|kind| Mad(*mad).has_reserved(kind));
    found.check(Rule::W14, !is_reserved, "a reserved bit is set");
    if header.attr_mod != 0 && !carries_ece(message) {
        found.breaks(
            Rule::W14,
            format!("attribute modifier {:#x}", header.attr_mod),
        );
    }
    match message {
        Message::Req(req) => self::req(req, found),
        Message::Rep(rep) if rep.local_qpn <= GSI_QPN && rep.local_eecn == 0 => {
            found.breaks(Rule::W17, format!("QPN {}", rep.local_qpn));
        }
        Message::Rej(rej) => reject(mad, rej.reason, rej.ari_len, rej.information(), found),
        Message::Dreq(dreq) if dreq.remote_qpn_eecn <= GSI_QPN => {
            found.breaks(Rule::W17, format!("QPN {}", dreq.remote_qpn_eecn));
        }
        Message::SidrReq(sidr) => service(sidr.service_id, found),
        Message::SidrRep(sidr) => {
            let info_len = usize::from(mad[wire::HEADER_LEN + 5]);
            if info_len > INFO_LEN {
                found.breaks(Rule::W15, format!("information of {info_len} bytes"));
            } else if sidr.info.iter().skip(info_len).any(|byte| *byte != 0) {
                found.breaks(Rule::W14, "information beyond its length");
            }
            if sidr.status == 0 && sidr.qpn <= GSI_QPN {
                found.breaks(Rule::W17, format!("QPN {}", sidr.qpn));
            }
        }
        _ => (),
    }
    // No program can give private data to these.
    let nobodys = match &message {
        Message::Mra(_) | Message::Rtu(_) | Message::Dreq(_) | Message::Drep(_) => true,
        Message::Rej(rej) => !BY_PROGRAM.contains(&Reason(rej.reason)),
        _ => false,
    };
    if nobodys && message.private_data().iter().any(|byte| *byte != 0) {
        found.breaks(Rule::W14, "private data that nobody gave");
    }
}

/// Returns true if the attribute modifier has a meaning: annex A19.
fn carries_ece(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::Req(_) | Message::Rep(_) | Message::SidrRep(_)
    )
}

fn req(req: &Req<'_>, found: &mut Findings) {
    service(req.service_id, found);
    if req.local_comm_id == 0 {
        found.breaks(Rule::W4, "the communication id is 0");
    }
    if req.local_qpn <= GSI_QPN {
        found.breaks(Rule::W17, format!("QPN {}", req.local_qpn));
    }
    if matches!(req.transport, Transport::Other(..)) {
        found.breaks(Rule::W17, format!("transport {:?}", req.transport));
    }
    if !(1..=5).contains(&req.path_mtu) {
        found.breaks(Rule::W17, format!("path MTU code {}", req.path_mtu));
    }
}

fn service(id: u64, found: &mut Findings) {
    let id = ServiceId(id);
    match id.port_space() {
        // Any service of the program's.
        Some(PortSpace::Ib) => (),
        Some(_) if id.0 >> 32 == 0 && id.port() != 0 => (),
        // Services of the IETF: IPoIB's connected mode (RFC 4755).
        _ if id.0 >> 56 == 0x10 => (),
        _ => found.breaks(Rule::W17, format!("service id {:#x}", id.0)),
    }
}

fn reject(mad: &[u8; MAD_LEN], reason: u16, len: u8, ari: &[u8], found: &mut Findings) {
    let reason = Reason(reason);
    if !BY_KERNEL.contains(&reason) && !BY_PROGRAM.contains(&reason) {
        found.breaks(Rule::W12, format!("reason {reason}"));
    }
    let sent = usize::from(mad[wire::HEADER_LEN + 9] >> 1);
    if sent > INFO_LEN {
        found.breaks(Rule::W15, format!("information of {sent} bytes"));
    }
    let want = match reason {
        Reason::TIMEOUT => 8,
        Reason::INVALID_GID => 16,
        _ => 0,
    };
    if len != want {
        found.breaks(
            Rule::W12,
            format!("reason {reason} with {len} bytes of information"),
        );
    } else if want != 0 && ari.iter().all(|byte| *byte == 0) {
        found.breaks(
            Rule::W12,
            format!("reason {reason} with nothing in its information"),
        );
    }
    let rest = mad
        .get(wire::HEADER_LEN + 12 + usize::from(len)..wire::HEADER_LEN + 12 + INFO_LEN)
        .unwrap_or(&[]);
    if rest.iter().any(|byte| *byte != 0) {
        found.breaks(Rule::W14, "information beyond its length");
    }
    let code = mad[wire::HEADER_LEN + 8] >> 6;
    if RejMessage::from_code(code).code() != code {
        found.breaks(Rule::W13, format!("message {code}"));
    }
}
