// SPDX-License-Identifier: GPL-2.0

//! `options ADDRESS PORT`: connects, with options of rust_rdma_cm where they are to be had.
//!
//! ```text
//! rustc --edition 2021 -O options.rs
//! ```

mod librdmacm;

use librdmacm::{Channel, Event, Id};
use std::{env, error::Error, io, net::SocketAddrV4, process::ExitCode, time::Instant};

/// `RDMA_OPTION_TUNING` of `<rdma/rust_rdma_cm.h>`.
const TUNING: i32 = 0x5243_4d00;

/// The options, by their numbers in that header, and values.
const OPTIONS: [(i32, u32); 8] = [
    (0, 18),  // RESPONSE_TIMEOUT, a time code: 2^(18 - 8) ms, about a second
    (1, 3),   // MAX_RETRIES, a number
    (2, 500), // DEADLINE, milliseconds
    (3, 18),  // TIMEWAIT, a time code
    (4, 50),  // EARLY_RETRY, milliseconds
    (5, 64),  // PARKING, a number of requests, for an id that listens
    (7, 200), // DEAD_LINK, milliseconds
    (8, 60),  // KEEPALIVE, seconds
];

/// The error of the C modules, and of a rust_rdma_cm that is too old for an option.
const ENOSYS: i32 = 38;

/// Sets each option. Returns whether there are any.
fn tune(id: &Id<'_>) -> io::Result<bool> {
    for (name, value) in OPTIONS {
        match id.set_option(TUNING, name, value) {
            Err(error) if error.raw_os_error() == Some(ENOSYS) => return Ok(false),
            other => other?,
        }
    }
    Ok(true)
}

/// Fails unless this is the event that was expected.
fn expect(event: Event, name: &str) -> Result<(), Box<dyn Error>> {
    match event.name == name {
        true => Ok(()),
        false => Err(format!("{}, status {}", event.name, event.status).into()),
    }
}

fn run(peer: SocketAddrV4) -> Result<(), Box<dyn Error>> {
    let channel = Channel::new()?;
    let id = channel.id()?;
    println!(
        "{}",
        match tune(&id)? {
            true => "rust_rdma_cm: six options are set",
            false => "no options: the C modules",
        }
    );
    expect(id.resolve_addr(peer, 2000)?, "RDMA_CM_EVENT_ADDR_RESOLVED")?;
    expect(id.resolve_route(2000)?, "RDMA_CM_EVENT_ROUTE_RESOLVED")?;
    let start = Instant::now();
    let Event { name, status } = id.connect(0x12_3458)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}, status {status}, after {seconds:.1} s");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Ok(peer) = arguments.join(":").parse() else {
        eprintln!("usage: options ADDRESS PORT");
        return ExitCode::from(2);
    };
    match run(peer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("options: {error}");
            ExitCode::FAILURE
        }
    }
}
