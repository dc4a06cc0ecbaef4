// SPDX-License-Identifier: GPL-2.0

//! The user's part: calls and events.

use super::{narrow, same, Play, Result};
use crate::{
    parse::{Args, Details, Value},
    world::{Called, ConnParam, Endpoint, Event, QpAttr, Service, Space, Watch, World},
};

impl Play<'_> {
    pub(super) fn user(&mut self, verb: &str, details: &Details) -> Result {
        let Details {
            conn, args, fails, ..
        } = details;
        let new = match verb {
            "listen" => self.listen(args, *fails)?,
            "connect" => {
                let service = Service {
                    space: space(args)?,
                    address: self.names.peer,
                    port: self.names.port,
                };
                let param = self.param(conn, args)?;
                self.call(*fails, |world| world.connect(service, &param))?
            }
            _ => return self.verb(verb, details),
        };
        // A listener is not a connection, but a name can make it one.
        if new.is_some() && (verb != "listen" || !conn.is_empty()) {
            self.conn(conn).endpoint = new;
        }
        Ok(())
    }

    /// A call that makes no endpoint.
    fn verb(&mut self, verb: &str, details: &Details) -> Result {
        let Details { conn, args, .. } = details;
        match verb {
            "qp" => return self.qp(details),
            "accept" => {
                let param = self.param(conn, args)?;
                self.call_about(details, |world, it| world.accept(it, &param))
            }
            "reject" => {
                let (reason, private) = self.reject(args)?;
                self.call_about(details, |world, it| world.reject(it, reason, &private))
            }
            "establish" => self.call_about(details, |world, it| world.establish(it)),
            "disconnect" => self.call_about(details, |world, it| world.disconnect(it)),
            "notify" => self.call_about(details, |world, it| world.notify(it)),
            "load" => {
                let dlid = self.load(args)?;
                self.call_about(details, |world, it| world.load(it, dlid))
            }
            "destroy" => self.call_about(details, |world, it| world.destroy(it)),
            "close" => self.call(details.fails, |world| world.close()),
            _ => return Err(format!("user {verb}?")),
        }
        .map(drop)
    }

    /// Makes a call about the endpoint of a connection.
    fn call_about<T>(
        &mut self,
        details: &Details,
        call: impl FnOnce(&mut dyn World, Endpoint) -> Called<T>,
    ) -> Result<Option<T>> {
        let endpoint = self.endpoint(&details.conn)?;
        self.call(details.fails, |world| call(world, endpoint))
    }

    /// Makes a call; gives nothing if it fails as expected.
    fn call<T>(
        &mut self,
        fails: Option<i32>,
        call: impl FnOnce(&mut dyn World) -> Called<T>,
    ) -> Result<Option<T>> {
        match (call(self.world), fails) {
            (Ok(answer), None) => Ok(Some(answer)),
            (Err(errno), Some(want)) if errno == want => Ok(None),
            (Ok(_), Some(want)) => Err(format!("want errno {want}, got success")),
            (Err(errno), None) => Err(format!("errno {errno}")),
            (Err(errno), Some(want)) => Err(format!("want errno {want}, got {errno}")),
        }
    }

    fn listen(&mut self, args: &Args, fails: Option<i32>) -> Result<Option<Endpoint>> {
        let mut service = Service {
            space: space(args)?,
            address: self.names.local,
            port: self.names.port,
        };
        let (mut backlog, mut afonly) = (0, false);
        for (name, value) in args {
            match (name.as_str(), value) {
                ("space", _) => {}
                ("address", Value::Address(literal)) => service.address = *literal,
                ("address", Value::Word(word)) if word == "any" => {
                    service.address = self.address("zero").unwrap_or(service.address);
                }
                ("backlog", _) => backlog = narrow(self.number(name, value)?)?,
                ("port", _) => service.port = narrow(self.number(name, value)?)?,
                ("afonly", _) => afonly = self.number(name, value)? != 0,
                _ => return Err(format!("listen {name}?")),
            }
        }
        self.call(fails, |world| world.listen(service, backlog, afonly))
    }

    fn load(&self, args: &Args) -> Result<u16> {
        match args.as_slice() {
            [(name, value)] if name == "lid" => narrow(self.number(name, value)?),
            _ => Err("load which lid?".into()),
        }
    }

    fn reject(&self, args: &Args) -> Result<(u8, Vec<u8>)> {
        let (mut reason, mut private) = (28, Vec::new());
        for (name, value) in args {
            match (name.as_str(), value) {
                ("reason", _) => reason = narrow(self.number(name, value)?)?,
                ("private", Value::Bytes(bytes)) => private = bytes.clone(),
                _ => return Err(format!("reject {name}?")),
            }
        }
        Ok((reason, private))
    }

    fn param(&mut self, conn: &str, args: &Args) -> Result<ConnParam> {
        let mut param = ConnParam {
            qpn: 0x42 + self.conn(conn).index,
            responder: 1,
            initiator: 1,
            flow: 1,
            retry: 7,
            rnr: 7,
            srq: 0,
            vendor: 0,
            attr_mod: 0,
            private: Vec::new(),
        };
        for (name, value) in args.iter().filter(|(name, _)| name != "space") {
            if let ("private", Value::Bytes(bytes)) = (name.as_str(), value) {
                param.private = bytes.clone();
                continue;
            }
            let number = self.number(name, value)?;
            match name.as_str() {
                "qpn" => param.qpn = narrow(number)?,
                "responder" => param.responder = narrow(number)?,
                "initiator" => param.initiator = narrow(number)?,
                "flow" => param.flow = narrow(number)?,
                "retry" => param.retry = narrow(number)?,
                "rnr" => param.rnr = narrow(number)?,
                "srq" => param.srq = narrow(number)?,
                "vendor" => param.vendor = narrow(number)?,
                "attr_mod" => param.attr_mod = narrow(number)?,
                _ => return Err(format!("{name}?")),
            }
        }
        Ok(param)
    }

    /// Asks for attributes of the queue pair, and compares.
    fn qp(&mut self, details: &Details) -> Result {
        let args = &details.args;
        let mut state = 2;
        for (name, value) in args {
            if let ("state", Value::Word(word)) = (name.as_str(), value) {
                let states = ["RESET", "INIT", "RTR", "RTS"];
                let found = states.iter().position(|state| state == word);
                state = found
                    .and_then(|n| u32::try_from(n).ok())
                    .ok_or(format!("{word}?"))?;
            }
        }
        let asked = self.call_about(details, |world, it| world.qp_attr(it, state));
        let Some(attr) = asked? else {
            return Ok(());
        };
        for (name, value) in args.iter().filter(|(name, _)| name != "state") {
            let want = self.number(name, value)?;
            same(
                name,
                want,
                qp_field(&attr, name).ok_or(format!("qp {name}?"))?,
            )?;
        }
        Ok(())
    }

    pub(super) fn event(&mut self, kind: u32, details: &Details) -> Result {
        let Details {
            conn, args, timing, ..
        } = details;
        let timing = *timing;
        let watch = Watch {
            wire: false,
            events: true,
        };
        let from = self.mark;
        self.fill(watch, self.deadline(timing, from), |play| {
            !play.events.is_empty()
        });
        let Some(event) = self.events.pop_front() else {
            return Err("no event came".into());
        };
        self.mark = event.at;
        if event.kind != kind {
            return Err(format!("got {event}"));
        }
        self.check_time(timing, from, event.at)?;
        let known = self.conn(conn).endpoint;
        match event.child {
            Some(child) => self.conn(conn).endpoint = Some(child),
            None if known == Some(event.endpoint) => {}
            None => {
                return Err(format!(
                    "the event is for {:?}, not @{conn}",
                    event.endpoint
                ))
            }
        }
        if !args.iter().any(|(name, _)| name == "status") && event.status != 0 {
            return Err(format!("want status 0, got {}", event.status));
        }
        args.iter()
            .try_for_each(|(name, value)| self.compare_event(&event, name, value))
    }

    fn compare_event(&self, event: &Event, name: &str, value: &Value) -> Result {
        let got = match name {
            "status" => {
                let want = match value {
                    Value::Negative(number) => *number,
                    value => i64::try_from(self.number(name, value)?).map_err(|e| e.to_string())?,
                };
                return match want == i64::from(event.status) {
                    true => Ok(()),
                    false => Err(format!("status: want {want}, got {}", event.status)),
                };
            }
            "private" => {
                let Value::Bytes(want) = value else {
                    return Err("private wants \"...\"".into());
                };
                let (got, rest) = event
                    .param
                    .private
                    .split_at(want.len().min(event.param.private.len()));
                return match got == want && rest.iter().all(|byte| *byte == 0) {
                    true => Ok(()),
                    false => Err(format!("private: got {:02x?}", event.param.private)),
                };
            }
            "len" => event.param.private.len() as u64,
            "responder" => event.param.responder.into(),
            "initiator" => event.param.initiator.into(),
            "flow" => event.param.flow.into(),
            "retry" => event.param.retry.into(),
            "rnr" => event.param.rnr.into(),
            "srq" => event.param.srq.into(),
            "qpn" => event.param.qpn.into(),
            "vendor" => event.param.vendor.into(),
            "attr_mod" => event.param.attr_mod.into(),
            _ => return Err(format!("an event has no {name}")),
        };
        same(name, self.number(name, value)?, got)
    }
}

/// The port space that is asked for, else that of connections.
fn space(args: &Args) -> Result<Space> {
    match args.iter().find(|(name, _)| name == "space") {
        None => Ok(Space::Tcp),
        Some((_, Value::Word(word))) if word == "UDP" => Ok(Space::Udp),
        Some((_, value)) => Err(format!("space={value:?}?")),
    }
}

fn qp_field(attr: &QpAttr, name: &str) -> Option<u64> {
    Some(match name {
        "mask" => attr.mask.into(),
        "dest_qpn" => attr.dest_qpn.into(),
        "rq_psn" => attr.rq_psn.into(),
        "sq_psn" => attr.sq_psn.into(),
        "mtu" => attr.mtu.into(),
        "max_rd" => attr.max_rd.into(),
        "max_dest_rd" => attr.max_dest_rd.into(),
        "timeout" => attr.timeout.into(),
        "retry" => attr.retry.into(),
        "rnr" => attr.rnr.into(),
        "access" => attr.access.into(),
        "alt_timeout" => attr.alt_timeout.into(),
        _ => return None,
    })
}
