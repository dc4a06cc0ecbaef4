// SPDX-License-Identifier: GPL-2.0

//! A short run, and proof that a longer one would find something.

use std::time::Duration;

use cmproto::{time, wire::Attribute};
use cmsim::{
    play, play_seed,
    rules::Rule,
    run::{run, Budget},
    script::{Act, Call, Dial, Fate, Moment, Plant, Script, Setup, Side, Step, Verb, Which},
    script_of, shrink, Knobs,
};

/// At most 20 s; a long run is `cmsim --connections 10_000_000`.
#[test]
fn no_rule_is_broken() {
    let budget = Budget {
        connections: Some(200_000),
        time: Some(Duration::from_secs(20)),
        violations: 1,
    };
    let summary = run(0, &budget, &Knobs::default(), 1, |_| {});
    assert_eq!(summary.broken, []);
    let counts = summary.counts;
    assert!(counts.connections > 1_000, "{counts:?}");
    // All that the rules are about has happened.
    for count in [
        counts.established,
        counts.resolved,
        counts.rejected,
        counts.unreachable,
        counts.disconnected,
        counts.lost,
        counts.late,
        counts.duplicated,
        counts.corrupted,
        counts.restarts,
        counts.half_open,
        counts.reused,
        counts.recognized,
        counts.loaded,
    ] {
        assert_ne!(count, 0, "{counts:?}");
    }
}

#[test]
fn a_seed_is_a_script() {
    let knobs = Knobs::default();
    for seed in 0..50 {
        let outcome = play_seed(seed, &knobs, true);
        assert_eq!(play_seed(seed, &knobs, true).trace, outcome.trace);
        let script = script_of(seed, &knobs);
        assert_eq!(play(&script, true).trace, outcome.trace);
    }
}

#[test]
fn nothing_happens_by_itself() {
    let script = Script {
        setup: Setup::PLAIN,
        steps: Vec::new(),
    };
    let outcome = play(&script, false);
    assert_eq!(outcome.violation, None);
    assert_eq!(outcome.counts.messages, 0);
}

/// A DREQ, one with another transaction id and the first one again: each is answered, the last one
/// changes which transaction the answer is for, and that breaks no rule.
#[test]
fn every_disconnect_request_is_answered() {
    let tag = 0;
    let from = 1;
    let network = |from, kind, nth, fate| {
        Step::Network(
            Which {
                tag,
                from,
                kind,
                nth,
            },
            fate,
        )
    };
    let again = Fate::Twice(time::Duration::ZERO, time::Duration::from_millis(25));
    let script = Script {
        setup: Setup {
            early: 0b11,
            linger: true,
            ..Setup::PLAIN
        },
        steps: vec![
            Step::Connect(Call {
                tag,
                at: time::Duration::ZERO,
                from,
                to: 0,
                dial: Dial::PLAIN,
            }),
            Step::Act(Act {
                tag,
                side: Side::Active,
                when: Moment::Connected,
                after: time::Duration::ZERO,
                verb: Verb::Disconnect,
            }),
            network(from, Attribute::Dreq, 0, again),
            network(0, Attribute::Drep, 0, Fate::Lost),
            // A bit of the transaction id.
            network(from, Attribute::Dreq, 1, Fate::Corrupt([95; 3])),
        ],
    };
    let outcome = play(&script, true);
    assert_eq!(outcome.violation, None);
    let sent = |line: &&String| line.contains("node 0 sends DREP");
    let answers = outcome.trace.iter().filter(sent).count();
    assert_eq!(answers, 3, "{:#?}", outcome.trace);
}

/// The rule that is broken first, and the fewest steps that do so. A script that cannot become
/// shorter step by step may still be longer than another one, so three are tried.
fn find(plant: Plant) -> (Rule, usize) {
    let knobs = Knobs {
        plant: Some(plant),
        ..Knobs::default()
    };
    let broken = |seed| Some((seed, play_seed(seed, &knobs, false).violation?.rule));
    let mut found = (0..3_000).filter_map(broken).peekable();
    let Some(&(_, rule)) = found.peek() else {
        panic!("{plant:?} is not found");
    };
    let same = found.filter(|(_, other)| *other == rule).take(3);
    let steps = same.map(|(seed, _)| {
        let short = shrink(&script_of(seed, &knobs), rule);
        let again = play(&short, false).violation;
        assert_eq!(again.map(|v| v.rule), Some(rule));
        short.steps.len()
    });
    (rule, steps.min().unwrap_or(usize::MAX))
}

#[test]
fn planted_bugs_are_found() {
    for (plant, rule) in [
        (Plant::NoDuplicates, Rule::S5),
        (Plant::KeepRemoteIds, Rule::S5),
        (Plant::NoRepTimer, Rule::S3),
        (Plant::NoConfirm, Rule::S4),
        (Plant::Unasked, Rule::S7),
        (Plant::RepeatedEvent, Rule::S3),
        (Plant::SameIds, Rule::S1),
        (Plant::TakeRefused, Rule::S3),
    ] {
        let (found, needed) = find(plant);
        assert_eq!(found, rule, "{plant:?}");
        assert!(needed <= 4, "{plant:?} takes {needed} steps");
    }
}
