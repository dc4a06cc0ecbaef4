// SPDX-License-Identifier: GPL-2.0

//! The connections of a trace, and the steps of each.

use super::{
    event,
    parts::{name, Parts, Seen, REJ},
};

/// The end that has asked for the connection.
pub const CLIENT: usize = 0;
/// The end that was asked.
pub const SERVER: usize = 1;

/// A connection, or an attempt at one.
#[derive(Debug, Default)]
pub struct Connection {
    /// The addresses of client and server, as far as an event tells them.
    pub addresses: [Option<String>; 2],
    /// An end is on this host, as an event of it shows.
    pub is_here: [bool; 2],
    pub steps: Vec<Step>,
}

/// A step of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The end that sends the message, or that the note is about.
    pub end: usize,
    /// The times when a message was sent and received. A note has one time, that of its end.
    pub times: [Option<u64>; 2],
    /// The name of a message.
    pub message: Option<&'static str>,
    /// The event that happened, or a remark about the message.
    pub note: String,
}

impl Step {
    /// Returns the time when it began.
    pub fn time(&self) -> u64 {
        self.times.into_iter().flatten().min().unwrap_or(0)
    }

    /// Tells whether the message was lost, as far as that can be seen here.
    pub fn is_lost(&self, connection: &Connection) -> bool {
        self.message.is_some() && self.times[1].is_none() && connection.is_here[1 - self.end]
    }
}

impl Parts<'_> {
    /// Returns the connection with these events.
    pub(super) fn connection(&mut self, events: &[usize]) -> Option<Connection> {
        let mut connection = Connection::default();
        let mut ports: [Option<&str>; 2] = [None; 2];
        // The messages that were sent: transaction, attribute, step.
        let mut sent: Vec<(u64, u16, usize)> = Vec::new();
        let mut received: Vec<(u64, u16, Step)> = Vec::new();
        let parts: Vec<usize> = events.iter().map(|at| self.seen[*at].1).collect();
        let only = parts.iter().find_map(|part| self.role(*part));
        for (at, part) in events.iter().zip(&parts) {
            let time = self.seen[*at].0;
            match &self.seen[*at].2 {
                Seen::Note(note) => {
                    let note = note.clone();
                    let end = self.role(*part).or(only)?;
                    connection.is_here[end] = true;
                    if let Some(id) = self.ids.get(part) {
                        connection.addresses[end] = Some(id.src.to_owned());
                        connection.addresses[1 - end].get_or_insert(id.dst.to_owned());
                    }
                    connection.steps.push(Step {
                        end,
                        times: [Some(time), None],
                        message: None,
                        note,
                    });
                }
                Seen::Message {
                    is_sent,
                    port,
                    tid,
                    attribute,
                    by,
                } => {
                    let (is_sent, port, tid, attribute, by) =
                        (*is_sent, *port, *tid, *attribute, *by);
                    let before = sent
                        .iter()
                        .rev()
                        .find(|(of, kind, _)| (*of, *kind) == (tid, attribute))
                        .map(|(.., step)| connection.steps[*step].end);
                    let at_port = ports
                        .iter()
                        .position(|known| *known == Some(port))
                        .filter(|_| ports[0] != ports[1]);
                    let own = |end: usize| if is_sent { end } else { 1 - end };
                    let known = match name(attribute) {
                        "REQ" | "RTU" | "SIDR_REQ" => Some(CLIENT),
                        "REP" | "SIDR_REP" => Some(SERVER),
                        _ => None,
                    };
                    let end = by
                        .and_then(|by| self.role(by))
                        .or(known)
                        .or(before)
                        .or(at_port.map(own))
                        .or(only.map(own))
                        .unwrap_or(SERVER);
                    let here = own(end);
                    connection.is_here[here] = true;
                    ports[here] = Some(port);
                    let message = Some(name(attribute));
                    if is_sent {
                        let note = match before {
                            Some(_) => "again".into(),
                            None => by
                                .filter(|_| attribute == REJ)
                                .and_then(|by| self.reasons.get(&by).cloned())
                                .unwrap_or_default(),
                        };
                        sent.push((tid, attribute, connection.steps.len()));
                        connection.steps.push(Step {
                            end,
                            times: [Some(time), None],
                            message,
                            note,
                        });
                    } else {
                        received.push((
                            tid,
                            attribute,
                            Step {
                                end,
                                times: [None, Some(time)],
                                message,
                                note: String::new(),
                            },
                        ));
                    }
                }
            }
        }
        // Copies are alike. The last one that was sent before has been received, so that those are
        // lost that nobody received.
        for (tid, attribute, step) in received.into_iter().rev() {
            let of = sent.iter().rev().find(|(of, kind, at)| {
                let one = &connection.steps[*at];
                (*of, *kind, one.end, one.times[1]) == (tid, attribute, step.end, None)
                    && one.times[0] <= step.times[1]
            });
            match of {
                Some((.., at)) => connection.steps[*at].times[1] = step.times[1],
                None => connection.steps.push(step),
            }
        }
        connection.steps.sort_by_key(Step::time);
        // A message of a peer elsewhere is repeated if another copy has come before.
        for at in 1..connection.steps.len() {
            let (before, rest) = connection.steps.split_at_mut(at);
            let is_copy = |one: &Step| one.message == rest[0].message && one.end == rest[0].end;
            if rest[0].times[0].is_none() && before.iter().any(is_copy) {
                rest[0].note = "again".into();
            }
        }
        let is_one = |step: &Step| step.message.is_some() || !step.note.starts_with("destroy");
        connection.steps.iter().any(is_one).then_some(connection)
    }
}

/// Returns the connections of the lines of a trace.
pub fn connections(text: &str) -> Vec<Connection> {
    let mut parts = Parts::default();
    let mut events: Vec<event::Event<'_>> = text.lines().filter_map(event::parse).collect();
    events.sort_by_key(|event| event.time);
    for event in events {
        parts.take(event);
    }
    parts.connections()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: &str = include_str!("../../traces/lost.trace");
    const REFUSED: &str = include_str!("../../traces/refused.trace");
    const SLOW: &str = include_str!("../../traces/slow.trace");

    /// Returns the messages of the only connection, with what is said of them.
    fn messages(text: &str) -> Vec<String> {
        let [connection] = &connections(text)[..] else {
            panic!("{:?}", connections(text));
        };
        let messages = connection.steps.iter().filter_map(|step| {
            let [from, note] = [["client", "server"][step.end], &step.note];
            let lost = if step.is_lost(connection) {
                " lost"
            } else {
                ""
            };
            Some(format!("{from} {} {note}{lost}", step.message?))
        });
        messages.collect()
    }

    /// Leaves out the lines that have one of these texts.
    fn without(text: &str, what: &[&str]) -> String {
        let stays = |line: &&str| !what.iter().any(|what| line.contains(what));
        text.lines().filter(stays).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_copy_that_came_is_the_last_one() {
        let want = [
            "client REQ ",
            "server REP  lost",
            "server REP again",
            "client RTU ",
            "client DREQ ",
            "server DREP ",
        ];
        assert_eq!(messages(LOST), want);
        let [connection] = &connections(LOST)[..] else {
            panic!();
        };
        let addresses = ["10.0.0.1:54986", "10.0.0.2:7302"];
        assert_eq!(
            connection.addresses,
            addresses.map(|address| Some(address.into()))
        );
        assert_eq!(connection.is_here, [true, true]);
    }

    #[test]
    fn a_refusal_has_its_reason() {
        assert_eq!(messages(REFUSED), ["client REQ ", "server REJ "]);
        let notes = connections(REFUSED).remove(0).steps;
        assert!(notes
            .iter()
            .any(|step| step.note == "REJECTED: invalid service ID (8)"));
    }

    #[test]
    fn one_end_is_enough() {
        let server = [
            "src=10.0.0.2",
            " 1:1 QP1",
            "icm_send_rep",
            "icm_send_drep",
            "icm_send_dup_req",
        ];
        let client = [
            "src=10.0.0.1",
            " 0:1 QP1",
            "icm_send_req",
            "icm_send_rtu",
            "icm_send_dreq",
        ];
        let want = [
            "client REQ ",
            "client REQ again",
            "server MRA ",
            "server REP ",
            "client RTU ",
            "client DREQ ",
            "server DREP ",
        ];
        for (other, is_here) in [(&server[..], [true, false]), (&client, [false, true])] {
            let text = without(SLOW, other);
            assert_eq!(messages(&text), want);
            let connection = connections(&text).remove(0);
            assert_eq!(connection.is_here, is_here);
            assert_eq!(
                connection.addresses[SERVER].as_deref(),
                Some("10.0.0.2:7303")
            );
        }
    }

    #[test]
    fn a_request_that_waits_has_its_identifier() {
        // Until the program answers, nothing but the order tells which request it is.
        let until = SLOW.find("cm_send_rep").unwrap();
        let text = without(
            &SLOW[..until],
            &["src=10.0.0.1", " 0:1 QP1", "icm_send_req"],
        );
        let connection = connections(&text).remove(0);
        assert_eq!(
            connection.addresses[CLIENT].as_deref(),
            Some("10.0.0.1:55921")
        );
        assert!(connection
            .steps
            .iter()
            .any(|step| step.message == Some("REQ")));
    }

    #[test]
    fn connections_are_told_apart() {
        let both = format!("{SLOW}\n{REFUSED}\n{LOST}");
        assert_eq!(connections(&both).len(), 3);
        assert!(connections("").is_empty());
    }
}
