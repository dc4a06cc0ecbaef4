// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm monitor`.

use crate::{
    failure::Failure,
    family, json,
    netlink::{Heard, Socket},
    row::{dump, row, Row, Value},
    show,
};
use cmproto::netlink::{Command, EVENTS};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns a time since 1970, as date and time of UTC (RFC 3339).
fn time(since: Duration) -> String {
    let (mut days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < len {
            break;
        }
        days -= len;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let (day, ms) = (days + 1, since.subsec_millis());
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns a port, or a device, or "-".
fn place(row: &Row) -> String {
    match (row.text("dev-name"), row.number("port")) {
        ("", _) => "-".into(),
        (name, None) => name.to_owned(),
        (_, Some(_)) => show::port(row),
    }
}

/// Returns the addresses of both ends, or the service.
fn ends(row: &Row) -> String {
    match (row.text("src"), row.text("dst")) {
        ("", "") => show::service(row).unwrap_or("-".into()),
        ("", dst) => format!("- > {dst}"),
        (src, "") => format!("{src} > -"),
        (src, dst) => format!("{src} > {dst}"),
    }
}

/// Returns the words for the answer that is waited for in a phase.
fn phase(name: &str) -> String {
    match name {
        "address" => "for its address".into(),
        "route" => "for a route to it".into(),
        name => format!("to the {}", name.to_uppercase().replace('-', "_")),
    }
}

/// Returns the line about an event, without its time.
fn line(event: &str, row: &Row) -> String {
    let number = |name| row.number(name).unwrap_or(0);
    let place = place(row);
    match event {
        "refused" => {
            let code = row.number("reason");
            let message = match (code, row.text("phase")) {
                // Over iWARP.
                (None, _) => "refusal",
                (_, "sidr-req") => "SIDR_REP",
                _ => "REJ",
            };
            let how = match row.text("refusal") {
                "dropped" => "dropped".into(),
                how => format!("{message} {how}"),
            };
            let (ends, reason) = (ends(row), row.text("reason-name"));
            let code = code.map_or(String::new(), |code| format!(" ({code})"));
            format!("{place} refused {ends}: {how}, {reason}{code}")
        }
        "gave-up" => {
            let (ends, phase) = (ends(row), phase(row.text("phase")));
            let retries = row.number("retries").map_or(String::new(), |retries| {
                format!(", messages sent again: {retries}")
            });
            format!("{place} gave up {ends}: no answer {phase}{retries}")
        }
        "limit" => {
            let uid = row.number("uid").map_or("-".into(), |uid| uid.to_string());
            let resource = row.rows("resource").first().cloned().unwrap_or_default();
            let (name, limit) = (resource.text("name"), resource.number("limit").unwrap_or(0));
            format!("limit reached: uid {uid} has {limit} {name}")
        }
        "device-gone" => format!(
            "{place} device gone, connections ended: {}",
            number("connections")
        ),
        "lost" => {
            let of = match row.number("uid") {
                Some(uid) => format!("uid {uid}"),
                None => place,
            };
            format!("{of} events lost: {}", number("lost"))
        }
        "overrun" => "events lost: they are read too slowly".into(),
        other => format!("{place} {other}"),
    }
}

/// Prints an event.
fn print(event: &str, row: Row, as_json: bool) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let at = time(now);
    if as_json {
        let mut all = Row(vec![
            ("time", Value::Text(at)),
            ("event", Value::Text(event.into())),
        ]);
        all.0.extend(row.0);
        say!("{}", json::object(&all));
    } else {
        say!("{at} {}", line(event, &row));
    }
}

/// Adds the name of a device that has only an index.
fn with_name(mut row: Row) -> Row {
    let index = row.number("dev-index");
    if index.is_some() && row.get("dev-name").is_none() {
        let ports = family().and_then(|mut socket| dump(&mut socket, Command::PortGet));
        let mut ports = ports.into_iter().flatten();
        if let Some(port) = ports.find(|port| port.number("dev-index") == index) {
            row.0
                .push(("dev-name", Value::Text(port.text("dev-name").into())));
        }
    }
    row
}

/// Prints events until a signal ends that.
pub fn monitor(socket: &mut Socket, as_json: bool) -> Result<(), Failure> {
    socket.listen(&EVENTS.to_string_lossy(), |heard| match heard {
        Heard::Message(command, attributes) => {
            let known = Command::ALL
                .into_iter()
                .find(|known| *known as u8 == command);
            // A newer kernel may tell of more.
            if let Some(known) = known {
                let name = known.name();
                let event = name.strip_suffix("-ntf").unwrap_or(name);
                print(event, with_name(row(attributes)), as_json);
            }
        }
        Heard::Overrun => print("overrun", Row::default(), as_json),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: [(&str, &str); 2] = [("dev-name", "rxe0"), ("port", "1")];

    #[test]
    fn times() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_000_000_000_042, "2001-09-09T01:46:40.042Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(time(Duration::from_millis(ms)), want);
        }
    }

    #[test]
    fn an_event_is_a_line() {
        let ends = [("src", "10.0.0.1:7"), ("dst", "10.0.0.2:9")];
        let why = [
            ("refusal", "received"),
            ("reason-name", "invalid service ID"),
            ("reason", "8"),
        ];
        assert_eq!(
            line("refused", &Row::of(&[&PORT[..], &why, &ends].concat())),
            "rxe0/1 refused 10.0.0.1:7 > 10.0.0.2:9: REJ received, invalid service ID (8)"
        );
        let why = [
            ("refusal", "sent"),
            ("phase", "sidr-req"),
            ("reason-name", "rejected"),
            ("reason", "2"),
        ];
        assert_eq!(
            line("refused", &Row::of(&[&PORT[..], &why, &ends].concat())),
            "rxe0/1 refused 10.0.0.1:7 > 10.0.0.2:9: SIDR_REP sent, rejected (2)"
        );
        let why = [
            ("refusal", "received"),
            ("phase", "req"),
            ("reason-name", "connection reset"),
        ];
        assert_eq!(
            line("refused", &Row::of(&[&PORT[..], &why, &ends].concat())),
            "rxe0/1 refused 10.0.0.1:7 > 10.0.0.2:9: refusal received, connection reset"
        );
        let gave_up = [("phase", "sidr-req"), ("service-id", "16")];
        assert_eq!(
            line("gave-up", &Row::of(&[&PORT[..], &gave_up].concat())),
            "rxe0/1 gave up service 0x10: no answer to the SIDR_REQ"
        );
        let address = [("phase", "address"), ("dst", "10.0.0.2:9")];
        assert_eq!(
            line("gave-up", &Row::of(&address)),
            "- gave up - > 10.0.0.2:9: no answer for its address"
        );
        let mut limit = Row::of(&[("uid", "1000")]);
        let resource = Row::of(&[("name", "ids"), ("limit", "5")]);
        limit.0.push(("resource", Value::Rows(vec![resource])));
        assert_eq!(line("limit", &limit), "limit reached: uid 1000 has 5 ids");
        let gone = Row::of(&[("dev-name", "rxe0"), ("connections", "3")]);
        assert_eq!(
            line("device-gone", &gone),
            "rxe0 device gone, connections ended: 3"
        );
        let lost = [("lost", "12")];
        assert_eq!(
            line("lost", &Row::of(&[&PORT[..], &lost].concat())),
            "rxe0/1 events lost: 12"
        );
    }
}
