// SPDX-License-Identifier: GPL-2.0

//! `cmproto::node` alone decides about a message. The node of the simulator and the script player,
//! and the model carry that out, and have no opinion of their own.

use std::{fs, path::Path};

/// The sources of the programs that have nodes.
const NODES: [&str; 4] = ["node/src", "sim/src", "script/src/host", "model/src"];

/// The words that a decision about a message needs, and the files that have them all the same, for
/// another reason.
///
/// The compiler keeps them from more: there is no way to make an answer but to ask `cmproto::node`.
const WORDS: [(&str, &[&str]); 14] = [
    // These find the connection that a message is for.
    (".is_for(", &[]),
    (".is_same_req(", &[]),
    ("remote_comm_id ==", &["script/src/host/seen.rs"]),
    ("timed_out_guid", &[]),
    (".wants_rep()", &["model/src/machine.rs"]),
    // Answers that no connection gives.
    ("Rej {", &[]),
    ("Drep {", &[]),
    ("refusal(", &[]),
    ("RejMessage", &[]),
    ("Status::UNSUPPORTED", &[]),
    // The reasons of refusals, except those that users give.
    ("Reason::STALE_CONN", &["script/src/host/seen.rs"]),
    ("Reason::INVALID", &[]),
    ("Reason::NO_RESOURCES", &[]),
    ("Dropped", &[]),
];

/// The calls that ask the crate about a message.
const CALLS: [&str; 5] = [
    "node::route(",
    "node::judge(",
    "node::claim_rep(",
    "node::request(",
    "node::sidr_request(",
];

fn sources(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path.to_str().unwrap().to_owned(), text));
        }
    }
}

#[test]
fn nothing_but_the_crate_decides_about_a_message() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for dir in NODES {
        sources(&host.join(dir), &mut files);
    }
    assert!(files.len() > 10, "{files:?}");
    for (file, text) in &files {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for (word, places) in WORDS {
                let is_known = places.iter().any(|place| file.ends_with(place));
                assert!(
                    is_known || !code.contains(word),
                    "{file}:{}: {word} is for cmproto::node to say",
                    number + 1
                );
            }
        }
    }
    // The node and the model ask the crate about each kind of message, and nobody else does.
    for dir in NODES {
        for call in CALLS {
            let is_asked =
                |(file, text): &(String, String)| file.contains(dir) && text.contains(call);
            // The model's connections resolve no service.
            let is_to_ask =
                dir == "node/src" || (dir == "model/src" && call != "node::sidr_request(");
            assert_eq!(files.iter().any(is_asked), is_to_ask, "{dir} and {call}");
        }
    }
}
