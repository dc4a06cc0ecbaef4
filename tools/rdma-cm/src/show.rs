// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm show`.

use crate::{
    failure::Failure,
    json,
    netlink::Socket,
    row::{dump, Row},
    table::{time, Table},
};
use clap::ValueEnum;
use cmproto::netlink::Command;
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

/// Shows a subject.
pub fn show(socket: &mut Socket, what: Subject, as_json: bool) -> Result<(), Failure> {
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
        Subject::Connections => connections(&rows),
        Subject::Listeners => listeners(&rows),
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

fn connections(rows: &[Row]) -> Table {
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
    }
    table
}

fn listeners(rows: &[Row]) -> Table {
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
        let lines = connections(&[row]).lines();
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
    fn a_listener_of_the_kernel_has_no_backlog() {
        let row = Row::of(&[
            ("owner", "ib_srpt"),
            ("service-id", "4660"),
            ("age-ms", "1"),
        ]);
        let lines = listeners(&[row]).lines();
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
