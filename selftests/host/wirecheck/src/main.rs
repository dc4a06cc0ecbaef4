// SPDX-License-Identifier: GPL-2.0

//! `wirecheck [--lossy] CAPTURE...`: judges captures, one KTAP line for each rule and file.

use cm_wirecheck::{capture, judge, rule::Rule, Verdict};
use std::{collections::BTreeMap, env, io, path::Path, process::ExitCode};

const USAGE: &str = "usage: wirecheck [--lossy] CAPTURE...
Says of each capture (pcap or pcapng) which rules its CM messages break.
--lossy: of the files that follow, frames were lost before they were captured.";

/// Most violations of a rule that are shown of a file.
const SHOWN: usize = 20;

/// Prints the lines of a file: of each broken rule with what breaks it before. Returns how many are
/// broken.
fn report(file: &str, verdict: &Verdict, number: &mut usize) -> usize {
    println!("# {file}: {verdict}");
    let mut broken = BTreeMap::<Rule, Vec<_>>::new();
    for violation in &verdict.violations {
        broken.entry(violation.rule).or_default().push(violation);
    }
    for rule in Rule::ALL {
        *number += 1;
        let mut not = "";
        if let Some(violations) = broken.get(rule) {
            not = "not ";
            for violation in violations.iter().take(SHOWN) {
                println!("# {violation}");
            }
        }
        println!("{not}ok {number} - {file}: {rule}: {}", rule.text());
    }
    broken.len()
}

fn run(args: &[String]) -> io::Result<bool> {
    let (mut is_lossy, mut number, mut broken) = (false, 0, 0);
    println!("KTAP version 1");
    for arg in args {
        if arg == "--lossy" {
            is_lossy = true;
            continue;
        }
        let frames = capture::read(Path::new(arg))
            .map_err(|error| io::Error::new(error.kind(), format!("{arg}: {error}")))?;
        let verdict = judge(&frames, is_lossy);
        let name = Path::new(arg).file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        broken += report(&name, &verdict, &mut number);
        // A capture without messages would break no rule either.
        number += 1;
        let not = if verdict.messages.is_empty() {
            "not "
        } else {
            ""
        };
        println!("{not}ok {number} - {name}: has messages");
        broken += usize::from(verdict.messages.is_empty());
    }
    println!("1..{number}");
    Ok(broken == 0 && number > 0)
}

fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    if args.iter().all(|arg| arg.starts_with('-')) {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("wirecheck: {error}");
            ExitCode::from(2)
        }
    }
}
