// SPDX-License-Identifier: GPL-2.0

//! Writes one test for each scenario.

use std::{env, error::Error, fmt::Write, fs, path::Path};

const SCENARIOS: &str = "../../scenarios";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SCENARIOS}");
    println!("cargo::rerun-if-changed=build.rs");
    let dir = fs::canonicalize(SCENARIOS)?;
    let mut tests = String::new();
    let mut files = fs::read_dir(&dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    for file in files {
        if file.extension().is_none_or(|ext| ext != "cm") {
            continue;
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let name = stem.replace(['-', '.'], "_");
        writeln!(
            tests,
            "#[test]\nfn {name}() {{\n    scenario({file:?});\n}}\n"
        )?;
    }
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("scenarios.rs"), tests)?;
    Ok(())
}
