// SPDX-License-Identifier: GPL-2.0

//! The table of all inputs in all situations, with the next state and the actions.
//!
//! `cargo test -- --ignored --nocapture print_transitions` prints the table for documentation.

use super::{local, received, *};
use crate::testing::{text, Text};
use core::fmt::{self, Write};

/// The result of an input: the error of a verb, or the actions.
pub(super) type Outcome = Result<Actions, crate::errno::Errno>;

/// An input, its name, and its effects: `(situations, "next state: actions")`. A state that does
/// not change is "=".
pub(super) struct Row {
    pub(super) input: &'static str,
    pub(super) apply: fn(&mut Connection) -> Outcome,
    pub(super) cells: &'static [(&'static str, &'static str)],
}

/// Returns the time of the inputs, at which no request has timed out and no time wait is over.
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

fn write_action(out: &mut Text, action: Action) -> fmt::Result {
    match action {
        Action::Send(sent) => write!(out, "send {}", message(sent.attribute())),
        Action::SendUnasked(sent) => write!(out, "send unasked {}", message(sent.attribute())),
        Action::Timer => out.write_str("timer"),
        Action::ReleaseRemoteIds => out.write_str("release ids"),
        Action::Release => out.write_str("release"),
        Action::EndLap { is_loaded: true } => out.write_str("load path"),
        Action::EndLap { is_loaded: false } => out.write_str("drop path"),
        Action::Deliver(Event::RejReceived { reason }) => {
            write!(out, "deliver RejReceived({})", reason.0)
        }
        Action::Deliver(event) => write!(out, "deliver {event:?}"),
        Action::Count(Counter::Duplicate(of)) => write!(out, "duplicate {}", message(of)),
        Action::Count(Counter::Retry(of)) => write!(out, "retry {}", message(of)),
        Action::Count(Counter::Repeat(of)) => write!(out, "repeat {}", message(of)),
        Action::Count(Counter::Unexpected(of)) => write!(out, "unexpected {}", message(of)),
        Action::Count(Counter::Mismatch(of)) => write!(out, "mismatch {}", message(of)),
        Action::Count(Counter::Unsupported(of)) => write!(out, "unsupported {}", message(of)),
    }
}

fn write_outcome(out: &mut Text, before: State, after: State, outcome: Outcome) -> fmt::Result {
    if before == after {
        out.write_str("=: ")?;
    } else {
        write!(out, "{after:?}: ")?;
    }
    match outcome {
        Ok(actions) if actions.is_empty() => out.write_str("nothing"),
        Ok(actions) => {
            for (n, action) in actions.enumerate() {
                if n > 0 {
                    out.write_str(", ")?;
                }
                write_action(out, action)?;
            }
            Ok(())
        }
        Err(errno) => out.write_str(errno.name()),
    }
}

/// Returns an outcome in the format of the table.
fn outcome(before: State, after: State, outcome: Outcome) -> Text {
    let mut out = Text::default();
    write_outcome(&mut out, before, after, outcome).unwrap();
    out
}

fn rows() -> impl Iterator<Item = &'static Row> {
    received::ROWS.iter().chain(local::ROWS)
}

#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cm_table)
)]
mod tests {
    use super::*;

    #[test]
    fn every_input_in_every_situation() {
        for row in rows() {
            for situation in Situation::ALL {
                let name = &*text(format_args!("{situation:?}"));
                let is_for = |cell: &&(&str, &str)| cell.0.split(' ').any(|s| s == name);
                assert_eq!(
                    (row.input, name, row.cells.iter().filter(is_for).count()),
                    (row.input, name, 1)
                );
                let Some(cell) = row.cells.iter().find(is_for) else {
                    continue;
                };
                let mut c = situation.connection();
                let result = (row.apply)(&mut c);
                let actual = outcome(situation.state(), c.state(), result);
                assert_eq!((row.input, name, &*actual), (row.input, name, cell.1));
            }
        }
    }

    #[test]
    fn every_cell_names_situations() {
        for cell in rows().flat_map(|row| row.cells) {
            for name in cell.0.split(' ') {
                let is_a_name = Situation::ALL
                    .iter()
                    .any(|s| *text(format_args!("{s:?}")) == *name);
                assert_eq!((name, is_a_name), (name, true));
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
            *outcome(State::Established, c.state(), Ok(actions)),
            *"Idle: release ids, release"
        );
    }

    #[test]
    #[cfg(test)]
    #[ignore = "prints the table for documentation"]
    fn print_transitions() {
        for row in rows() {
            println!("{}", row.input);
            for (situations, outcome) in row.cells {
                println!("    {situations}\n        {outcome}");
            }
        }
    }
}
