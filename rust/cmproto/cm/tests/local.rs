// SPDX-License-Identifier: GPL-2.0

//! The table of verbs, timer expiries and inputs from the caller's tables, in every situation.

use super::{
    table::{now, Row},
    *,
};

/// The time that the user of a connection waits for its link.
const PATIENCE: Duration = Duration::from_millis(50);

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row {
        input: "its REQ again",
        apply: |c| Ok(c.duplicate_req(now())),
        cells: &[
            ("MraReqSent", "=: duplicate REQ, send MRA, repeat MRA"),
            ("RepSent", "=: duplicate REQ, send REP, retry REP"),
            ("Timewait Detached", "=: duplicate REQ, send REJ, repeat REJ"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: duplicate REQ"),
            ("ReqRcvd MraRepRcvd EstablishedPassive DreqSent DreqRcvd", "=: duplicate REQ"),
            ("Closed Listen SidrReqSent SidrReqRcvd", "=: duplicate REQ"),
        ],
    },
    Row {
        input: "stale peer",
        apply: |c| Ok(c.stale_peer(now())),
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: send DREQ"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "stale peer, again at once",
        apply: |c| {
            let _ = c.stale_peer(now());
            Ok(c.stale_peer(now()))
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: nothing"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "load alternate path",
        apply: |c| c.load_alternate(lap_params(), now()),
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: send LAP, timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: EINVAL"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "load alternate path again",
        apply: |c| {
            let _ = c.load_alternate(lap_params(), now());
            c.load_alternate(lap_params(), now())
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: EBUSY"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: EINVAL"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "link down",
        apply: |c| Ok(c.link_down(PATIENCE, now())),
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "link up again",
        apply: |c| {
            let _ = c.link_down(PATIENCE, now());
            Ok(c.link_up())
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "link down for too long",
        apply: |c| {
            let _ = c.link_down(PATIENCE, now());
            Ok(c.timeout(now() + PATIENCE))
        },
        cells: &[
            (
                "EstablishedActive EstablishedPassive",
                "DreqSent: timer, deliver LinkDown",
            ),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "time to ask the peer",
        apply: |c| {
            let is_asked = !c.set_keepalive(Some(Duration::from_secs(1)), now()).is_empty();
            let due = c.deadline().filter(|_| is_asked);
            Ok(c.timeout(due.unwrap_or(now())))
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: send DREQ, timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "RTU, but its queue pair is in use",
        apply: |c| Ok(c.refuse_rtu(now())),
        cells: &[
            (
                "RepSent MraRepRcvd",
                "Timewait: send REJ, release ids, timer, deliver RepError",
            ),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: nothing"),
            ("ReqRcvd MraReqSent EstablishedPassive", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "connect",
        apply: |c| c.connect(&connect_params(), &[], now()),
        cells: &[
            ("Fresh", "ReqSent: send REQ, timer"),
            ("ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: EINVAL"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "accept",
        apply: |c| c.accept(&accept_params(), &[], now()),
        cells: &[
            ("ReqRcvd MraReqSent", "RepSent: send REP, timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: EINVAL"),
            ("RepSent MraRepRcvd EstablishedPassive", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "establish",
        apply: |c| c.establish(&[], now()),
        cells: &[
            ("RepRcvd MraRepSent", "Established: send RTU"),
            ("Fresh ReqSent MraReqRcvd EstablishedActive", "=: EINVAL"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "reject",
        apply: |c| c.reject(Reason::CONSUMER_DEFINED, &[], &[], now()),
        cells: &[
            ("ReqSent MraReqRcvd", "Idle: send REJ, timer, release"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "Idle: send REJ, release ids, release"),
            ("RepSent MraRepRcvd", "Timewait: send REJ, release ids, timer"),
            ("Fresh EstablishedActive EstablishedPassive", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "disconnect",
        apply: |c| c.disconnect(&[], now()),
        cells: &[
            ("EstablishedActive EstablishedPassive", "DreqSent: send DREQ, timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: EINVAL"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "confirm disconnect",
        apply: |c| c.confirm_disconnect(&[], now()),
        cells: &[
            ("DreqRcvd", "Timewait: send DREP, release ids, timer"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: EINVAL"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: EINVAL"),
            ("DreqSent Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "prepare MRA",
        apply: |c| c.prepare_mra(24).map(|()| Actions::none()),
        cells: &[
            ("ReqRcvd", "MraReqSent: nothing"),
            ("RepRcvd", "MraRepSent: nothing"),
            ("Fresh ReqSent MraReqRcvd MraRepSent EstablishedActive", "=: EINVAL"),
            ("MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "notify established",
        apply: |c| c.notify_established(now()),
        cells: &[
            ("RepSent MraRepRcvd", "Established: timer, deliver UserEstablished"),
            ("EstablishedActive EstablishedPassive", "=: EISCONN"),
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent", "=: EINVAL"),
            ("ReqRcvd MraReqSent", "=: EINVAL"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: EINVAL"),
            ("Listen SidrReqSent SidrReqRcvd", "=: EINVAL"),
        ],
    },
    Row {
        input: "destroy",
        apply: |c| Ok(c.destroy(DestroyCause::User, now())),
        cells: &[
            ("Fresh", "=: release"),
            ("ReqSent MraReqRcvd", "Idle: send REJ, timer, release"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "Idle: send REJ, release ids, release"),
            ("RepSent MraRepRcvd", "Timewait: send REJ, release ids, timer"),
            ("EstablishedActive EstablishedPassive", "Timewait: send DREQ, release ids, timer"),
            ("DreqSent", "Timewait: release ids, timer"),
            ("DreqRcvd", "Timewait: send DREP, release ids, timer"),
            ("Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "Idle: release"),
        ],
    },
    Row {
        input: "destroy for want of memory",
        apply: |c| Ok(c.destroy(DestroyCause::NoMemory, now())),
        cells: &[
            ("Fresh", "=: release"),
            ("ReqRcvd MraReqSent", "Idle: release ids, release"),
            ("ReqSent MraReqRcvd", "Idle: send REJ, timer, release"),
            ("RepRcvd MraRepSent", "Idle: send REJ, release ids, release"),
            ("RepSent MraRepRcvd", "Timewait: send REJ, release ids, timer"),
            ("EstablishedActive EstablishedPassive", "Timewait: send DREQ, release ids, timer"),
            ("DreqSent", "Timewait: release ids, timer"),
            ("DreqRcvd", "Timewait: send DREP, release ids, timer"),
            ("Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "Idle: release"),
        ],
    },
    Row {
        input: "destroy for another's queue pair",
        apply: |c| Ok(c.destroy(DestroyCause::Superseded, now())),
        cells: &[
            ("Fresh", "=: release"),
            ("ReqSent MraReqRcvd", "Idle: send REJ, timer, release"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "Idle: send REJ, release ids, release"),
            ("RepSent MraRepRcvd", "Timewait: send REJ, release ids, timer"),
            ("EstablishedActive EstablishedPassive", "Timewait: send REJ, release ids, timer"),
            ("DreqSent", "Timewait: send REJ, release ids, timer"),
            ("DreqRcvd", "Timewait: send DREP, release ids, timer"),
            ("Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "Idle: release"),
        ],
    },
    Row {
        input: "time before the deadline",
        apply: |c| Ok(c.timeout(now())),
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: nothing"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: nothing"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "deadline",
        apply: |c| Ok(c.timeout(at(1_000_000))),
        cells: &[
            ("ReqSent MraReqRcvd", "=: send REQ, retry REQ, timer"),
            ("RepSent", "=: send unasked REP, retry REP, timer"),
            ("MraRepRcvd", "=: send REP, retry REP, timer"),
            ("DreqSent", "=: send DREQ, retry DREQ, timer"),
            ("Timewait", "Idle: timer, deliver TimewaitExit, release"),
            ("Detached", "Idle: timer, release"),
            ("Fresh RepRcvd MraRepSent EstablishedActive", "=: nothing"),
            ("ReqRcvd MraReqSent EstablishedPassive DreqRcvd Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
    Row {
        input: "last deadline",
        apply: |c| {
            while let Some(deadline) = c.deadline() {
                let actions = c.timeout(deadline);
                if !actions
                    .iter()
                    .any(|action| matches!(action, Action::Send(_) | Action::SendUnasked(_)))
                {
                    return Ok(actions);
                }
            }
            Ok(c.timeout(at(1_000_000)))
        },
        cells: &[
            ("ReqSent MraReqRcvd", "Idle: timer, deliver ReqError, release"),
            ("RepSent MraRepRcvd", "Idle: release ids, timer, deliver RepError, release"),
            ("DreqSent", "Timewait: release ids, timer, deliver DreqError"),
            ("Timewait", "Idle: timer, deliver TimewaitExit, release"),
            ("Detached", "Idle: timer, release"),
            ("Fresh RepRcvd MraRepSent EstablishedActive", "=: nothing"),
            ("ReqRcvd MraReqSent EstablishedPassive DreqRcvd Closed", "=: nothing"),
            ("Listen SidrReqSent SidrReqRcvd", "=: nothing"),
        ],
    },
];
