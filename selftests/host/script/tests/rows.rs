// SPDX-License-Identifier: GPL-2.0

//! Every cell of the state table that the messages of a peer can come to has a scenario.

use cm_script::{host, parse::Script, play, world::Under};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The rows of the peer's messages; the other rows of the table are the user and the clock.
const ROWS: [&str; 19] = [
    "REP",
    "REP of a stranger",
    "RTU",
    "RTU of a stranger",
    "REJ, consumer defined",
    "REJ, stale",
    "REJ, timeout",
    "REJ, timeout, of a stranger",
    "MRA of a REQ",
    "MRA of a REP",
    "MRA of a LAP",
    "MRA of nothing known",
    "DREQ",
    "DREQ of another queue pair",
    "DREP",
    "LAP",
    "LAP over RoCE",
    "APR",
    "its REQ again",
];

/// Situations in which no message finds a connection, and why.
const NOWHERE: [(&str, &str); 7] = [
    ("Fresh", "a connection gets a communication id with its REQ"),
    ("Listen", "no connection is ever in this state"),
    ("SidrReqSent", "no connection is ever in this state"),
    ("SidrReqRcvd", "no connection is ever in this state"),
    ("Detached", "a destroyed connection leaves no record"),
    (
        "RepRcvd",
        "the event is queued in the same step, and then it is MraRepSent",
    ),
    (
        "ReqRcvd",
        "lasts as long as the neighbour is searched, which takes no time here",
    ),
];

/// Cells that do not exist, and why.
const IMPOSSIBLE: &[(&str, &str, &str)] = &[
    (
        "REP of a stranger",
        "ReqSent MraReqRcvd",
        "the peer is who answers",
    ),
    (
        "its REQ again",
        "ReqSent MraReqRcvd Timewait Closed",
        "not in the table of the peers: another REQ",
    ),
];

/// The table of `Documentation/transitions.rst`: the situations of each row.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../Documentation/transitions.rst");
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut table = BTreeMap::new();
    for (n, line) in lines.iter().enumerate() {
        let is_title = n > 0 && !line.is_empty() && line.chars().all(|c| c == '-');
        if !is_title {
            continue;
        }
        let rest = &lines[n + 1..];
        let Some(rule) = rest.iter().position(|line| line.starts_with("==")) else {
            continue;
        };
        let column = rest[rule].rfind(' ').map_or(0, |space| space + 1);
        let mut rules = 0;
        let cells = rest[rule..].iter().take_while(|line| {
            rules += usize::from(line.starts_with("=="));
            rules < 3
        });
        let names = cells
            .filter_map(|line| line.get(column..))
            .flat_map(|names| names.split([',', ' ']))
            .filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()) && *name != "In");
        table
            .entry(lines[n - 1].to_string())
            .or_insert_with(BTreeSet::new)
            .extend(names.map(String::from));
    }
    table
}

/// Returns the cells that the scenarios come to on the host.
fn seen() -> BTreeSet<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "cm") {
            continue;
        }
        let script = Script::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        if play::is_for(&script, Under::Host) {
            let mut node = host::Node::new(host::names(script.is_ipv6));
            play::play(&script, &mut node).unwrap();
            let cells = node.seen().iter();
            seen.extend(cells.map(|(row, place)| (row.to_string(), place.to_string())));
        }
    }
    seen
}

#[test]
fn every_cell_that_a_peer_reaches_has_a_scenario() {
    let (table, seen) = (table(), seen());
    let impossible = |row: &str, place: &str| {
        let no_row = |(r, places, _): &(&str, &str, &str)| {
            *r == row && places.split(' ').any(|p| p == place)
        };
        NOWHERE.iter().any(|(p, _)| *p == place) || IMPOSSIBLE.iter().any(no_row)
    };
    let mut wrong = Vec::new();
    for row in ROWS {
        let places = table.get(row).unwrap_or_else(|| panic!("no row {row}"));
        assert_eq!(places.len(), 19, "{row}: {places:?}");
        for place in places {
            let is_seen = seen.contains(&(row.to_string(), place.to_string()));
            if is_seen == impossible(row, place) {
                let what = if is_seen {
                    "impossible, but seen"
                } else {
                    "no scenario"
                };
                wrong.push(format!("{row} in {place}: {what}"));
            }
        }
    }
    for (row, place) in &seen {
        assert!(
            ROWS.contains(&row.as_str()) || row == "stale peer",
            "{row} in {place}"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
