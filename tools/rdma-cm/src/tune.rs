// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm tune`.

use crate::{
    conf::{self, Conf, Place, Values},
    failure::Failure,
    json,
    netlink::Socket,
    row::{dump, Row, Value},
    show::port,
    table::Table,
};
use clap::{Args, Subcommand};
use cmproto::{
    cm::Tunable,
    netlink::{Attr, Command},
};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// Takes another file for /etc/rdma/cm.conf.
    #[arg(long, value_name = "FILE", default_value = conf::FILE, hide_default_value = true, global = true)]
    file: PathBuf,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
pub enum Action {
    /// Shows the tunables of all ports, and where each value comes from.
    Show,
    /// Sets tunables of a port, of all ports of a device, or of all ports.
    Set {
        /// A device, a port as DEVICE/PORT, or "all".
        port: String,
        /// Tunables and values.
        #[arg(required = true, value_name = "NAME=VALUE")]
        values: Vec<String>,
        /// Also writes them to cm.conf, for the next boot.
        #[arg(long)]
        save: bool,
    },
    /// Sets what cm.conf says, and leaves other tunables alone.
    Apply {
        /// Only for ports of this device.
        device: Option<String>,
    },
}

/// Returns the tunable and the value of NAME=VALUE.
pub fn parse(assignment: &str) -> Result<(Tunable, u32), Failure> {
    let (name, value) = assignment
        .split_once('=')
        .ok_or_else(|| Failure::Wrong(format!("no NAME=VALUE: {assignment}")))?;
    let tunable = Tunable::ALL
        .into_iter()
        .find(|tunable| Attr::of(*tunable).name() == name);
    let tunable = tunable.ok_or_else(|| {
        let names = Tunable::ALL
            .map(|tunable| Attr::of(tunable).name())
            .join(", ");
        Failure::Wrong(format!("no tunable {name}: there are {names}"))
    })?;
    match value
        .parse::<u32>()
        .ok()
        .filter(|value| tunable.check(*value).is_ok())
    {
        Some(value) => Ok((tunable, value)),
        None => Err(Failure::Wrong(format!(
            "{name} is a number from 0 to {}",
            tunable.max()
        ))),
    }
}

/// Returns the number of a port.
fn number_of(row: &Row) -> u32 {
    row.number("port").unwrap_or(0) as u32
}

/// The origin of a value.
#[derive(Debug, PartialEq)]
struct From<'a> {
    /// "default", "host", "device", "port" or "hand".
    kind: &'static str,
    /// The line of cm.conf that is about the value, and the value that it has.
    line: Option<(&'a conf::Line, u32)>,
}

impl<'a> From<'a> {
    /// Returns the origin of a value of a port.
    fn of(conf: &'a Conf, row: &Row, tunable: Tunable) -> Self {
        let line = conf.value(row.text("dev-name"), number_of(row), tunable);
        let meant = line.map_or(tunable.default_value(), |(_, value)| value);
        let kind = match row.number(Attr::of(tunable).name()) {
            Some(value) if value == u64::from(meant) => {
                line.map_or("default", |(line, _)| line.place.kind())
            }
            _ => "hand",
        };
        Self { kind, line }
    }

    /// Returns it for people.
    fn text(&self) -> String {
        match (self.kind, self.line) {
            ("hand", Some((line, value))) => format!("by hand, line {} has {value}", line.number),
            ("hand", None) => "by hand".into(),
            (kind, Some((line, _))) => format!("{kind}, line {}", line.number),
            (kind, None) => kind.into(),
        }
    }

    fn row(&self, tunable: Tunable) -> Row {
        let mut row = Row::default();
        row.push("name", Value::Text(Attr::of(tunable).name().into()));
        row.push("from", Value::Text(self.kind.into()));
        if let Some((line, value)) = self.line {
            row.push("line", Value::Number(line.number as u64));
            row.push("in-file", Value::Number(value.into()));
        }
        row
    }
}

/// Shows the tunables.
fn show(ports: &[Row], conf: &Conf, as_json: bool) {
    if as_json {
        let with_origins = |row: &Row| {
            let of = |tunable| From::of(conf, row, tunable).row(tunable);
            let mut row = row.clone();
            row.push("from", Value::Rows(Tunable::ALL.map(of).into()));
            row
        };
        let rows: Vec<_> = ports.iter().map(with_origins).collect();
        say!("{}", json::array(&rows));
        return;
    }
    let head = ["PORT", "TUNABLE", "VALUE", "DEFAULT", "MAXIMUM", "FROM"];
    let mut table = Table::new(&head);
    for row in ports {
        for tunable in Tunable::ALL {
            let name = Attr::of(tunable).name();
            let value = row
                .number(name)
                .map_or("-".into(), |value| value.to_string());
            let numbers = [tunable.default_value(), tunable.max()].map(|n| n.to_string());
            let [default, max] = numbers;
            let from = From::of(conf, row, tunable).text();
            table.row([port(row), name.to_owned(), value, default, max, from]);
        }
    }
    table.print();
}

/// Sets tunables of a port, all of them or none.
fn set(socket: &mut Socket, row: &Row, values: &[(Tunable, u32)]) -> Result<(), Failure> {
    let at = [("dev-index", Attr::DevIndex), ("port", Attr::Port)];
    let at = at.map(|(name, attr)| (attr, row.number(name).unwrap_or(0) as u32));
    let set = values
        .iter()
        .map(|(tunable, value)| (Attr::of(*tunable), *value));
    let numbers: Vec<_> = at
        .into_iter()
        .chain(set)
        .map(|(attr, n)| (attr as u16, n.to_ne_bytes()))
        .collect();
    let attributes: Vec<_> = numbers.iter().map(|(attr, n)| (*attr, &n[..])).collect();
    socket.act(Command::PortSet as u8, &attributes)
}

/// Returns a row with the tunables that were set on a port, and their values before.
fn done(row: &Row, values: &[(Tunable, u32)]) -> Row {
    let of = |(tunable, value): &(Tunable, u32)| {
        let name = Attr::of(*tunable).name();
        let mut set = Row(vec![
            ("name", Value::Text(name.into())),
            ("value", Value::Number((*value).into())),
        ]);
        let before = row.number(name);
        set.0
            .extend(before.map(|before| ("before", Value::Number(before))));
        set
    };
    Row(vec![
        ("dev-name", Value::Text(row.text("dev-name").into())),
        ("port", Value::Number(number_of(row).into())),
        ("set", Value::Rows(values.iter().map(of).collect())),
    ])
}

/// Sets what the file says, and returns what that was. A port that goes meanwhile has no tunables.
fn apply(socket: &mut Socket, ports: &[&Row], conf: &Conf) -> Result<Vec<Row>, Failure> {
    let mut all = Vec::new();
    for row in ports {
        let value = |tunable| {
            let found = conf.value(row.text("dev-name"), number_of(row), tunable);
            found.map(|(_, value)| (tunable, value))
        };
        let values: Values = Tunable::ALL.into_iter().filter_map(value).collect();
        if values.is_empty() {
            continue;
        }
        match set(socket, row, &values) {
            Err(Failure::Kernel(libc::ENODEV)) => {}
            other => {
                other?;
                all.push(done(row, &values));
            }
        }
    }
    Ok(all)
}

/// Says what was set, and the file that has it now, only as JSON.
fn say_done(ports: Vec<Row>, file: Option<&Path>, as_json: bool) {
    if as_json {
        let mut row = Row(vec![("ports", Value::Rows(ports))]);
        let file = file.map(|file| Value::Text(file.to_string_lossy().into()));
        row.0.extend(file.map(|file| ("file", file)));
        say!("{}", json::object(&row));
    }
}

/// Returns the ports of a place.
fn meant<'a>(ports: &'a [Row], name: &str, place: &Place) -> Result<Vec<&'a Row>, Failure> {
    let is_meant = |row: &&Row| place.has(row.text("dev-name"), number_of(row));
    let meant: Vec<_> = ports.iter().filter(is_meant).collect();
    match meant.is_empty() {
        true if *place != Place::Host => Err(Failure::Wrong(format!("no port {name}"))),
        _ => Ok(meant),
    }
}

/// Carries out an action. Nothing is set if any of its arguments is wrong.
pub fn act(socket: &mut Socket, options: &Options, as_json: bool) -> Result<(), Failure> {
    let ports = dump(socket, Command::PortGet)?;
    let conf = Conf::read(&options.file);
    match &options.action {
        None | Some(Action::Show) => {
            let conf = conf?;
            show(&ports, &conf, as_json);
            conf.check()
        }
        Some(Action::Apply { device }) => {
            let conf = conf?;
            let name = device.as_deref();
            let place = name.map_or(Place::Host, |name| Place::Device(name.into()));
            let meant = meant(&ports, name.unwrap_or_default(), &place)?;
            say_done(apply(socket, &meant, &conf)?, None, as_json);
            conf.check()
        }
        Some(Action::Set { port, values, save }) => {
            let values: Values = values
                .iter()
                .map(|text| parse(text))
                .collect::<Result<_, _>>()?;
            let place = Place::parse(port)?;
            let meant = meant(&ports, port, &place)?;
            let new = match save {
                true => Some(conf?.prepare(&place, &values)?),
                false => None,
            };
            for row in &meant {
                set(socket, row, &values)?;
            }
            new.map_or(Ok(()), conf::New::commit)?;
            let set = meant.iter().map(|row| done(row, &values)).collect();
            say_done(set, save.then_some(options.file.as_path()), as_json);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_takes() {
        assert_eq!(parse("max-retries=15").unwrap(), (Tunable::MaxRetries, 15));
        for wrong in [
            "max-retries",
            "max-retries=16",
            "max-retries=-1",
            "retries=1",
            "=",
            "",
        ] {
            assert_eq!(parse(wrong).unwrap_err().status(), 2, "{wrong}");
        }
    }

    #[test]
    fn json_says_what_was_set_and_what_it_was_before() {
        let port = Row::of(&[("dev-name", "rxe0"), ("port", "1"), ("max-retries", "15")]);
        let values = [(Tunable::MaxRetries, 4), (Tunable::Deadline, 0)];
        assert_eq!(
            json::object(&done(&port, &values)),
            r#"{"dev-name": "rxe0", "port": 1, "set": [{"name": "max-retries", "value": 4, "before": 15},
 {"name": "deadline-ms", "value": 0}]}"#
        );
    }

    #[test]
    fn the_origin_of_a_value() {
        let conf = Conf::parsed("all max-retries=7\nrxe0 max-retries=3\n");
        let from = |device, value, tunable: Tunable| {
            let row = Row::of(&[
                ("dev-name", device),
                ("port", "1"),
                (Attr::of(tunable).name(), value),
            ]);
            From::of(&conf, &row, tunable).text()
        };
        let retries = Tunable::MaxRetries;
        assert_eq!(from("rxe0", "3", retries), "device, line 2");
        assert_eq!(from("rxe1", "7", retries), "host, line 1");
        assert_eq!(from("rxe1", "15", retries), "by hand, line 1 has 7");
        assert_eq!(from("rxe1", "0", Tunable::Deadline), "default");
        assert_eq!(from("rxe1", "1", Tunable::Deadline), "by hand");
    }
}
