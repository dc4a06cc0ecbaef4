// SPDX-License-Identifier: GPL-2.0

//! The user's part: calls and events.

use super::{narrow, same, Play, Result};
use crate::{
    parse::{Args, Timing, Value},
    world::{Answer, Call, ConnParam, Event, QpAttr, Space, Watch, EVENTS},
};

impl Play<'_> {
    pub(super) fn user(
        &mut self,
        verb: &str,
        conn: &str,
        args: &Args,
        fails: Option<i32>,
    ) -> Result {
        let call = match verb {
            "listen" => self.listen_call(args)?,
            "connect" => Call::Connect {
                space: space(args)?,
                to: self.names.peer,
                port: self.names.port,
                param: self.param(conn, args)?,
            },
            "accept" => Call::Accept(self.endpoint(conn)?, self.param(conn, args)?),
            "establish" => Call::Establish(self.endpoint(conn)?),
            "reject" => self.reject_call(conn, args)?,
            "disconnect" => Call::Disconnect(self.endpoint(conn)?),
            "notify" => Call::Notify(self.endpoint(conn)?),
            "qp" => return self.qp(conn, args, fails),
            "destroy" => Call::Destroy(self.endpoint(conn)?),
            "close" => Call::Close,
            _ => return Err(format!("user {verb}?")),
        };
        if let Answer::Endpoint(endpoint) = self.call(&call, fails)? {
            // A listener is not a connection, but a name can make it one.
            if verb != "listen" || !conn.is_empty() {
                self.conn(conn).endpoint = Some(endpoint);
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Call, fails: Option<i32>) -> Result<Answer> {
        match (self.world.call(call), fails) {
            (Ok(answer), None) => Ok(answer),
            (Err(errno), Some(want)) if errno == want => Ok(Answer::None),
            (Ok(_), Some(want)) => Err(format!("want errno {want}, got success")),
            (Err(errno), None) => Err(format!("errno {errno}")),
            (Err(errno), Some(want)) => Err(format!("want errno {want}, got {errno}")),
        }
    }

    fn listen_call(&self, args: &Args) -> Result<Call> {
        let (mut address, mut port, mut backlog, mut afonly) = (None, self.names.port, 0, false);
        for (name, value) in args {
            match (name.as_str(), value) {
                ("space", _) => {}
                ("address", Value::Address(literal)) => address = Some(*literal),
                ("address", Value::Word(word)) if word == "any" => {
                    address = self.address("zero");
                }
                ("backlog", _) => backlog = narrow(self.number(name, value)?)?,
                ("port", _) => port = narrow(self.number(name, value)?)?,
                ("afonly", _) => afonly = self.number(name, value)? != 0,
                _ => return Err(format!("listen {name}?")),
            }
        }
        Ok(Call::Listen {
            space: space(args)?,
            address,
            port,
            backlog,
            afonly,
        })
    }

    fn reject_call(&mut self, conn: &str, args: &Args) -> Result<Call> {
        let (mut reason, mut private) = (28, Vec::new());
        for (name, value) in args {
            match (name.as_str(), value) {
                ("reason", _) => reason = narrow(self.number(name, value)?)?,
                ("private", Value::Bytes(bytes)) => private = bytes.clone(),
                _ => return Err(format!("reject {name}?")),
            }
        }
        Ok(Call::Reject(self.endpoint(conn)?, reason, private))
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
    fn qp(&mut self, conn: &str, args: &Args, fails: Option<i32>) -> Result {
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
        let call = Call::QpAttr(self.endpoint(conn)?, state);
        let Answer::QpAttr(attr) = self.call(&call, fails)? else {
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

    pub(super) fn event(&mut self, kind: u32, conn: &str, args: &Args, timing: Timing) -> Result {
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
        let name = |kind: u32| usize::try_from(kind).ok().and_then(|kind| EVENTS.get(kind));
        if event.kind != kind {
            return Err(format!(
                "want event {:?}, got {:?} status {}",
                name(kind),
                name(event.kind),
                event.status
            ));
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
        _ => return None,
    })
}
