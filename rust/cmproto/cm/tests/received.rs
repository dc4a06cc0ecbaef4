// SPDX-License-Identifier: GPL-2.0

//! The table of received messages in every situation.

use super::{
    table::{now, Row},
    *,
};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row {
        input: "REP",
        apply: |c| Ok(receive(c, Message::Rep(peer_rep()), now())),
        cells: &[
            ("ReqSent MraReqRcvd", "RepRcvd: timer, deliver RepReceived"),
            ("MraRepSent", "=: duplicate REP, send MRA, repeat MRA"),
            ("EstablishedActive", "=: duplicate REP, send RTU, repeat RTU"),
            (
                "RepRcvd ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive",
                "=: duplicate REP",
            ),
            ("DreqSent DreqRcvd Timewait Detached", "=: duplicate REP"),
            ("Closed", "=: mismatch REP"),
            ("Fresh Listen SidrReqSent SidrReqRcvd", "=: unexpected REP"),
        ],
    },
    Row {
        input: "REP of a stranger",
        apply: |c| {
            let rep = Rep {
                local_comm_id: 9,
                remote_comm_id: OWN_ID ^ 1,
                ..peer_rep()
            };
            Ok(receive(c, Message::Rep(rep), now()))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: mismatch REP"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch REP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch REP"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch REP"),
        ],
    },
    Row {
        input: "RTU",
        apply: |c| Ok(receive(c, Message::Rtu(peer_rtu()), now())),
        cells: &[
            ("RepSent MraRepRcvd", "Established: timer, deliver RtuReceived"),
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: duplicate RTU"),
            ("EstablishedPassive DreqSent DreqRcvd Timewait Detached Closed", "=: duplicate RTU"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch RTU"),
        ],
    },
    Row {
        input: "RTU of a stranger",
        apply: |c| {
            let rtu = Rtu {
                local_comm_id: 9,
                ..peer_rtu()
            };
            Ok(receive(c, Message::Rtu(rtu), now()))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: mismatch RTU"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch RTU"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch RTU"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch RTU"),
        ],
    },
    Row {
        input: "REJ, consumer defined",
        apply: |c| {
            let rej = peer_rej(c, Reason::CONSUMER_DEFINED);
            Ok(receive(c, Message::Rej(rej), now()))
        },
        cells: &[
            ("ReqSent MraReqRcvd", "Idle: timer, deliver RejReceived(28), release"),
            ("ReqRcvd MraReqSent", "Idle: release ids, deliver RejReceived(28), release"),
            ("RepSent MraRepRcvd", "Idle: release ids, timer, deliver RejReceived(28), release"),
            ("RepRcvd MraRepSent", "Timewait: release ids, timer, deliver RejReceived(28)"),
            (
                "EstablishedActive EstablishedPassive",
                "Timewait: release ids, timer, deliver RejReceived(28)",
            ),
            ("DreqSent", "Timewait: release ids, timer, deliver RejReceived(28)"),
            ("DreqRcvd Timewait Detached Closed", "=: unexpected REJ"),
            ("Fresh Listen SidrReqSent SidrReqRcvd", "=: unexpected REJ"),
        ],
    },
    Row {
        input: "REJ, stale",
        apply: |c| {
            let rej = peer_rej(c, Reason::STALE_CONN);
            Ok(receive(c, Message::Rej(rej), now()))
        },
        cells: &[
            ("ReqSent MraReqRcvd", "Timewait: timer, deliver RejReceived(10)"),
            (
                "ReqRcvd MraReqSent RepSent MraRepRcvd",
                "Timewait: release ids, timer, deliver RejReceived(10)",
            ),
            ("RepRcvd MraRepSent", "Timewait: release ids, timer, deliver RejReceived(10)"),
            (
                "EstablishedActive EstablishedPassive",
                "Timewait: release ids, timer, deliver RejReceived(10)",
            ),
            ("DreqSent", "Timewait: release ids, timer, deliver RejReceived(10)"),
            ("DreqRcvd Timewait Detached Closed", "=: unexpected REJ"),
            ("Fresh Listen SidrReqSent SidrReqRcvd", "=: unexpected REJ"),
        ],
    },
    Row {
        input: "REJ, timeout",
        apply: |c| {
            let rej = peer_rej(c, Reason::TIMEOUT);
            Ok(receive(c, Message::Rej(rej), now()))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch REJ"),
            ("ReqRcvd MraReqSent", "Idle: release ids, deliver RejReceived(4), release"),
            ("RepSent MraRepRcvd", "Idle: release ids, timer, deliver RejReceived(4), release"),
            // It names only its sender.
            ("RepRcvd MraRepSent EstablishedActive EstablishedPassive", "=: mismatch REJ"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch REJ"),
        ],
    },
    Row {
        input: "REJ, timeout, with both ids",
        apply: |c| {
            let rej = Rej {
                remote_comm_id: OWN_ID,
                ..peer_rej(c, Reason::TIMEOUT)
            };
            Ok(receive(c, Message::Rej(rej), now()))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch REJ"),
            ("ReqRcvd MraReqSent", "Idle: release ids, deliver RejReceived(4), release"),
            ("RepSent MraRepRcvd", "Idle: release ids, timer, deliver RejReceived(4), release"),
            ("RepRcvd MraRepSent", "Timewait: release ids, timer, deliver RejReceived(4)"),
            (
                "EstablishedActive EstablishedPassive",
                "Timewait: release ids, timer, deliver RejReceived(4)",
            ),
            ("DreqSent", "Timewait: release ids, timer, deliver RejReceived(4)"),
            ("DreqRcvd Timewait Detached Closed", "=: unexpected REJ"),
        ],
    },
    Row {
        input: "REJ, timeout, of a stranger",
        apply: |c| {
            let rej = Rej {
                ari: &[0; INFO_LEN],
                ..peer_rej(c, Reason::TIMEOUT)
            };
            Ok(receive(c, Message::Rej(rej), now()))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: mismatch REJ"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch REJ"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch REJ"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch REJ"),
        ],
    },
    Row {
        input: "MRA of a REQ",
        apply: |c| {
            Ok(receive(
                c,
                Message::Mra(peer_mra(MraMessage::Req, 24)),
                now(),
            ))
        },
        cells: &[
            ("ReqSent", "MraReqRcvd: timer, deliver MraReceived"),
            ("MraReqRcvd", "=: duplicate MRA"),
            ("Fresh Listen SidrReqSent SidrReqRcvd", "=: unexpected MRA"),
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: mismatch MRA"),
            ("RepSent MraRepRcvd EstablishedPassive", "=: mismatch MRA"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch MRA"),
        ],
    },
    Row {
        input: "MRA of a REP",
        apply: |c| {
            Ok(receive(
                c,
                Message::Mra(peer_mra(MraMessage::Rep, 24)),
                now(),
            ))
        },
        cells: &[
            ("RepSent", "MraRepRcvd: timer, deliver MraReceived"),
            ("MraRepRcvd", "=: duplicate MRA"),
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: unexpected MRA"),
            ("EstablishedPassive DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected MRA"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch MRA"),
        ],
    },
    Row {
        input: "MRA of a LAP",
        apply: |c| {
            Ok(receive(
                c,
                Message::Mra(peer_mra(MraMessage::Other, 24)),
                now(),
            ))
        },
        cells: &[
            ("MraRepRcvd", "=: duplicate MRA"),
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: unexpected MRA"),
            ("RepSent EstablishedPassive DreqSent DreqRcvd", "=: unexpected MRA"),
            ("Timewait Detached Closed", "=: unexpected MRA"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch MRA"),
        ],
    },
    Row {
        input: "MRA of nothing known",
        apply: |c| {
            Ok(receive(
                c,
                Message::Mra(peer_mra(MraMessage::Reserved, 24)),
                now(),
            ))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: mismatch MRA"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch MRA"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch MRA"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch MRA"),
        ],
    },
    Row {
        input: "DREQ",
        apply: |c| {
            // The QPN is 0 before there is a queue pair.
            let dreq = Dreq {
                remote_qpn_eecn: c.local_qpn(),
                ..peer_dreq()
            };
            Ok(receive(c, Message::Dreq(dreq), now()))
        },
        cells: &[
            ("RepSent MraRepRcvd DreqSent", "DreqRcvd: timer, deliver DreqReceived"),
            ("EstablishedActive EstablishedPassive", "DreqRcvd: deliver DreqReceived"),
            ("DreqRcvd", "=: duplicate DREQ"),
            ("Timewait Detached", "=: duplicate DREQ, send DREP, repeat DREP"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected DREQ"),
            // A connection that is over is none for a DREQ.
            ("Closed", "=: mismatch DREQ"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch DREQ"),
        ],
    },
    Row {
        input: "DREQ of another queue pair",
        apply: |c| {
            let dreq = Dreq {
                remote_qpn_eecn: c.local_qpn() + 1,
                ..peer_dreq()
            };
            Ok(receive(c, Message::Dreq(dreq), now()))
        },
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: mismatch DREQ"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch DREQ"),
            ("DreqSent DreqRcvd Closed", "=: mismatch DREQ"),
            ("Timewait Detached", "=: duplicate DREQ, send DREP, repeat DREP"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch DREQ"),
        ],
    },
    Row {
        input: "DREP",
        apply: |c| Ok(receive(c, Message::Drep(peer_drep()), now())),
        cells: &[
            ("DreqSent", "Timewait: release ids, timer, deliver DrepReceived"),
            ("DreqRcvd", "Timewait: release ids, timer, deliver DrepReceived"),
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: unexpected DREP"),
            ("RepSent MraRepRcvd EstablishedPassive", "=: unexpected DREP"),
            ("Timewait Detached Closed", "=: unexpected DREP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch DREP"),
        ],
    },
    Row {
        input: "DREP to a challenge",
        apply: |c| {
            let _ = c.stale_peer(now());
            Ok(receive(c, Message::Drep(peer_drep()), now()))
        },
        cells: &[
            (
                "EstablishedActive EstablishedPassive",
                "Timewait: release ids, timer, deliver DrepReceived",
            ),
            ("DreqSent", "Timewait: release ids, timer, deliver DrepReceived"),
            ("DreqRcvd", "Timewait: release ids, timer, deliver DrepReceived"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected DREP"),
            ("RepSent MraRepRcvd", "=: unexpected DREP"),
            ("Timewait Detached Closed", "=: unexpected DREP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch DREP"),
        ],
    },
    Row {
        input: "MRA of a LAP that waits",
        apply: |c| {
            let _ = c.load_alternate(lap_params(), now());
            Ok(receive(
                c,
                Message::Mra(peer_mra(MraMessage::Other, 24)),
                now(),
            ))
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: timer"),
            ("MraRepRcvd", "=: duplicate MRA"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected MRA"),
            ("RepSent DreqSent DreqRcvd", "=: unexpected MRA"),
            ("Timewait Detached Closed", "=: unexpected MRA"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch MRA"),
        ],
    },
    Row {
        input: "LAP",
        apply: |c| Ok(receive_lap(c, PEER_TID, Ok(()))),
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: send APR, deliver LapReceived"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected LAP"),
            ("RepSent MraRepRcvd", "=: unexpected LAP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected LAP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch LAP"),
        ],
    },
    Row {
        input: "LAP with an unusable path",
        apply: |c| Ok(receive_lap(c, PEER_TID, Err(AprStatus::UnknownGid))),
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: send APR"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected LAP"),
            ("RepSent MraRepRcvd", "=: unexpected LAP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected LAP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch LAP"),
        ],
    },
    Row {
        input: "LAP again",
        apply: |c| {
            let _ = receive_lap(c, PEER_TID, Ok(()));
            Ok(receive_lap(c, PEER_TID, Ok(())))
        },
        cells: &[
            (
                "EstablishedActive EstablishedPassive",
                "=: duplicate LAP, send APR, repeat APR",
            ),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected LAP"),
            ("RepSent MraRepRcvd", "=: unexpected LAP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected LAP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch LAP"),
        ],
    },
    Row {
        input: "LAP beside one of this end",
        apply: |c| {
            let _ = c.load_alternate(lap_params(), now());
            Ok(receive_lap(c, PEER_TID, Ok(())))
        },
        cells: &[
            ("EstablishedActive", "=: unexpected LAP"),
            ("EstablishedPassive", "=: send APR, send LAP, deliver LapReceived"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected LAP"),
            ("RepSent MraRepRcvd", "=: unexpected LAP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected LAP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch LAP"),
        ],
    },
    Row {
        input: "LAP over RoCE",
        apply: |c| Ok(receive_blank(c, Attribute::Lap)),
        cells: &[
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: unsupported LAP"),
            ("RepSent MraRepRcvd EstablishedPassive", "=: unsupported LAP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unsupported LAP"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch LAP"),
        ],
    },
    Row {
        input: "APR",
        apply: |c| Ok(receive_blank(c, Attribute::Apr)),
        cells: &[
            ("RepRcvd MraRepSent EstablishedActive ReqRcvd MraReqSent", "=: unexpected APR"),
            ("RepSent MraRepRcvd EstablishedPassive", "=: unexpected APR"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected APR"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch APR"),
        ],
    },
    Row {
        input: "APR to a LAP",
        apply: |c| {
            let _ = c.load_alternate(lap_params(), now());
            Ok(receive_apr(c, 0))
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: timer, load path"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected APR"),
            ("RepSent MraRepRcvd", "=: unexpected APR"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected APR"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch APR"),
        ],
    },
    Row {
        input: "APR to a LAP, refused",
        apply: |c| {
            let _ = c.load_alternate(lap_params(), now());
            Ok(receive_apr(c, 3))
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: timer, drop path"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected APR"),
            ("RepSent MraRepRcvd", "=: unexpected APR"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected APR"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch APR"),
        ],
    },
    Row {
        input: "APR to a LAP again",
        apply: |c| {
            let _ = c.load_alternate(lap_params(), now());
            let _ = receive_apr(c, 0);
            Ok(receive_apr(c, 0))
        },
        cells: &[
            ("EstablishedActive EstablishedPassive", "=: duplicate APR"),
            ("RepRcvd MraRepSent ReqRcvd MraReqSent", "=: unexpected APR"),
            ("RepSent MraRepRcvd", "=: unexpected APR"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: unexpected APR"),
            ("Fresh ReqSent MraReqRcvd Listen SidrReqSent SidrReqRcvd", "=: mismatch APR"),
        ],
    },
    Row {
        input: "REQ, by mistake",
        apply: |c| Ok(receive(c, Message::Req(peer_req()), now())),
        cells: &[
            ("Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive", "=: mismatch REQ"),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch REQ"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch REQ"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch REQ"),
        ],
    },
    Row {
        input: "SIDR_REQ, by mistake",
        apply: |c| Ok(receive_blank(c, Attribute::SidrReq)),
        cells: &[
            (
                "Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive",
                "=: mismatch SIDR_REQ",
            ),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch SIDR_REQ"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch SIDR_REQ"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch SIDR_REQ"),
        ],
    },
    Row {
        input: "SIDR_REP, by mistake",
        apply: |c| Ok(receive_blank(c, Attribute::SidrRep)),
        cells: &[
            (
                "Fresh ReqSent MraReqRcvd RepRcvd MraRepSent EstablishedActive",
                "=: mismatch SIDR_REP",
            ),
            ("ReqRcvd MraReqSent RepSent MraRepRcvd EstablishedPassive", "=: mismatch SIDR_REP"),
            ("DreqSent DreqRcvd Timewait Detached Closed", "=: mismatch SIDR_REP"),
            ("Listen SidrReqSent SidrReqRcvd", "=: mismatch SIDR_REP"),
        ],
    },
];

/// Receives a message in which only the communication ids are set.
fn receive_blank(c: &mut Connection, attribute: Attribute) -> Actions {
    let mut mad = encoded(&Situation::RepSent.connection(), Outgoing::Rtu);
    mad[16..18].copy_from_slice(&attribute.id().to_be_bytes());
    mad[24..28].copy_from_slice(&PEER_ID.to_be_bytes());
    mad[28..32].copy_from_slice(&OWN_ID.to_be_bytes());
    let (hdr, msg) = wire::decode(&mad).unwrap();
    c.receive(&hdr, &msg, now())
}

/// Receives a LAP over InfiniBand with this transaction id, whose path was checked.
fn receive_lap(c: &mut Connection, tid: u64, path: Result<(), AprStatus>) -> Actions {
    let hdr = Header::new(Attribute::Lap, tid);
    c.receive_lap(&hdr, &peer_lap(), path).actions
}

/// Receives an APR to the first LAP of this end.
fn receive_apr(c: &mut Connection, status: u8) -> Actions {
    let hdr = Header::new(Attribute::Apr, OWN_TID + 1);
    c.receive(&hdr, &Message::Apr(peer_apr(status)), now())
}
