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

/// New values for tunables of a port.
struct Change<'a> {
    port: &'a Row,
    values: Values,
}

impl Change<'_> {
    /// Returns the value that a tunable had before.
    fn before(&self, tunable: Tunable) -> Option<u64> {
        self.port.number(Attr::of(tunable).name())
    }

    /// Returns the values that the tunables had before.
    fn undo(&self) -> Values {
        let before = |&(tunable, _): &(Tunable, u32)| {
            let value = u32::try_from(self.before(tunable)?).ok()?;
            Some((tunable, value))
        };
        self.values.iter().filter_map(before).collect()
    }

    /// Returns a row with the values, and those of before.
    fn row(&self) -> Row {
        let of = |&(tunable, value): &(Tunable, u32)| {
            let mut set = Row(vec![
                ("name", Value::Text(Attr::of(tunable).name().into())),
                ("value", Value::Number(value.into())),
            ]);
            let before = self.before(tunable);
            set.0
                .extend(before.map(|before| ("before", Value::Number(before))));
            set
        };
        Row(vec![
            ("dev-name", Value::Text(self.port.text("dev-name").into())),
            ("port", Value::Number(number_of(self.port).into())),
            ("set", Value::Rows(self.values.iter().map(of).collect())),
        ])
    }
}

/// Makes changes with `set` and ends with `commit`, and returns those that were made. A port that goes meanwhile has no
/// tunables. If anything fails, the ports get back the values that they had before.
fn make<'a>(
    changes: Vec<Change<'a>>,
    mut set: impl FnMut(&Row, &[(Tunable, u32)]) -> Result<(), Failure>,
    commit: impl FnOnce() -> Result<(), Failure>,
) -> Result<Vec<Change<'a>>, Failure> {
    let mut made = Vec::new();
    let mut gone = None;
    let mut result = changes.into_iter().try_for_each(|change| {
        match set(change.port, &change.values) {
            Err(failure @ Failure::Kernel(libc::ENODEV)) => gone = Some(failure),
            other => {
                other?;
                made.push(change);
            }
        }
        Ok(())
    });
    // No port at all is left of those that were meant.
    if let (Ok(()), true, Some(gone)) = (&result, made.is_empty(), gone) {
        result = Err(gone);
    }
    match result.and_then(|()| commit()) {
        Ok(()) => Ok(made),
        Err(failure) => {
            for change in &made {
                // A port that is gone has none to get back, and more than the failure cannot be told.
                let _ = set(change.port, &change.undo());
            }
            Err(failure)
        }
    }
}

/// Returns the changes that the file asks for.
fn asked<'a>(ports: &[&'a Row], conf: &Conf) -> Vec<Change<'a>> {
    let change = |&port: &&'a Row| {
        let value = |tunable| {
            let found = conf.value(port.text("dev-name"), number_of(port), tunable);
            found.map(|(_, value)| (tunable, value))
        };
        let values: Values = Tunable::ALL.into_iter().filter_map(value).collect();
        (!values.is_empty()).then_some(Change { port, values })
    };
    ports.iter().filter_map(change).collect()
}

/// Says what was set, and the file that has it now, only as JSON.
fn say_done(made: &[Change<'_>], file: Option<&Path>, as_json: bool) {
    if as_json {
        let ports = made.iter().map(Change::row).collect();
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

/// Carries out an action. Nothing is set if any of its arguments is wrong, or if any port refuses.
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
            let set = |row: &Row, values: &[_]| set(socket, row, values);
            // At boot a device may go again at once, and its event asks for no more then.
            match make(asked(&meant, &conf), set, || Ok(())) {
                Err(Failure::Kernel(libc::ENODEV)) => say_done(&[], None, as_json),
                made => say_done(&made?, None, as_json),
            }
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
            let change = |port| Change {
                port,
                values: values.clone(),
            };
            let changes = meant.into_iter().map(change).collect();
            let set = |row: &Row, values: &[_]| set(socket, row, values);
            let made = make(changes, set, || new.map_or(Ok(()), conf::New::commit))?;
            say_done(&made, save.then_some(options.file.as_path()), as_json);
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
        let change = Change {
            port: &port,
            values: vec![(Tunable::MaxRetries, 4), (Tunable::Deadline, 0)],
        };
        assert_eq!(
            json::object(&change.row()),
            r#"{"dev-name": "rxe0", "port": 1, "set": [{"name": "max-retries", "value": 4, "before": 15},
 {"name": "deadline-ms", "value": 0}]}"#
        );
    }

    /// The calls of `make` for three ports whose MAX_RETRIES is 15, 14 and 13, of which one answers with an error, and
    /// the devices on which 4 is set then, or the error.
    fn made(
        answer: (&str, i32),
        commit: Result<(), Failure>,
    ) -> (Vec<(String, u32)>, Result<Vec<String>, u8>) {
        let port = |(device, value)| {
            Row::of(&[("dev-name", device), ("port", "1"), ("max-retries", value)])
        };
        let ports = [("rxe0", "15"), ("rxe1", "14"), ("rxe2", "13")].map(port);
        let change = |port| Change {
            port,
            values: vec![(Tunable::MaxRetries, 4)],
        };
        let mut calls = Vec::new();
        let set = |row: &Row, values: &[(Tunable, u32)]| {
            let device = row.text("dev-name");
            match answer {
                (refused, error) if refused == device || refused == "all" => {
                    return Err(Failure::Kernel(error))
                }
                _ => calls.extend(values.iter().map(|(_, value)| (device.into(), *value))),
            }
            Ok(())
        };
        let made = make(ports.iter().map(change).collect(), set, || commit);
        let devices = |made: Vec<Change<'_>>| {
            let device = |change: &Change<'_>| change.port.text("dev-name").into();
            made.iter().map(device).collect()
        };
        (calls, made.map(devices).map_err(|failure| failure.status()))
    }

    fn calls(all: &[(&str, u32)]) -> Vec<(String, u32)> {
        all.iter()
            .map(|(device, n)| ((*device).into(), *n))
            .collect()
    }

    #[test]
    fn all_ports_or_none() {
        let all = made(("", 0), Ok(()));
        assert_eq!(all.0, calls(&[("rxe0", 4), ("rxe1", 4), ("rxe2", 4)]));
        assert_eq!(all.1.unwrap(), ["rxe0", "rxe1", "rxe2"]);

        let refused = made(("rxe2", libc::EPERM), Ok(()));
        let and_back = [("rxe0", 4), ("rxe1", 4), ("rxe0", 15), ("rxe1", 14)];
        assert_eq!(refused.0, calls(&and_back));
        assert_eq!(refused.1.unwrap_err(), 4);
    }

    #[test]
    fn what_cannot_be_written_is_not_set() {
        let no_space = Failure::Kernel(libc::ENOSPC);
        let (calls, result) = made(("", 0), Err(no_space));
        assert_eq!(calls.len(), 6);
        assert_eq!(calls.last().unwrap(), &("rxe2".into(), 13));
        assert_eq!(result.unwrap_err(), 1);
    }

    #[test]
    fn a_port_that_goes_does_not_stop_the_others() {
        let one = made(("rxe1", libc::ENODEV), Ok(()));
        assert_eq!(one.0, calls(&[("rxe0", 4), ("rxe2", 4)]));
        assert_eq!(one.1.unwrap(), ["rxe0", "rxe2"]);

        let all = made(("all", libc::ENODEV), Ok(()));
        assert!(all.0.is_empty() && all.1.is_err());
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
