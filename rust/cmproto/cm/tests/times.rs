// SPDX-License-Identifier: GPL-2.0

//! Times of sends and of the end of requests, as in the documentation.
//!
//! The table in the documentation is what the test `print_times` prints, which runs only if it is
//! asked for.

use super::*;
use crate::cm::{RetryPolicy, Tunable, Tuning};
use core::fmt::Write;

/// The behaviour of the peer.
#[derive(Clone, Copy)]
enum Peer {
    /// The peer does nothing.
    Silent,
    /// The peer answers each copy of the request, after 200 microseconds, with an MRA that asks for
    /// this time code.
    Waits(u8),
    /// The peer answers each copy but the first with an MRA that asks for this time code.
    WaitsLater(u8),
}

/// Returns the default tuning, with these values set.
fn tuned(values: &[(Tunable, u32)]) -> Tuning {
    let mut tuning = Tuning::NONE;
    for &(tunable, value) in values {
        tuning.set(tunable, value).unwrap();
    }
    tuning
}

/// Returns the policy of a request to a peer of which nothing is known.
fn policy(tuning: &Tuning) -> RetryPolicy {
    match tuning.get(Tunable::EarlyRetry) {
        0 => RetryPolicy::Classic,
        ms => RetryPolicy::After(Duration::from_millis(ms.into())),
    }
}

/// Returns an active side that has sent its REQ at time 0.
fn asked(tuning: &Tuning) -> Connection {
    let mut connection = active();
    connection.set_limits(&tuning.limits());
    connection.set_retry_policy(policy(tuning));
    let params = ConnectParams {
        remote_cm_response_timeout: tuning.response_timeout().get(),
        max_cm_retries: tuning.max_retries(),
        ..connect_params()
    };
    let _ = connection.connect(&params, &[], at(0)).unwrap();
    connection
}

/// Runs `connection` until it gives up. Returns the times of the sends of `message` after the first
/// one, and the events with their times, in microseconds.
fn course(
    mut connection: Connection,
    message: Outgoing,
    peer: Peer,
) -> (Vec<u64>, Vec<(u64, Event)>) {
    let (mut sends, mut told) = (Vec::new(), Vec::new());
    let mra = |connection: &mut Connection, code, now: Instant| {
        let mra = Message::Mra(peer_mra(MraMessage::Req, code));
        let _ = receive(connection, mra, now + Duration::from_micros(200));
    };
    if let Peer::Waits(code) = peer {
        mra(&mut connection, code, at(0));
    }
    while let Some(now) = connection.deadline() {
        for action in connection.timeout(now) {
            match action {
                Action::Send(sent) | Action::SendUnasked(sent) if sent == message => {
                    sends.push(now.as_micros());
                }
                Action::Deliver(event) => told.push((now.as_micros(), event)),
                _ => {}
            }
        }
        if let (Peer::Waits(code) | Peer::WaitsLater(code), Some(last)) = (peer, sends.last()) {
            if *last == now.as_micros() {
                mra(&mut connection, code, now);
            }
        }
    }
    (sends, told)
}

/// Returns a time in seconds, with at most two decimals.
fn seconds(micros: u64) -> String {
    let text = format!("{:.2}", micros as f64 / 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the row of a request: its name, the times of its retries, and the events with their
/// times.
fn row(name: &str, (sends, told): (Vec<u64>, Vec<(u64, Event)>)) -> String {
    const SHOWN: usize = 11;
    let shown = sends.iter().take(SHOWN);
    let mut again: Vec<_> = shown.map(|at| seconds(*at)).collect();
    if sends.len() > SHOWN {
        again.push(format!("… {}", seconds(*sends.last().unwrap())));
    }
    let mut text = format!("{name} | {} | {} | ", sends.len(), again.join(" "));
    for (at, event) in told {
        write!(text, "{event:?} {} ", seconds(at)).unwrap();
    }
    text.trim_end().to_owned()
}

fn rows() -> Vec<String> {
    let defaults = tuned(&[]);
    let classic = tuned(&[(Tunable::EarlyRetry, 0)]);
    let deadline = tuned(&[(Tunable::Deadline, 500)]);
    let once = tuned(&[(Tunable::MaxRetries, 0)]);
    let parking = Connection::PARKING_TIMEOUT;
    // The service timeout is that of Linux.
    let service = Connection::SERVICE_TIMEOUT;
    let req = |tuning, peer| course(asked(tuning), Outgoing::Req, peer);
    let silent = |connection: Connection, message| course(connection, message, Peer::Silent);
    let mut rep = passive();
    rep.set_retry_policy(policy(&defaults));
    let _ = rep.accept(&accept_params(), &[], at(0)).unwrap();
    let mut dreq = Situation::EstablishedActive.connection();
    dreq.set_retry_policy(policy(&defaults));
    let _ = dreq.disconnect(&[], at(0)).unwrap();
    vec![
        row("REQ, unanswered", req(&defaults, Peer::Silent)),
        row("the same, EARLY_RETRY 0, as C", req(&classic, Peer::Silent)),
        row("the same, DEADLINE 500", req(&deadline, Peer::Silent)),
        row("the same, MAX_RETRIES 0", req(&once, Peer::Silent)),
        row(
            "REQ, each copy answered with an MRA of Linux",
            req(&defaults, Peer::WaitsLater(service)),
        ),
        row(
            "REQ that this module parks",
            req(&defaults, Peer::Waits(parking)),
        ),
        row(
            "the same, EARLY_RETRY 0, as C",
            req(&classic, Peer::Waits(parking)),
        ),
        row(
            "the same, DEADLINE 500",
            req(&deadline, Peer::Waits(parking)),
        ),
        row("REP, unanswered", silent(rep, Outgoing::Rep)),
        row("DREQ, unanswered", silent(dreq, Outgoing::Dreq)),
    ]
}

/// Tests that each request ends with an event, and that it is not sent after the event.
#[test]
fn each_request_ends_with_what_is_told() {
    for row in rows() {
        assert!(row.contains("Error "), "{row}");
    }
}

#[test]
#[ignore = "prints"]
fn print_times() {
    for row in rows() {
        println!("    {row}");
    }
}
