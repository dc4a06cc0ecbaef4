// SPDX-License-Identifier: GPL-2.0

//! cm-fuzz-seeds DIRECTORY [GOLDEN]: writes the inputs that fuzzing starts from into
//! DIRECTORY/TARGET/. GOLDEN is a directory of recorded datagrams (NAME.hex); without it there
//! are only the inputs that are made here.

use std::{env, fs, io, path::Path, process::ExitCode};

/// Bytes as hexadecimal digits; lines that start with # are comments.
fn parse(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::chars)
        .filter_map(|c| c.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    digits
        .chunks_exact(2)
        .map(|two| two[0] << 4 | two[1])
        .collect()
}

/// Scripts of the sequence targets: the usual lives of a connection.
const PAIRS: &[&[u8]] = &[
    // Accept, REP, RTU, disconnect, DREQ, DREP, and the end.
    &[
        0x40, 0x03, 1, 0x50, 0, 0x04, 1, 0x51, 0, 0x08, 1, 0x51, 0, 0x0b, 1, 0x50, 0, 0xe0, 0xe1,
    ],
    // The user takes its time.
    &[
        0x40, 0x0d, 9, 0x51, 9, 0x50, 0, 0x03, 1, 0x50, 0, 0x0c, 9, 0x50, 0, 0x51, 0, 0x04, 1,
    ],
    // Rejected on either side.
    &[0x40, 0x07, 1, 0x50, 0],
    &[0x40, 0x03, 1, 0x50, 0, 0x06, 1, 0x51, 0],
    // Nobody answers.
    &[0xff, 0xe0, 0xe0, 0xe0, 0xe0, 0xe0, 0xe0, 0xe0, 0xe0, 0xe0],
    // Both disconnect at once.
    &[
        0x40, 0x03, 1, 0x50, 0, 0x04, 1, 0x51, 0, 0x08, 1, 0x09, 1, 0x50, 0, 0x51, 0,
    ],
];

fn write(directory: &Path, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let directory = directory.join(target);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(name), bytes)
}

fn run(directory: &Path, golden: Option<&Path>) -> io::Result<usize> {
    let mut count = 0;
    for (i, script) in PAIRS.iter().enumerate() {
        write(directory, "pair", &format!("life-{i}"), script)?;
        count += 1;
    }
    for family in [2u16, 10, 27] {
        let mut addr = vec![128];
        addr.extend(family.to_ne_bytes());
        addr.resize(129, 1);
        let twice = addr.repeat(2);
        write(directory, "sockaddr", &format!("family-{family}"), &twice)?;
        count += 1;
    }
    for command in 0..25u8 {
        let mut request = vec![command, 0, 0, 0, 255, 0, 255, 0];
        request.resize(320, command);
        write(directory, "ucma", &format!("command-{command}"), &request)?;
        count += 1;
    }
    let Some(golden) = golden else {
        return Ok(count);
    };
    for entry in fs::read_dir(golden)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "hex") {
            continue;
        }
        let bytes = parse(&fs::read_to_string(&path)?);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let [_, attribute] = bytes[16..18] else {
            continue;
        };
        write(directory, "mad", &name, &bytes)?;
        let kind = attribute.wrapping_sub(0x10);
        let data = &bytes[24..];
        let len = u8::try_from(data.len()).unwrap_or(u8::MAX);
        if kind == 0 {
            write(directory, "ip_header", &name, &bytes[164..])?;
            let mut script = vec![1, len];
            script.extend(data);
            script.extend([0x01, 1, 0x64, 0, 0x04, 1]);
            write(directory, "connection", &name, &script)?;
        } else if kind == 7 || kind == 8 {
            let mut script = vec![kind & 1, len];
            script.extend(data);
            write(directory, "resolution", &name, &script)?;
        } else {
            let mut script = vec![0, 0, 1, 0x60 | kind, len];
            script.extend(data);
            write(directory, "connection", &name, &script)?;
        }
        count += 2;
    }
    Ok(count)
}

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    let Some(directory) = args.next() else {
        eprintln!("usage: cm-fuzz-seeds DIRECTORY [GOLDEN]");
        return ExitCode::from(2);
    };
    let golden = args.next();
    match run(Path::new(&directory), golden.as_deref().map(Path::new)) {
        Ok(count) => {
            println!("{count} seeds");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cm-fuzz-seeds: {error}");
            ExitCode::FAILURE
        }
    }
}
