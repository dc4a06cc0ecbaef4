// SPDX-License-Identifier: GPL-2.0

//! All inputs that once were a finding, and the seeds, through their targets.

use cm_fuzz_targets::TARGETS;
use std::{fs, path::Path};

/// Every file below `directory` that has a target's name as its own directory; how many.
fn replay(directory: &Path) -> usize {
    let mut count = 0;
    for (name, target) in TARGETS {
        let Ok(entries) = fs::read_dir(directory.join(name)) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            target(&fs::read(&path).unwrap());
            count += 1;
        }
    }
    count
}

#[test]
fn nothing_is_found_again() {
    replay(&Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions"));
}

#[test]
fn the_seeds_are_good() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("seeds");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../rust/cmproto/tests/golden");
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_cm-fuzz-seeds"))
        .arg(&directory)
        .arg(&golden)
        .status()
        .unwrap();
    assert!(status.success());
    assert!(replay(&directory) >= 40);
}

/// Bytes that look like nothing, of every length.
#[test]
fn noise() {
    let mut state = 1u64;
    for round in 0..2_000 {
        let bytes: Vec<u8> = (0..round % 400)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        for (_, target) in TARGETS {
            target(&bytes);
        }
    }
}
