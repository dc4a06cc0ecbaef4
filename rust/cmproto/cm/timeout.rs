// SPDX-License-Identifier: GPL-2.0

//! Transitions of a connection on the expiry of its timer.

use super::{
    action::{Action, Actions, Counter, Event, Outgoing},
    connection::{Connection, Timer},
    retransmit::Expiry,
    retransmit_buffer::RetransmitMemory,
    state::State,
};
use crate::time::Instant;

impl<B: RetransmitMemory> Connection<B> {
    /// Handles the expiry of the timer at `now`: sends the request again, gives it up, or ends the
    /// time wait. Does nothing before the [`deadline`](Self::deadline).
    pub fn timeout(&mut self, now: Instant) -> Actions {
        match self.state {
            State::ReqSent | State::MraReqRcvd => self.expire(Outgoing::Req, now),
            State::RepSent | State::MraRepRcvd => self.expire(Outgoing::Rep, now),
            State::DreqSent => self.expire(Outgoing::Dreq, now),
            State::Timewait => self.exit_timewait(now),
            State::Established => self.keepalive_timeout(now),
            _ => Actions::none(),
        }
    }

    fn expire(&mut self, message: Outgoing, now: Instant) -> Actions {
        let expiry = match &mut self.timer {
            Timer::Request(request) => {
                request.expire(self.schedule.unpacked(), self.policy.unpacked(), now)
            }
            Timer::Off | Timer::Keepalive(_) | Timer::Timewait(_) => Expiry::Early,
        };
        let mut actions = Actions::none();
        match expiry {
            Expiry::Early => {}
            Expiry::Later => actions.push(Action::Timer),
            Expiry::Resend => {
                actions.push(match self.state {
                    // The REQ was answered by the first REP.
                    State::RepSent => Action::SendUnasked(message),
                    _ => Action::Send(message),
                });
                actions.push(Action::Count(Counter::Retry(message.attribute())));
                actions.push(Action::Timer);
            }
            Expiry::GiveUp => self.give_up(now, &mut actions),
        }
        actions
    }

    fn give_up(&mut self, now: Instant, actions: &mut Actions) {
        let event = match self.state {
            State::ReqSent | State::MraReqRcvd => Event::ReqError,
            State::RepSent | State::MraRepRcvd => Event::RepError,
            State::DreqSent => {
                self.enter_timewait(now, actions);
                self.deliver(Event::DreqError, actions);
                return;
            }
            // No request is in flight in these states.
            _ => return,
        };
        self.enter_idle(actions);
        self.deliver(event, actions);
        self.release(actions);
    }

    fn exit_timewait(&mut self, now: Instant) -> Actions {
        let mut actions = Actions::none();
        if self.deadline().is_some_and(|end| now >= end) {
            self.enter_idle(&mut actions);
            self.deliver(Event::TimewaitExit, &mut actions);
            self.release(&mut actions);
        }
        actions
    }
}
