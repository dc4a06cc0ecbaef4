// SPDX-License-Identifier: GPL-2.0

//! Every input in every situation: the next state and the actions.
//!
//! `cargo test -- --ignored --nocapture print_transitions` prints the table for documentation.

use super::{local, received, *};

/// What an input did: the error of a verb, or the actions.
pub(super) type Outcome = Result<Actions, crate::errno::Errno>;

/// An input, its name, and all that it does: `(situations, "next state: actions")`. A state that
/// does not change is "=".
pub(super) struct Row {
    pub(super) input: &'static str,
    pub(super) apply: fn(&mut Connection) -> Outcome,
    pub(super) cells: &'static [(&'static str, &'static str)],
}

/// When inputs happen. No request times out before that, and the time wait is not yet over.
pub(super) fn now() -> Instant {
    at(100)
}

fn message(attribute: Attribute) -> &'static str {
    match attribute {
        Attribute::Req => "REQ",
        Attribute::Mra => "MRA",
        Attribute::Rej => "REJ",
        Attribute::Rep => "REP",
        Attribute::Rtu => "RTU",
        Attribute::Dreq => "DREQ",
        Attribute::Drep => "DREP",
        Attribute::SidrReq => "SIDR_REQ",
        Attribute::SidrRep => "SIDR_REP",
        Attribute::Lap => "LAP",
        Attribute::Apr => "APR",
    }
}

fn action(action: Action) -> String {
    match action {
        Action::Send(out) => format!("send {}", message(out.attribute())),
        Action::Timer => "timer".into(),
        Action::Untrack => "untrack".into(),
        Action::Release => "release".into(),
        Action::Deliver(Event::RejReceived { reason }) => format!("tell RejReceived({})", reason.0),
        Action::Deliver(event) => format!("tell {event:?}"),
        Action::Count(Counter::Duplicate(of)) => format!("duplicate {}", message(of)),
        Action::Count(Counter::Retry(of)) => format!("retry {}", message(of)),
        Action::Count(Counter::Repeat(of)) => format!("repeat {}", message(of)),
        Action::Count(Counter::Unexpected(of)) => format!("unexpected {}", message(of)),
        Action::Count(Counter::Mismatch(of)) => format!("mismatch {}", message(of)),
        Action::Count(Counter::Unsupported(of)) => format!("unsupported {}", message(of)),
    }
}

fn outcome(before: State, after: State, outcome: Outcome) -> String {
    let actions = match outcome {
        Ok(actions) if actions.is_empty() => "nothing".into(),
        Ok(actions) => actions.map(action).collect::<Vec<_>>().join(", "),
        Err(errno) => errno.name().into(),
    };
    if before == after {
        format!("=: {actions}")
    } else {
        format!("{after:?}: {actions}")
    }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    received::ROWS.iter().chain(local::ROWS)
}

#[test]
fn every_input_in_every_situation() {
    for row in rows() {
        for situation in Situation::ALL {
            let name = format!("{situation:?}");
            let cells: Vec<_> = row
                .cells
                .iter()
                .filter(|cell| cell.0.split(' ').any(|s| s == name))
                .collect();
            let [cell] = cells[..] else {
                panic!("{} has {} cells for {name}", row.input, cells.len());
            };
            let mut c = situation.connection();
            let result = (row.apply)(&mut c);
            let actual = outcome(situation.state(), c.state(), result);
            assert_eq!(actual, cell.1, "{} in {name}", row.input);
        }
    }
}

#[test]
fn every_cell_names_situations() {
    for cell in rows().flat_map(|row| row.cells) {
        for name in cell.0.split(' ') {
            assert!(
                Situation::ALL.iter().any(|s| format!("{s:?}") == name),
                "{name}"
            );
        }
    }
}

#[test]
fn an_xrc_target_lets_go_of_its_connection() {
    let mut c = passive_with(
        &Req {
            transport: Transport::Xrc,
            ..peer_req()
        },
        &Limits::DEFAULT,
    );
    let _ = c.accept(&accept_params(), &[], now()).unwrap();
    let _ = receive(&mut c, Message::Rtu(peer_rtu()), now());
    let actions = c.destroy(DestroyCause::User, now());
    assert_eq!(
        outcome(State::Established, c.state(), Ok(actions)),
        "Idle: untrack, release"
    );
}

#[test]
#[ignore = "prints the table for documentation"]
fn print_transitions() {
    for row in rows() {
        println!("{}", row.input);
        for (situations, outcome) in row.cells {
            println!("    {situations}\n        {outcome}");
        }
    }
}
