// SPDX-License-Identifier: GPL-2.0

//! Files as tcpdump writes them.

use crate::{
    capture::{read, Frame},
    judge,
    testing::Scene,
};
use std::{env, fs, path::PathBuf, process};

/// A file that is there for as long as this is.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let name = format!("wirecheck-{}-{name}", process::id());
        let path = env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

fn pcap(frames: &[Frame], magic: u32, part: u64) -> Vec<u8> {
    let mut bytes = Vec::<u8>::new();
    for word in [magic, 0x0004_0002, 0, 0, 262_144, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for frame in frames {
        let len = u32::try_from(frame.bytes.len()).unwrap();
        let time = frame.time + 7_000_000;
        let word = |value: u64| u32::try_from(value).unwrap().to_le_bytes();
        bytes.extend(word(time / 1_000_000));
        bytes.extend(word(time % 1_000_000 * part));
        bytes.extend(len.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(&frame.bytes);
    }
    bytes
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let pad = (4 - body.len() % 4) % 4;
    let len = u32::try_from(body.len() + pad + 12).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &[0; 3][..pad], &len].concat()
}

fn pcapng(frames: &[Frame]) -> Vec<u8> {
    let section = [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    // Ethernet, any length, in nanoseconds.
    let interface = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let mut bytes = [block(0x0a0d_0d0a, &section), block(1, &interface)].concat();
    for frame in frames {
        let time = (frame.time + 7_000_000) * 1000;
        let len = u32::try_from(frame.bytes.len()).unwrap().to_le_bytes();
        let (high, low) = (time >> 32, time & 0xffff_ffff);
        let word = |value: u64| u32::try_from(value).unwrap().to_le_bytes();
        let body = [
            &[0; 4][..],
            &word(high),
            &word(low),
            &len,
            &len,
            &frame.bytes,
        ]
        .concat();
        bytes.extend(block(6, &body));
    }
    bytes
}

#[test]
fn formats() {
    let scene = Scene::new().established().after(1500).disconnected();
    for (name, bytes) in [
        ("micro", pcap(&scene.frames, 0xa1b2_c3d4, 1)),
        ("nano", pcap(&scene.frames, 0xa1b2_3c4d, 1000)),
        ("ng", pcapng(&scene.frames)),
    ] {
        let file = File::new(name, &bytes);
        let frames = read(&file.0).unwrap();
        assert_eq!(frames.len(), scene.frames.len(), "{name}");
        for (read, made) in frames.iter().zip(&scene.frames) {
            assert_eq!(
                (read.number, &read.bytes),
                (made.number, &made.bytes),
                "{name}"
            );
            assert_eq!(read.time, made.time + 7_000_000, "{name}");
        }
        let verdict = judge(&frames, false);
        assert!(verdict.violations.is_empty());
        assert_eq!((verdict.connections, verdict.messages.len()), (1, 5));
    }
}

#[test]
fn a_capture_that_was_cut_short() {
    let scene = Scene::new().established();
    let whole = pcap(&scene.frames, 0xa1b2_c3d4, 1);
    let file = File::new("cut", &whole[..whole.len() - 10]);
    assert_eq!(read(&file.0).unwrap().len(), 2);
    let file = File::new("other", b"this is no capture at all, but some text");
    assert!(read(&file.0).is_err());
}
