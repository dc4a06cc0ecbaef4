// SPDX-License-Identifier: GPL-2.0

//! A ladder diagram for a terminal.

use super::connection::{Connection, Step, CLIENT};

/// The names of the ends, client first.
pub const END: [&str; 2] = ["client", "server"];
/// The number of characters between the ends.
const BETWEEN: usize = 25;
/// The width of a time.
const TIME: usize = 9;
/// The width of a terminal.
const WIDTH: usize = 80;

/// Returns the title of a connection.
pub fn title(connection: &Connection) -> String {
    let [client, server] =
        [0, 1].map(|end| connection.addresses[end].as_deref().unwrap_or("unknown"));
    let begin = connection.steps.first().map_or(0, Step::time);
    format!(
        "{client} > {server}, at {}.{:06} s",
        begin / 1_000_000,
        begin % 1_000_000
    )
}

/// Returns the name of an end, and where it is.
pub fn end(connection: &Connection, end: usize) -> String {
    match connection.is_here[end] {
        true => format!("{} (here)", END[end]),
        false => END[end].into(),
    }
}

/// Returns the note of a step, for people.
pub fn note(connection: &Connection, step: &Step) -> String {
    match (step.is_lost(connection), step.note.as_str()) {
        (true, "") => "not received".into(),
        (true, note) => format!("{note}, not received"),
        (false, note) => note.to_owned(),
    }
}

/// Returns the times of a step at both ends, in seconds since the beginning.
pub fn times(connection: &Connection, step: &Step) -> [String; 2] {
    let begin = connection.steps.first().map_or(0, Step::time);
    let seconds = |time: Option<u64>| {
        time.map_or(String::new(), |time| {
            let us = time.saturating_sub(begin);
            format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
        })
    };
    let [own, other] = step.times.map(seconds);
    match step.end {
        CLIENT => [own, other],
        _ => [other, own],
    }
}

/// Returns the arrow of a message, without its ends.
fn arrow(step: &Step, is_lost: bool) -> String {
    let head = if is_lost { 'x' } else { '>' };
    let name = step.message.unwrap_or("");
    let line = format!("{:-^1$}", format!(" {name} "), BETWEEN - 1);
    match step.end {
        CLIENT => format!("{line}{head}"),
        _ if is_lost => format!("x{line}"),
        _ => format!("<{line}"),
    }
}

/// Returns the diagram as lines. A note that does not fit has a line of its own.
pub fn lines(connection: &Connection) -> Vec<String> {
    let [client, server] = [0, 1].map(|at| end(connection, at));
    let mut lines = vec![title(connection)];
    if lines[0].len() > WIDTH {
        // Long addresses have a line each.
        lines = lines[0]
            .replacen(" > ", "\n> ", 1)
            .lines()
            .map(str::to_owned)
            .collect();
    }
    lines.push(format!(
        "{:>TIME$} {client:<13}{server:>14} {:>TIME$}",
        "seconds", "seconds"
    ));
    for step in &connection.steps {
        let [left, right] = times(connection, step);
        let lanes = match (step.message, step.end) {
            (Some(_), _) => format!("|{}|", arrow(step, step.is_lost(connection))),
            (None, CLIENT) => format!("*{:BETWEEN$}|", ""),
            (None, _) => format!("|{:BETWEEN$}*", ""),
        };
        let ladder = format!("{left:>TIME$} {lanes} {right:>TIME$}");
        let note = note(connection, step);
        if ladder.chars().count() + 1 + note.chars().count() <= WIDTH {
            lines.push(format!("{ladder} {note}").trim_end().to_owned());
        } else {
            lines.push(ladder.trim_end().to_owned());
            lines.push(format!("{note:>WIDTH$}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::connection::connections;
    use super::*;

    #[test]
    fn a_ladder_fits_a_terminal() {
        let text = include_str!("../../traces/refused.trace");
        let lines = lines(&connections(text)[0]);
        let want = [
            "10.0.0.1:45738 > 10.0.0.2:7301, at 34.938099 s",
            "  seconds client (here) server (here)   seconds",
            " 0.000000 *                         |           ADDR_RESOLVED",
            " 0.031652 *                         |           ROUTE_RESOLVED",
            " 0.034110 *                         |           connect by rping-227",
            " 0.034258 |--------- REQ ---------->|  0.035233",
            " 0.039514 |<--------- REJ ----------|  0.037452",
            " 0.040125 *                         |           REJECTED: invalid service ID (8)",
            " 0.075988 *                         |           destroy by rping-227",
        ];
        assert_eq!(lines, want);
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn the_page_for_administrators_has_the_ladder_of_a_trace() {
        let text = include_str!("../../traces/lost.trace");
        let block = lines(&connections(text)[0])
            .into_iter()
            .map(|line| format!("   {line}\n"))
            .collect::<String>();
        let page = include_str!("../../../../Documentation/administration.rst");
        assert!(page.contains(&format!("::\n\n{block}\n")), "{block}");
    }

    #[test]
    fn long_addresses_and_notes_have_their_own_lines() {
        let mut connection = connections(include_str!("../../traces/lost.trace")).remove(0);
        connection.steps[0].note = "x".repeat(60);
        let long = "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:65535";
        connection.addresses = [Some(long.into()), Some(long.into())];
        let lines = lines(&connection);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(lines[0], long);
        assert!(lines[4].ends_with(&"x".repeat(60)));
    }
}
