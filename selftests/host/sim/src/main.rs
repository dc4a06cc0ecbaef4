// SPDX-License-Identifier: GPL-2.0

//! `cmsim`: simulates connections by seed, and prints what breaks a rule as a short script.

use std::{
    env,
    io::{self, IsTerminal, Write},
    panic,
    process::ExitCode,
    thread,
    time::Duration,
};

use cmsim::{
    play, play_seed,
    rules::Rule,
    run::{run, Budget, Summary},
    script::Plant,
    script_of, shrink,
    storm::command,
    Knobs,
};

const USAGE: &str = "\
usage: cmsim [option...]
       cmsim storm [option...]    simulate thousands of nodes (--help)
  --connections N   stop after about N connections
  --seconds S       stop after S seconds (10 if neither is given)
  --jobs J          threads (all processors)
  --first SEED      seed of the first simulation (0)
  --violations N    stop after N seeds that break a rule (1); of each rule one
                    is shrunk
  --undetected N    thousandths of the corrupt messages whose checksum is right (20)
  --plant BUG       put a bug into the nodes, to see that it is found
  --seed SEED       play this seed alone
  --trace           with --seed: print all that happens
  --shrink          with --seed: print a short script that breaks the same rule";

/// The options of the command line.
struct Options {
    budget: Budget,
    jobs: usize,
    first: u64,
    knobs: Knobs,
    seed: Option<u64>,
    trace: bool,
    shrink: bool,
}

fn plant(name: &str) -> Result<Plant, String> {
    let found = Plant::ALL.into_iter().find(|p| format!("{p:?}") == name);
    found.ok_or_else(|| format!("no such bug; there are {:?}", Plant::ALL))
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        budget: Budget {
            connections: None,
            time: None,
            violations: 1,
        },
        jobs: thread::available_parallelism().map_or(1, usize::from),
        first: 0,
        knobs: Knobs::default(),
        seed: None,
        trace: false,
        shrink: false,
    };
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("{option} needs a value"));
        let number = |text: String| {
            let digits = text.replace('_', "");
            digits
                .parse::<u64>()
                .map_err(|_| format!("{text}: no number"))
        };
        match option.as_str() {
            "--connections" => options.budget.connections = Some(number(value()?)?),
            "--seconds" => {
                options.budget.time = Some(Duration::from_secs(number(value()?)?));
            }
            "--jobs" => options.jobs = number(value()?)?.max(1) as usize,
            "--first" => options.first = number(value()?)?,
            "--violations" => options.budget.violations = number(value()?)? as usize,
            "--undetected" => options.knobs.undetected = number(value()?)?.min(1000) as u32,
            "--plant" => options.knobs.plant = Some(plant(&value()?)?),
            "--seed" => options.seed = Some(number(value()?)?),
            "--trace" => options.trace = true,
            "--shrink" => options.shrink = true,
            _ => return Err(USAGE.into()),
        }
    }
    let Budget {
        connections, time, ..
    } = options.budget;
    if connections.is_none() && time.is_none() {
        options.budget.time = Some(Duration::from_secs(10));
    }
    Ok(options)
}

fn progress(summary: &Summary) {
    let mut err = io::stderr();
    if err.is_terminal() {
        let _ = write!(
            err,
            "\r{:>6} s {:>12} connections {:>14} messages {:>4} broken rules ",
            summary.elapsed.as_secs(),
            summary.counts.connections,
            summary.counts.messages,
            summary.broken.len()
        );
    }
}

fn print_summary(summary: &Summary, jobs: usize) {
    for (name, count) in summary.counts.all() {
        println!("{name:<44} {count:>14}");
    }
    println!("broken rules");
    for rule in Rule::ALL {
        let name = format!("  {rule:?} {}", rule.summary());
        println!("{name:<44} {:>14}", summary.broken(rule));
    }
    let seconds = format!("{:.1}", summary.elapsed.as_secs_f64());
    println!("{:<44} {seconds:>14}", "seconds");
    let rate = summary.rate(jobs);
    println!("{:<44} {rate:>14}", "connections per minute and thread");
}

/// Shrinks what a seed breaks, and prints it. False if it breaks nothing.
fn print_shrunk(seed: u64, knobs: &Knobs) -> bool {
    let script = script_of(seed, knobs);
    let Some(violation) = play(&script, false).violation else {
        println!("seed {seed} breaks no rule");
        return false;
    };
    let short = shrink(&script, violation.rule);
    println!("seed {seed} breaks {violation}");
    println!(
        "\n{} of its {} steps are enough:",
        short.steps.len(),
        script.steps.len()
    );
    println!("{short}\n");
    for line in play(&short, true).trace {
        println!("{line}");
    }
    true
}

/// Plays storms.
fn storm(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.collect();
    if matches!(args.as_slice(), [help] if help == "--help") {
        println!("{}", command::USAGE);
        return ExitCode::SUCCESS;
    }
    match command::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("cmsim storm: {line}");
            ExitCode::from(2)
        }
    }
}

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some("storm") {
        return storm(env::args().skip(2));
    }
    let options = match options(env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    // A panic is a broken rule, and is reported as such.
    panic::set_hook(Box::new(|_| {}));
    let broken = if let Some(seed) = options.seed {
        if options.shrink {
            print_shrunk(seed, &options.knobs)
        } else {
            let outcome = play_seed(seed, &options.knobs, options.trace);
            for line in outcome.trace {
                println!("{line}");
            }
            match &outcome.violation {
                Some(violation) => println!("seed {seed} breaks {violation}"),
                None => println!("seed {seed} breaks no rule"),
            }
            outcome.violation.is_some()
        }
    } else {
        let summary = run(
            options.first,
            &options.budget,
            &options.knobs,
            options.jobs,
            progress,
        );
        if io::stderr().is_terminal() {
            eprintln!();
        }
        print_summary(&summary, options.jobs);
        for rule in Rule::ALL {
            let seeds = summary.broken.iter().filter(|broken| broken.1 == rule);
            if let Some((seed, _)) = seeds.min() {
                println!();
                print_shrunk(*seed, &options.knobs);
            }
        }
        !summary.broken.is_empty()
    };
    ExitCode::from(u8::from(broken))
}
