// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm trace`.

mod connection;
mod event;
mod ladder;
mod parts;
mod sets;
mod svg;
mod tracefs;

use crate::{
    failure::Failure,
    json,
    row::{Row, Value},
};
use clap::Args;
use connection::Connection;
use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

#[derive(Args)]
pub struct Options {
    /// An address of a peer or of this host, without or with a port.
    address: Option<Peer>,
    /// Stop after so many seconds. Without this, SIGINT or SIGTERM stops it.
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "from")]
    seconds: Option<u64>,
    /// Read what was traced before, as "--save", tracefs or trace-cmd have written it.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Write the trace itself into a file.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    save: Option<PathBuf>,
    /// Write the diagrams into a file, as a picture (SVG).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// An address of which connections are shown.
#[derive(Clone, Copy)]
enum Peer {
    Address(IpAddr),
    Service(SocketAddr),
}

impl std::str::FromStr for Peer {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .map(Peer::Service)
            .or_else(|_| text.parse().map(Peer::Address))
    }
}

impl Peer {
    /// Tells whether it is an end of a connection.
    fn is_in(&self, connection: &Connection) -> bool {
        let ends = connection.addresses.iter().flatten();
        ends.filter_map(|text| text.parse::<SocketAddr>().ok())
            .any(|end| match self {
                Peer::Address(address) => end.ip() == *address,
                Peer::Service(service) => end == *service,
            })
    }
}

/// Returns a connection as a row, with times in microseconds.
fn row(connection: &Connection) -> Row {
    let steps = connection.steps.iter().map(|step| {
        let mut row = Row(vec![("end", Value::Text(ladder::END[step.end].into()))]);
        if let Some(message) = step.message {
            row.0.push(("message", Value::Text(message.into())));
            for (name, time) in ["sent-us", "received-us"].into_iter().zip(step.times) {
                row.0.extend(time.map(|time| (name, Value::Number(time))));
            }
        } else {
            row.0.push(("time-us", Value::Number(step.time())));
        }
        if !step.note.is_empty() {
            row.0.push(("note", Value::Text(step.note.clone())));
        }
        row
    });
    let steps = steps.collect();
    let here = connection
        .is_here
        .map(|is_here| Value::Number(is_here.into()));
    let [client, server] = connection
        .addresses
        .clone()
        .map(|address| Value::Text(address.unwrap_or_default()));
    let [client_here, server_here] = here;
    Row(vec![
        ("client", client),
        ("server", server),
        ("client-is-here", client_here),
        ("server-is-here", server_here),
        ("steps", Value::Rows(steps)),
    ])
}

/// Traces, or reads a trace, and shows the messages of each connection.
pub fn trace(options: &Options, as_json: bool) -> Result<(), Failure> {
    let text = match &options.from {
        Some(file) => {
            fs::read_to_string(file).map_err(|error| Failure::File(file.clone(), error))?
        }
        None => tracefs::record(options.seconds.map(Duration::from_secs))?,
    };
    if let Some(file) = &options.save {
        fs::write(file, &text).map_err(|error| Failure::File(file.clone(), error))?;
    }
    let mut connections = connection::connections(&text);
    if let Some(peer) = options.address {
        connections.retain(|connection| peer.is_in(connection));
    }
    if connections.is_empty() {
        return Err(Failure::NotSeen);
    }
    if let Some(file) = &options.svg {
        fs::write(file, svg::picture(&connections))
            .map_err(|error| Failure::File(file.clone(), error))?;
    }
    if as_json {
        let rows: Vec<Row> = connections.iter().map(row).collect();
        say!("{}", json::array(&rows));
        return Ok(());
    }
    for (at, connection) in connections.iter().enumerate() {
        if at > 0 {
            say!("");
        }
        for line in ladder::lines(connection) {
            say!("{line}");
        }
    }
    Ok(())
}
