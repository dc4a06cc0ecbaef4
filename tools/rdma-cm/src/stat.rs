// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm stat`.

use crate::{
    failure::Failure,
    json, latency,
    metrics::{self, Format},
    netlink::Socket,
    row::{dump, Row, Value},
    show::port,
    table::Table,
};
use clap::Args;
use cmproto::netlink::Command;
use std::{collections::HashMap, thread, time::Duration};

#[derive(Args)]
pub struct Options {
    /// Print what Prometheus reads (OpenMetrics).
    #[arg(long, conflicts_with = "watch")]
    openmetrics: bool,
    /// Print what the textfile collector of node_exporter reads.
    #[arg(long, conflicts_with_all = ["watch", "openmetrics"])]
    prometheus: bool,
    /// Print again, by how much each counter has grown, every so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    watch: Option<u64>,
    /// Counters that are 0, too.
    #[arg(short, long)]
    all: bool,
    /// Print how long the phases of connections took, instead of counters.
    #[arg(long, conflicts_with_all = ["watch", "openmetrics", "prometheus", "all"])]
    latency: bool,
}

/// A counter: its port, its kind, the name of what is counted, and its value.
pub struct Counter<'a> {
    pub port: &'a Row,
    pub kind: &'a str,
    pub name: &'a str,
    pub value: u64,
}

/// Returns all counters of a dump.
pub fn counters(rows: &[Row]) -> impl Iterator<Item = Counter<'_>> {
    rows.iter().flat_map(|row| {
        row.rows("counter").iter().map(move |counter| Counter {
            port: row,
            kind: row.text("counter-kind"),
            name: counter.text("name"),
            value: counter.number("value").unwrap_or(0),
        })
    })
}

type Key = (String, String, String);

fn key(counter: &Counter<'_>) -> Key {
    (
        port(counter.port),
        counter.kind.to_owned(),
        counter.name.to_owned(),
    )
}

/// Prints the counters, less what they were before.
fn print(rows: &[Row], before: &HashMap<Key, u64>, options: &Options, as_json: bool) {
    let mut table = Table::new(&["PORT", "COUNTER", "OF", "VALUE"]);
    let mut objects = Vec::new();
    for counter in counters(rows) {
        let (port, kind, name) = key(&counter);
        let before = before.get(&(port.clone(), kind.clone(), name.clone()));
        let value = counter.value.saturating_sub(before.copied().unwrap_or(0));
        if value == 0 && !options.all {
            continue;
        }
        if as_json {
            objects.push(Row(vec![
                ("port", Value::Text(port)),
                ("counter", Value::Text(kind)),
                ("of", Value::Text(name)),
                ("value", Value::Number(value)),
            ]));
        } else {
            table.row([port, kind, name, value.to_string()]);
        }
    }
    match as_json {
        true => say!("{}", json::array(&objects)),
        false => table.print(),
    }
}

/// Shows the counters, once or again and again.
pub fn show(socket: &mut Socket, options: &Options, as_json: bool) -> Result<(), Failure> {
    for (is_asked, format) in [
        (options.openmetrics, Format::OpenMetrics),
        (options.prometheus, Format::Text),
    ] {
        // The parser does not see that the one for all commands, in front of this one, is in conflict.
        if is_asked && as_json {
            let what = "metrics for Prometheus are not JSON: --json cannot be used with them";
            return Err(Failure::Wrong(what.into()));
        }
        if is_asked {
            say!("{}", metrics::text(socket, format)?.trim_end());
            return Ok(());
        }
    }
    if options.latency {
        return latency::show(socket, as_json);
    }
    let mut rows = dump(socket, Command::CounterGet)?;
    print(&rows, &HashMap::new(), options, as_json);
    while let Some(seconds) = options.watch {
        let before = counters(&rows)
            .map(|counter| (key(&counter), counter.value))
            .collect();
        thread::sleep(Duration::from_secs(seconds));
        rows = dump(socket, Command::CounterGet)?;
        say!("");
        print(&rows, &before, options, as_json);
    }
    Ok(())
}
