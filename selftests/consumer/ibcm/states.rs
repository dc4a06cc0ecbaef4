// SPDX-License-Identifier: GPL-2.0

//! The states, and what is refused in each.

use super::{inbox::Inbox, side::Side};
use crate::{
    harness::wrong,
    rdma::{
        errno::Errno,
        ib_cm_id::{IbCmIdRef, State},
    },
};
use kernel::prelude::*;

/// Something that can be done, and in which states it may be, but for what was done to get there.
struct Act {
    name: &'static str,
    act: fn(&Inbox, &IbCmIdRef) -> Result,
    states: &'static [State],
}

const ACTS: [Act; 13] = [
    Act {
        name: "req",
        act: Inbox::send_req,
        states: &[State::IDLE],
    },
    Act {
        name: "rep",
        act: Inbox::send_rep,
        states: &[State::REQ_RCVD, State::MRA_REQ_SENT],
    },
    Act {
        name: "rtu",
        act: Inbox::send_rtu,
        states: &[State::REP_RCVD, State::MRA_REP_SENT],
    },
    Act {
        name: "dreq",
        act: Inbox::send_dreq,
        states: &[State::ESTABLISHED],
    },
    Act {
        name: "drep",
        act: Inbox::send_drep,
        states: &[State::DREQ_RCVD],
    },
    Act {
        name: "rej",
        act: Inbox::send_rej,
        states: &[
            State::REQ_SENT,
            State::MRA_REQ_RCVD,
            State::REQ_RCVD,
            State::MRA_REQ_SENT,
            State::REP_RCVD,
            State::MRA_REP_SENT,
            State::REP_SENT,
            State::MRA_REP_RCVD,
        ],
    },
    Act {
        name: "mra",
        act: Inbox::prepare_mra,
        states: &[State::REQ_RCVD, State::REP_RCVD],
    },
    Act {
        name: ESTABLISHED,
        act: Inbox::established,
        states: &[State::REP_SENT, State::MRA_REP_RCVD],
    },
    Act {
        name: "migrated",
        act: Inbox::migrated,
        states: &[State::ESTABLISHED],
    },
    Act {
        name: "listen",
        act: Inbox::listen,
        states: &[State::IDLE],
    },
    Act {
        name: "sidr_rep",
        act: Inbox::send_sidr_rep,
        states: &[State::SIDR_REQ_RCVD],
    },
    Act {
        name: "init",
        act: Inbox::init_attr,
        states: &[
            State::REQ_SENT,
            State::REQ_RCVD,
            State::MRA_REQ_SENT,
            State::MRA_REQ_RCVD,
            State::REP_SENT,
            State::REP_RCVD,
            State::MRA_REP_SENT,
            State::MRA_REP_RCVD,
            State::ESTABLISHED,
        ],
    },
    Act {
        name: "rtr",
        act: Inbox::rtr_attr,
        states: &[
            State::REQ_RCVD,
            State::MRA_REQ_SENT,
            State::REP_SENT,
            State::REP_RCVD,
            State::MRA_REP_SENT,
            State::MRA_REP_RCVD,
            State::ESTABLISHED,
        ],
    },
];

/// The one that is refused in words of its own by a connection that has got there.
const ESTABLISHED: &str = "established";

impl Side {
    /// Checks that this end is in a state, and refuses what is not for it.
    #[track_caller]
    pub(crate) fn is_in(&mut self, state: State) {
        let now = self.state();
        if now != Some(state) {
            wrong!("{:?}, not {:?}", now, state);
            return;
        }
        for act in ACTS.iter().filter(|act| !act.states.contains(&state)) {
            let right = if act.name == ESTABLISHED && state == State::ESTABLISHED {
                Errno::EISCONN.failure()
            } else {
                Err(EINVAL)
            };
            let result = self.does(act.act);
            let now = self.state();
            if result != right || now != Some(state) {
                let name = act.name;
                wrong!("{name} in {state:?} is {result:?}, then {now:?}");
            }
        }
    }
}
