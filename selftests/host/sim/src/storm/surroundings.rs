// SPDX-License-Identifier: GPL-2.0

//! The surroundings of a node in a storm: its messages, timers and events are noted, and its peers'
//! round-trip times are kept, as the module does.

use cmnode::{Arrived, Cause, Environment, EpId, Machine, Node, RoundTrips};
use cmproto::{
    cm::{self, Waiting},
    cma::Upcall,
    errno::Errno,
    origin::Origin,
    time::{Duration, Instant},
    ucma_abi::CmEvent,
    wire::{Attribute, MAD_LEN},
};

/// Something that a node asks for in a step.
#[derive(Debug)]
pub enum Effect {
    Send { to: Origin, mad: Box<[u8; MAD_LEN]> },
    Timer { ep: EpId, deadline: Instant },
    Tell { ep: EpId, event: CmEvent },
}

/// The data that are kept with an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// The host that the user has connected to, unless the endpoint is that of a request.
    pub to: Option<u32>,
    /// When the user has asked for the connection, in nanoseconds.
    pub asked: u64,
    /// The listener's user has not read it.
    pub is_unread: bool,
    pub is_open: bool,
}

/// The surroundings of one node.
#[derive(Debug)]
pub struct Surroundings {
    pub effects: Vec<Effect>,
    trips: RoundTrips,
    early_retry: Option<Duration>,
    /// REQs and DREQs that wait for an answer.
    pub outstanding: u32,
}

impl Surroundings {
    /// Creates the surroundings of a node that sends requests early after `early_retry`. The hash of
    /// its peers depends on `key`.
    pub fn new(early_retry: Option<Duration>, key: [u64; 2]) -> Self {
        Self {
            effects: Vec::new(),
            trips: RoundTrips::new(key),
            early_retry,
            outstanding: 0,
        }
    }
}

/// Returns the unanswered request of a state machine.
fn waiting(machine: &Machine) -> Option<Waiting> {
    machine.connection()?.waiting()
}

/// Returns 1 for a request that counts as outstanding in ib_core.
fn is_solicited(waiting: Option<Waiting>) -> u32 {
    let kind = waiting.map(|waiting| waiting.message);
    u32::from(matches!(kind, Some(Attribute::Req | Attribute::Dreq)))
}

impl Environment for Surroundings {
    type Watch = Watch;
    type Before = Option<(Origin, Option<Waiting>)>;

    fn watch(&mut self, _: &Arrived<'_>) -> Watch {
        Watch::default()
    }

    fn is_waiting(endpoint: &cmnode::Endpoint<Watch>) -> bool {
        endpoint.watch.is_unread
    }

    fn send(node: &mut Node<Self>, _: Option<EpId>, to: Origin, _: Attribute, mad: &[u8; MAD_LEN]) {
        let mad = Box::new(*mad);
        node.env.effects.push(Effect::Send { to, mad });
    }

    fn reach(node: &mut Node<Self>, ep: EpId, request: &Arrived<'_>) {
        node.offer(ep, Some(request));
    }

    fn offer(node: &mut Node<Self>, ep: EpId, _: Option<&Arrived<'_>>) {
        if let Some(endpoint) = node.endpoints.get_mut(&ep) {
            endpoint.watch.is_unread = true;
        }
        let event = CmEvent::ConnectRequest;
        node.env.effects.push(Effect::Tell { ep, event });
    }

    fn deliver(
        node: &mut Node<Self>,
        ep: EpId,
        _: Option<cm::Event>,
        upcall: Option<&Upcall>,
        _: &Cause<'_>,
    ) {
        if let Some(upcall) = upcall {
            let event = upcall.event;
            node.env.effects.push(Effect::Tell { ep, event });
        }
    }

    fn timer(&mut self, ep: EpId, deadline: Instant) {
        self.effects.push(Effect::Timer { ep, deadline });
    }

    fn before(node: &mut Node<Self>, ep: EpId, _: &Cause<'_>) -> Self::Before {
        let endpoint = node.endpoints.get_mut(&ep)?;
        let (peer, waiting) = (endpoint.peer, waiting(&endpoint.machine));
        let (env, now) = (&mut node.env, node.now);
        let policy = env.trips.retry_policy(&peer, waiting, env.early_retry, now);
        endpoint.machine.set_retry_policy(policy);
        Some((peer, waiting))
    }

    fn after(
        node: &mut Node<Self>,
        ep: EpId,
        cause: &Cause<'_>,
        before: Self::Before,
        _: Result<(), Errno>,
    ) {
        let Some((peer, before)) = before else {
            return;
        };
        let endpoint = node.endpoints.get(&ep).filter(|own| !own.is_destroyed);
        let after = endpoint.and_then(|own| waiting(&own.machine));
        let env = &mut node.env;
        if let Cause::Message(_) = cause {
            env.trips.received(&peer, before, after, node.now);
        }
        env.trips.count(&peer, before, after);
        env.outstanding += is_solicited(after);
        env.outstanding -= is_solicited(before);
    }
}
