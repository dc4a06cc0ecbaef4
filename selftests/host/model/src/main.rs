// SPDX-License-Identifier: GPL-2.0

//! cmmodel [--quick | --all | NAME...] [--seconds N] [--depth N] [--steps N] [--threads N] [--list]
//!
//! Runs the searches one after another and prints a line for each; the status is 1 if a property
//! does not hold. `--seconds` is for all of them together, `--steps` for each, for
//! the sake of memory: a search that does not fit is said to be incomplete, which is no failure.

use cm_model::{
    bounds::{Bounds, Extent, SEARCHES},
    graph,
    model::Search,
    world::Rules,
};
use stateright::{Checker, Expectation, Model};
use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

/// More states than this are not walked a second time: they would not fit into memory.
const WALKED: usize = 3_000_000;

struct Options {
    searches: Vec<&'static Bounds>,
    seconds: u64,
    depth: Option<usize>,
    steps: usize,
    threads: usize,
}

fn quick() -> impl Iterator<Item = &'static Bounds> {
    SEARCHES
        .iter()
        .filter(|bounds| bounds.extent == Extent::Quick)
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        searches: Vec::new(),
        seconds: 3600,
        depth: None,
        steps: 120_000_000,
        threads: 1,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || {
            args.next()
                .and_then(|text| text.parse::<u64>().ok())
                .ok_or(format!("{arg} needs a number"))
        };
        match arg.as_str() {
            "--seconds" => options.seconds = number()?,
            "--depth" => options.depth = usize::try_from(number()?).ok(),
            "--steps" => options.steps = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--threads" => options.threads = usize::try_from(number()?).unwrap_or(1),
            "--quick" => options.searches.extend(quick()),
            "--all" => options.searches.extend(SEARCHES),
            "--list" => {
                for bounds in SEARCHES {
                    println!("{:18} {}", bounds.name, bounds.about);
                }
            }
            name => options.searches.push(
                SEARCHES
                    .iter()
                    .find(|bounds| bounds.name == name)
                    .ok_or(format!("no search is called {name}; --list names them"))?,
            ),
        }
    }
    Ok(options)
}

/// Runs one search; whether all properties hold.
fn run(bounds: &'static Bounds, options: &Options, patience: Duration) -> bool {
    let start = Instant::now();
    let rules = Arc::new(Rules::new(*bounds));
    let search = Search::new(rules.clone());
    let mut builder = search
        .clone()
        .checker()
        .threads(options.threads)
        .target_state_count(options.steps);
    if let Some(depth) = options.depth {
        builder = builder.target_max_depth(depth);
    }
    let checker = builder.spawn_bfs();
    let mut next = Duration::from_secs(10);
    while !checker.is_done() {
        std::thread::sleep(Duration::from_millis(10));
        if start.elapsed() > patience {
            search.stop();
        }
        if start.elapsed() > next {
            next += Duration::from_secs(10);
            let states = checker.unique_state_count();
            eprintln!(
                "{}: {} s, {states} states",
                bounds.name,
                start.elapsed().as_secs()
            );
        }
    }
    let checker = checker.join();
    let stopped = search.is_stopped();
    // The ways to what was found are gone again.
    search.resume();
    let took = start.elapsed();
    let complete = options.depth.is_none() && !stopped && checker.state_count() < options.steps;
    let (values, messages) = rules.machines.counts();
    println!(
        "{:19} {:>9} states  {:>10} steps  depth {:>3}  {:>5} connection values  {:>3} messages  {:>6.1} s  {}",
        bounds.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        values,
        messages,
        took.as_secs_f64(),
        if complete { "exhaustive" } else { "INCOMPLETE" },
    );
    let mut holds = true;
    let mut found = checker.discoveries();
    for property in search.properties() {
        let path = found.remove(property.name);
        match (property.expectation, path) {
            (Expectation::Sometimes, Some(path)) => {
                let length = path.into_actions().len();
                println!("    {} (after {length} steps)", property.name);
            }
            (Expectation::Sometimes, None) => {
                if complete && property.name.starts_with("reached") {
                    println!("    FAILED  never {}", property.name);
                    holds = false;
                }
            }
            (_, None) => {}
            (_, Some(path)) => {
                println!("    FAILED  {}", property.name);
                holds = false;
                for (world, step) in path.into_vec() {
                    for place in rules.places() {
                        if let Some(view) = rules.view(&world, place) {
                            print!("    [{place} {:?}/{:#x}]", view.state, view.remote_comm_id);
                        } else {
                            print!("    [{place} {:?}]", world.ends[place].state);
                        }
                    }
                    println!();
                    if let Some(step) = step {
                        println!("        {}", search.format_action(&step));
                    }
                }
            }
        }
    }
    if complete && holds && checker.unique_state_count() <= WALKED {
        holds = walk(
            &rules,
            checker.unique_state_count(),
            patience.saturating_sub(took),
        );
    }
    holds
}

/// Checks that all fair runs end; whether they do.
fn walk(rules: &Rules, expected: usize, patience: Duration) -> bool {
    let walk = graph::walk(rules, WALKED, patience);
    if !walk.complete {
        println!("    the second walk was not completed");
        return true;
    }
    if walk.states != expected {
        println!("    FAILED  a second walk finds {} states", walk.states);
        return false;
    }
    if walk.circling > 0 {
        println!(
            "    FAILED  {} states from which fair steps can go on for ever",
            walk.circling
        );
        return false;
    }
    println!(
        "    every fair run ends, the longest after {} steps ({} fair steps in all)",
        walk.longest, walk.fair_edges
    );
    true
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("cmmodel: {error}");
            return ExitCode::from(2);
        }
    };
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut failed = 0;
    for (i, bounds) in options.searches.iter().enumerate() {
        // The remaining time is divided among the remaining searches.
        let left = end.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(options.searches.len() - i).unwrap_or(1);
        failed += usize::from(!run(bounds, &options, share));
    }
    if !options.searches.is_empty() {
        println!("{} searches, {failed} failed", options.searches.len());
    }
    ExitCode::from(u8::from(failed > 0))
}
