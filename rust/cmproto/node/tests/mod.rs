// SPDX-License-Identifier: GPL-2.0

//! Tests of a node whose tables are plain maps.

mod message;
mod request;
mod sidr;

use super::*;
use crate::{
    addr::Gid,
    cm::{
        tests::{
            header, passive, peer_apr, peer_drep, peer_dreq, peer_lap, peer_mra, peer_rej,
            peer_rep, peer_req, peer_rtu, Situation, OWN_ID, PEER_GUID, PEER_ID, PEER_QPN,
        },
        Action, Connection, DestroyCause, Outgoing, State,
    },
    dropped::Dropped,
    origin::Origin,
    reject::Reason,
    sidr::{refusal, Resolution, Status},
    time::Instant,
    wire::{
        self, Attribute, Message, MraMessage, Rej, RejMessage, Rep, SidrReq, INFO_LEN, MAD_LEN,
    },
};
use std::{cell::RefCell, collections::BTreeMap};

const PEER: Origin = Origin::of_gid(Gid([2; 16]));
const STRANGER: Origin = Origin::of_gid(Gid([3; 16]));
/// The endpoint with the communication id under test.
const MINE: &str = "mine";
const OTHER: &str = "other";

#[derive(Default)]
struct Node {
    ids: BTreeMap<u32, &'static str>,
    remotes: BTreeMap<RemoteKey, &'static str>,
}

impl Tables for Node {
    type Endpoint = &'static str;

    fn by_comm_id(&self, comm_id: u32) -> Option<&'static str> {
        self.ids.get(&comm_id).copied()
    }

    fn by_remote(&self, key: &RemoteKey) -> Option<&'static str> {
        self.remotes.get(key).copied()
    }
}

impl RemoteTable<&'static str> for Node {
    fn owner(&self, key: &RemoteKey) -> Option<&'static str> {
        self.by_remote(key)
    }

    fn enter(&mut self, key: RemoteKey, endpoint: &&'static str) -> Option<&'static str> {
        let owner = self.by_remote(&key);
        if owner.is_none() {
            self.remotes.insert(key, endpoint);
        }
        owner
    }

    fn leave(&mut self, key: &RemoteKey, endpoint: &&'static str) {
        if self.remotes.get(key) == Some(endpoint) {
            self.remotes.remove(key);
        }
    }
}

/// A node that accepts every REQ and SIDR_REQ, unless one of the fields says otherwise, and logs
/// the checks.
struct Incoming {
    tables: Node,
    /// The service id of the request.
    service_id: u64,
    has_sender: bool,
    is_served: bool,
    listener: Option<()>,
    backlog: Result<(), Declined>,
    create: Result<(), Declined>,
    /// The id that another task enters while the endpoint is created.
    race: Option<RemoteKey>,
    // A REQ.
    has_pkey: bool,
    has_alternate_paths: bool,
    has_neighbour: bool,
    takes_qp: bool,
    keeps_device: bool,
    // A SIDR_REQ.
    known: KnownSidr<&'static str>,
    takes_datagrams: bool,
    entry: Entry,
    log: RefCell<Vec<&'static str>>,
}

impl Incoming {
    fn new(service_id: u64) -> Self {
        Self {
            tables: Node::default(),
            service_id,
            has_sender: true,
            is_served: true,
            listener: Some(()),
            backlog: Ok(()),
            create: Ok(()),
            race: None,
            has_pkey: true,
            has_alternate_paths: false,
            has_neighbour: true,
            takes_qp: true,
            keeps_device: true,
            known: KnownSidr::Nothing,
            takes_datagrams: true,
            entry: Entry::New,
            log: RefCell::default(),
        }
    }

    fn note(&self, what: &'static str) {
        self.log.borrow_mut().push(what);
    }
}

impl Acceptor for Incoming {
    type Endpoint = &'static str;
    type Listener = ();

    fn find_reply_path(&mut self) -> bool {
        self.note("reply path");
        self.has_sender
    }

    fn is_served(&self, service_id: u64) -> bool {
        self.note("served");
        assert_eq!(service_id, self.service_id);
        self.is_served
    }

    fn listener(&mut self) -> Option<()> {
        self.note("listener");
        self.listener
    }

    fn check_backlog(&mut self, (): &()) -> Result<(), Declined> {
        self.note("backlog");
        self.backlog
    }

    fn create(&mut self, (): &()) -> Result<&'static str, Declined> {
        self.note("create");
        if let Some(key) = self.race {
            self.tables.remotes.insert(key, OTHER);
        }
        self.create.map(|()| MINE)
    }

    fn discard(&mut self, endpoint: &'static str) {
        self.note("discard");
        assert_eq!(endpoint, MINE);
    }
}

fn peer() -> Peer {
    Peer {
        guid: PEER_GUID,
        origin: PEER,
    }
}

fn ids() -> RemoteIds {
    RemoteIds {
        peer: peer(),
        comm_id: PEER_ID,
        qpn: PEER_QPN,
    }
}

fn sidr_req() -> SidrReq<'static> {
    SidrReq {
        request_id: OWN_ID,
        pkey: 0xffff,
        service_id: 7,
        private_data: &[],
    }
}

/// Returns the node's answer, as on the wire, and its transaction id.
fn on_the_wire(response: &Response, asked: &Message<'_>) -> Option<([u8; MAD_LEN], u64)> {
    let Response::Answer(answer) = response else {
        return None;
    };
    let mut mad = [0; MAD_LEN];
    answer.encode(&header(asked), &mut mad);
    let (hdr, message) = wire::decode(&mad).unwrap();
    assert_eq!(message.attribute(), answer.attribute());
    Some((mad, hdr.tid))
}
