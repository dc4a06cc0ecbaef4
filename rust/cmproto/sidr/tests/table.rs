// SPDX-License-Identifier: GPL-2.0

//! The table of all inputs in all situations, with the next state and the actions.

use super::*;

type Outcome = Result<Actions, Errno>;

/// An input, its name, and its effects: `(situations, "next state: actions")`. A state that does
/// not change is "=".
struct Row {
    input: &'static str,
    apply: fn(&mut Resolution) -> Outcome,
    cells: &'static [(&'static str, &'static str)],
}

/// Returns the time of the inputs, at which no SIDR_REQ has timed out and no SIDR_REP is forgotten.
fn now() -> Instant {
    at(100)
}

fn message(attribute: Attribute) -> &'static str {
    match attribute {
        Attribute::SidrReq => "SIDR_REQ",
        Attribute::SidrRep => "SIDR_REP",
        _ => "another message",
    }
}

fn action(action: Action) -> String {
    match action {
        Action::Send(out) => format!("send {}", message(out.attribute())),
        Action::Timer => "timer".into(),
        Action::ReleaseRequest => "release ids".into(),
        Action::Release => "release".into(),
        Action::Deliver(Event::RepReceived { status }) => {
            format!("deliver RepReceived({})", status.0)
        }
        Action::Deliver(Event::ReqError) => "deliver ReqError".into(),
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

fn success() -> ReplyParams {
    ReplyParams::success(0x11, 0x0123_4567)
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row {
        input: "SIDR_REP, success",
        apply: |r| Ok(r.receive(&Message::SidrRep(answer(Status::SUCCESS)), now())),
        cells: &[
            ("ReqSent", "Idle: timer, deliver RepReceived(0), release"),
            ("ReqRcvd Answered", "=: mismatch SIDR_REP"),
            ("Fresh Resolved Forgotten", "=: unexpected SIDR_REP"),
        ],
    },
    Row {
        input: "SIDR_REP, reject",
        apply: |r| Ok(r.receive(&Message::SidrRep(answer(Status::REJECT)), now())),
        cells: &[
            ("ReqSent", "Idle: timer, deliver RepReceived(2), release"),
            ("ReqRcvd Answered", "=: mismatch SIDR_REP"),
            ("Fresh Resolved Forgotten", "=: unexpected SIDR_REP"),
        ],
    },
    Row {
        input: "SIDR_REP with a status unheard of",
        apply: |r| Ok(r.receive(&Message::SidrRep(answer(Status(255))), now())),
        cells: &[
            ("ReqSent", "Idle: timer, deliver RepReceived(255), release"),
            ("ReqRcvd Answered", "=: mismatch SIDR_REP"),
            ("Fresh Resolved Forgotten", "=: unexpected SIDR_REP"),
        ],
    },
    Row {
        input: "SIDR_REP to another question",
        apply: |r| {
            let rep = SidrRep { request_id: ID ^ 1, ..answer(Status::SUCCESS) };
            Ok(r.receive(&Message::SidrRep(rep), now()))
        },
        cells: &[
            ("Fresh ReqSent ReqRcvd Answered Resolved Forgotten", "=: mismatch SIDR_REP"),
        ],
    },
    Row {
        input: "SIDR_REQ, by mistake",
        apply: |r| Ok(r.receive(&Message::SidrReq(question()), now())),
        cells: &[
            ("Fresh ReqSent ReqRcvd Answered Resolved Forgotten", "=: mismatch SIDR_REQ"),
        ],
    },
    Row {
        input: "its SIDR_REQ again",
        apply: |r| Ok(r.duplicate_req(now())),
        cells: &[
            ("Answered", "=: duplicate SIDR_REQ, send SIDR_REP, repeat SIDR_REP"),
            ("Fresh ReqSent ReqRcvd Resolved Forgotten", "=: duplicate SIDR_REQ"),
        ],
    },
    Row {
        input: "resolve",
        apply: |r| r.resolve(&ResolveParams::new(SERVICE, 0xffff), &[1; 216], now()),
        cells: &[
            ("Fresh", "SidrReqSent: send SIDR_REQ, timer"),
            ("ReqSent ReqRcvd Answered Resolved Forgotten", "=: EINVAL"),
        ],
    },
    Row {
        input: "resolve with too much private data",
        apply: |r| r.resolve(&ResolveParams::new(SERVICE, 0xffff), &[1; 217], now()),
        cells: &[("Fresh ReqSent ReqRcvd Answered Resolved Forgotten", "=: EINVAL")],
    },
    Row {
        input: "reply",
        apply: |r| r.reply(&success(), &[1; 72], &[2; 136], now()),
        cells: &[
            ("ReqRcvd", "Idle: send SIDR_REP, timer"),
            ("Fresh ReqSent Answered Resolved Forgotten", "=: EINVAL"),
        ],
    },
    Row {
        input: "reply with too much information",
        apply: |r| r.reply(&success(), &[1; 73], &[], now()),
        cells: &[("Fresh ReqSent ReqRcvd Answered Resolved Forgotten", "=: EINVAL")],
    },
    Row {
        input: "reply with too much private data",
        apply: |r| r.reply(&success(), &[], &[2; 137], now()),
        cells: &[("Fresh ReqSent ReqRcvd Answered Resolved Forgotten", "=: EINVAL")],
    },
    Row {
        input: "destroy",
        apply: |r| Ok(r.destroy(DestroyCause::User, now())),
        cells: &[
            ("Fresh", "=: release"),
            ("ReqSent", "Idle: timer, release"),
            ("ReqRcvd", "Idle: send SIDR_REP, timer"),
            ("Answered Resolved Forgotten", "=: nothing"),
        ],
    },
    Row {
        input: "destroy for want of memory",
        apply: |r| Ok(r.destroy(DestroyCause::NoMemory, now())),
        cells: &[
            ("Fresh", "=: release"),
            ("ReqSent", "Idle: timer, release"),
            ("ReqRcvd", "Idle: send SIDR_REP, release ids, release"),
            ("Answered Resolved Forgotten", "=: nothing"),
        ],
    },
    Row {
        input: "time before the deadline",
        apply: |r| Ok(r.timeout(now())),
        cells: &[("Fresh ReqSent ReqRcvd Answered Resolved Forgotten", "=: nothing")],
    },
    Row {
        input: "deadline",
        apply: |r| Ok(r.timeout(r.deadline().unwrap_or(now()))),
        cells: &[
            ("ReqSent", "=: send SIDR_REQ, retry SIDR_REQ, timer"),
            ("Answered", "=: timer, release ids, release"),
            ("Fresh ReqRcvd Resolved Forgotten", "=: nothing"),
        ],
    },
    Row {
        input: "last deadline",
        apply: |r| {
            let mut last = Actions::none();
            while let Some(deadline) = r.deadline() {
                last = r.timeout(deadline);
            }
            Ok(last)
        },
        cells: &[
            ("ReqSent", "Idle: timer, deliver ReqError, release"),
            ("Answered", "=: timer, release ids, release"),
            ("Fresh ReqRcvd Resolved Forgotten", "=: nothing"),
        ],
    },
];

#[test]
fn every_input_in_every_situation() {
    for row in ROWS {
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
            let mut r = situation.resolution();
            let before = r.clone();
            let result = (row.apply)(&mut r);
            assert!(
                result.is_ok() || r == before,
                "{} in {name} failed, and changed something",
                row.input
            );
            let actual = outcome(situation.state(), r.state(), result);
            assert_eq!(actual, cell.1, "{} in {name}", row.input);
        }
    }
}

#[test]
fn every_cell_names_situations() {
    for cell in ROWS.iter().flat_map(|row| row.cells) {
        for name in cell.0.split(' ') {
            assert!(
                Situation::ALL.iter().any(|s| format!("{s:?}") == name),
                "{name}"
            );
        }
    }
}

#[test]
#[ignore = "prints the table for documentation"]
fn print_sidr() {
    for row in ROWS {
        println!("{}", row.input);
        for (situations, outcome) in row.cells {
            println!("    {situations}\n        {outcome}");
        }
    }
}
