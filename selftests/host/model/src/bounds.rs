// SPDX-License-Identifier: GPL-2.0

//! The bounds of each search.

use cmproto::wire::Transport;

/// A call that a user may make for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Accept,
    Establish,
    Reject,
    Disconnect,
    Confirm,
    PrepareMra,
    Notify,
    Destroy,
}

/// An end that a model may come to have.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// The user of `node` connects, once the connection at the place `after` is over.
    Active {
        node: usize,
        qpn: u32,
        after: Option<usize>,
    },
    /// A REQ may make a connection of `node` here; it is accepted with this queue pair.
    Passive { node: usize, qpn: u32 },
}

/// The limit on the time of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Seconds.
    Quick,
    /// Minutes or more.
    Long,
}

/// A fault of the nodes, to see that the properties notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    None,
    /// A repeated REQ is taken for a new one.
    ForgetPeers,
    /// Connections that are over stay in the tables.
    KeepPeers,
    /// A DREQ from the peer is lost on the way to the connection.
    DeafToDreq,
    /// A REP that was refused may be taken later.
    ForgetRefusals,
}

/// The bounds of one search.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub name: &'static str,
    pub about: &'static str,
    pub slots: &'static [Slot],
    pub retries: u8,
    pub verbs: &'static [Verb],
    /// Restarts of each node.
    pub restarts: [u8; 2],
    pub transport: Transport,
    /// Remember which messages have arrived, for S6 over any time instead of at once.
    pub history: bool,
    pub extent: Extent,
    pub plant: Plant,
}

const ALL: &[Verb] = &[
    Verb::Accept,
    Verb::Reject,
    Verb::Disconnect,
    Verb::Confirm,
    Verb::PrepareMra,
    Verb::Notify,
    Verb::Destroy,
];

/// Without what only delays.
const SOME: &[Verb] = &[
    Verb::Accept,
    Verb::Reject,
    Verb::Disconnect,
    Verb::Confirm,
    Verb::Destroy,
];

/// The shortest life.
const FEW: &[Verb] = &[Verb::Accept, Verb::Disconnect, Verb::Confirm];

const A: usize = 0;
const B: usize = 1;

const fn active(node: usize, qpn: u32) -> Slot {
    Slot::Active {
        node,
        qpn,
        after: None,
    }
}

const fn then(node: usize, qpn: u32, after: usize) -> Slot {
    Slot::Active {
        node,
        qpn,
        after: Some(after),
    }
}

const fn passive(node: usize, qpn: u32) -> Slot {
    Slot::Passive { node, qpn }
}

/// The peer of a connection, with an end more: a late REQ may make another connection.
const GHOST: &[Slot] = &[active(A, 0xa), passive(B, 0xb), passive(B, 0xc)];

/// Each node connects to the other.
const CROSSING: &[Slot] = &[
    active(A, 0xa),
    passive(B, 0xb),
    active(B, 0xc),
    passive(A, 0xd),
];

/// Two connections that claim the same queue pair.
const SAME_QP: &[Slot] = &[
    active(A, 0xa),
    passive(B, 0xb),
    active(A, 0xa),
    passive(B, 0xd),
];

/// A queue pair that connects again.
const RECONNECT: &[Slot] = &[
    active(A, 0xa),
    passive(B, 0xb),
    then(A, 0xa, 0),
    passive(B, 0xd),
];

const BASE: Bounds = Bounds {
    name: "",
    about: "",
    slots: &[active(A, 0xa), passive(B, 0xb)],
    retries: 1,
    verbs: ALL,
    restarts: [0, 0],
    transport: Transport::Rc,
    history: false,
    extent: Extent::Quick,
    plant: Plant::None,
};

/// Every search there is.
pub const SEARCHES: &[Bounds] = &[
    Bounds {
        name: "one",
        about: "one connection, every verb, 1 retry",
        ..BASE
    },
    Bounds {
        name: "one-uc",
        about: "the same, unreliable connection",
        transport: Transport::Uc,
        ..BASE
    },
    Bounds {
        name: "one-ghost",
        about: "one connection, 2 passive ends: a late REQ makes another connection",
        slots: GHOST,
        verbs: SOME,
        ..BASE
    },
    Bounds {
        name: "one-restart",
        about: "one connection, each node restarts once",
        slots: GHOST,
        retries: 0,
        verbs: SOME,
        restarts: [1, 1],
        ..BASE
    },
    Bounds {
        name: "one-retries",
        about: "one connection, 3 retries",
        retries: 3,
        verbs: SOME,
        ..BASE
    },
    Bounds {
        name: "two-parallel",
        about: "two connections at once, each with a queue pair of its own",
        slots: &[
            active(A, 0xa),
            passive(B, 0xb),
            active(A, 0xc),
            passive(B, 0xd),
        ],
        retries: 0,
        verbs: FEW,
        ..BASE
    },
    Bounds {
        name: "two-crossing",
        about: "each node connects to the other at once",
        slots: CROSSING,
        retries: 0,
        verbs: FEW,
        ..BASE
    },
    Bounds {
        name: "two-same-qp",
        about: "two connections at once that claim the same queue pair: one is stale",
        slots: SAME_QP,
        retries: 0,
        verbs: FEW,
        ..BASE
    },
    Bounds {
        name: "two-same-qp-passive",
        about: "two connections at once that are answered with the same queue pair",
        slots: &[
            active(A, 0xa),
            passive(B, 0xb),
            active(A, 0xc),
            passive(B, 0xb),
        ],
        retries: 0,
        verbs: FEW,
        ..BASE
    },
    Bounds {
        name: "reconnect",
        about: "a queue pair connects again when its first connection is over",
        slots: RECONNECT,
        retries: 0,
        verbs: FEW,
        ..BASE
    },
    Bounds {
        name: "reconnect-restart",
        about: "the same, and the first one may end by a restart of its node",
        slots: RECONNECT,
        retries: 0,
        verbs: FEW,
        restarts: [1, 0],
        ..BASE
    },
    Bounds {
        name: "one-history",
        about: "one connection, 2 passive ends: no duplicate at any time has a second effect",
        slots: GHOST,
        verbs: SOME,
        history: true,
        ..BASE
    },
    // From here on too large for a run of minutes.
    Bounds {
        name: "one-restart-full",
        about: "one connection, every verb, 1 retry, each node restarts once",
        slots: GHOST,
        restarts: [1, 1],
        extent: Extent::Long,
        ..BASE
    },
    Bounds {
        name: "two-crossing-full",
        about: "each node connects to the other at once, all but MRA",
        slots: CROSSING,
        retries: 0,
        verbs: SOME,
        extent: Extent::Long,
        ..BASE
    },
    Bounds {
        name: "two-same-qp-full",
        about: "two connections at once that claim the same queue pair, all but MRA",
        slots: SAME_QP,
        retries: 0,
        verbs: SOME,
        extent: Extent::Long,
        ..BASE
    },
    Bounds {
        name: "reconnect-full",
        about: "a queue pair connects again after its first connection or a restart, all but MRA",
        slots: RECONNECT,
        verbs: SOME,
        restarts: [1, 0],
        extent: Extent::Long,
        ..BASE
    },
];
