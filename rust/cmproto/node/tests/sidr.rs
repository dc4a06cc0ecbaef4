// SPDX-License-Identifier: GPL-2.0

//! Tests of the checks of a SIDR_REQ.

use super::*;
use crate::{sidr::ReplyParams, wire::Header};

fn incoming() -> Incoming {
    Incoming::new(sidr_req().service_id)
}

impl SidrAcceptor for Incoming {
    fn known(&self) -> KnownSidr<&'static str> {
        self.known.clone()
    }

    fn takes_datagrams(&self, (): &()) -> bool {
        self.note("type");
        self.takes_datagrams
    }

    fn enter(&mut self, endpoint: &&'static str) -> Entry {
        self.note("enter");
        assert_eq!(*endpoint, MINE);
        self.entry
    }
}

const HEADER: Header = Header::new(Attribute::SidrReq, 0x77);

fn take(node: &mut Incoming) -> SidrRequest<&'static str, ()> {
    sidr_request(node, &HEADER, &sidr_req())
}

fn refused(status: Status) -> SidrRequest<&'static str, ()> {
    SidrRequest::Refused(Response::Answer(Answer::SidrRep {
        request_id: OWN_ID,
        service_id: sidr_req().service_id,
        status,
    }))
}

/// The checks of a SIDR_REQ, in their order.
const ALL: [&str; 7] = [
    "reply path",
    "served",
    "listener",
    "type",
    "backlog",
    "create",
    "enter",
];

#[test]
fn each_check_refuses_in_its_way_and_nothing_after_it_is_asked() {
    type Fault = fn(&mut Incoming);
    let reject = || refused(Status::REJECT);
    let unreachable = SidrRequest::Refused(Response::Drop(Dropped::Unreachable));
    let cases: [(&str, Fault, SidrRequest<_, _>); 9] = [
        ("reply path", |n| n.has_sender = false, unreachable),
        (
            "served",
            |n| n.is_served = false,
            refused(Status::UNSUPPORTED),
        ),
        ("listener", |n| n.listener = None, reject()),
        ("type", |n| n.takes_datagrams = false, reject()),
        ("backlog", |n| n.backlog = Err(Declined::NoRoom), reject()),
        ("create", |n| n.create = Err(Declined::NoRoom), reject()),
        ("enter", |n| n.entry = Entry::Gone, SidrRequest::Nothing),
        (
            "enter",
            |n| n.entry = Entry::New,
            SidrRequest::New(MINE, ()),
        ),
        (
            "discard",
            |n| n.entry = Entry::Duplicate,
            SidrRequest::Nothing,
        ),
    ];
    for (last, fault, expected) in cases {
        let mut node = incoming();
        fault(&mut node);
        assert_eq!(take(&mut node), expected, "{last}");
        let asked = node.log.borrow();
        match ALL.iter().position(|check| *check == last) {
            Some(end) => assert_eq!(*asked, ALL[..=end], "{last}"),
            None => assert_eq!((&asked[..7], asked.last()), (&ALL[..], Some(&"discard"))),
        }
    }
}

#[test]
fn what_came_before_is_not_taken_again() {
    let mut node = Incoming {
        known: KnownSidr::Pending(OTHER),
        ..incoming()
    };
    assert_eq!(take(&mut node), SidrRequest::Duplicate(OTHER));

    let mut answer = Resolution::from_req(&HEADER, &sidr_req(), Resolution::MEMORY);
    let params = ReplyParams::success(7, 9);
    let _ = answer
        .reply(&params, &[], b"here", Instant::from_micros(0))
        .unwrap();
    node.known = KnownSidr::Answered(answer.clone());
    assert_eq!(take(&mut node), SidrRequest::Answered(answer));
    assert!(node.log.borrow().is_empty());

    // A peer that was restarted sends another request with the same request id.
    let another = SidrReq {
        service_id: sidr_req().service_id,
        pkey: 0x8001,
        ..sidr_req()
    };
    let taken = sidr_request(&mut node, &HEADER, &another);
    assert_eq!(taken, SidrRequest::New(MINE, ()));
    assert_eq!(*node.log.borrow(), ALL);
}

#[test]
fn a_refusal_says_which_request_it_answers() {
    let mut node = Incoming {
        is_served: false,
        ..incoming()
    };
    let SidrRequest::Refused(response) = take(&mut node) else {
        panic!("it is not refused");
    };
    let asked = Message::SidrReq(sidr_req());
    let (mad, tid) = on_the_wire(&response, &asked).unwrap();
    assert_eq!(tid, header(&asked).tid);
    let (_, Message::SidrRep(rep)) = wire::decode(&mad).unwrap() else {
        panic!("it is no SIDR_REP");
    };
    let expected = refusal(&sidr_req(), Status::UNSUPPORTED);
    assert_eq!(
        (rep.request_id, rep.status, rep.service_id, rep.qpn),
        (expected.request_id, expected.status, expected.service_id, 0)
    );
    let Response::Answer(answer) = response else {
        panic!("it is dropped");
    };
    assert_eq!((answer.dropped(), answer.is_repeated()), (None, false));
}
