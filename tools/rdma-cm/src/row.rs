// SPDX-License-Identifier: GPL-2.0

//! Messages of the family, as names and values.

use crate::{
    failure::Failure,
    netlink::{number, text, Attributes, Socket},
};
use cmproto::{
    addr::SockAddr,
    cm::{self, Tunable},
    cma,
    event::{Phase, Refusal},
    netlink::{Attr, BucketAttr, Command, CounterAttr, CounterKind, ResourceAttr},
    ucma::query::Protocol,
};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Text(String),
    Rows(Vec<Row>),
}

/// The values of a message, with their names in the specification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub Vec<(&'static str, Value)>);

impl Row {
    /// Adds a value. One that may come more than once is a list.
    pub fn push(&mut self, name: &'static str, value: Value) {
        if let Value::Rows(new) = value {
            match self.0.iter_mut().find(|(found, _)| *found == name) {
                Some((_, Value::Rows(rows))) => rows.extend(new),
                _ => self.0.push((name, Value::Rows(new))),
            }
            return;
        }
        self.0.push((name, value));
    }

    /// Returns a row for a test: what can be a number is one.
    #[cfg(test)]
    pub fn of(values: &[(&'static str, &str)]) -> Self {
        let value = |text: &str| match text.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::Text(text.to_owned()),
        };
        Row(values
            .iter()
            .map(|(name, text)| (*name, value(text)))
            .collect())
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a text, or an empty one.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    pub fn rows(&self, name: &str) -> &[Row] {
        match self.get(name) {
            Some(Value::Rows(rows)) => rows,
            _ => &[],
        }
    }
}

/// Returns a row for each name.
pub fn names(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<Row> {
    let row = |name: String| Row(vec![("name", Value::Text(name))]);
    names.into_iter().map(|name| row(name.into())).collect()
}

/// Returns the name of a value of an enumeration, or its number.
fn named(names: &[String], bytes: &[u8]) -> Option<Value> {
    let value = number(bytes)?;
    let name = usize::try_from(value).ok().and_then(|at| names.get(at));
    Some(Value::Text(
        name.cloned().unwrap_or_else(|| value.to_string()),
    ))
}

/// Returns the kernel's name of a state as in the specification.
fn lower(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// Returns a GID, as an IPv4 address if it stands for one.
fn gid(bytes: &[u8]) -> Option<String> {
    let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
    Some(
        ip.to_ipv4_mapped()
            .map_or_else(|| ip.to_string(), |ip| ip.to_string()),
    )
}

fn address(bytes: &[u8]) -> Option<String> {
    Some(match SockAddr::from_bytes(bytes).ok()? {
        SockAddr::V4 { addr, port } => format!("{}:{port}", Ipv4Addr::from(addr)),
        SockAddr::V6 { addr, port, .. } => format!("[{}]:{port}", Ipv6Addr::from(addr)),
        SockAddr::Ib { gid, sid, .. } => format!("[{}]:{sid:#x}", Ipv6Addr::from(gid.0)),
        SockAddr::Unspec => return None,
    })
}

/// Returns the value of an attribute.
fn value(attr: Attr, bytes: &[u8]) -> Option<Value> {
    match attr {
        Attr::DevName | Attr::Owner | Attr::ReasonName => Some(Value::Text(text(bytes))),
        Attr::Src | Attr::Dst => address(bytes).map(Value::Text),
        Attr::Gid => gid(bytes).map(Value::Text),
        Attr::Protocol => {
            const ALL: [Protocol; 3] = [Protocol::Ib, Protocol::Roce, Protocol::Iwarp];
            named(
                &ALL.map(|protocol| format!("{protocol:?}").to_lowercase()),
                bytes,
            )
        }
        Attr::Refusal => named(&Refusal::ALL.map(|how| how.name().to_owned()), bytes),
        Attr::Phase => named(&Phase::ALL.map(|phase| phase.name().to_owned()), bytes),
        Attr::CounterKind => named(&CounterKind::ALL.map(|kind| kind.name().to_owned()), bytes),
        Attr::State => named(&cma::State::ALL.map(|state| lower(state.name())), bytes),
        Attr::CmState => named(&cm::State::ALL.map(|state| lower(state.name())), bytes),
        Attr::Counter => {
            let attrs = CounterAttr::ALL.map(|attr| (attr as u16, attr.name()));
            let name = Some(CounterAttr::Name as u16);
            Some(Value::Rows(vec![nested(&attrs, name, bytes)]))
        }
        Attr::Resource => {
            let attrs = ResourceAttr::ALL.map(|attr| (attr as u16, attr.name()));
            let name = Some(ResourceAttr::Name as u16);
            Some(Value::Rows(vec![nested(&attrs, name, bytes)]))
        }
        Attr::LatencyBucket => {
            let attrs = BucketAttr::ALL.map(|attr| (attr as u16, attr.name()));
            Some(Value::Rows(vec![nested(&attrs, None, bytes)]))
        }
        Attr::SetOnId => number(bytes).map(|bits| Value::Rows(tunables(bits))),
        _ => number(bytes).map(Value::Number),
    }
}

/// Returns the names of the tunables of a set, but for those of a newer kernel.
fn tunables(bits: u64) -> Vec<Row> {
    let set = Tunable::ALL.into_iter();
    let set = set.filter(|tunable| bits & u64::from(tunable.bit()) != 0);
    names(set.map(|tunable| Attr::of(tunable).name()))
}

/// Returns the values of attributes, of which the one with the number `name` is a text.
fn nested(attrs: &[(u16, &'static str)], name: Option<u16>, bytes: &[u8]) -> Row {
    let mut row = Row::default();
    for (found, bytes) in Attributes::of(bytes) {
        let value = match Some(found) == name {
            true => Some(Value::Text(text(bytes))),
            false => number(bytes).map(Value::Number),
        };
        let attr = attrs.iter().find(|(number, _)| *number == found);
        if let Some(((_, name), value)) = attr.zip(value) {
            row.push(name, value);
        }
    }
    row
}

/// Returns the values of a message. Attributes of a newer kernel are left out.
pub fn row(attributes: Attributes<'_>) -> Row {
    let mut row = Row::default();
    for (found, bytes) in attributes {
        let attr = Attr::ALL.into_iter().find(|attr| *attr as u16 == found);
        if let Some((attr, value)) = attr.and_then(|attr| Some((attr, value(attr, bytes)?))) {
            row.push(attr.name(), value);
        }
    }
    row
}

/// Returns the messages of a dump.
pub fn dump(socket: &mut Socket, command: Command) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    socket.dump(command as u8, |attributes| rows.push(row(attributes)))?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_field() {
        assert_eq!(gid(&[0; 16]).as_deref(), Some("::"));
        let mut mapped = [0; 16];
        mapped[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
        assert_eq!(gid(&mapped).as_deref(), Some("10.0.0.2"));
        assert_eq!(gid(&[1]), None);
        let v4 = SockAddr::v4([10, 0, 0, 2], 7174);
        let v6 = SockAddr::v6([0xfd; 16], 1);
        let shown = [v4, v6].map(|addr| address(&addr.to_bytes()[..addr.len()]));
        let want = "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:1";
        assert_eq!(shown, [Some("10.0.0.2:7174".into()), Some(want.into())]);
    }

    #[test]
    fn a_set_of_tunables_is_a_list_of_names() {
        let name = |name: &str| Row(vec![("name", Value::Text(name.into()))]);
        let of = |bits: u32| value(Attr::SetOnId, &bits.to_ne_bytes());
        assert_eq!(of(0), Some(Value::Rows(vec![])));
        let both = vec![name("response-timeout"), name("deadline-ms")];
        assert_eq!(of(0x8000_0005), Some(Value::Rows(both)));
    }

    #[test]
    fn what_is_not_known_is_shown_by_its_number() {
        let state = |n: u32| value(Attr::State, &n.to_ne_bytes());
        assert_eq!(state(8), Some(Value::Text("listen".into())));
        assert_eq!(state(77), Some(Value::Text("77".into())));
    }
}
