// SPDX-License-Identifier: GPL-2.0

//! The fuzzer's program for the guest. `cm-fuzz-guest DIR TEXT SECONDS SEED [first]` searches with the
//! files in DIR, until the first finding perhaps; TEXT is the address of the module's text.
//! `cm-fuzz-guest DIR TEXT replay FILE...` runs these sequences and prints the result of each step.
//! Both write DIR/coverage: the blocks by function.

use cm_fuzz_guest::{
    blocks::Blocks,
    fuzz::{run, Figures, Kernel, Limit},
    guest::Guest,
    sequence::Sequence,
};
use libafl::inputs::Input;
use std::{
    env,
    error::Error,
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// The time between two lines that tell how far the search is.
const INTERVAL: Duration = Duration::from_secs(15);

fn replay(
    mut guest: Guest,
    blocks: &Blocks,
    dir: &Path,
    files: &[String],
) -> Result<bool, Box<dyn Error>> {
    guest.loud = true;
    let mut passed = true;
    let mut reached = vec![false; guest.blocks()];
    for (number, file) in (1..).zip(files) {
        let mut hits = vec![0; guest.blocks()];
        let found = guest.run(&Sequence::from_file(file)?, &mut hits);
        let count = hits.iter().filter(|hit| **hit != 0).count();
        for (reached, hit) in reached.iter_mut().zip(hits) {
            *reached |= hit != 0;
        }
        if let Some(found) = found {
            passed = false;
            println!("# {found}not ok {number} - {file}");
        } else {
            println!("ok {number} - {file}: {count} blocks");
        }
    }
    fs::write(dir.join("coverage"), blocks.report(&reached))?;
    println!("1..{}", files.len());
    Ok(passed)
}

fn figures(figures: &Figures) -> String {
    format!(
        "{} sequences, {} commands, {} messages; {} of {} blocks reached; {} findings",
        figures.executions,
        figures.commands,
        figures.messages,
        figures.blocks_reached(),
        figures.reached.len(),
        figures.findings.len(),
    )
}

fn search(
    mut guest: Guest,
    blocks: &Blocks,
    dir: &Path,
    seconds: u64,
    seed: u64,
    first: bool,
) -> Result<bool, Box<dyn Error>> {
    let limit = Limit {
        time: Duration::from_secs(seconds),
        executions: u64::MAX,
        first,
    };
    let start = Instant::now();
    let mut told = Duration::ZERO;
    let result = run(&mut guest, dir, &limit, seed, |now| {
        if start.elapsed() - told >= INTERVAL {
            told = start.elapsed();
            println!("# {} s: {}", told.as_secs(), figures(now));
        }
    })?;
    fs::write(dir.join("coverage"), blocks.report(&result.reached))?;
    let numbers = [
        start.elapsed().as_secs(),
        result.executions,
        result.commands,
        result.messages,
        result.findings.len() as u64,
    ];
    let line = numbers.map(|number| number.to_string()).join(" ");
    fs::write(dir.join("figures"), line + "\n")?;
    println!("# {}; {} kept", figures(&result), result.kept);
    for (found, sequence) in &result.findings {
        println!(
            "# {}\n# findings/{}",
            found.trim_end(),
            sequence.generate_name(None)
        );
    }
    let results = [
        (
            "blocks of the module are reached",
            result.blocks_reached() > 0,
        ),
        ("nothing is found", result.findings.is_empty()),
    ];
    for (number, (name, passed)) in (1..).zip(results) {
        println!("{} {number} - {name}", if passed { "ok" } else { "not ok" });
    }
    println!("1..{}", results.len());
    Ok(results.iter().all(|(_, passed)| *passed))
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<_> = env::args().skip(1).collect();
    let [dir, text, what, rest @ ..] = words.as_slice() else {
        return Err("usage: cm-fuzz-guest DIR TEXT SECONDS SEED | DIR TEXT replay FILE...".into());
    };
    let dir = Path::new(dir);
    let text = u64::from_str_radix(text.trim_start_matches("0x"), 16)?;
    let list = fs::read_to_string(dir.join("blocks"))?;
    let blocks = || Blocks::parse(&list).ok_or("blocks: not a list of blocks");
    let guest = Guest::new(blocks()?, text, &dir.join("running"))?;
    let passed = if what == "replay" {
        replay(guest, &blocks()?, dir, rest)?
    } else {
        let seed = rest.first().map_or(Ok(0), |seed| seed.parse())?;
        let first = rest.get(1).is_some_and(|word| word == "first");
        search(guest, &blocks()?, dir, what.parse()?, seed, first)?
    };
    fs::remove_file(dir.join("running"))?;
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
