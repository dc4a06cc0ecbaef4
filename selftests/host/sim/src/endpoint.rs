// SPDX-License-Identifier: GPL-2.0

//! One endpoint of a node: its state machine, and what the module keeps beside it.

use cmproto::{cm::Connection, cma, node::RemoteIds, origin::Origin};

use crate::rules::Watch;

/// An endpoint that connects, or was connected to.
#[derive(Debug)]
pub struct Endpoint {
    pub machine: Connection,
    /// Where its messages go, and the only place that they may come from.
    pub peer: Origin,
    pub tracked: Option<RemoteIds>,
    pub state: cma::State,
    /// Own queue pair, 0 if there is none.
    pub qpn: u32,
    /// The peer's link address is known.
    pub reached: bool,
    /// There is a user who hears of events.
    pub has_user: bool,
    pub destroyed: bool,
    pub watch: Watch,
}

impl Endpoint {
    /// A new one, in state `CONNECT`, without a user.
    pub fn new(machine: Connection, peer: Origin, watch: Watch) -> Self {
        Self {
            machine,
            peer,
            tracked: None,
            state: cma::State::Connect,
            qpn: 0,
            reached: false,
            has_user: false,
            destroyed: false,
            watch,
        }
    }
}
