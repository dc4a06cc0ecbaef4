// SPDX-License-Identifier: GPL-2.0

//! The properties that stateright checks in every state.

use crate::{
    bounds::Bounds,
    machine::Msg,
    world::{Broken, EndState, Rules, Step, World},
};
use cmproto::cm::State;
use stateright::{Checker, Model, Property};
use std::sync::{
    atomic::{AtomicBool, Ordering},
    Arc,
};

/// A search.
#[derive(Clone)]
pub struct Search {
    pub rules: Arc<Rules>,
    /// The flags of the properties that have been decided, by their index in [`PROPERTIES`].
    decided: Arc<[AtomicBool; PROPERTIES.len()]>,
    stopped: Arc<AtomicBool>,
}

type Condition = fn(&Search, &World) -> bool;

/// The properties of every state, and those of some state (`true`), without which a search would be
/// worthless, or which are known of the protocol.
const PROPERTIES: &[(bool, &str, Condition)] = &[
    (false, "S1 names belong to one connection", Search::s1),
    (
        false,
        "S2 no end is connected to one that saw a REJ",
        Search::s2,
    ),
    (false, "S3 no attempt ends twice", Search::s3_once),
    (false, "S3 every attempt ends", Search::s3_ends),
    (
        false,
        "S4 who is connected is told when the peer leaves",
        Search::s4,
    ),
    (
        false,
        "S4 a claim ends no connection that its peer has",
        |_, w| w.broken != Some(Broken::EndedByClaim),
    ),
    (
        false,
        "S4 who claims the queue pair of a lost connection ends it",
        Search::s4_claim,
    ),
    (false, "S6 a duplicate changes nothing", Search::s6),
    (false, "S6 not even later", |_, w| {
        w.broken != Some(Broken::DuplicateHasEffect)
    }),
    (false, "S7 no request is sent too often", Search::s7),
    (false, "S8 destroy needs no peer", Search::s8),
    (false, "S8 no event comes after destroy", |_, w| {
        w.broken != Some(Broken::EventAfterDestroy)
    }),
    (
        false,
        "S9 the tables hold live connections only",
        Search::s9,
    ),
    (true, "reached: both ends connected", Search::connected),
    (true, "reached: all connections over", Search::all_over),
    (true, "known: half open, the RTU never came", |s, w| {
        s.half_open(w, |w, peer| w.ends[peer].past.rep_error)
    }),
    (true, "known: half open after a restart", |s, w| {
        s.half_open(w, |w, peer| w.ends[peer].state == EndState::Crashed)
    }),
];

/// The condition of a property, until it is decided: stateright reports the last state that it
/// is told of, and the first one has the shortest way.
fn condition<const N: usize>(search: &Search, world: &World) -> bool {
    let (sometimes, _, condition) = PROPERTIES[N];
    if search.decided[N].load(Ordering::Relaxed) || search.is_stopped() {
        return !sometimes;
    }
    let holds = condition(search, world);
    if holds == sometimes {
        search.decided[N].store(true, Ordering::Relaxed);
    }
    holds
}

impl Model for Search {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if !self.is_stopped() {
            self.rules.steps(world, steps);
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        self.rules.after(world, step)
    }

    fn format_action(&self, step: &Step) -> String {
        match step {
            Step::Deliver(msg) => format!("deliver {}", self.rules.machines.describe(*msg)),
            _ => format!("{step:?}"),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let conditions: [fn(&Self, &World) -> bool; PROPERTIES.len()] = [
            condition::<0>,
            condition::<1>,
            condition::<2>,
            condition::<3>,
            condition::<4>,
            condition::<5>,
            condition::<6>,
            condition::<7>,
            condition::<8>,
            condition::<9>,
            condition::<10>,
            condition::<11>,
            condition::<12>,
            condition::<13>,
            condition::<14>,
            condition::<15>,
            condition::<16>,
        ];
        PROPERTIES
            .iter()
            .zip(conditions)
            .map(|((sometimes, name, _), condition)| match sometimes {
                true => Property::sometimes(name, condition),
                false => Property::always(name, condition),
            })
            .collect()
    }
}

impl Search {
    pub fn new(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            decided: Arc::new([const { AtomicBool::new(false) }; PROPERTIES.len()]),
            stopped: Arc::default(),
        }
    }

    /// The properties that do not hold within `bounds`.
    pub fn broken(bounds: Bounds) -> Vec<&'static str> {
        let search = Self::new(Arc::new(Rules::new(bounds)));
        let checker = search.checker().spawn_bfs().join();
        let mut broken: Vec<_> = checker
            .discoveries()
            .into_keys()
            .filter(|name| name.starts_with('S'))
            .collect();
        broken.sort_unstable();
        broken
    }

    /// From now on no state has a step: the search ends soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The opposite.
    pub fn resume(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn live(&self, world: &World) -> impl Iterator<Item = usize> {
        let world = world.clone();
        let places = self.rules.places();
        places.filter(move |place| world.ends[*place].state == EndState::Live)
    }

    fn state(&self, world: &World, place: usize) -> Option<State> {
        self.rules.view(world, place).map(|view| view.state)
    }

    /// No two connections of a node are found by the same peer's communication id or queue pair.
    fn s1(&self, world: &World) -> bool {
        let names: Vec<_> = self
            .live(world)
            .filter_map(|place| {
                let view = self.rules.view(world, place)?;
                let end = &world.ends[place];
                let id = end.tracked.then_some(view.remote_comm_id);
                let qpn = end.confirmed.then_some(view.remote_qpn);
                Some(((self.rules.node(place), view.remote_guid), id, qpn))
            })
            .collect();
        let differ = |a: Option<u32>, b| a.is_none() || a != b;
        names.iter().enumerate().all(|(i, a)| {
            let mut others = names[..i].iter();
            others.all(|b| a.0 != b.0 || (differ(a.1, b.1) && differ(a.2, b.2)))
        })
    }

    fn s2(&self, world: &World) -> bool {
        self.live(world).all(|place| {
            self.state(world, place) != Some(State::Established)
                || self.rules.peer(world, place).is_none_or(|peer| {
                    !(world.ends[peer].past.rejected && self.rules.paired(world, place, peer))
                })
        })
    }

    fn s3_once(&self, world: &World) -> bool {
        self.rules
            .places()
            .all(|place| world.ends[place].past.outcomes <= 1)
    }

    /// Nothing that must happen some time changes anything any more.
    pub fn is_quiet(&self, world: &World) -> bool {
        let mut steps = Vec::new();
        self.rules.fair_steps(world, &mut steps);
        steps
            .into_iter()
            .all(|step| self.rules.after(world, step).is_none())
    }

    fn s3_ends(&self, world: &World) -> bool {
        let pending = self.rules.places().any(|place| {
            let end = &world.ends[place];
            let asked = self.state(world, place).is_some() || end.state == EndState::Gone;
            // A passive user may take for ever to answer; then nothing was begun.
            let unanswered = matches!(
                self.state(world, place),
                Some(State::ReqRcvd | State::MraReqSent)
            );
            asked && !unanswered && end.past.outcomes != 1
        });
        !pending || !self.is_quiet(world)
    }

    /// An end that stays connected has a peer that is connected, too, or one of the two that
    /// cannot tell it: one that has restarted, and one that gave up waiting for the RTU.
    fn s4(&self, world: &World) -> bool {
        let alone = self.live(world).any(|place| {
            self.state(world, place) == Some(State::Established)
                && !self.rules.peer(world, place).is_some_and(|peer| {
                    world.ends[peer].state == EndState::Crashed
                        || world.ends[peer].past.rep_error
                        || (self.rules.paired(world, place, peer)
                            && self.state(world, peer) == Some(State::Established))
                })
        });
        !alone || !self.is_quiet(world)
    }

    /// A connection whose peer has restarted does not last if another REQ claims the queue pair of
    /// the peer.
    fn s4_claim(&self, world: &World) -> bool {
        let lost = self.live(world).any(|place| {
            let peer = self.rules.peer(world, place);
            self.state(world, place) == Some(State::Established)
                && peer.is_some_and(|peer| world.ends[peer].state == EndState::Crashed)
                && self.rules.is_claimed(world, place)
        });
        !lost || !self.is_quiet(world)
    }

    /// A message that arrives twice in a row has the effect of one.
    fn s6(&self, world: &World) -> bool {
        world.net.iter().all(|msg: Msg| {
            let mut once = world.clone();
            self.rules.deliver(&mut once, msg);
            let mut twice = once.clone();
            let effect = self.rules.deliver(&mut twice, msg);
            effect.events == 0 && !effect.created && self.rules.same_ends(&once, &twice)
        })
    }

    fn s7(&self, world: &World) -> bool {
        let most = self.rules.machines.retries() + 1;
        world
            .ends
            .iter()
            .all(|end| end.past.requests <= most && end.past.dreqs <= most)
    }

    fn s8(&self, world: &World) -> bool {
        self.live(world).all(|place| {
            self.rules
                .view(world, place)
                .is_some_and(|view| view.ends_alone)
        })
    }

    fn s9(&self, world: &World) -> bool {
        self.rules.places().all(|place| {
            let end = &world.ends[place];
            !(end.tracked || end.confirmed)
                || self
                    .rules
                    .view(world, place)
                    .is_some_and(|view| !view.closed && view.state != State::Timewait)
        })
    }

    fn connected(&self, world: &World) -> bool {
        self.live(world).any(|place| {
            self.state(world, place) == Some(State::Established)
                && self.rules.peer(world, place).is_some_and(|peer| {
                    self.rules.paired(world, place, peer)
                        && self.state(world, peer) == Some(State::Established)
                })
        })
    }

    fn all_over(&self, world: &World) -> bool {
        self.rules.places().all(|place| {
            self.rules
                .view(world, place)
                .map_or(world.ends[place].state != EndState::Unused, |view| {
                    view.closed
                })
        })
    }

    fn half_open(&self, world: &World, why: impl Fn(&World, usize) -> bool) -> bool {
        self.live(world).any(|place| {
            self.state(world, place) == Some(State::Established)
                && self
                    .rules
                    .peer(world, place)
                    .is_some_and(|peer| why(world, peer))
        }) && self.is_quiet(world)
    }
}
