// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm`: shows what the RDMA connection manager does, and tunes it.

/// Prints a line, as `println!` does, but for a reader who has gone: nothing is left to do then.
macro_rules! say {
    ($($arguments:tt)*) => {
        $crate::say(format_args!($($arguments)*))
    };
}

mod conf;
mod failure;
mod generate;
mod json;
mod latency;
mod metrics;
mod monitor;
mod netlink;
mod row;
mod show;
mod signal;
mod stat;
mod status;
mod swap;
mod table;
mod trace;
mod tune;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use netlink::Socket;
use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    process::{self, ExitCode},
};

/// The version and the commit, where the build knows them.
const VERSION: &str = match option_env!("RDMA_CM_TOOL") {
    Some(version) => version,
    None => "unknown",
};

/// Shows what the RDMA connection manager does, and tunes it.
///
/// A user sees its own connections and listeners. CAP_NET_ADMIN shows those of
/// all users in the network namespace.
///
/// Exit status: 0 success, 1 the kernel refuses, 2 wrong arguments, 3 the module
/// is not loaded or too old, 4 not permitted, 5 lines of cm.conf are wrong.
#[derive(Parser)]
#[command(name = "rdma-cm", version = VERSION, verbatim_doc_comment)]
struct Arguments {
    /// Print JSON.
    #[arg(short, long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Shows which connection manager is loaded, and who uses it.
    Status,
    /// Shows connections, listeners, peers, or what users have.
    Show(show::Options),
    /// Shows what is counted.
    Stat(stat::Options),
    /// Tells what goes wrong, as it happens, until it is interrupted.
    Monitor,
    /// Traces, and shows the messages of each connection as a diagram with times.
    Trace(trace::Options),
    /// Shows or sets the tunables of ports.
    Tune(tune::Options),
    /// Loads the other connection manager, if nobody uses this one.
    Use { which: status::Manager },
    /// Does the same as "use rust".
    #[command(hide = true)]
    Rust,
    /// Does the same as "use c".
    #[command(hide = true)]
    C,
    /// Writes the manual page and the completions into a directory.
    #[command(hide = true)]
    Generate { dir: PathBuf },
}

/// Prints a line, or ends if nobody reads it.
fn say(line: fmt::Arguments<'_>) {
    if writeln!(io::stdout(), "{line}").is_err() {
        process::exit(1);
    }
}

/// Opens a socket for the module's family.
fn family() -> Result<Socket, Failure> {
    Socket::open(&cmproto::netlink::FAMILY.to_string_lossy())
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let json = arguments.json;
    let Some(command) = arguments.command else {
        return status::show_manager(json);
    };
    match command {
        What::Status => status::show(json),
        What::Show(options) => show::show(&mut family()?, &options, json),
        What::Stat(options) => stat::show(&mut family()?, &options, json),
        What::Monitor => monitor::monitor(&mut family()?, json),
        What::Trace(options) => trace::trace(&options, json),
        What::Tune(options) => tune::act(&mut family()?, &options, json),
        What::Use { which } => swap::swap(which, json),
        What::Rust => swap::swap(status::Manager::Rust, json),
        What::C => swap::swap(status::Manager::C, json),
        What::Generate { dir } => generate::generate(&Arguments::command(), &dir, json),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rdma-cm: {failure}");
            failure.status().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
