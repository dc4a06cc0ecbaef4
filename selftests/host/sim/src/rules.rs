// SPDX-License-Identifier: GPL-2.0

//! The rules, and the record of one endpoint by which they are judged.

use std::fmt;

use cmnode::Machine;
use cmproto::{
    cm::{Connection, State, EARLY_SENDS},
    sidr::Resolution,
    time::{Duration, Instant, TimeCode},
    ucma_abi::CmEvent,
    wire::{Attribute, MraMessage},
};

use crate::script::{Side, Tag};

/// A rule, as the documentation of the crate numbers and words them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    S7,
    S8,
    S9,
    /// The properties that a type promises: timers, and verbs that fail.
    Api,
    /// The code panicked.
    Panic,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 11] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S8,
        Self::S9,
        Self::Api,
        Self::Panic,
    ];

    /// The rule in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::S1 => "a communication id names one connection",
            Self::S2 => "none is connected to who was rejected",
            Self::S3 => "a request has one outcome, in time",
            Self::S4 => "a connection that ends is told so",
            Self::S5 => "a peer's names are used once",
            Self::S6 => "duplicates change nothing",
            Self::S7 => "messages are bounded",
            Self::S8 => "destroy needs no peer",
            Self::S9 => "tables are bounded, and empty in the end",
            Self::Api => "types keep their word",
            Self::Panic => "no panic",
        }
    }
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, what } = self;
        write!(f, "{rule:?} ({}): {what}", rule.summary())
    }
}

/// The stage at which the user of an endpoint believes it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not asked yet; or the active user waits for the REP.
    Waiting,
    /// Has asked for a datagram service.
    Resolving,
    /// The user has a REQ or REP to answer.
    Asked,
    /// Passive: has accepted, and waits for the RTU.
    Accepted,
    Connected,
    /// Was told that the connection ended.
    Disconnected,
    /// Nothing more will be told.
    Over,
}

impl Stage {
    /// The stage after `event`, or `None` if there is no place for it.
    fn next(self, side: Side, event: CmEvent) -> Option<Self> {
        Some(match (self, side, event) {
            (Self::Waiting, Side::Active, CmEvent::ConnectResponse)
            | (Self::Waiting, Side::Passive, CmEvent::ConnectRequest) => Self::Asked,
            (
                Self::Resolving,
                Side::Active,
                CmEvent::Established | CmEvent::Unreachable | CmEvent::AddrError,
            )
            | (Self::Waiting, Side::Active, CmEvent::Rejected | CmEvent::Unreachable)
            | (Self::Asked, _, CmEvent::Rejected)
            | (Self::Accepted, _, CmEvent::Rejected | CmEvent::Unreachable)
            | (Self::Connected, _, CmEvent::Rejected) => Self::Over,
            (Self::Accepted, Side::Passive, CmEvent::Established) => Self::Connected,
            // A user that disconnects at once may overtake its own RTU.
            (Self::Accepted, Side::Passive, CmEvent::Disconnected)
            | (Self::Connected, _, CmEvent::Disconnected) => Self::Disconnected,
            (Self::Disconnected, _, CmEvent::TimewaitExit) => Self::Over,
            _ => return None,
        })
    }
}

/// Returns the side whose ids an attribute counts under.
fn slot(kind: Attribute) -> usize {
    Attribute::ALL.iter().position(|a| *a == kind).unwrap_or(0)
}

/// A REQ or REP that is sent again until somebody answers, and how long at least.
#[derive(Clone, Copy, Debug)]
struct Asking {
    kind: Attribute,
    /// There are sends before the classic ones.
    early: bool,
    /// The last classic send, as far as it can be told from an early one, and how many there were.
    classic: Instant,
    sends: u16,
    /// An MRA has come since.
    extended: bool,
    /// After an MRA a REP is sent early, too, when it may have been lost.
    lingers: bool,
    /// When the request may be given up, and not before.
    not_before: Instant,
}

impl Asking {
    fn new(kind: Attribute, early: bool, sends: u16, interval: Duration, now: Instant) -> Self {
        Self {
            kind,
            early,
            classic: now,
            sends: 1,
            extended: false,
            lingers: false,
            not_before: now + interval.saturating_mul(u64::from(sends)),
        }
    }

    /// The request is sent again. Early sends come before the first interval is over.
    fn again(&mut self, interval: Duration, now: Instant) {
        if !self.lingers && now >= self.classic + interval {
            self.classic = now;
            self.sends += 1;
            self.extended = false;
        }
    }

    /// An MRA asks for `wait`. It is granted once for each classic send, at the latest after the
    /// next one, of those that are left.
    fn extend(&mut self, sends: u16, interval: Duration, wait: Duration, now: Instant) {
        if self.extended || self.lingers {
            return;
        }
        self.extended = true;
        self.lingers = self.kind == Attribute::Rep && self.early;
        let left = u64::from(sends.saturating_sub(self.sends));
        let granted = match left {
            0 => now + wait,
            _ => self.classic + wait.max(interval),
        };
        let end = granted + interval.saturating_mul(left);
        self.not_before = self.not_before.max(end);
    }
}

/// The alternate paths that a side has proposed.
#[derive(Clone, Copy, Debug)]
pub struct Proposals {
    number: u16,
    /// When the last LAP must be over.
    due: Instant,
    /// A LAP was given up: the peer may have loaded its path.
    pub is_given_up: bool,
}

impl Default for Proposals {
    fn default() -> Self {
        Self {
            number: 0,
            due: Instant::ZERO,
            is_given_up: false,
        }
    }
}

/// The record of an endpoint.
#[derive(Debug)]
pub struct Watch {
    pub tag: Tag,
    pub side: Side,
    pub stage: Stage,
    /// The peer's link address is known.
    pub is_reached: bool,
    /// Own queue pair, or the one that a service id was resolved to; 0 if there is none.
    pub qpn: u32,
    /// When the request in flight must be over.
    due: Option<Instant>,
    /// The request in flight that is sent again until somebody answers, if it is a REQ or a REP.
    asking: Option<Asking>,
    /// Sends of a request that may come before the classic ones.
    early: u16,
    /// The peer of an established connection is asked at intervals whether it has it.
    keepalive: bool,
    /// The alternate paths that this side has proposed.
    pub proposals: Proposals,
    /// MRAs that were not asked for: of a request that was parked.
    parked: u16,
    /// When the peer was asked for the last time whether the connection still exists.
    challenged: Option<Instant>,
    /// Messages of the connection, by [`slot`].
    sent: [u16; 11],
    got: [u16; 11],
    told: usize,
    /// Most times that a request is sent, and the time between two.
    sends: u16,
    interval: Duration,
    /// The messages that have changed the state of the connection, and their digests.
    applied: Vec<(Attribute, u64)>,
}

impl Watch {
    /// The longest that an MRA may extend the wait for the answer to a send.
    const PATIENCE: Duration = Duration::from_millis(60_000);
    /// The shortest time between two challenges.
    const CHALLENGES: Duration = Duration::from_millis(1_000);
    /// The longest time wait.
    const TIMEWAIT: TimeCode = TimeCode::new(22);
    /// The most events that one endpoint has: asked, established, disconnected, time wait.
    const EVENTS: usize = 4;

    pub fn new(tag: Tag, side: Side, retries: u8, interval: Duration) -> Self {
        Self {
            tag,
            side,
            stage: Stage::Waiting,
            is_reached: false,
            qpn: 0,
            due: None,
            asking: None,
            early: 0,
            keepalive: false,
            proposals: Proposals::default(),
            parked: 0,
            challenged: None,
            sent: [0; 11],
            got: [0; 11],
            told: 0,
            sends: u16::from(retries.min(15)) + 1,
            interval,
            applied: Vec::new(),
        }
    }

    /// Returns the limits for an endpoint of a node that may send requests early.
    pub fn sending_early(self, is_early: bool) -> Self {
        let early = match is_early {
            true => u16::from(EARLY_SENDS),
            false => 0,
        };
        Self { early, ..self }
    }

    /// Returns the limits for an endpoint of a node that asks its peers at intervals whether they
    /// still have a connection, if `keepalive` is set.
    pub fn asking_peer(self, keepalive: bool) -> Self {
        Self { keepalive, ..self }
    }

    /// A datagram service is asked for.
    pub fn resolve(&mut self, now: Instant) {
        self.stage = Stage::Resolving;
        self.due = Some(now + self.interval.saturating_mul(u64::from(self.sends)));
    }

    /// A LAP is to be sent. Returns the record as it was before.
    pub fn propose(&mut self, now: Instant) -> Proposals {
        let before = self.proposals;
        self.proposals.number += 1;
        let sends = u64::from(self.sends);
        self.proposals.due = now + self.interval.saturating_mul(sends);
        before
    }

    /// The request was parked.
    pub fn park(&mut self) {
        self.parked = 1;
    }

    /// The error, with whose it is.
    fn broken(&self, rule: Rule, what: impl fmt::Display) -> Violation {
        let what = format!("#{} {:?}: {what}", self.tag, self.side);
        Violation { rule, what }
    }

    /// Returns true if the message with this digest has changed the state before.
    pub fn has_applied(&self, kind: Attribute, digest: u64) -> bool {
        self.applied.contains(&(kind, digest))
    }

    /// The message with this digest has changed the state, or made the connection.
    pub fn apply(&mut self, kind: Attribute, digest: u64) {
        self.applied.push((kind, digest));
    }

    /// A message of this kind came that is another than those before it, as one that was damaged
    /// is. The connection remembers whose transaction the answer is for, so that one of
    /// those before it, if it comes again, does change something.
    pub fn supersede(&mut self, kind: Attribute) {
        self.applied.retain(|(other, _)| *other != kind);
    }

    /// An MRA for `message` has arrived that asks for `wait`.
    pub fn receive_mra(&mut self, message: MraMessage, wait: Duration, now: Instant) {
        let kind = match message {
            MraMessage::Req => Attribute::Req,
            MraMessage::Rep => Attribute::Rep,
            MraMessage::Other | MraMessage::Reserved => return,
        };
        let (sends, interval) = (self.sends, self.interval);
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.kind == kind) {
            asking.extend(sends, interval, wait.min(Self::PATIENCE), now);
        }
    }

    /// A message of the connection has arrived.
    pub fn receive(&mut self, kind: Attribute) {
        // The REP has its answer, which makes a connection or, if another one has the queue pair of
        // the peer, is refused.
        if kind == Attribute::Rtu {
            self.asking = None;
        }
        if let Some(count) = self.got.get_mut(slot(kind)) {
            *count += 1;
        }
    }

    /// S7: a message of the connection is sent.
    pub fn send(&mut self, kind: Attribute, now: Instant) -> Result<(), Violation> {
        if matches!(kind, Attribute::Req | Attribute::Rep) {
            // An MRA for this send looks like those for the others.
            self.supersede(Attribute::Mra);
            let (sends, interval, early) = (self.sends, self.interval, self.early > 0);
            match &mut self.asking {
                Some(asking) if asking.kind == kind => asking.again(interval, now),
                _ => self.asking = Some(Asking::new(kind, early, sends, interval, now)),
            }
        }
        let got = |kind| self.got.get(slot(kind)).copied().unwrap_or(0);
        let most = match kind {
            Attribute::Req | Attribute::Dreq => self.sends + self.early,
            Attribute::Rep => self.sends + self.early + got(Attribute::Req),
            Attribute::Rtu => 1 + got(Attribute::Rep),
            Attribute::Drep => 1 + got(Attribute::Dreq),
            Attribute::Mra => self.parked + got(Attribute::Req) + got(Attribute::Rep),
            Attribute::Rej => 1 + got(Attribute::Req) + got(Attribute::Rep),
            Attribute::SidrReq => self.sends + self.early,
            Attribute::SidrRep => got(Attribute::SidrReq),
            // Another one, if the peer's has come between.
            Attribute::Lap => {
                self.proposals.number * (self.sends + self.early) + got(Attribute::Lap)
            }
            Attribute::Apr => got(Attribute::Lap),
        };
        let Some(count) = self.sent.get_mut(slot(kind)) else {
            return Ok(());
        };
        *count += 1;
        if *count > most {
            let what = format!("{kind:?} sent {count} times, at most {most} expected");
            return Err(self.broken(Rule::S7, what));
        }
        Ok(())
    }

    /// A REP is not sent again, although it was time to.
    pub fn withhold(&mut self, now: Instant) {
        if let Some(asking) = &mut self.asking {
            asking.again(self.interval, now);
        }
    }

    /// Returns whether a message of this kind answers the first REQ.
    pub fn is_first_answer(&self, kind: Attribute) -> bool {
        kind == Attribute::Rep && self.sent.get(slot(kind)) == Some(&0)
    }

    /// S7: the peer is asked whether the connection still exists.
    pub fn challenge(&mut self, now: Instant) -> Result<(), Violation> {
        let before = self.challenged.replace(now);
        match before {
            Some(before) if now < before + Self::CHALLENGES => {
                Err(self.broken(Rule::S7, format_args!("asked at {before:?} and {now:?}")))
            }
            _ => Ok(()),
        }
    }

    /// S3, S9: the user is told `event`.
    pub fn tell(&mut self, event: CmEvent, now: Instant) -> Result<(), Violation> {
        if event == CmEvent::Unreachable {
            if let Some(asking) = self.asking.filter(|asking| now < asking.not_before) {
                let what = format!(
                    "gives up {:?} at {now:?}, not to be before {:?}",
                    asking.kind, asking.not_before
                );
                return Err(self.broken(Rule::S3, what));
            }
        }
        self.told += 1;
        if self.told > Self::EVENTS {
            return Err(self.broken(Rule::S9, format_args!("{} events", self.told)));
        }
        match self.stage.next(self.side, event) {
            Some(next) => {
                if self.stage == Stage::Resolving {
                    self.due = None;
                }
                self.stage = next;
                Ok(())
            }
            None => {
                let what = format!("{event:?} is told in stage {:?}", self.stage);
                Err(self.broken(Rule::S3, what))
            }
        }
    }

    /// API: the connection's timer runs if and only if it waits for something; S3, S4: no request
    /// is in flight for too long. `before` is the state before the step.
    pub fn step(
        &mut self,
        before: State,
        machine: &Connection,
        now: Instant,
    ) -> Result<(), Violation> {
        let state = machine.state();
        let requests = |state| {
            matches!(
                state,
                State::ReqSent
                    | State::MraReqRcvd
                    | State::RepSent
                    | State::MraRepRcvd
                    | State::DreqSent
            )
        };
        let asks = self.keepalive && state == State::Established;
        let proposes = machine.has_lap();
        if proposes && now > self.proposals.due {
            return Err(self.broken(Rule::S3, "a LAP waits for too long"));
        }
        let waits = requests(state) || state == State::Timewait || asks || proposes;
        if machine.deadline().is_some() != waits {
            let deadline = machine.deadline();
            let what = format!("{state:?} with deadline {deadline:?}");
            return Err(self.broken(Rule::Api, what));
        }
        let starts = state == State::DreqSent || !requests(before);
        if !requests(state) {
            self.due = None;
        } else if before != state && starts {
            let each = self.interval + Self::PATIENCE;
            self.due = Some(now + each.saturating_mul(u64::from(self.sends)));
        }
        self.on_time(Some(state), now)
    }

    /// S3, S4: no request is in flight for too long. `state` is that of a connection.
    pub fn on_time(&self, state: Option<State>, now: Instant) -> Result<(), Violation> {
        if self.due.is_some_and(|due| now > due) {
            let rule = match state {
                Some(State::DreqSent) => Rule::S4,
                _ => Rule::S3,
            };
            return Err(self.broken(rule, format_args!("{state:?} for too long")));
        }
        Ok(())
    }

    /// S8: what was destroyed at `now` goes its way without anybody: a time wait, or the memory of
    /// an answer, is all that is left.
    pub fn destroyed(&self, machine: &Machine, now: Instant) -> Result<(), Violation> {
        let rest = match machine {
            Machine::Connection(machine) => match machine.state() {
                State::Timewait => Some(Self::TIMEWAIT.to_duration()),
                _ => None,
            },
            Machine::Resolution(machine) => machine.is_answered().then_some(Resolution::MEMORY),
        };
        let deadline = machine.deadline();
        let ok = match rest {
            Some(rest) => deadline.is_some_and(|deadline| deadline <= now + rest),
            None => machine.is_closed(),
        };
        if ok {
            return Ok(());
        }
        let state = machine.connection().map(Connection::state);
        let what = format!("destroyed, and {state:?} until {deadline:?}");
        Err(self.broken(Rule::S8, what))
    }

    /// Breaks `rule`.
    pub fn violation<T>(&self, rule: Rule, what: impl fmt::Display) -> Result<T, Violation> {
        Err(self.broken(rule, what))
    }
}

/// Returns true if no other connection may have the peer's ids of a connection in this state.
pub const fn is_tracked(state: State) -> bool {
    matches!(
        state,
        State::ReqRcvd
            | State::MraReqSent
            | State::RepSent
            | State::MraRepRcvd
            | State::RepRcvd
            | State::MraRepSent
            | State::Established
            | State::DreqSent
            | State::DreqRcvd
    )
}
