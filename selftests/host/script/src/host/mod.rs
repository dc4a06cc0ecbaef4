// SPDX-License-Identifier: GPL-2.0

//! The protocol crate as a world: a node with a virtual clock.
//!
//! What becomes of a message `cmproto::node` decides, and here it is carried out. What needs a kernel
//! (routes, devices, memory) is reduced to what the scripts can tell.

mod call;
mod receive;
mod seen;
mod sidr;

use self::sidr::{Sidr, SidrEntry, SidrKey};
use crate::{
    wire::{self, Mad},
    world::{Answer, Call, Endpoint, Event, Input, Micros, Names, Sent, Under, Watch, Who, World},
};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::{self, Action, Actions, Connection, Outgoing, Tuning},
    cma,
    ids::CommIdKey,
    node::{RemoteIds, RemoteKey, RemoteTable},
    origin::Origin,
    service_id::PortSpace,
    time::Instant,
    ucma::backlog::Backlog,
    wire::{Header, Rej, Rep},
};
use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
};

/// Node GUID of the system under test.
const GUID: u64 = 0x0200_00ff_fe00_0001;
/// Time codes of rxe.
const LIFE_TIME: u8 = 16;
const ACK_DELAY: u8 = 15;
/// `enum ib_mtu` of 1024 bytes.
const MTU: u8 = 3;
const HOP_LIMIT: u8 = 64;
const EPHEMERAL: u16 = 40_000;

/// What a listener hears.
struct Listen {
    addr: SockAddr,
    service: u64,
    space: PortSpace,
    afonly: bool,
    backlog: Backlog,
}

/// The connection of an endpoint.
struct Conn {
    machine: Connection,
    peer: Origin,
    /// Whether this end sent the REQ.
    is_active: bool,
    /// Its names in the table of the peers.
    tracked: Option<RemoteIds>,
}

/// An endpoint of the user.
struct Object {
    state: cma::State,
    /// Whether the user wants events: from ACCEPT on.
    has_uid: bool,
    listen: Option<Listen>,
    conn: Option<Conn>,
    sidr: Option<Sidr>,
    psn: u32,
    qkey: cma::Qkey,
}

impl Object {
    fn new(state: cma::State, has_uid: bool) -> Self {
        Self {
            state,
            has_uid,
            listen: None,
            conn: None,
            sidr: None,
            psn: 0,
            qkey: cma::Qkey::unknown(),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match (&self.conn, &self.sidr) {
            (Some(conn), _) => conn.machine.deadline(),
            // An answer has no user any more; it is the table that forgets it.
            (None, Some(sidr)) if !sidr.machine.is_answered() => sidr.machine.deadline(),
            _ => None,
        }
    }
}

/// What came with an event.
enum Cause<'a> {
    None,
    Rep(&'a Header, &'a Rep<'a>),
    Rej(&'a Rej<'a>),
}

/// A message, and who sent it.
struct Arrived<'a> {
    from: Origin,
    header: &'a Header,
}

/// The names of peers, and the connections that they belong to.
#[derive(Default)]
struct Remotes(HashMap<RemoteKey, usize>);

impl RemoteTable<usize> for Remotes {
    fn owner(&self, key: &RemoteKey) -> Option<usize> {
        self.0.get(key).copied()
    }

    fn enter(&mut self, key: RemoteKey, index: &usize) -> Option<usize> {
        let owner = self.owner(&key);
        if owner.is_none() {
            self.0.insert(key, *index);
        }
        owner
    }

    fn leave(&mut self, key: &RemoteKey, index: &usize) {
        if self.0.get(key) == Some(index) {
            self.0.remove(key);
        }
    }
}

/// A node of the protocol crate.
pub struct Node {
    names: Names,
    now: Instant,
    ids: CommIdKey,
    next_id: u32,
    objects: Vec<Object>,
    /// Who has a communication id here.
    by_id: HashMap<u32, usize>,
    /// Whose peer has this name.
    remotes: Remotes,
    sidr_requests: HashMap<SidrKey, SidrEntry>,
    wire: VecDeque<Sent>,
    events: VecDeque<Event>,
    seen: seen::Cells,
    tuning: Tuning,
}

fn sock(address: IpAddr, port: u16) -> SockAddr {
    match address {
        IpAddr::V4(v4) => SockAddr::v4(v4.octets(), port),
        IpAddr::V6(v6) => SockAddr::v6(v6.octets(), port),
    }
}

fn event(kind: u32, at: Micros, endpoint: usize, status: i32) -> Event {
    Event {
        at,
        endpoint: Endpoint(endpoint),
        child: None,
        kind,
        status,
        private: Vec::new(),
        responder: 0,
        initiator: 0,
        flow: 0,
        retry: 0,
        rnr: 0,
        srq: 0,
        qpn: 0,
        vendor: 0,
        attr_mod: 0,
    }
}

/// Names for a scenario, which is alone with its node.
pub fn names(is_ipv6: bool) -> Names {
    let address = |v4: [u8; 4], last: u16| match is_ipv6 {
        true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]),
        false => IpAddr::from(v4),
    };
    Names {
        local: address([10, 0, 0, 1], 1),
        peer: address([10, 0, 0, 9], 9),
        stranger: address([10, 0, 0, 10], 10),
        guid: 0x0200_00ff_fe00_0009,
        port: 7000,
    }
}

impl Node {
    /// A node with no endpoints.
    pub fn new(names: Names) -> Self {
        Self {
            names,
            now: Instant::from_micros(1_000_000),
            ids: CommIdKey::new([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]),
            next_id: 1,
            objects: Vec::new(),
            by_id: HashMap::new(),
            remotes: Remotes::default(),
            sidr_requests: HashMap::new(),
            wire: VecDeque::new(),
            events: VecDeque::new(),
            seen: seen::Cells::new(),
            tuning: Tuning::NONE,
        }
    }

    fn origin(&self, who: Who) -> Origin {
        Origin::of_gid(Gid(wire::gid(match who {
            Who::Peer => self.names.peer,
            Who::Stranger => self.names.stranger,
        })))
    }

    fn who(&self, origin: Origin) -> Who {
        match origin == self.origin(Who::Stranger) {
            true => Who::Stranger,
            false => Who::Peer,
        }
    }

    fn comm_id(&mut self) -> u32 {
        let id = self.ids.permute(self.next_id);
        self.next_id += 1;
        id
    }

    fn object(&mut self, object: Object) -> usize {
        self.objects.push(object);
        self.objects.len() - 1
    }

    fn conn(&mut self, index: usize) -> Option<&mut Conn> {
        self.objects.get_mut(index)?.conn.as_mut()
    }

    // What the state machine asks for
    // ------------------------------------------------------------------------------------------

    fn execute(&mut self, index: usize, actions: Actions, cause: &Cause<'_>) {
        for action in actions {
            match action {
                Action::Send(outgoing) => self.transmit(index, outgoing),
                Action::ReleaseRemoteIds => self.release_remote_ids(index),
                Action::Deliver(event) => self.report(index, event, cause),
                Action::Timer | Action::Release | Action::Count(_) => {}
            }
        }
    }

    fn transmit(&mut self, index: usize, outgoing: Outgoing) {
        let at = self.now.as_micros();
        let Some(conn) = self.conn(index) else {
            return;
        };
        let mut mad = Mad([0; wire::MAD_LEN]);
        let encoded = conn.machine.encode(outgoing, &mut mad.0);
        encoded.expect("the machine can write what it sends");
        let peer = conn.peer;
        let to = self.who(peer);
        self.wire.push_back(Sent { at, to, mad });
    }

    fn release_remote_ids(&mut self, index: usize) {
        let tracked = self.conn(index).and_then(|conn| conn.tracked.take());
        if let Some(ids) = tracked {
            self.remotes.leave(&ids.comm_id_key(), &index);
            self.remotes.leave(&ids.qpn_key(), &index);
        }
    }

    fn report(&mut self, index: usize, reported: cm::Event, cause: &Cause<'_>) {
        let at = self.now.as_micros();
        let Some(object) = self.objects.get_mut(index) else {
            return;
        };
        let Some(upcall) = cma::upcall(object.state, reported, None) else {
            return;
        };
        if let (cm::Event::RepReceived, Some(conn)) = (reported, &mut object.conn) {
            let _ = conn.machine.prepare_mra(Connection::SERVICE_TIMEOUT);
        }
        if let Some(next) = upcall
            .trigger
            .and_then(|trigger| object.state.next(trigger))
        {
            object.state = next;
        }
        if !object.has_uid {
            return;
        }
        let mut event = event(upcall.event as u32, at, index, upcall.status);
        match cause {
            Cause::None => {}
            Cause::Rej(rej) => event.private = rej.private_data.to_vec(),
            Cause::Rep(header, rep) => {
                event.private = rep.private_data.to_vec();
                event.responder = rep.initiator_depth;
                event.initiator = rep.responder_resources;
                event.flow = rep.flow_control.into();
                event.rnr = rep.rnr_retry_count;
                event.srq = rep.srq.into();
                event.qpn = rep.local_qpn;
                event.vendor = rep.vendor_id;
                event.attr_mod = header.attr_mod;
            }
        }
        self.events.push_back(event);
    }

    // The clock
    // ------------------------------------------------------------------------------------------

    /// Lets the first timer go off that is due before `until`.
    fn tick(&mut self, until: Instant) -> bool {
        let timers = self.objects.iter().enumerate();
        let first = timers
            .filter_map(|(i, object)| Some((object.deadline()?, i)))
            .min();
        let Some((deadline, index)) = first.filter(|(deadline, _)| *deadline <= until) else {
            return false;
        };
        self.now = self.now.max(deadline);
        let now = self.now;
        if let Some(conn) = self.conn(index) {
            let actions = conn.machine.timeout(now);
            self.execute(index, actions, &Cause::None);
        } else if let Some(sidr) = self.sidr(index) {
            let actions = sidr.machine.timeout(now);
            self.execute_sidr(index, actions, None);
        }
        true
    }
}

impl World for Node {
    fn under(&self) -> Under {
        Under::Host
    }

    fn names(&self) -> Names {
        self.names
    }

    fn now(&self) -> Micros {
        self.now.as_micros()
    }

    fn retry_timeout(&self) -> Micros {
        0
    }

    fn slack(&self) -> Micros {
        0
    }

    fn send(&mut self, from: Who, bytes: &[u8]) -> Result<(), String> {
        // The MAD layer hands out nothing that is not whole.
        if let Ok(bytes) = bytes.try_into() {
            self.dispatch(self.origin(from), bytes);
        }
        Ok(())
    }

    fn tune(&mut self, tuning: &Tuning) {
        self.tuning = *tuning;
    }

    fn call(&mut self, call: &Call) -> Result<Answer, i32> {
        self.make(call).map_err(|errno| errno.code())
    }

    fn next(&mut self, watch: Watch, until: Micros) -> Option<Input> {
        loop {
            if watch.wire {
                if let Some(sent) = self.wire.pop_front() {
                    return Some(Input::Mad(Box::new(sent)));
                }
            }
            if watch.events {
                if let Some(event) = self.events.pop_front() {
                    let listener = self.objects.get_mut(event.endpoint.0);
                    if let (
                        Some(Object {
                            listen: Some(listen),
                            ..
                        }),
                        Some(_),
                    ) = (listener, event.child)
                    {
                        listen.backlog.release();
                    }
                    return Some(Input::Event(Box::new(event)));
                }
            }
            let until = Instant::from_micros(until);
            if !self.tick(until) {
                self.now = self.now.max(until);
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::Kind;
    use cmproto::wire::Attribute;

    #[test]
    fn attributes_are_those_of_the_table() {
        for (kind, _, id) in Kind::ALL {
            assert_eq!(
                Attribute::try_from(id).map(Attribute::id),
                Ok(id),
                "{kind:?}"
            );
        }
    }
}
