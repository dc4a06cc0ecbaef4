// SPDX-License-Identifier: GPL-2.0

//! `cm-script host|guest PATH [PATTERN]...`: plays the scenarios of a directory and reports in KTAP.

use cm_script::{
    guest, host,
    report::{self, Outcome},
    world::Under,
};
use std::{env, io, path::Path, process::ExitCode};

const USAGE: &str = "usage: cm-script host|guest FILE-OR-DIRECTORY [PATTERN]...";

fn run(args: &[String]) -> io::Result<bool> {
    let [place, path, patterns @ ..] = args else {
        return Err(io::Error::other(USAGE));
    };
    let scenarios = report::scenarios(Path::new(path), patterns)?;
    println!("KTAP version 1\n1..{}", scenarios.len());
    let mut failed = 0;
    let mut show = |number: usize, name: &str, outcome: &Outcome| {
        failed += usize::from(matches!(outcome, Outcome::Failed(_)));
        println!("{}", report::line(number, name, outcome));
    };
    match place.as_str() {
        "host" => {
            for (n, scenario) in scenarios.iter().enumerate() {
                let outcome = scenario.play(Under::Host, |script| {
                    Ok(host::Node::new(host::names(script.is_ipv6)))
                });
                show(n + 1, &scenario.name, &outcome);
            }
        }
        "guest" => guest::run(scenarios, &mut show)?,
        _ => return Err(io::Error::other(USAGE)),
    }
    println!("# {failed} failed");
    Ok(failed == 0)
}

fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cm-script: {error}");
            ExitCode::from(2)
        }
    }
}
