// SPDX-License-Identifier: GPL-2.0

//! Two nodes, their users, and the network between them.
//!
//! `cmproto::node` decides about a message at a node; [`tables`](crate::tables) has what it asks.

use crate::{
    bounds::{Bounds, Plant, Slot, Verb},
    machine::{guid, other, Input, Machines, Msg, Msgs, Outcome, Value, View, PEER},
    tables::NodeTables,
};
use cmproto::{
    cm::{Event, Outgoing, State},
    node::{self, RemoteKey, Route},
    wire::{self, Message},
};

/// Most ends of connections in a model.
pub const ENDS: usize = 5;

/// The state of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndState {
    /// Not used yet.
    Unused,
    /// The end has a connection.
    Live,
    /// The connection was released and its user has destroyed it: its communication id is free.
    Gone,
    /// Lost in a restart of its node.
    Crashed,
}

/// One end of a connection. Its place determines its node and its communication id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    pub state: EndState,
    pub value: Value,
    /// The communication id of its peer is in the tables of its node.
    pub tracked: bool,
    /// The queue pair of its peer is.
    pub confirmed: bool,
    pub destroyed: bool,
    /// The history, as far as a property needs it.
    pub past: Past,
}

/// The history of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// The number of times that its attempt to connect came to an end (S3).
    pub outcomes: u8,
    pub was_established: bool,
    /// The user was told of a REJ (S2).
    pub rejected: bool,
    /// The end gave up waiting for an RTU.
    pub rep_error: bool,
    /// Place of the end that it believes to talk to, plus one.
    pub peer: u8,
    /// The numbers of sends of its REQ or REP, and of its DREQ (S7).
    pub requests: u8,
    pub dreqs: u8,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub ends: [End; ENDS],
    pub net: Msgs,
    /// Messages that have arrived and had an effect on the end at a place.
    pub seen: [Msgs; ENDS],
    pub restarts: [u8; 2],
    /// A property that a step has broken.
    pub broken: Option<Broken>,
}

/// An error of a step, rather than of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// S6: a message that had its effect before has another one.
    DuplicateHasEffect,
    /// An event for a user who has destroyed the connection.
    EventAfterDestroy,
    /// S4: a connection has ended because somebody claimed the queue pair of a peer that has it.
    EndedByClaim,
}

/// A step that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Connect(usize),
    User(usize, Verb),
    Timer(usize),
    Deliver(Msg),
    Restart(usize),
}

/// The effect of the arrival of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effect {
    /// Events that users were told of.
    pub events: usize,
    /// The REQ made a new connection.
    pub created: bool,
}

/// The communication id of the end at a place.
pub fn comm_id(place: usize) -> u32 {
    0xc0 + place as u32
}

/// The place of the end with a communication id.
fn place(comm_id: u32) -> Option<usize> {
    usize::try_from(comm_id.checked_sub(0xc0)?)
        .ok()
        .filter(|place| *place < ENDS)
}

impl End {
    pub const UNUSED: Self = Self {
        state: EndState::Unused,
        value: Value(u16::MAX),
        tracked: false,
        confirmed: false,
        destroyed: false,
        past: Past {
            outcomes: 0,
            was_established: false,
            rejected: false,
            rep_error: false,
            peer: 0,
            requests: 0,
            dreqs: 0,
        },
    };
}

impl World {
    pub fn new() -> Self {
        Self {
            ends: [End::UNUSED; ENDS],
            net: Msgs::default(),
            seen: [Msgs::default(); ENDS],
            restarts: [0; 2],
            broken: None,
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// The rules of a search.
pub struct Rules {
    pub machines: Machines,
    pub bounds: Bounds,
}

impl Rules {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            machines: Machines::new(bounds.retries, bounds.transport),
            bounds,
        }
    }

    pub fn node(&self, place: usize) -> usize {
        match self.bounds.slots[place] {
            Slot::Active { node, .. } | Slot::Passive { node, .. } => node,
        }
    }

    /// The places that a search uses.
    pub fn places(&self) -> std::ops::Range<usize> {
        0..self.bounds.slots.len()
    }

    /// The connection at a place.
    pub fn view(&self, world: &World, place: usize) -> Option<View> {
        let end = &world.ends[place];
        (end.state == EndState::Live).then(|| self.machines.view(end.value))
    }

    /// The end of `node` for which `test` holds.
    fn find(
        &self,
        world: &World,
        node: usize,
        test: impl Fn(&End, &View) -> bool,
    ) -> Option<usize> {
        self.places().find(|place| {
            let end = &world.ends[*place];
            self.node(*place) == node
                && self
                    .view(world, *place)
                    .is_some_and(|view| test(end, &view))
        })
    }

    /// The end of `node` whose peer has a name.
    pub fn by_remote(&self, world: &World, node: usize, key: &RemoteKey) -> Option<usize> {
        self.find(world, node, |end, view| {
            let (is_entered, value) = match key.is_qpn() {
                true => (end.confirmed, view.remote_qpn),
                false => (end.tracked, view.remote_comm_id),
            };
            is_entered && (view.remote_guid, value) == (key.peer().guid, key.value())
        })
    }

    /// All that can happen in a state, whether it changes anything or not.
    pub fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        if world.broken.is_some() {
            return;
        }
        self.fair_steps(world, steps);
        for place in self.places() {
            let end = &world.ends[place];
            match (end.state, self.bounds.slots[place]) {
                (EndState::Unused, Slot::Active { after, .. }) => {
                    if after.is_none_or(|before| self.over(world, before)) {
                        steps.push(Step::Connect(place));
                    }
                }
                (EndState::Live, _) => {
                    for verb in self.bounds.verbs.iter().copied() {
                        if self.allowed(world, place, verb) {
                            steps.push(Step::User(place, verb));
                        }
                    }
                }
                _ => {}
            }
        }
        for node in 0..2 {
            let any = self
                .places()
                .any(|p| self.node(p) == node && world.ends[p].state == EndState::Live);
            if any && world.restarts[node] < self.bounds.restarts[node] {
                steps.push(Step::Restart(node));
            }
        }
    }

    /// Adds the steps that happen at some time if nothing else does: messages arrive, timers go
    /// off, and an active user takes the connection that it asked for.
    pub fn fair_steps(&self, world: &World, steps: &mut Vec<Step>) {
        steps.extend(world.net.iter().map(Step::Deliver));
        for place in self.places() {
            let Some(view) = self.view(world, place) else {
                continue;
            };
            if view.timer {
                steps.push(Step::Timer(place));
            }
            if matches!(view.state, State::RepRcvd | State::MraRepSent)
                && !world.ends[place].destroyed
            {
                steps.push(Step::User(place, Verb::Establish));
            }
        }
    }

    /// Returns true if a connection has ended, so that its user may try again.
    fn over(&self, world: &World, place: usize) -> bool {
        match world.ends[place].state {
            EndState::Unused => false,
            EndState::Live => self.view(world, place).is_some_and(|view| view.closed),
            EndState::Gone | EndState::Crashed => true,
        }
    }

    fn allowed(&self, world: &World, place: usize, verb: Verb) -> bool {
        let end = &world.ends[place];
        let Some(view) = self.view(world, place) else {
            return false;
        };
        if end.destroyed {
            return false;
        }
        match verb {
            // It is among the fair steps.
            Verb::Establish => false,
            // Data arrives only if the other queue pair may send.
            Verb::Notify => {
                matches!(view.state, State::RepSent | State::MraRepRcvd)
                    && self.peer(world, place).is_some_and(|peer| {
                        self.paired(world, place, peer) && world.ends[peer].past.was_established
                    })
            }
            Verb::Accept
            | Verb::Reject
            | Verb::Disconnect
            | Verb::Confirm
            | Verb::PrepareMra
            | Verb::Destroy => true,
        }
    }

    /// The end at the other node that the end at a place believes to talk to.
    pub fn peer(&self, world: &World, place: usize) -> Option<usize> {
        usize::from(world.ends[place].past.peer).checked_sub(1)
    }

    /// Returns true if each of two ends believes that the other is its peer.
    pub fn paired(&self, world: &World, a: usize, b: usize) -> bool {
        self.peer(world, a) == Some(b) && self.peer(world, b) == Some(a)
    }

    /// The state after a step; `None` if nothing changes.
    pub fn after(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        match step {
            Step::Connect(place) => {
                let Slot::Active { node, qpn, .. } = self.bounds.slots[place] else {
                    return None;
                };
                let (value, outcome) = self.machines.connect(node, comm_id(place), qpn);
                next.ends[place].state = EndState::Live;
                next.ends[place].value = value;
                self.perform(&mut next, place, &outcome);
            }
            Step::User(place, verb) => {
                self.user(&mut next, place, verb)?;
            }
            Step::Timer(place) => {
                self.input(&mut next, place, Input::Timeout);
            }
            Step::Deliver(msg) => {
                let effect = self.deliver(&mut next, msg);
                if self.bounds.history {
                    for place in self.places() {
                        let changed = !same_end(&world.ends[place], &next.ends[place]);
                        if changed && effect.events > 0 && world.seen[place].has(msg) {
                            next.broken = next.broken.or(Some(Broken::DuplicateHasEffect));
                        }
                        if changed {
                            next.seen[place].add(msg);
                        }
                    }
                }
            }
            Step::Restart(node) => {
                next.restarts[node] += 1;
                for place in self.places() {
                    let end = &mut next.ends[place];
                    if self.node(place) == node && end.state == EndState::Live {
                        *end = End {
                            state: EndState::Crashed,
                            past: Past {
                                peer: end.past.peer,
                                ..Past::default()
                            },
                            ..End::UNUSED
                        };
                    }
                }
            }
        }
        (next != *world).then_some(next)
    }

    /// Returns true if all connections are the same, apart from repetitions.
    pub fn same_ends(&self, a: &World, b: &World) -> bool {
        a.ends.iter().zip(&b.ends).all(|(a, b)| same_end(a, b))
    }

    fn user(&self, world: &mut World, place: usize, verb: Verb) -> Option<()> {
        let input = match verb {
            Verb::Accept => match self.bounds.slots[place] {
                Slot::Passive { qpn, .. } => Input::Accept(qpn),
                Slot::Active { .. } => return None,
            },
            Verb::Establish => Input::Establish,
            Verb::Reject => Input::Reject,
            Verb::Disconnect => Input::Disconnect,
            Verb::Confirm => Input::Confirm,
            Verb::PrepareMra => Input::PrepareMra,
            Verb::Notify => Input::Notify,
            Verb::Destroy => Input::Destroy,
        };
        let before = self.view(world, place)?;
        if verb == Verb::Notify && before.wants_rtu {
            let node = self.node(place);
            let mut tables = NodeTables {
                rules: self,
                world,
                node,
            };
            if let Err(other) = tables.confirm(place) {
                tables.input(other, Input::StalePeer);
                return Some(());
            }
        }
        let value = world.ends[place].value;
        let outcome = self.machines.step(self.node(place), value, input);
        if !outcome.done {
            return None;
        }
        if let Verb::Reject | Verb::Destroy = verb {
            // The user itself ended the attempt, unless it had ended before.
            let past = &mut world.ends[place].past;
            if !before.closed && !past.was_established && before.state != State::Timewait {
                past.outcomes = past.outcomes.saturating_add(1);
            }
        }
        self.perform(world, place, &outcome);
        if verb == Verb::Destroy {
            world.ends[place].destroyed = true;
            self.bury(world, place);
        }
        Some(())
    }

    pub fn input(&self, world: &mut World, place: usize, input: Input) -> usize {
        let value = world.ends[place].value;
        let outcome = self.machines.step(self.node(place), value, input);
        let requests = world.ends[place].past.requests;
        let events = self.perform(world, place, &outcome);
        if input == Input::DuplicateReq {
            // A REP that is sent again answers the REQ.
            world.ends[place].past.requests = requests;
        }
        events
    }

    /// Carries out what the connection at a place asks for; returns the number of events.
    fn perform(&self, world: &mut World, place: usize, outcome: &Outcome) -> usize {
        if self.is_ended_by_claim(world, place, outcome) {
            world.broken = Some(Broken::EndedByClaim);
        }
        let end = &mut world.ends[place];
        end.value = outcome.next;
        let established = self.machines.view(end.value).state == State::Established;
        if established && !end.past.was_established {
            end.past.was_established = true;
            end.past.outcomes = end.past.outcomes.saturating_add(1);
        }
        for sent in &outcome.sends {
            world.net.add(sent.msg);
            match sent.outgoing {
                Outgoing::Req | Outgoing::Rep => {
                    end.past.requests = end.past.requests.saturating_add(1);
                }
                Outgoing::Dreq => end.past.dreqs = end.past.dreqs.saturating_add(1),
                _ => {}
            }
        }
        for event in &outcome.events {
            if end.destroyed {
                world.broken = Some(Broken::EventAfterDestroy);
            }
            let over = match event {
                Event::RejReceived { .. } => {
                    end.past.rejected = true;
                    true
                }
                Event::ReqError => true,
                Event::RepError => {
                    end.past.rep_error = true;
                    true
                }
                // The RTU was lost: it was connected, and is not any more.
                Event::DreqReceived => true,
                _ => false,
            };
            if over && !end.past.was_established {
                end.past.outcomes = end.past.outcomes.saturating_add(1);
                // Later events are no outcome any more.
                end.past.was_established |= matches!(event, Event::DreqReceived);
            }
        }
        if outcome.release_remote_ids && self.bounds.plant != Plant::KeepPeers {
            end.tracked = false;
            end.confirmed = false;
        }
        let view = self.machines.view(end.value);
        end.past.peer = match view.remote_comm_id {
            0 => 0,
            id => place_number(id),
        };
        self.bury(world, place);
        outcome.events.len()
    }

    /// Returns true if an answer to a challenge ends a connection whose peer still has it.
    fn is_ended_by_claim(&self, world: &World, place: usize, outcome: &Outcome) -> bool {
        let is_established = |place| {
            let view = self.view(world, place);
            view.is_some_and(|view| view.state == State::Established)
        };
        let peer = self.peer(world, place);
        let has_it = |peer| self.paired(world, place, peer) && is_established(peer);
        outcome.events.contains(&Event::DrepReceived)
            && is_established(place)
            && peer.is_some_and(has_it)
    }

    /// A connection that is over, and that its user has let go, leaves nothing but its past.
    fn bury(&self, world: &mut World, place: usize) {
        let end = &mut world.ends[place];
        if end.state == EndState::Live && end.destroyed && self.machines.view(end.value).closed {
            *end = End {
                state: EndState::Gone,
                tracked: end.tracked,
                confirmed: end.confirmed,
                past: end.past,
                ..End::UNUSED
            };
        }
    }

    /// Returns true if the network has a REQ that claims the queue pair of the peer of the end at a
    /// place.
    pub fn is_claimed(&self, world: &World, place: usize) -> bool {
        let Some(view) = self.view(world, place) else {
            return false;
        };
        world.net.iter().any(|msg| {
            let (node, bytes) = self.machines.message_to(msg);
            match wire::decode(&bytes) {
                Ok((_, Message::Req(req))) => {
                    node == self.node(place)
                        && (req.local_ca_guid, req.local_qpn) == (view.remote_guid, view.remote_qpn)
                        && req.local_comm_id != view.remote_comm_id
                }
                _ => false,
            }
        })
    }

    /// A message arrives.
    pub fn deliver(&self, world: &mut World, msg: Msg) -> Effect {
        let (node, bytes) = self.machines.message_to(msg);
        let (_, message) = wire::decode(&bytes).expect("it was encoded here");
        let mut tables = NodeTables {
            rules: self,
            world,
            node,
        };
        match node::route(&tables, PEER, &message) {
            Route::Req(req) => tables.request(msg, req),
            Route::SidrReq(_) => Effect::default(),
            Route::Endpoint(place) => tables.receive(place, msg, &message),
            Route::Nobody(response) => {
                tables.respond(&response);
                Effect::default()
            }
        }
    }

    /// The end of `node` that has a communication id.
    pub fn owner(&self, world: &World, node: usize, comm_id: u32) -> Option<usize> {
        place(comm_id).filter(|place| {
            self.places().contains(place)
                && self.node(*place) == node
                && world.ends[*place].state == EndState::Live
        })
    }

    /// A new connection for a REQ, if there is room for one.
    pub fn create(&self, world: &mut World, node: usize, msg: Msg) -> Option<usize> {
        let free = self.places().find(|place| {
            matches!(self.bounds.slots[*place], Slot::Passive { node: n, .. } if n == node)
                && world.ends[*place].state == EndState::Unused
        });
        let place = free?;
        let value = self.machines.from_req(node, comm_id(place), msg)?;
        debug_assert_eq!(guid(other(node)), self.machines.view(value).remote_guid);
        let end = &mut world.ends[place];
        end.state = EndState::Live;
        end.value = value;
        end.past.peer = place_number(self.machines.view(value).remote_comm_id);
        Some(place)
    }
}

/// Returns true if an end is the same, apart from repetitions.
fn same_end(a: &End, b: &End) -> bool {
    (a.state, a.value, a.tracked, a.confirmed, a.destroyed)
        == (b.state, b.value, b.tracked, b.confirmed, b.destroyed)
}

/// [`Past::peer`] for a communication id.
fn place_number(comm_id: u32) -> u8 {
    place(comm_id).map_or(0, |place| place as u8 + 1)
}
