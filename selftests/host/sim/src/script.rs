// SPDX-License-Identifier: GPL-2.0

//! The course of a simulation, as a list of deviations from the plain course.
//!
//! In the plain course nobody connects. Each user that gets a request accepts at once, connected
//! users stay connected, a user that is told of the end destroys its endpoint, and every message
//! arrives 10 us after it was sent. A script is therefore as short as its list of deviations, and
//! is still a script when any of its steps is taken out.

use std::fmt;

pub use cmnode::Plant;
use cmproto::{
    time::Duration,
    wire::{Attribute, Transport},
};

/// The number of a call of `connect`, and of its consequences.
pub type Tag = u16;

/// The settings of a whole simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The seed of the nodes' secret keys.
    pub seed: u64,
    /// Number of nodes, 2 or 3.
    pub nodes: u8,
    /// Queue pair numbers that a node has; the fewer, the sooner one is used again.
    pub qpns: u32,
    /// Connection requests that may wait for their user at a node.
    pub backlog: usize,
    /// Connection requests that may be parked beyond that.
    pub parking: usize,
    /// The nodes that send requests early, a bit for each; the others do as the C modules.
    pub early: u8,
    /// The nodes that ask their peers at intervals whether they still have a connection, a bit for
    /// each.
    pub keepalive: u8,
    /// The ports are of InfiniBand, so that connections may get an alternate path by a LAP.
    pub infiniband: bool,
    /// True if a destroyed connection waits out its time wait, false if it is forgotten at once.
    pub linger: bool,
    /// The time that it takes to find a new peer's link address.
    pub reach: Duration,
    /// A bug, if there shall be one.
    pub plant: Option<Plant>,
}

impl Setup {
    /// The simplest one.
    pub const PLAIN: Self = Self {
        seed: 0,
        nodes: 2,
        qpns: 1 << 20,
        backlog: 64,
        parking: 0,
        early: 0,
        keepalive: 0,
        infiniband: false,
        linger: false,
        reach: Duration::ZERO,
        plant: None,
    };
}

/// The parameters of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dial {
    /// Resolves a service id for datagrams instead.
    pub datagram: bool,
    pub transport: Transport,
    pub max_cm_retries: u8,
    /// Time code of the CM response timeout, for both sides.
    pub response_timeout: u8,
    pub packet_life_time: u8,
}

impl Dial {
    /// As the kernel does.
    pub const PLAIN: Self = Self {
        datagram: false,
        transport: Transport::Rc,
        max_cm_retries: 15,
        response_timeout: 20,
        packet_life_time: 16,
    };

    fn kind(&self) -> String {
        match self.datagram {
            true => "datagram".into(),
            false => format!("{:?}", self.transport),
        }
    }
}

/// The side of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that connects.
    Active,
    /// The one that is connected to.
    Passive,
}

/// The moment that a user waits for before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The endpoint comes to be.
    Created,
    /// The REQ or REP that it has to answer.
    Asked,
    /// The connection.
    Connected,
    /// The end of the connection, or of the attempt.
    Ended,
}

/// An action of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Accepts the REQ, or the REP.
    Accept,
    Reject,
    /// Disconnects, or confirms that the peer did.
    Disconnect,
    Destroy,
    /// Reports that data arrived, if the peer could send any.
    Notify,
    /// Proposes an alternate path to the peer, by a LAP.
    Propose,
    /// Proposes one that does not end at the peer.
    ProposeElsewhere,
    Nothing,
}

/// The fate of a message in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message arrives, this much later than usual.
    Late(Duration),
    Lost,
    /// The message arrives twice, this much later than usual.
    Twice(Duration, Duration),
    /// The message arrives with these bits flipped, although its checksum should tell.
    Corrupt([u16; 3]),
}

impl Fate {
    /// The plain fate of a message.
    pub const PLAIN: Self = Self::Late(Duration::ZERO);
}

/// The name of a message: the `nth` (from 0) of its kind that node `from` sends for `tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Which {
    pub tag: Tag,
    pub from: usize,
    pub kind: Attribute,
    pub nth: u16,
}

/// A user connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub tag: Tag,
    pub at: Duration,
    pub from: usize,
    pub to: usize,
    pub dial: Dial,
}

/// The user of one side of `tag` does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    pub tag: Tag,
    pub side: Side,
    pub when: Moment,
    pub after: Duration,
    pub verb: Verb,
}

/// One deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Connect(Call),
    /// A user does something else, or something more.
    Act(Act),
    Network(Which, Fate),
    /// Nothing gets through between two nodes.
    Cut {
        at: Duration,
        until: Duration,
        between: [usize; 2],
    },
    /// A node forgets everything, and is back at once.
    Restart {
        at: Duration,
        node: usize,
    },
}

/// A simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub setup: Setup,
    pub steps: Vec<Step>,
}

/// A time, in the unit that suits it.
pub fn time(span: Duration) -> String {
    let us = span.as_micros();
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{}.{:03} ms", us / 1_000, us % 1_000),
        _ => format!("{}.{:06} s", us / 1_000_000, us % 1_000_000),
    }
}

/// The name of a message.
pub fn name(kind: Attribute) -> String {
    match kind {
        Attribute::SidrReq => "SIDR_REQ".into(),
        Attribute::SidrRep => "SIDR_REP".into(),
        other => format!("{other:?}").to_uppercase(),
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nth = self.nth + 1;
        let kind = name(self.kind);
        write!(f, "#{}: {kind} no. {nth} of node {}", self.tag, self.from)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(call) => {
                let (tag, from, to, dial) = (call.tag, call.from, call.to, &call.dial);
                let at = time(call.at);
                write!(f, "#{tag}: node {from} connects to node {to} at {at}")?;
                if *dial != Dial::PLAIN {
                    write!(
                        f,
                        " ({}, {} retries, response timeout {}, packet life time {})",
                        dial.kind(),
                        dial.max_cm_retries,
                        dial.response_timeout,
                        dial.packet_life_time
                    )?;
                }
                Ok(())
            }
            Self::Act(act) => {
                let (tag, side, when, verb) = (act.tag, act.side, act.when, act.verb);
                let after = time(act.after);
                write!(
                    f,
                    "#{tag}: the {side:?} user does {verb:?} {after} after {when:?}"
                )
            }
            Self::Network(which, fate) => {
                write!(f, "{which} ")?;
                match fate {
                    Fate::Late(by) => write!(f, "arrives {} late", time(*by)),
                    Fate::Lost => write!(f, "is lost"),
                    Fate::Twice(first, second) => {
                        write!(f, "arrives {} and {} late", time(*first), time(*second))
                    }
                    Fate::Corrupt(bits) => write!(f, "arrives with bits {bits:?} flipped"),
                }
            }
            Self::Cut { at, until, between } => {
                let [a, b] = between;
                let (at, until) = (time(*at), time(*until));
                write!(
                    f,
                    "nothing gets through between nodes {a} and {b} from {at} to {until}"
                )
            }
            Self::Restart { at, node } => write!(f, "node {node} restarts at {}", time(*at)),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setup = &self.setup;
        let linger = if setup.linger { "linger" } else { "are gone" };
        write!(
            f,
            "{} nodes, {} queue pairs and a backlog of {} + {} each, peers are reached after {}, \
             destroyed connections {linger}, nodes that send early: {:#b}, nodes that ask: {:#b}{}",
            setup.nodes,
            setup.qpns,
            setup.backlog,
            setup.parking,
            time(setup.reach),
            setup.early,
            setup.keepalive,
            if setup.infiniband { ", InfiniBand" } else { "" },
        )?;
        if let Some(plant) = setup.plant {
            write!(f, ", planted bug: {plant:?}")?;
        }
        for step in &self.steps {
            write!(f, "\n{step}")?;
        }
        Ok(())
    }
}
