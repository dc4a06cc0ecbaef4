// SPDX-License-Identifier: GPL-2.0

//! Every scenario against the protocol crate, one test each.

use cm_script::{host, parse::Script, play, world::Under};

fn scenario(path: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let script = Script::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    if play::is_for(&script, Under::Host) {
        let mut node = host::Node::new(host::names(script.is_ipv6));
        play::play(&script, &mut node).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));
