// SPDX-License-Identifier: GPL-2.0

//! Tests of the checks of a REQ.

use super::*;
use crate::{
    errno::Errno,
    qp::QpType,
    wire::{Req, ReqPath, Transport},
};

const PORT_GID: Gid = Gid([0xa; 16]);
const LOCAL_GID: Gid = Gid([0xb; 16]);

fn incoming() -> Incoming {
    Incoming::new(peer_req().service_id)
}

impl RemoteTable<&'static str> for Incoming {
    fn owner(&self, key: &RemoteKey) -> Option<&'static str> {
        self.tables.owner(key)
    }

    fn enter(&mut self, key: RemoteKey, endpoint: &&'static str) -> Option<&'static str> {
        self.tables.enter(key, endpoint)
    }

    fn leave(&mut self, key: &RemoteKey, endpoint: &&'static str) {
        self.tables.leave(key, endpoint);
    }
}

impl ReqAcceptor for Incoming {
    fn has_pkey(&self, pkey: u16) -> bool {
        self.note("pkey");
        assert_eq!(pkey, peer_req().pkey);
        self.has_pkey
    }

    fn has_alternate_paths(&self) -> bool {
        self.has_alternate_paths
    }

    fn port_gid(&self) -> Option<Gid> {
        Some(PORT_GID)
    }

    fn local_gid(&self) -> Option<Gid> {
        Some(LOCAL_GID)
    }

    fn takes_qp(&self, (): &(), qp_type: QpType) -> bool {
        self.note("type");
        assert_eq!(qp_type, QpType::RC);
        self.takes_qp
    }

    fn find_neighbour(&mut self) -> bool {
        self.note("neighbour");
        self.has_neighbour
    }

    fn publish(&mut self, endpoint: &&'static str, named: &RemoteIds) -> bool {
        self.note("publish");
        assert_eq!(
            (*endpoint, named.comm_id, named.qpn),
            (MINE, PEER_ID, PEER_QPN)
        );
        self.keeps_device
    }
}

fn take(node: &mut Incoming) -> Request<&'static str, ()> {
    request(node, PEER, &peer_req())
}

fn rejected(reason: Reason, gid: Option<Gid>) -> Request<&'static str, ()> {
    Request::Refused(Refused {
        response: Response::Answer(Answer::Rej {
            refused: RejMessage::Req,
            local_comm_id: 0,
            remote_comm_id: PEER_ID,
            reason,
            gid,
        }),
        stale: None,
    })
}

fn dropped(why: Dropped) -> Request<&'static str, ()> {
    Request::Refused(Refused {
        response: Response::Drop(why),
        stale: None,
    })
}

/// The checks of a REQ, in their order.
const ALL: [&str; 9] = [
    "reply path",
    "served",
    "pkey",
    "listener",
    "backlog",
    "neighbour",
    "type",
    "create",
    "publish",
];

#[test]
fn a_new_request_passes_everything_and_has_its_name() {
    let mut node = incoming();
    assert_eq!(take(&mut node), Request::New(MINE, ()));
    assert_eq!(*node.log.borrow(), ALL);
    // Its QPN is entered when it is confirmed.
    let one = BTreeMap::from([(ids().comm_id_key(), MINE)]);
    assert_eq!(node.tables.remotes, one);
    // The same REQ again is a duplicate, and no check is made.
    node.log.borrow_mut().clear();
    assert_eq!(take(&mut node), Request::Duplicate(MINE));
    assert!(node.log.borrow().is_empty());
}

#[test]
fn each_check_refuses_in_its_way_and_nothing_after_it_is_asked() {
    type Fault = fn(&mut Incoming);
    let mismatch = || rejected(Reason::CONSUMER_DEFINED, None);
    let full = || rejected(Reason::NO_RESOURCES, None);
    let overload = || dropped(Dropped::Overload);
    let cases: [(&str, Fault, Request<_, _>); 12] = [
        ("reply path", |n| n.has_sender = false, overload()),
        (
            "served",
            |n| n.is_served = false,
            rejected(Reason::INVALID_SERVICE_ID, None),
        ),
        (
            "pkey",
            |n| n.has_pkey = false,
            rejected(Reason::INVALID_GID, Some(PORT_GID)),
        ),
        ("listener", |n| n.listener = None, mismatch()),
        ("backlog", |n| n.backlog = Err(Declined::NoRoom), overload()),
        ("backlog", |n| n.backlog = Err(Declined::OverLimit), full()),
        (
            "backlog",
            |n| n.backlog = Err(Declined::Refused),
            mismatch(),
        ),
        (
            "neighbour",
            |n| n.has_neighbour = false,
            dropped(Dropped::Unreachable),
        ),
        ("type", |n| n.takes_qp = false, mismatch()),
        ("create", |n| n.create = Err(Declined::Refused), mismatch()),
        ("create", |n| n.create = Err(Declined::NoRoom), overload()),
        ("publish", |n| n.keeps_device = false, Request::Nothing),
    ];
    for (last, fault, expected) in cases {
        let mut node = incoming();
        fault(&mut node);
        assert_eq!(take(&mut node), expected, "{last}");
        let asked = node.log.borrow();
        let end = ALL.iter().position(|check| *check == last).unwrap();
        assert_eq!(*asked, ALL[..=end], "{last}");
        // If the device is gone, the node itself removes the id in `publish`.
        let entered = usize::from(last == "publish");
        assert_eq!(node.tables.remotes.len(), entered);
    }
}

#[test]
fn there_are_alternate_paths_on_infiniband_only() {
    let req = Req {
        alternate: ReqPath {
            local_lid: 1,
            remote_lid: 2,
            ..peer_req().primary
        },
        ..peer_req()
    };
    let mut node = incoming();
    let refused = rejected(Reason::INVALID_ALT_GID, Some(LOCAL_GID));
    assert_eq!(request(&mut node, PEER, &req), refused);
    assert_eq!(*node.log.borrow(), ALL[..3]);
    let mut node = Incoming {
        has_alternate_paths: true,
        ..incoming()
    };
    assert_eq!(request(&mut node, PEER, &req), Request::New(MINE, ()));
}

#[test]
fn a_transport_that_does_not_exist_is_refused() {
    let req = Req {
        transport: Transport::Other(2, 0),
        ..peer_req()
    };
    let mut node = incoming();
    let refused = rejected(Reason::CONSUMER_DEFINED, None);
    assert_eq!(request(&mut node, PEER, &req), refused);
    assert_eq!(*node.log.borrow(), ALL[..6]);
}

fn stale() -> Request<&'static str, ()> {
    match rejected(Reason::STALE_CONN, None) {
        Request::Refused(refused) => Request::Refused(Refused {
            stale: Some(OTHER),
            ..refused
        }),
        other => other,
    }
}

#[test]
fn a_queue_pair_in_use_is_asked_for_before_anything_else() {
    let mut node = incoming();
    node.tables.remotes.insert(ids().qpn_key(), OTHER);
    assert_eq!(take(&mut node), stale());
    assert!(node.log.borrow().is_empty());
    assert_eq!(node.tables.remotes.len(), 1);
    // Another peer may use the same ids.
    let elsewhere = request(&mut node, STRANGER, &peer_req());
    assert_eq!(elsewhere, Request::New(MINE, ()));
}

#[test]
fn who_loses_a_race_for_the_name_leaves_nothing() {
    let race = ids().comm_id_key();
    let mut node = Incoming {
        race: Some(race),
        ..incoming()
    };
    assert_eq!(take(&mut node), Request::Nothing);
    let log = node.log.borrow();
    assert_eq!(log[..8], ALL[..8]);
    assert_eq!(log[8..], ["discard"]);
    assert_eq!(node.tables.remotes, BTreeMap::from([(race, OTHER)]));
}

/// Requests that nobody has confirmed do not block any other.
#[test]
fn unconfirmed_requests_have_no_queue_pair() {
    let mut node = incoming();
    let forged = |n| Req {
        local_comm_id: PEER_ID + n,
        ..peer_req()
    };
    for n in 1..=64 {
        let key = RemoteKey::comm_id(peer(), PEER_ID + n);
        node.tables.remotes.insert(key, OTHER);
        let again = request(&mut node, PEER, &forged(n));
        assert_eq!(again, Request::Duplicate(OTHER));
    }
    assert_eq!(take(&mut node), Request::New(MINE, ()));
    // From its confirmation on it has the queue pair.
    assert_eq!(confirm(&mut node.tables, &ids(), &OTHER), Ok(()));
    let refused = request(&mut node, PEER, &forged(65));
    assert!(matches!(refused, Request::Refused(refused) if refused.stale == Some(OTHER)));
}

#[test]
fn what_the_consumer_does_not_take_ends() {
    let full = Some(Reason::NO_RESOURCES);
    let overload = Some(Dropped::Overload);
    let (user, memory) = (DestroyCause::User, DestroyCause::NoMemory);
    for (declined, reject, cause, dropped) in [
        (Declined::OverLimit, full, memory, overload),
        (Errno::EMFILE.into(), full, memory, overload),
        (Declined::NoRoom, None, memory, overload),
        (Errno::ENOMEM.into(), None, memory, overload),
        (Declined::Refused, None, user, None),
        (Errno::ENODEV.into(), None, user, None),
    ] {
        let end = RequestEnd {
            reject,
            cause,
            dropped,
        };
        assert_eq!(RequestEnd::req(declined), end, "{declined:?}");
        let end = RequestEnd {
            reject: None,
            cause: if declined == Declined::NoRoom {
                memory
            } else {
                user
            },
            dropped: None,
        };
        assert_eq!(RequestEnd::sidr_req(declined), end, "{declined:?}");
    }
}
