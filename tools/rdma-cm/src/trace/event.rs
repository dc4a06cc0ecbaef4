// SPDX-License-Identifier: GPL-2.0

//! The lines of a trace, as tracefs and trace-cmd print them.

/// An event of the connection manager or of one of its messages.
#[derive(Debug, PartialEq)]
pub struct Event<'a> {
    /// The time in microseconds, by the clock of the trace.
    pub time: u64,
    /// The task, as "NAME-NUMBER".
    pub task: &'a str,
    pub what: What<'a>,
}

/// A subject of an event.
#[derive(Debug, PartialEq)]
pub enum What<'a> {
    /// ib_core sends or receives a message.
    Mad {
        is_sent: bool,
        /// The index of the device and the number of the port.
        port: &'a str,
        /// The transaction, which a request and its answers have in common.
        tid: u64,
        attribute: u16,
    },
    /// An event of a communication id of the IB CM.
    Icm {
        name: &'a str,
        local: u32,
        remote: u32,
        state: &'a str,
        reason: &'a str,
    },
    /// An event of an identifier of the RDMA CM.
    Cma {
        name: &'a str,
        id: End<'a>,
        detail: &'a str,
    },
}

/// An end of a connection: the number of its identifier, which is its device's, and the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End<'a> {
    pub id: u32,
    pub src: &'a str,
    pub dst: &'a str,
}

/// Returns the word behind a name and "=" or a blank.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let found = text.match_indices(name).find_map(|(at, _)| {
        let is_word = at == 0 || text[..at].ends_with(' ');
        let rest = text[at + name.len()..].strip_prefix(['=', ' '])?;
        is_word.then_some(rest)
    });
    found?.split_whitespace().next()
}

/// Returns the number behind a name, in hexadecimal if it has a prefix.
fn number(text: &str, name: &str) -> Option<u64> {
    let word = field(text, name)?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Returns microseconds of seconds with a fraction.
fn time(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let us = format!("{fraction:0<6}").get(..6)?.parse::<u64>().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(us)
}

/// Returns the event of a line, if it has one that matters here.
pub fn parse(line: &str) -> Option<Event<'_>> {
    let (task, rest) = line.split_once(" [")?;
    let (head, rest) = rest.split_once("] ")?.1.split_once(": ")?;
    let (name, text) = rest.trim_start().split_once(": ")?;
    let short = |name| number(text, name)?.try_into().ok();
    let what = match name {
        "ib_mad_ib_send_mad" | "ib_mad_send_done_resend" | "ib_mad_recv_done_handler" => {
            if number(text, "class")? != 7 {
                return None;
            }
            What::Mad {
                is_sent: name != "ib_mad_recv_done_handler",
                port: text.trim_start().split(' ').next()?,
                tid: number(text, "tid")?,
                attribute: number(text, "attr_id")?.try_into().ok()?,
            }
        }
        name if name.starts_with("icm_") => What::Icm {
            name,
            local: short("local_id").unwrap_or(0),
            remote: short("remote_id").unwrap_or(0),
            state: field(text, "state").unwrap_or(""),
            reason: field(text, "reason").unwrap_or(""),
        },
        name if name.starts_with("cm_") => What::Cma {
            name,
            id: End {
                id: short("cm.id")?,
                src: field(text, "src")?,
                dst: field(text, "dst")?,
            },
            detail: text
                .split_once(" tos=")
                .and_then(|(_, rest)| rest.split_once(' '))
                .map_or("", |(_, detail)| detail.trim()),
        },
        _ => return None,
    };
    Some(Event {
        time: time(head.split_whitespace().next_back()?)?,
        task: task.trim(),
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "    kworker/u8:2-38      [001] d..1.    33.398603: \
        ib_mad_ib_send_mad: 0:1 QP1 agent 00000000d56204c2: wrtid 0x3d3b7ab44; 0/0 retries(0); \
        timeout 0 length 256 : hdr : base_ver 0x1 class 0x7 class_ver 0x2 method 0x3 status 0x0 \
        class_specific 0x0 tid 0x3d3b7ab44 attr_id 0x10 attr_mod 0x0  => dlid 0x00000000 sl 0 \
        rpqn 0x1 rqpkey 0x0";

    #[test]
    fn messages() {
        let want = What::Mad {
            is_sent: true,
            port: "0:1",
            tid: 0x3_d3b7_ab44,
            attribute: 0x10,
        };
        let want = Event {
            time: 33_398_603,
            task: "kworker/u8:2-38",
            what: want,
        };
        assert_eq!(parse(SENT), Some(want));
        // Messages of other classes do not matter here.
        assert_eq!(parse(&SENT.replace("class 0x7", "class 0x3")), None);
    }

    #[test]
    fn identifiers() {
        let line = "  a b-1 [000] ..... 1.5: cm_event_handler: cm.id=3 src=[fd00::1]:1 \
            dst=[fd00::2]:2 tos=0 REJECTED (8/28)";
        let id = End {
            id: 3,
            src: "[fd00::1]:1",
            dst: "[fd00::2]:2",
        };
        let what = What::Cma {
            name: "cm_event_handler",
            id,
            detail: "REJECTED (8/28)",
        };
        assert_eq!(
            parse(line),
            Some(Event {
                time: 1_500_000,
                task: "a b-1",
                what
            })
        );
        let line = "rping-2 [000] 7.000001: icm_send_rej:         local_id=4294967295 \
            remote_id=5 state=REQ_RCVD reason=REJ_NO_QP";
        let what = What::Icm {
            name: "icm_send_rej",
            local: u32::MAX,
            remote: 5,
            state: "REQ_RCVD",
            reason: "REJ_NO_QP",
        };
        assert_eq!(
            parse(line),
            Some(Event {
                time: 7_000_001,
                task: "rping-2",
                what
            })
        );
    }

    #[test]
    fn what_is_no_event_is_left_out() {
        for line in [
            "",
            "# tracer: nop",
            "x-1 [000] 1.0: sched_switch: a",
            "x-1 [0",
            "x-1 [000] y: cm_id_destroy: z",
            "ä-1 [0] : : ",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        for end in 0..SENT.len() {
            let _ = parse(&SENT[..end]);
        }
    }
}
