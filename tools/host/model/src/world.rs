// SPDX-License-Identifier: GPL-2.0

//! Two nodes, their users, and the network between them.
//!
//! A node does around its connections what the module does: it finds the connection of a message,
//! keeps the tables of the peers' communication ids and queue pairs, refuses what is stale, and
//! answers a DREQ for no connection.

use crate::{
    bounds::{Bounds, Plant, Slot, Verb},
    machine::{guid, other, Input, Machines, Msg, Msgs, Outcome, Route, Value, View},
};
use cmproto::{
    cm::{Event, State},
    reject::Reason,
    wire::{Attribute, Drep, Message, RejMessage},
};

/// Most ends of connections in a model.
pub const ENDS: usize = 5;

/// What has become of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// Not used yet.
    Unused,
    /// It has a connection.
    Live,
    /// Its connection was released and its user has destroyed it: its communication id is free.
    Gone,
    /// Lost in a restart of its node.
    Crashed,
}

/// One end of a connection. Its place says which node it is at, and what its communication id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    pub life: Life,
    pub value: Value,
    /// In the tables of its node.
    pub tracked: bool,
    pub destroyed: bool,
    /// What happened in the past, as far as a property asks for it.
    pub past: Past,
}

/// What an end has gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// How often its attempt to connect came to an end (S3).
    pub outcomes: u8,
    pub was_established: bool,
    /// Its user was told of a REJ (S2).
    pub rejected: bool,
    /// It gave up waiting for an RTU.
    pub rep_error: bool,
    /// Place of the end that it believes to talk to, plus one.
    pub peer: u8,
    /// How often it sent its REQ or REP, and its DREQ (S7).
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

/// What a step, rather than a state, can do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// S6: a message that had its effect before has another one.
    DuplicateHasEffect,
    /// An event for a user who has destroyed the connection.
    EventAfterDestroy,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Connect(usize),
    User(usize, Verb),
    Timer(usize),
    Deliver(Msg),
    Restart(usize),
}

/// What the arrival of a message did.
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
    const UNUSED: Self = Self {
        life: Life::Unused,
        value: Value(u16::MAX),
        tracked: false,
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
        (end.life == Life::Live).then(|| self.machines.view(end.value))
    }

    /// The end of `node` for which `test` holds.
    fn find(&self, world: &World, node: usize, test: impl Fn(&View) -> bool) -> Option<usize> {
        self.places().find(|place| {
            self.node(*place) == node
                && world.ends[*place].tracked
                && self.view(world, *place).is_some_and(|view| test(&view))
        })
    }

    fn by_comm_id(&self, world: &World, node: usize, guid: u64, id: u32) -> Option<usize> {
        self.find(world, node, |view| {
            view.remote_guid == guid && view.remote_comm_id == id
        })
    }

    fn by_qpn(&self, world: &World, node: usize, guid: u64, qpn: u32) -> Option<usize> {
        self.find(world, node, |view| {
            view.remote_guid == guid && view.remote_qpn == qpn
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
            match (end.life, self.bounds.slots[place]) {
                (Life::Unused, Slot::Active { after, .. }) => {
                    if after.is_none_or(|before| self.over(world, before)) {
                        steps.push(Step::Connect(place));
                    }
                }
                (Life::Live, _) => {
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
                .any(|p| self.node(p) == node && world.ends[p].life == Life::Live);
            if any && world.restarts[node] < self.bounds.restarts[node] {
                steps.push(Step::Restart(node));
            }
        }
    }

    /// What happens at some time if nothing else does: messages arrive, timers go off, and an
    /// active user takes the connection that it asked for.
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

    /// Whether a connection has ended, so that its user may try again.
    fn over(&self, world: &World, place: usize) -> bool {
        match world.ends[place].life {
            Life::Unused => false,
            Life::Live => self.view(world, place).is_some_and(|view| view.closed),
            Life::Gone | Life::Crashed => true,
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

    /// Whether two ends believe to talk to each other.
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
                next.ends[place].life = Life::Live;
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
                    if self.node(place) == node && end.life == Life::Live {
                        *end = End {
                            life: Life::Crashed,
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

    /// Whether all connections are the same, apart from what was sent again.
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

    fn input(&self, world: &mut World, place: usize, input: Input) -> usize {
        let value = world.ends[place].value;
        let outcome = self.machines.step(self.node(place), value, input);
        self.perform(world, place, &outcome)
    }

    /// Carries out what the connection at a place asks for; returns the number of events.
    fn perform(&self, world: &mut World, place: usize, outcome: &Outcome) -> usize {
        let end = &mut world.ends[place];
        end.value = outcome.next;
        let established = self.machines.view(end.value).state == State::Established;
        if established && !end.past.was_established {
            end.past.was_established = true;
            end.past.outcomes = end.past.outcomes.saturating_add(1);
        }
        for sent in &outcome.sends {
            world.net.add(sent.msg);
            match sent.attribute {
                Attribute::Req | Attribute::Rep => {
                    end.past.requests = end.past.requests.saturating_add(1);
                }
                Attribute::Dreq => end.past.dreqs = end.past.dreqs.saturating_add(1),
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
                // What comes later is no outcome any more.
                end.past.was_established |= matches!(event, Event::DreqReceived);
            }
        }
        if outcome.untrack && self.bounds.plant != Plant::KeepPeers {
            end.tracked = false;
        }
        let view = self.machines.view(end.value);
        end.past.peer = match view.remote_comm_id {
            0 => 0,
            id => place_number(id),
        };
        self.bury(world, place);
        outcome.events.len()
    }

    /// A connection that is over, and that its user has let go, leaves nothing but its past.
    fn bury(&self, world: &mut World, place: usize) {
        let end = &mut world.ends[place];
        if end.life == Life::Live && end.destroyed && self.machines.view(end.value).closed {
            *end = End {
                life: Life::Gone,
                tracked: end.tracked,
                past: end.past,
                ..End::UNUSED
            };
        }
    }

    /// A message arrives.
    pub fn deliver(&self, world: &mut World, msg: Msg) -> Effect {
        let (node, route) = self.machines.route(msg);
        let mut effect = Effect::default();
        match route {
            Route::Req { .. } if self.bounds.plant == Plant::ForgetPeers => {
                effect.created = self.create(world, node, msg);
            }
            Route::Req { guid, comm_id, qpn } => {
                if let Some(known) = self.by_comm_id(world, node, guid, comm_id) {
                    effect.events += self.input(world, known, Input::DuplicateReq);
                } else if let Some(stale) = self.by_qpn(world, node, guid, qpn) {
                    let ids = (0, comm_id);
                    self.refuse(world, node, RejMessage::Req, ids, Reason::STALE_CONN);
                    effect.events += self.input(world, stale, Input::StalePeer);
                } else {
                    effect.created = self.create(world, node, msg);
                }
            }
            Route::Rep {
                to,
                guid,
                comm_id,
                qpn,
            } => {
                let ids = (to, comm_id);
                let owner = self.owner(world, node, to);
                let is_open =
                    |place: &usize| !self.machines.is_over_for(world.ends[*place].value, msg);
                let Some(place) = owner.filter(is_open) else {
                    // Whoever waits for an answer to its REP need not.
                    self.refuse(world, node, RejMessage::Rep, ids, Reason::INVALID_COMM_ID);
                    return effect;
                };
                if self.view(world, place).is_some_and(|view| view.wants_rep) {
                    let forgetful = self.bounds.plant == Plant::ForgetRefusals;
                    let value = world.ends[place].value;
                    if !forgetful && self.machines.has_refused(value, msg) {
                        self.refuse(world, node, RejMessage::Rep, ids, Reason::STALE_CONN);
                        return effect;
                    }
                    if self.by_comm_id(world, node, guid, comm_id).is_some() {
                        return effect;
                    }
                    if let Some(stale) = self.by_qpn(world, node, guid, qpn) {
                        if !forgetful {
                            self.input(world, place, Input::RefuseRep(msg));
                        }
                        self.refuse(world, node, RejMessage::Rep, ids, Reason::STALE_CONN);
                        effect.events += self.input(world, stale, Input::StalePeer);
                        return effect;
                    }
                    world.ends[place].tracked = true;
                }
                effect.events += self.input(world, place, Input::Receive(msg));
            }
            Route::GaveUp { guid, comm_id } => {
                if let Some(place) = self.by_comm_id(world, node, guid, comm_id) {
                    effect.events += self.input(world, place, Input::Receive(msg));
                }
            }
            Route::To {
                to,
                from,
                attribute,
            } => match self.owner(world, node, to) {
                Some(place) => {
                    let known = self
                        .view(world, place)
                        .is_some_and(|view| view.remote_comm_id == from);
                    if attribute == Attribute::Dreq && self.bounds.plant == Plant::DeafToDreq {
                        return effect;
                    }
                    if attribute == Attribute::Dreq && !known {
                        self.confirm(world, node, to, from);
                    } else {
                        effect.events += self.input(world, place, Input::Receive(msg));
                    }
                }
                None if attribute == Attribute::Dreq => self.confirm(world, node, to, from),
                None => {}
            },
        }
        effect
    }

    /// The end of `node` that has a communication id.
    fn owner(&self, world: &World, node: usize, comm_id: u32) -> Option<usize> {
        place(comm_id).filter(|place| {
            self.places().contains(place)
                && self.node(*place) == node
                && world.ends[*place].life == Life::Live
        })
    }

    /// Refuses a REQ or REP that came to `node`; `ids` are the own and the peer's communication id.
    fn refuse(
        &self,
        world: &mut World,
        node: usize,
        message: RejMessage,
        ids: (u32, u32),
        reason: Reason,
    ) {
        let rej = self.machines.refuse(node, message, ids.0, ids.1, reason);
        world.net.add(rej);
    }

    /// A DREQ for no connection gets its DREP all the same.
    fn confirm(&self, world: &mut World, node: usize, to: u32, from: u32) {
        let drep = Drep {
            local_comm_id: to,
            remote_comm_id: from,
            private_data: &[],
        };
        let msg = self.machines.plain(node, &Message::Drep(drep));
        world.net.add(msg);
    }

    /// A new connection for a REQ, if there is room for one.
    fn create(&self, world: &mut World, node: usize, msg: Msg) -> bool {
        let free = self.places().find(|place| {
            matches!(self.bounds.slots[*place], Slot::Passive { node: n, .. } if n == node)
                && world.ends[*place].life == Life::Unused
        });
        let Some(place) = free else {
            return false;
        };
        let Some(value) = self.machines.from_req(node, comm_id(place), msg) else {
            return false;
        };
        debug_assert_eq!(guid(other(node)), self.machines.view(value).remote_guid);
        let end = &mut world.ends[place];
        end.life = Life::Live;
        end.value = value;
        end.tracked = true;
        end.past.peer = place_number(self.machines.view(value).remote_comm_id);
        true
    }
}

/// Whether an end is the same, apart from what was sent again.
fn same_end(a: &End, b: &End) -> bool {
    (a.life, a.value, a.tracked, a.destroyed) == (b.life, b.value, b.tracked, b.destroyed)
}

/// [`Past::peer`] for a communication id.
fn place_number(comm_id: u32) -> u8 {
    place(comm_id).map_or(0, |place| place as u8 + 1)
}
