// SPDX-License-Identifier: GPL-2.0

//! A node in a state, with the tables that [`cmproto::node`] asks when a message arrives.

use crate::{
    bounds::Plant,
    machine::{Input, Msg, PEER},
    world::{Effect, End, Rules, World},
};
use cmproto::{
    addr::Gid,
    node::{
        self, Acceptor, Declined, Refused, RemoteIds, RemoteKey, RemoteTable, ReqAcceptor, Request,
        Response, Tables, Verdict,
    },
    qp::QpType,
    wire::{Message, Req},
};

/// A node in a state, with the tables that it finds its ends by.
pub struct NodeTables<'a> {
    pub rules: &'a Rules,
    pub world: &'a mut World,
    pub node: usize,
}

impl Tables for NodeTables<'_> {
    type Endpoint = usize;

    fn by_comm_id(&self, comm_id: u32) -> Option<usize> {
        self.rules.owner(self.world, self.node, comm_id)
    }

    fn by_remote(&self, key: &RemoteKey) -> Option<usize> {
        self.rules.by_remote(self.world, self.node, key)
    }
}

impl RemoteTable<usize> for NodeTables<'_> {
    fn owner(&self, key: &RemoteKey) -> Option<usize> {
        self.by_remote(key)
    }

    fn enter(&mut self, key: RemoteKey, place: &usize) -> Option<usize> {
        let owner = self.by_remote(&key).filter(|owner| owner != place);
        if owner.is_none() {
            *self.entry(&key, *place) = true;
        }
        owner
    }

    fn leave(&mut self, key: &RemoteKey, place: &usize) {
        *self.entry(key, *place) = false;
    }
}

impl NodeTables<'_> {
    /// Returns the flag that says if the end at a place is found by this kind of id.
    fn entry(&mut self, key: &RemoteKey, place: usize) -> &mut bool {
        let end = &mut self.world.ends[place];
        match key.is_qpn() {
            true => &mut end.confirmed,
            false => &mut end.tracked,
        }
    }

    /// Enters the queue pair of the peer of the end at a place; fails with the end that has it.
    pub fn confirm(&mut self, place: usize) -> Result<(), usize> {
        let value = self.world.ends[place].value;
        let ids = RemoteIds::of(&self.rules.machines.connection(value), PEER);
        node::confirm(self, &ids, &place)
    }

    pub fn input(&mut self, place: usize, input: Input) -> Effect {
        Effect {
            events: self.rules.input(self.world, place, input),
            created: false,
        }
    }

    /// Does what the node itself does about a message.
    pub fn respond(&mut self, response: &Response) {
        if let Response::Answer(answer) = response {
            let msg = self.rules.machines.answer(self.node, answer);
            self.world.net.add(msg);
        }
    }

    /// Does what is to be done about a request or reply that has no effect.
    fn refused(&mut self, refused: &Refused<usize>) -> Effect {
        self.respond(&refused.response);
        match refused.stale {
            Some(stale) => self.input(stale, Input::StalePeer),
            None => Effect::default(),
        }
    }

    /// Handles a message that names the end at a place.
    pub fn receive(&mut self, place: usize, msg: Msg, message: &Message<'_>) -> Effect {
        let plant = self.rules.bounds.plant;
        if plant == Plant::DeafToDreq && matches!(message, Message::Dreq(_)) {
            return Effect::default();
        }
        let machines = &self.rules.machines;
        let value = self.world.ends[place].value;
        match (machines.judge(value, msg, message), message) {
            (Verdict::Nobody(response), _) => {
                self.respond(&response);
                return Effect::default();
            }
            (Verdict::Claim(ids), Message::Rep(rep)) => {
                let mut connection = machines.connection(value);
                if let Err(refused) = node::claim_rep(self, &ids, &place, &mut connection, rep) {
                    if refused.stale.is_some() && plant != Plant::ForgetRefusals {
                        self.world.ends[place].value = machines.renumbered(connection);
                    }
                    return self.refused(&refused);
                }
            }
            (Verdict::Claim(_), _) => {
                if let Err(other) = self.confirm(place) {
                    let refused = self.input(place, Input::RefuseRtu);
                    self.input(other, Input::StalePeer);
                    return refused;
                }
            }
            (Verdict::Deliver, _) => {}
        }
        self.input(place, Input::Receive(msg))
    }

    /// Handles a REQ.
    pub fn request(self, msg: Msg, req: &Req<'_>) -> Effect {
        let mut incoming = IncomingReq { node: self, msg };
        match node::request(&mut incoming, PEER, req) {
            Request::Duplicate(known) => incoming.node.input(known, Input::DuplicateReq),
            Request::New(_, ()) => Effect {
                events: 0,
                created: true,
            },
            Request::Refused(refused) => incoming.node.refused(&refused),
            Request::Nothing => Effect::default(),
        }
    }
}

/// A REQ that arrives.
struct IncomingReq<'a> {
    node: NodeTables<'a>,
    msg: Msg,
}

impl IncomingReq<'_> {
    /// Returns true if a planted bug makes the node believe that it knows nobody.
    fn is_forgetful(&self) -> bool {
        self.node.rules.bounds.plant == Plant::ForgetPeers
    }
}

impl Acceptor for IncomingReq<'_> {
    type Endpoint = usize;
    type Listener = ();

    fn find_reply_path(&mut self) -> bool {
        true
    }

    fn is_served(&self, _: u64) -> bool {
        true
    }

    fn listener(&mut self) -> Option<()> {
        Some(())
    }

    fn check_backlog(&mut self, (): &()) -> Result<(), Declined> {
        // This only says that a place is free.
        Ok(())
    }

    fn create(&mut self, (): &()) -> Result<usize, Declined> {
        let NodeTables { rules, world, node } = &mut self.node;
        rules.create(world, *node, self.msg).ok_or(Declined::NoRoom)
    }

    fn discard(&mut self, place: usize) {
        self.node.world.ends[place] = End::UNUSED;
    }
}

impl RemoteTable<usize> for IncomingReq<'_> {
    fn owner(&self, key: &RemoteKey) -> Option<usize> {
        self.node.by_remote(key).filter(|_| !self.is_forgetful())
    }

    fn enter(&mut self, key: RemoteKey, place: &usize) -> Option<usize> {
        let owner = self.node.enter(key, place);
        owner.filter(|_| !self.is_forgetful())
    }

    fn leave(&mut self, key: &RemoteKey, place: &usize) {
        self.node.leave(key, place);
    }
}

impl ReqAcceptor for IncomingReq<'_> {
    fn has_pkey(&self, _: u16) -> bool {
        true
    }

    fn has_alternate_paths(&self) -> bool {
        false
    }

    fn port_gid(&self) -> Option<Gid> {
        None
    }

    fn local_gid(&self) -> Option<Gid> {
        None
    }

    fn takes_qp(&self, (): &(), _: QpType) -> bool {
        true
    }

    fn find_neighbour(&mut self) -> bool {
        true
    }

    fn publish(&mut self, place: &usize, _: &RemoteIds) -> bool {
        // With a planted bug, too.
        self.node.world.ends[*place].tracked = true;
        true
    }
}
