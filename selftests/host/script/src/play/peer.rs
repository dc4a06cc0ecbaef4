// SPDX-License-Identifier: GPL-2.0

//! The peer's part: messages.

use super::{narrow, same, Play, Result};
use crate::{
    parse::{Args, Details, Value},
    wire::{self, Holds, Kind, Mad},
    world::{Sent, Watch, Who},
};

impl Play<'_> {
    /// Returns the message that the peer of a connection sends if the script names no fields.
    fn message(&mut self, kind: Kind, name: &str) -> Result<Mad> {
        let (peer, local, guid) = (self.names.peer, self.names.local, self.names.guid);
        let service = self.variable("service", 0)?;
        let udp_service = self.variable("udp_service", 0)?;
        let conn = self.conn(name);
        let (comm, qpn, psn, request) = (conn.comm, conn.qpn, conn.psn, conn.request);
        let remote = conn.remote.unwrap_or(0);
        let remote_qpn = conn.remote_qpn.unwrap_or(0);
        let tid = match kind {
            Kind::Dreq | Kind::Drep => conn.dreq_tid,
            Kind::Apr => conn.lap_tid,
            _ => conn.tid,
        };
        let family = if local.is_ipv6() { 6 } else { 4 };
        let numbers: &[(&str, u64)] = match kind {
            Kind::Req => &[
                ("service", service),
                ("guid", guid),
                ("qpn", qpn),
                ("psn", psn),
                ("responder", 1),
                ("initiator", 1),
                ("remote_timeout", 20),
                ("flow", 1),
                ("timeout", 20),
                ("retry", 7),
                ("pkey", 0xffff),
                ("mtu", 3),
                ("rnr", 7),
                ("retries", 15),
                ("local_lid", 0xffff),
                ("remote_lid", 0xffff),
                ("hops", 64),
                ("ack_timeout", 17),
                ("ip_family", family),
                ("ip_port", 0xc001),
            ],
            Kind::Rep => &[
                ("qpn", qpn),
                ("psn", psn),
                ("responder", 1),
                ("initiator", 1),
                ("ack_delay", 15),
                ("flow", 1),
                ("rnr", 7),
                ("guid", guid),
            ],
            Kind::Mra => &[("timeout", 16)],
            Kind::Rej => &[("message", 2), ("reason", 28)],
            Kind::Dreq => &[("qpn", remote_qpn)],
            Kind::Lap => &[
                ("qpn", remote_qpn),
                ("timeout", 20),
                ("alt_local_lid", 0x12),
                ("alt_remote_lid", 1),
                ("alt_subnet_local", 1),
                ("alt_ack_timeout", 18),
            ],
            Kind::SidrReq => &[
                ("request", request),
                ("pkey", 0xffff),
                ("service", udp_service),
                ("ip_family", family),
                ("ip_port", 0xc001),
            ],
            Kind::SidrRep => &[
                ("request", remote),
                ("service", udp_service),
                ("qkey", 0x0123_4567),
            ],
            Kind::Rtu | Kind::Drep | Kind::Apr => &[],
        };
        let mut mad = Mad::new(kind);
        for (field, value) in [("tid", tid), ("local", comm), ("remote", remote)]
            .iter()
            .chain(numbers)
        {
            if let Some(field) = kind.field(field) {
                mad.set_number(field, *value)?;
            }
        }
        let (of_peer, of_local) = match kind {
            Kind::Lap => ("alt_local_gid", "alt_remote_gid"),
            _ => ("local_gid", "remote_gid"),
        };
        for (field, address) in [
            (of_peer, peer),
            (of_local, local),
            ("ip_src", peer),
            ("ip_dst", local),
        ] {
            match kind.field(field) {
                Some(field) if field.holds == Holds::Gid => {
                    mad.set_bytes(field, &wire::gid(address))?;
                }
                Some(field) => mad.set_bytes(field, &wire::address(address))?,
                None => {}
            }
        }
        Ok(mad)
    }

    pub(super) fn send(&mut self, dup: bool, kind: Kind, details: &Details) -> Result {
        let name = &details.conn;
        let (mut from, mut len) = (Who::Peer, wire::MAD_LEN);
        let mut bytes;
        if details.again {
            let sent = self.conn(name).sent.get(&kind).cloned();
            (from, bytes) = sent.ok_or(format!("no {} was sent", kind.name()))?;
        } else {
            let mut mad = self.message(kind, name)?;
            for (field, value) in &details.args {
                match (field.as_str(), value) {
                    ("from", Value::Word(word)) if word == "stranger" => from = Who::Stranger,
                    ("reserved", Value::Word(word)) if word == "ones" => mad.set_reserved(kind),
                    ("truncate", _) => len = narrow(self.number(field, value)?)?,
                    _ => self.set(&mut mad, kind, field, value)?,
                }
            }
            self.said(kind, name, &mad)?;
            bytes = mad.0.to_vec();
            bytes.resize(len, 0);
            self.conn(name).sent.insert(kind, (from, bytes.clone()));
        }
        for _ in 0..=u8::from(dup) {
            self.world.send(from, &bytes)?;
        }
        Ok(())
    }

    /// Remembers what the peer has called itself.
    fn said(&mut self, kind: Kind, name: &str, mad: &Mad) -> Result {
        let get = |field: &str| kind.field(field).map(|field| mad.number(field));
        let conn = self.conn(name);
        match kind {
            Kind::Req | Kind::Rep => {
                conn.comm = get("local").unwrap_or(conn.comm);
                conn.qpn = get("qpn").unwrap_or(conn.qpn);
                conn.tid = get("tid").unwrap_or(conn.tid);
            }
            Kind::Dreq => conn.dreq_tid = get("tid").unwrap_or(conn.dreq_tid),
            Kind::Lap => conn.lap_tid = get("tid").unwrap_or(conn.lap_tid),
            Kind::SidrReq => {
                conn.request = get("request").unwrap_or(conn.request);
                conn.tid = get("tid").unwrap_or(conn.tid);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, lost: bool, kind: Kind, details: &Details) -> Result {
        let (name, timing, again) = (&details.conn, details.timing, details.again);
        let watch = Watch {
            wire: true,
            events: false,
        };
        let before = self.conn(name).seen.get(&kind).cloned();
        let from = match (&before, again) {
            (Some((at, _)), true) => *at,
            (None, true) => return Err(format!("no {} came before", kind.name())),
            _ => self.mark,
        };
        self.fill(watch, self.deadline(timing, from), |play| {
            !play.wire.is_empty()
        });
        let Some(sent) = self.wire.pop_front() else {
            return Err("no message came".into());
        };
        self.mark = sent.at;
        if Kind::of(&sent.mad) != Some(kind) {
            return Err(format!("got {}", sent.mad.describe()));
        }
        let checked = self.check(kind, &sent, details);
        checked.map_err(|error| format!("{error}\n  in {}", sent.mad.describe()))?;
        self.check_time(timing, from, sent.at)?;
        self.conn(name)
            .seen
            .insert(kind, (sent.at, sent.mad.clone()));
        if !lost && !again {
            self.heard(kind, name, &sent.mad);
        }
        Ok(())
    }

    fn check(&mut self, kind: Kind, sent: &Sent, details: &Details) -> Result {
        let Details {
            conn: name, args, ..
        } = details;
        let mad = &sent.mad;
        if sent.to != self.to(args)? {
            return Err(format!("it was sent to the {:?}", sent.to));
        }
        if mad.has_reserved(kind) {
            return Err(format!("a reserved bit is set: {:02x?}", mad.0));
        }
        if details.again {
            let before = self.conn(name).seen.get(&kind);
            let is_same = before.is_some_and(|(_, before)| before == mad);
            return match is_same {
                true => Ok(()),
                false => Err("it is not the same as before".into()),
            };
        }
        let conn = self.conn(name);
        let tid = match kind {
            Kind::Req | Kind::Dreq | Kind::SidrReq | Kind::Lap => None,
            Kind::Drep => Some(conn.dreq_tid),
            Kind::Apr => Some(conn.lap_tid),
            _ => Some(conn.tid),
        };
        let own = [
            ("base_version", Some(1)),
            ("class", Some(7)),
            ("class_version", Some(2)),
            ("method", Some(3)),
            ("status", Some(0)),
            ("attr_mod", Some(0)),
            ("tid", tid),
            ("remote", Some(conn.comm)),
            ("local", conn.remote),
            ("request", (kind == Kind::SidrRep).then_some(conn.request)),
        ];
        for (field, want) in own {
            let is_said = args.iter().any(|(name, _)| name == field);
            let (Some(field), Some(want), false) = (kind.field(field), want, is_said) else {
                continue;
            };
            same(field.name, want, mad.number(field))?;
        }
        args.iter()
            .filter(|(field, _)| field != "to")
            .try_for_each(|(field, value)| self.compare(mad, kind, field, value))
    }

    fn to(&self, args: &Args) -> Result<Who> {
        match args.iter().find(|(name, _)| name == "to") {
            None => Ok(Who::Peer),
            Some((_, Value::Word(word))) if word == "stranger" => Ok(Who::Stranger),
            Some(_) => Err("to whom?".into()),
        }
    }

    /// Learns the names of the system under test.
    fn heard(&mut self, kind: Kind, name: &str, mad: &Mad) {
        let get = |field: &str| kind.field(field).map(|field| mad.number(field));
        let conn = self.conn(name);
        match kind {
            Kind::Req => conn.tid = get("tid").unwrap_or(conn.tid),
            Kind::Dreq => conn.dreq_tid = get("tid").unwrap_or(conn.dreq_tid),
            Kind::Lap => conn.lap_tid = get("tid").unwrap_or(conn.lap_tid),
            Kind::SidrReq => {
                conn.tid = get("tid").unwrap_or(conn.tid);
                conn.remote = get("request");
            }
            _ => {}
        }
        if conn.remote.is_none() {
            conn.remote = get("local").filter(|id| *id != 0);
        }
        if matches!(kind, Kind::Req | Kind::Rep) {
            conn.remote_qpn = get("qpn");
        }
    }
}
