// SPDX-License-Identifier: GPL-2.0

//! The watch over an established connection: the peer is asked whether it still has the connection,
//! the link below may be down, and a LAP may wait for its answer.

use super::{
    action::{Action, Actions, Event, Outgoing},
    connection::{Connection, Lifecycle, Timer},
    retransmit_buffer::RetransmitMemory,
    state::State,
};
use crate::time::{Duration, Instant};

/// The timer of an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keepalive {
    /// The time before which the peer is not challenged again, if it was.
    challenged: Option<Instant>,
    /// The time at which the peer is challenged next; [`Instant::MAX`] if it is not to be.
    probe: Instant,
    /// The time at which the link has been down for too long; [`Instant::MAX`] if it is up.
    dead: Instant,
    /// The time at which the LAP that waits is sent again or given up; [`Instant::MAX`] if there is
    /// none.
    lap: Instant,
}

// The timer lies in every endpoint.
const _: () = assert!(size_of::<Timer>() == 48);

impl Keepalive {
    /// A timer that does not run.
    const NONE: Self = Self {
        challenged: None,
        probe: Instant::MAX,
        dead: Instant::MAX,
        lap: Instant::MAX,
    };

    /// Returns the time at which there is something to do, if any.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let next = self.probe.min(self.dead).min(self.lap);
        (next != Instant::MAX).then_some(next)
    }
}

impl<B: RetransmitMemory> Connection<B> {
    /// Shortest time between two challenges of a peer.
    const CHALLENGE_INTERVAL: Duration = Duration::from_millis(1_000);

    /// Returns the timer of the connection, if that is established.
    fn keepalive(&self) -> Option<Keepalive> {
        match (self.state, &self.timer) {
            (State::Established, Timer::Keepalive(keepalive)) => Some(*keepalive),
            (State::Established, _) => Some(Keepalive::NONE),
            _ => None,
        }
    }

    /// Goes to [`State::Established`].
    pub(super) fn enter_established(&mut self, now: Instant, actions: &mut Actions) {
        self.state = State::Established;
        match self.limits.keepalive() {
            Some(_) => self.start_keepalive(now, actions),
            None => self.disarm(actions),
        }
    }

    /// Sets the longest time between two questions to the peer whether it still has the connection.
    /// `None` not to ask. It holds at once.
    ///
    /// The peer of an established connection is challenged once in that time. If it says that it
    /// does not have the connection, the connection ends. Silence says nothing: the peer has the
    /// connection, or does not exist any more, or a message was lost.
    pub fn set_keepalive(&mut self, interval: Option<Duration>, now: Instant) -> Actions {
        let mut actions = Actions::none();
        self.limits.set_keepalive(interval);
        if self.state == State::Established {
            self.start_keepalive(now, &mut actions);
        }
        actions
    }

    /// Sets the timer for the next question to the peer of an established connection.
    fn start_keepalive(&mut self, now: Instant, actions: &mut Actions) {
        if let Some(keepalive) = self.keepalive() {
            let next = self.limits.keepalive().map(|interval| {
                // Connections that were made at once should not ask at once: an interval is
                // shorter by up to a quarter.
                let part = u64::from(self.local_comm_id & 0xff);
                let spread = interval.saturating_mul(part).divided_by(0x400);
                now + (interval - spread).max(Self::CHALLENGE_INTERVAL)
            });
            self.timer = Timer::Keepalive(Keepalive {
                probe: next.unwrap_or(Instant::MAX),
                ..keepalive
            });
            actions.push(Action::Timer);
        }
    }

    /// Handles a claim to the peer's QPN by another connection (IBTA volume 1, 12.9.8.3.1): asks
    /// the peer whether it has lost this connection.
    ///
    /// The claim alone proves nothing, because anybody can send one. The peer is asked at most once
    /// a second. If the question or the answer is lost, the next claim causes another question.
    pub fn stale_peer(&mut self, now: Instant) -> Actions {
        let mut actions = Actions::none();
        if let Some(keepalive) = self.keepalive() {
            let is_early = keepalive.challenged.is_some_and(|next| now < next);
            if !is_early {
                self.timer = Timer::Keepalive(Keepalive {
                    challenged: Some(now + Self::CHALLENGE_INTERVAL),
                    ..keepalive
                });
                actions.push(Action::Send(Outgoing::Challenge));
            }
        }
        actions
    }

    /// Sets the time at which the LAP that waits is looked at; [`Instant::MAX`] if there is none.
    pub(super) fn set_lap_timer(&mut self, at: Instant, actions: &mut Actions) {
        if let Some(keepalive) = self.keepalive() {
            self.timer = Timer::Keepalive(Keepalive {
                lap: at,
                ..keepalive
            });
            actions.push(Action::Timer);
        }
    }

    /// Returns whether the peer was challenged: a peer that confirms this does not have the
    /// connection.
    pub(super) fn has_challenged(&self) -> bool {
        self.keepalive()
            .is_some_and(|keepalive| keepalive.challenged.is_some())
    }

    /// Notes that the own link is down. If it stays so for `patience`, the connection ends.
    ///
    /// A link that was known to be down is so from the first time on.
    pub fn link_down(&mut self, patience: Duration, now: Instant) -> Actions {
        let mut actions = Actions::none();
        if let Some(keepalive) = self.keepalive().filter(|_| !self.is_link_down()) {
            self.timer = Timer::Keepalive(Keepalive {
                dead: now + patience,
                ..keepalive
            });
            actions.push(Action::Timer);
        }
        actions
    }

    /// Notes that the own link is up.
    pub fn link_up(&mut self) -> Actions {
        let mut actions = Actions::none();
        if let Some(keepalive) = self.keepalive().filter(|_| self.is_link_down()) {
            self.timer = Timer::Keepalive(Keepalive {
                dead: Instant::MAX,
                ..keepalive
            });
            actions.push(Action::Timer);
        }
        actions
    }

    /// Returns whether the connection will end if its link stays down.
    ///
    /// If so, the caller looks at the link once more before it calls [`timeout`](Self::timeout),
    /// and [tells](Self::link_up) if it is up.
    pub fn is_link_down(&self) -> bool {
        self.keepalive()
            .is_some_and(|keepalive| keepalive.dead != Instant::MAX)
    }

    pub(super) fn keepalive_timeout(&mut self, now: Instant) -> Actions {
        match self.keepalive() {
            Some(keepalive) if now >= keepalive.dead => self.lose_link(now),
            Some(keepalive) if now >= keepalive.lap => self.lap_timeout(now),
            Some(keepalive) if now >= keepalive.probe => {
                // A claim may just have made it a question.
                let mut actions = self.stale_peer(now);
                self.start_keepalive(now, &mut actions);
                actions
            }
            _ => Actions::none(),
        }
    }

    /// Ends the connection for its user, as the peer would by a DREQ.
    ///
    /// The peer is sent a DREQ until it answers, because the link may return. A message is lost
    /// as long as it is down. So the first one is sent when a DREQ would be sent again, and none
    /// early.
    fn lose_link(&mut self, now: Instant) -> Actions {
        let mut actions = Actions::none();
        self.buffer = None;
        self.state = State::DreqSent;
        self.timer = Timer::Request(self.classic_request(now));
        actions.push(Action::Timer);
        self.deliver(Event::LinkDown, &mut actions);
        self.lifecycle = Lifecycle::Told;
        actions
    }
}
