// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm show`.

use crate::{
    failure::Failure,
    json,
    netlink::Socket,
    row::{dump, Row},
    table::{time, Table},
};
use clap::{Args, ValueEnum};
use cmproto::{
    cm::Tunable,
    netlink::{Attr, Command},
};
use std::fs;

/// A subject that can be shown.
#[derive(Clone, Copy, ValueEnum)]
pub enum Subject {
    /// Connections, and attempts at one.
    Connections,
    /// Listeners, and their backlogs.
    Listeners,
    /// Peers, and how long they take to answer.
    Peers,
    /// Users, and the number of objects that they have.
    Limits,
}

#[derive(Args)]
pub struct Options {
    what: Subject,
    /// Also show the options of each connection or listener, and which of them it has set itself.
    #[arg(short, long)]
    verbose: bool,
}

/// Shows a subject.
pub fn show(socket: &mut Socket, options: &Options, as_json: bool) -> Result<(), Failure> {
    let Options { what, verbose } = *options;
    let command = match what {
        Subject::Connections => Command::ConnectionGet,
        Subject::Listeners => Command::ListenerGet,
        Subject::Peers => Command::PeerGet,
        Subject::Limits => Command::UserGet,
    };
    let rows = dump(socket, command)?;
    if as_json {
        say!("{}", json::array(&rows));
        return Ok(());
    }
    match what {
        Subject::Connections => connections(&rows, verbose),
        Subject::Listeners => listeners(&rows, verbose),
        Subject::Peers => peers(&rows),
        Subject::Limits => limits(&rows),
    }
    .print();
    Ok(())
}

/// Returns a number, or "-".
fn number(row: &Row, name: &str) -> String {
    row.number(name)
        .map_or("-".into(), |value| value.to_string())
}

/// Returns a time, or "-".
fn duration(row: &Row, name: &str, us: u64) -> String {
    row.number(name)
        .map_or("-".into(), |value| time(value.saturating_mul(us)))
}

/// Returns the port of a device.
pub fn port(row: &Row) -> String {
    format!("{}/{}", row.text("dev-name"), number(row, "port"))
}

/// Returns the service, if there is one.
pub fn service(row: &Row) -> Option<String> {
    row.number("service-id")
        .map(|id| format!("service {id:#x}"))
}

/// Returns the owner of an identifier: a process, or a part of the kernel.
fn owner(row: &Row) -> String {
    match row.number("pid") {
        Some(pid) => {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            match name.trim_end() {
                "" => pid.to_string(),
                name => format!("{name}/{pid}"),
            }
        }
        None if row.text("owner").is_empty() => "-".into(),
        None => format!("[{}]", row.text("owner")),
    }
}

/// Returns the state of the connection, or that of the identifier if there is none.
fn state(row: &Row) -> &str {
    match (row.text("state"), row.text("cm-state")) {
        ("connect" | "disconnect", cm) if !cm.is_empty() => cm,
        (state, _) => state,
    }
}

/// Adds the options of an identifier: those that it has set itself, and those of its port.
fn note_options(table: &mut Table, row: &Row) {
    let own: Vec<&str> = row
        .rows("set-on-id")
        .iter()
        .map(|own| own.text("name"))
        .collect();
    let assigned = |is_own: bool| -> Vec<String> {
        let names = Tunable::ALL.map(|tunable| Attr::of(tunable).name());
        let names = names
            .into_iter()
            .filter(|name| own.contains(name) == is_own);
        names
            .filter_map(|name| Some(format!("{name}={}", row.number(name)?)))
            .collect()
    };
    for (label, words) in [
        ("set on the id", assigned(true)),
        ("of the port", assigned(false)),
    ] {
        if !words.is_empty() {
            table.note(label, &words);
        }
    }
}

fn connections(rows: &[Row], verbose: bool) -> Table {
    let mut table = Table::new(&[
        "PORT",
        "OWNER",
        "STATE",
        "AGE",
        "RETRIES",
        "RTT",
        "LOCAL > PEER",
    ]);
    for row in rows {
        table.row([
            port(row),
            owner(row),
            state(row).to_owned(),
            duration(row, "age-ms", 1000),
            number(row, "retries"),
            duration(row, "rtt-us", 1),
            format!("{} > {}", row.text("src"), row.text("dst")),
        ]);
        if verbose {
            note_options(&mut table, row);
        }
    }
    table
}

fn listeners(rows: &[Row], verbose: bool) -> Table {
    let mut table = Table::new(&[
        "OWNER", "UID", "BACKLOG", "UNREAD", "PARKED", "REFUSED", "AGE", "ADDRESS",
    ]);
    for row in rows {
        let address = match row.text("src") {
            "" => service(row).unwrap_or_default(),
            address => address.to_owned(),
        };
        table.row([
            owner(row),
            number(row, "uid"),
            number(row, "backlog"),
            number(row, "unread"),
            number(row, "parked"),
            number(row, "refused"),
            duration(row, "age-ms", 1000),
            address,
        ]);
        if verbose {
            note_options(&mut table, row);
        }
    }
    table
}

fn peers(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "CONNECTIONS",
        "RTT",
        "SPREAD",
        "UNANSWERED",
        "SILENT",
        "EARLY RETRY",
        "PEER",
    ]);
    for row in rows {
        table.row([
            number(row, "connections"),
            duration(row, "rtt-us", 1),
            duration(row, "rtt-var-us", 1),
            number(row, "unanswered"),
            duration(row, "silent-ms", 1000),
            duration(row, "early-retry-us", 1),
            row.text("gid").to_owned(),
        ]);
    }
    table
}

fn limits(rows: &[Row]) -> Table {
    let mut table = Table::new(&["UID", "RESOURCE", "USED", "LIMIT"]);
    for row in rows {
        for resource in row.rows("resource") {
            table.row([
                number(row, "uid"),
                resource.text("name").to_owned(),
                number(resource, "used"),
                number(resource, "limit"),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Value;

    #[test]
    fn a_connection_fits_a_terminal() {
        let row = Row::of(&[
            ("dev-name", "rxe0"),
            ("port", "1"),
            ("owner", "nvme_rdma"),
            ("state", "connect"),
            ("cm-state", "established"),
            ("age-ms", "1500"),
            ("retries", "0"),
            ("src", "10.100.200.101:61234"),
            ("dst", "10.100.200.102:4420"),
        ]);
        let lines = connections(&[row], false).lines();
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:?}");
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(
            words,
            ["rxe0/1", "[nvme_rdma]", "established", "1.5s", "0", "-"]
        );
        assert_eq!(
            lines[3].trim(),
            "10.100.200.101:61234 > 10.100.200.102:4420"
        );
    }

    #[test]
    fn options_are_those_of_the_id_or_of_the_port() {
        let mut row = Row::of(&[
            ("dev-name", "rxe0"),
            ("port", "1"),
            ("src", "10.0.0.1:61234"),
            ("dst", "10.0.0.2:4420"),
            ("response-timeout", "20"),
            ("max-retries", "3"),
            ("deadline-ms", "3600000"),
            ("timewait", "22"),
            ("early-retry-ms", "10000"),
            ("backlog-parking", "1024"),
        ]);
        row.push(
            "set-on-id",
            Value::Rows(vec![Row::of(&[("name", "max-retries")])]),
        );
        let lines = connections(&[row.clone()], true).lines();
        assert_eq!(
            lines[2..],
            [
                "    set on the id: max-retries=3",
                "    of the port: response-timeout=20 deadline-ms=3600000 timewait=22",
                "      early-retry-ms=10000 backlog-parking=1024",
            ]
        );
        // An older module tells of none.
        let old = Row::of(&[("src", "10.0.0.1:1"), ("dst", "10.0.0.2:2")]);
        assert_eq!(connections(&[old], true).lines().len(), 2);
        assert_eq!(listeners(&[row], true).lines().len(), 5);
    }

    #[test]
    fn a_listener_of_the_kernel_has_no_backlog() {
        let row = Row::of(&[
            ("owner", "ib_srpt"),
            ("service-id", "4660"),
            ("age-ms", "1"),
        ]);
        let lines = listeners(&[row], false).lines();
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(
            words,
            [
                "[ib_srpt]",
                "-",
                "-",
                "-",
                "-",
                "-",
                "1.0ms",
                "service",
                "0x1234"
            ]
        );
    }
}
