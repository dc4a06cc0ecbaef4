// SPDX-License-Identifier: GPL-2.0

//! A comparison of messages that C has sent with what tshark makes of them.
//!
//! Each case in `tests/golden/` is a pair of files: `NAME.hex` with the 256 bytes of a MAD, and
//! `NAME.fields` with one tshark field and its value per line. Both were captured, so that this
//! compares with two implementations that know nothing of this one. In both files, lines that start
//! with `#` are comments.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::addr::{Gid, SockAddr};
use crate::private_data::{self, IP_HEADER_LEN};

/// The value of a field, as tshark prints it.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Int(u64),
    /// The flow label. The dissector of tshark 4 reads three of the word's four bytes, and shows
    /// the upper 12 of the 20 bits.
    FlowLabel(u32),
    V4([u8; 4]),
    V6([u8; 16]),
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns whether tshark would print this value as `text`.
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Int(n) => parse_int(text) == Some(*n),
            Self::FlowLabel(label) => parse_int(text)
                .is_some_and(|n| n == u64::from(*label) || n == u64::from(label >> 8)),
            Self::V4(addr) => text.parse() == Ok(Ipv4Addr::from(*addr)),
            Self::V6(addr) => text.parse() == Ok(Ipv6Addr::from(*addr)),
            Self::Bytes(bytes) => parse_hex(text).as_ref() == Some(bytes),
        }
    }
}

impl<T: Into<u64>> From<T> for Value {
    fn from(n: T) -> Self {
        Self::Int(n.into())
    }
}

fn parse_int(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .collect();
    if digits.len() % 2 != 0 {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

/// Returns the decoded value of a field of tshark's, or `None` if the message has no such field.
fn value(mad: &[u8; MAD_LEN], name: &str) -> Option<Value> {
    let (header, message) = decode(mad).unwrap();
    if let Some(name) = name.strip_prefix("infiniband.mad.") {
        return mad_value(mad, &header, name);
    }
    let name = name.strip_prefix("infiniband.cm.")?;
    match message {
        Message::Req(m) => req_value(&m, name),
        Message::Rep(m) => rep_value(&m, name),
        Message::Rtu(m) => Some(match name {
            "rtu.localcommid" => m.local_comm_id.into(),
            "rtu.remotecommid" => m.remote_comm_id.into(),
            "rtu.private" => Value::Bytes(m.private_data.into()),
            _ => return None,
        }),
        Message::Rej(m) => Some(match name {
            "rej.localcommid" => m.local_comm_id.into(),
            "rej.remotecommid" => m.remote_comm_id.into(),
            "rej.msgrej" => m.message.code().into(),
            "rej.rejinfolen" => m.ari_len.into(),
            "rej.reason" => m.reason.into(),
            "rej.ari" => Value::Bytes(m.ari.into()),
            "rej.private" => Value::Bytes(m.private_data.into()),
            _ => return None,
        }),
        Message::Dreq(m) => Some(match name {
            "dreq.localcommid" => m.local_comm_id.into(),
            "dreq.remotecommid" => m.remote_comm_id.into(),
            // The dissector does have this field among those of the REQ.
            "req.remoteqpneecn" => m.remote_qpn_eecn.into(),
            "dreq.private" => Value::Bytes(m.private_data.into()),
            _ => return None,
        }),
        Message::Drep(m) => Some(match name {
            "drsp.localcommid" => m.local_comm_id.into(),
            "drsp.remotecommid" => m.remote_comm_id.into(),
            "drsp.private" => Value::Bytes(m.private_data.into()),
            _ => return None,
        }),
        // tshark does not dissect the other messages.
        _ => None,
    }
}

fn mad_value(mad: &[u8; MAD_LEN], header: &Header, name: &str) -> Option<Value> {
    Some(match name {
        "baseversion" => BASE_VERSION.into(),
        "mgmtclass" => MGMT_CLASS.into(),
        "classversion" => CLASS_VERSION.into(),
        "method" => METHOD_SEND.into(),
        "status" => header.status.into(),
        "classspecific" => 0u8.into(),
        "transactionid" => header.tid.into(),
        "attributeid" => header.attr_id.id().into(),
        "attributemodifier" => header.attr_mod.into(),
        "data" => Value::Bytes(mad[HEADER_LEN..].into()),
        _ => return None,
    })
}

fn req_value(m: &Req<'_>, name: &str) -> Option<Value> {
    let name = match name {
        "req" => return Some(m.local_comm_id.into()),
        _ => name.strip_prefix("req.")?,
    };
    if let Some(name) = name.strip_prefix("prim_") {
        return path_value(&m.primary, name);
    }
    if let Some(name) = name.strip_prefix("alt_") {
        return path_value(&m.alternate, name).map(|value| match value {
            Value::V6(gid) => Value::Bytes(gid.into()),
            other => other,
        });
    }
    if let Some(name) = name.strip_prefix("ip_cm.") {
        return ip_cm_value(m.private_data, name);
    }
    let [prefix @ .., protocol, port_high, port_low] = m.service_id.to_be_bytes();
    let (transport, extended) = match m.transport {
        Transport::Rc => (0, 0),
        Transport::Uc => (1, 0),
        Transport::Xrc => (3, 1),
        Transport::Other(code, extended) => (code, extended),
    };
    Some(match name {
        "serviceid" => m.service_id.into(),
        "serviceid.prefix" => Value::Bytes(prefix.into()),
        "serviceid.protocol" => protocol.into(),
        "serviceid.dport" => u16::from_be_bytes([port_high, port_low]).into(),
        "localcaguid" => m.local_ca_guid.into(),
        "localqkey" => m.local_qkey.into(),
        "localqpn" => m.local_qpn.into(),
        "responderres" => m.responder_resources.into(),
        "localeecn" => m.local_eecn.into(),
        "initdepth" => m.initiator_depth.into(),
        "remoteeecn" => m.remote_eecn.into(),
        "remoteresptout" => m.remote_cm_response_timeout.into(),
        "transpsvctype" => transport.into(),
        "e2eflowctrl" => m.flow_control.into(),
        "startpsn" => m.starting_psn.into(),
        "localresptout" => m.local_cm_response_timeout.into(),
        "retrcount" => m.retry_count.into(),
        "pkey" => m.pkey.into(),
        "pppmtu" => m.path_mtu.into(),
        "rdcexist" => m.rdc_exists.into(),
        "rnrretrcount" => m.rnr_retry_count.into(),
        "maxcmretr" => m.max_cm_retries.into(),
        "srq" => m.srq.into(),
        "ext_transport" => extended.into(),
        "private" | "ip_cm" => Value::Bytes(m.private_data.into()),
        _ => return None,
    })
}

fn path_value(path: &ReqPath, name: &str) -> Option<Value> {
    // tshark prints this for every GID in an IPv4 packet.
    let v4 = |Gid([.., a, b, c, d]): Gid| Value::V4([a, b, c, d]);
    Some(match name {
        "locallid" => path.local_lid.into(),
        "remotelid" => path.remote_lid.into(),
        "localgid" => Value::V6(path.local_gid.0),
        "remotegid" => Value::V6(path.remote_gid.0),
        "localgid_ipv4" => v4(path.local_gid),
        "remotegid_ipv4" => v4(path.remote_gid),
        "flowlabel" => Value::FlowLabel(path.flow_label),
        "pktrate" => path.packet_rate.into(),
        "tfcclass" => path.traffic_class.into(),
        "hoplim" => path.hop_limit.into(),
        "sl" => path.sl.into(),
        "subnetlocal" => path.subnet_local.into(),
        "localacktout" => path.local_ack_timeout.into(),
        _ => return None,
    })
}

fn ip_cm_value(private_data: &[u8], name: &str) -> Option<Value> {
    let private_data::Header::Ip(ip) = private_data::Header::decode(private_data).ok()? else {
        return None;
    };
    let address = |addr: &SockAddr| match *addr {
        SockAddr::V4 { addr, .. } => Some(Value::V4(addr)),
        SockAddr::V6 { addr, .. } => Some(Value::V6(addr)),
        _ => None,
    };
    let is_v6 = matches!(ip.src, SockAddr::V6 { .. });
    match name {
        "majv" | "minv" => Some(private_data::VERSION.into()),
        "ipv" => Some(if is_v6 { 6u8 } else { 4 }.into()),
        "sport" => Some(ip.src.port().into()),
        "sip4" if !is_v6 => address(&ip.src),
        "dip4" if !is_v6 => address(&ip.dst),
        "sip6" if is_v6 => address(&ip.src),
        "dip6" if is_v6 => address(&ip.dst),
        "private" => Some(Value::Bytes(private_data[IP_HEADER_LEN..].into())),
        _ => None,
    }
}

fn rep_value(m: &Rep<'_>, name: &str) -> Option<Value> {
    Some(match name {
        "rep" => m.local_comm_id.into(),
        "rep.remotecommid" => m.remote_comm_id.into(),
        "rep.localqkey" => m.local_qkey.into(),
        "rep.localqpn" => m.local_qpn.into(),
        "rep.localeecn" => m.local_eecn.into(),
        "rep.startpsn" => m.starting_psn.into(),
        "rep.respres" => m.responder_resources.into(),
        "rep.initdepth" => m.initiator_depth.into(),
        "rep.tgtackdelay" => m.target_ack_delay.into(),
        "rep.failoveracc" => m.failover_accepted.into(),
        "rep.e2eflowctrl" => m.flow_control.into(),
        "rep.rnrretrcount" => m.rnr_retry_count.into(),
        "rep.srq" => m.srq.into(),
        "rep.localcaguid" => m.local_ca_guid.into(),
        "rep.private" => Value::Bytes(m.private_data.into()),
        _ => return None,
    })
}

/// Returns the lines of a file that are neither empty nor comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Checks a case. Returns a description of each error.
fn check(hex: &str, fields: &str) -> Vec<String> {
    let bytes = parse_hex(&lines(hex).collect::<String>());
    let Some(mad) = bytes.and_then(|b| <[u8; MAD_LEN]>::try_from(b).ok()) else {
        return vec!["not 256 bytes in hexadecimal".into()];
    };
    let mut wrong = Vec::new();
    let (header, message) = match decode(&mad) {
        Ok(decoded) => decoded,
        Err(error) => return vec![format!("does not decode: {error:?}")],
    };
    let mut again = [0; MAD_LEN];
    match encode(&header, &message, &mut again) {
        Ok(()) if again == mad => (),
        other => wrong.push(format!("encodes differently: {other:?}")),
    }
    let mut checked = 0;
    for line in lines(fields) {
        let (name, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if name.contains("reserved") {
            // The test that the message is encoded to the same bytes has shown that reserved fields
            // are zero. tshark has some of them twice, and some in the wrong place.
            continue;
        }
        match value(&mad, name) {
            Some(value) if value.matches(text.trim()) => checked += 1,
            other => wrong.push(format!("{name}: tshark has {text}, we have {other:x?}")),
        }
    }
    if checked == 0 {
        wrong.push("no field to compare".into());
    }
    wrong
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../rust/cmproto/tests/golden")
}

#[test]
fn golden() {
    let mut cases: Vec<PathBuf> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "hex"))
        .collect();
    cases.sort();
    let mut wrong = Vec::new();
    // C never sends a LAP or an APR: the tests for these are below.
    let mut missing = Attribute::ALL.to_vec();
    missing.retain(|attribute| !matches!(attribute, Attribute::Lap | Attribute::Apr));
    for case in &cases {
        let hex = fs::read_to_string(case).unwrap();
        let [id] = parse_hex(&lines(&hex).collect::<String>()).unwrap()[17..18] else {
            panic!("{}: no attribute", case.display());
        };
        missing.retain(|attribute| attribute.id() != u16::from(id));
        let fields = fs::read_to_string(case.with_extension("fields"))
            .unwrap_or_else(|error| panic!("{}: no fields: {error}", case.display()));
        let found = check(&hex, &fields);
        wrong.extend(found.iter().map(|w| format!("{}: {w}", case.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(missing, []);
}

/// Returns a MAD with these parts, each with its offset behind the header. All else is zero.
fn datagram(attribute: u8, parts: &[(usize, &[u8])]) -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    mad[8..16].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    mad[17] = attribute;
    for (at, bytes) in parts {
        mad[HEADER_LEN + at..][..bytes.len()].copy_from_slice(bytes);
    }
    mad
}

fn both_ways(mad: &[u8; MAD_LEN], message: Message<'_>) {
    let (header, decoded) = decode(mad).unwrap();
    assert_eq!(
        header,
        Header::new(message.attribute(), 0x0102_0304_0506_0708)
    );
    assert_eq!(decoded, message);
    let mut again = [0; MAD_LEN];
    encode(&header, &message, &mut again).unwrap();
    assert_eq!(again, *mad);
}

/// Checks the layout of the LAP in IBTA 12.8.1.
#[test]
fn lap() {
    let private_data = [0x5a; 168];
    let mad = datagram(
        0x19,
        &[
            (0, &[0x11, 0x11, 0x11, 0x11]),
            (4, &[0x22, 0x22, 0x22, 0x22]),
            // QPN 0x345678; response timeout 20 in the upper five bits.
            (12, &[0x34, 0x56, 0x78, 20 << 3]),
            (20, &[0x0a, 0x0b, 0x0c, 0x0d]),
            (24, &[0xfe; 16]),
            (40, &[0xfd; 16]),
            // Flow label 0xabcde, four reserved bits, traffic class, hop limit.
            (56, &[0xab, 0xcd, 0xe0, 0x42, 0x40]),
            // Two reserved bits and the rate; service level and subnet local; ack timeout.
            (61, &[0x3c, 0x78, 17 << 3]),
            (64, &private_data),
        ],
    );
    let message = Lap {
        local_comm_id: 0x1111_1111,
        remote_comm_id: 0x2222_2222,
        remote_qpn_eecn: 0x34_5678,
        remote_cm_response_timeout: 20,
        alternate_local_lid: 0x0a0b,
        alternate_remote_lid: 0x0c0d,
        alternate_local_gid: Gid([0xfe; 16]),
        alternate_remote_gid: Gid([0xfd; 16]),
        alternate_flow_label: 0xa_bcde,
        alternate_traffic_class: 0x42,
        alternate_hop_limit: 0x40,
        alternate_packet_rate: 0x3c,
        alternate_sl: 7,
        alternate_subnet_local: true,
        alternate_local_ack_timeout: 17,
        private_data: &private_data,
    };
    both_ways(&mad, Message::Lap(message));
}

/// Checks the layout of the APR in IBTA 12.8.2.
#[test]
fn apr() {
    let mut info = [0; INFO_LEN];
    info[..4].copy_from_slice(b"info");
    let private_data = [0xa5; 148];
    let mad = datagram(
        0x1a,
        &[
            (0, &[0x11, 0x11, 0x11, 0x11]),
            (4, &[0x22, 0x22, 0x22, 0x22]),
            (8, &[4, 7]),
            (12, b"info"),
            (84, &private_data),
        ],
    );
    let message = Apr {
        local_comm_id: 0x1111_1111,
        remote_comm_id: 0x2222_2222,
        info_len: 4,
        status: 7,
        info: &info,
        private_data: &private_data,
    };
    both_ways(&mad, Message::Apr(message));
}

/// Checks that differences are found.
#[test]
fn loader_finds_differences() {
    let mut mad = [0; MAD_LEN];
    let dreq = Message::Dreq(Dreq {
        local_comm_id: 1,
        remote_comm_id: 0xab,
        remote_qpn_eecn: 0x11,
        private_data: &[],
    });
    encode(&Header::new(Attribute::Dreq, 7), &dreq, &mut mad).unwrap();
    let hex: String = mad.iter().map(|b| format!("{b:02x}")).collect();
    let good = "infiniband.cm.dreq.localcommid 1\n# comment\n\
        infiniband.cm.dreq.remotecommid 0x000000ab\ninfiniband.cm.req.remoteqpneecn\t0x000011\n";
    assert_eq!(check(&hex, good), Vec::<String>::new());
    assert_eq!(check(&hex, &good.replace("ab", "ac")).len(), 1);
    assert_eq!(check(&hex, &good.replace("dreq", "rtu")).len(), 2);
    assert_eq!(check(&hex, "").len(), 1);
    assert_eq!(check(&hex[2..], good).len(), 1);
    // A reserved byte that is not zero.
    let mut reserved = hex.clone();
    reserved.replace_range(70..72, "01");
    assert_eq!(check(&reserved, good).len(), 1);
}
