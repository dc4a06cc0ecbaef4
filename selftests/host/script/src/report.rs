// SPDX-License-Identifier: GPL-2.0

//! Finds scripts and reports in the format of the kernel's tests (KTAP).

use crate::{
    parse::Script,
    play,
    world::{Under, World},
};
use std::{fs, io, path::Path, path::PathBuf};

/// A script and its name.
pub struct Scenario {
    pub name: String,
    pub script: Result<Script, String>,
}

/// All scripts in a directory, or one script, whose names contain one of the patterns.
pub fn scenarios(path: &Path, patterns: &[String]) -> io::Result<Vec<Scenario>> {
    let mut files: Vec<PathBuf> = match path.is_dir() {
        true => fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?,
        false => vec![path.into()],
    };
    files.retain(|file| file.extension().is_some_and(|ext| ext == "cm"));
    files.sort();
    let mut scenarios = Vec::new();
    let mut unused: Vec<&String> = patterns.iter().collect();
    for file in files {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        unused.retain(|pattern| !name.contains(pattern.as_str()));
        if patterns.is_empty() || patterns.iter().any(|pattern| name.contains(pattern)) {
            let script = Script::parse(&fs::read_to_string(&file)?);
            scenarios.push(Scenario { name, script });
        }
    }
    // A mistyped pattern would leave out the scenarios that it should choose.
    if let Some(pattern) = unused.first() {
        return Err(io::Error::other(format!(
            "no scenario has \"{pattern}\" in its name"
        )));
    }
    if scenarios.is_empty() {
        return Err(io::Error::other(format!(
            "no scenario in {}",
            path.display()
        )));
    }
    Ok(scenarios)
}

impl Scenario {
    /// Plays it in a world, if it is for this implementation.
    pub fn play<W: World>(
        &self,
        under: Under,
        world: impl FnOnce(&Script) -> io::Result<W>,
    ) -> Outcome {
        let played = match &self.script {
            Ok(script) if !play::is_for(script, under) => return Outcome::Skipped,
            Ok(script) => match world(script) {
                Ok(mut world) => play::play(script, &mut world),
                Err(error) => Err(format!("the device: {error}")),
            },
            Err(error) => Err(error.clone()),
        };
        played.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    }
}

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Skipped,
    Failed(String),
}

/// One KTAP line, and why it failed.
pub fn line(number: usize, name: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => format!("ok {number} - {name}"),
        Outcome::Skipped => format!("ok {number} - {name} # SKIP not for this implementation"),
        Outcome::Failed(why) => {
            let why: String = why.lines().map(|line| format!("# {line}\n")).collect();
            format!("{why}not ok {number} - {name}")
        }
    }
}
