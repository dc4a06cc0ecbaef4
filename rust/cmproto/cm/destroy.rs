// SPDX-License-Identifier: GPL-2.0

//! What happens to a connection whose user goes away.

use super::{
    action::{Action, Actions, Outgoing},
    connection::{Connection, Life, Payload},
    params::QpType,
    state::State,
};
use crate::{reject::Reason, time::Instant};

/// Why a connection is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestroyCause {
    /// The user closed it, refused it, or died.
    User,
    /// A request could not be presented to the user: it is dropped in silence, so that the peer's
    /// next try may succeed.
    NoMemory,
}

impl Connection {
    /// Ends the connection without its user, who is told nothing from now on.
    ///
    /// The peer gets one last message, which is not sent again. What has been connected waits out
    /// its time wait before [`Action::Release`], everything else is released at once; no answer of
    /// the peer is waited for. Destroying again does nothing.
    pub fn destroy(&mut self, cause: DestroyCause, now: Instant) -> Actions {
        let mut actions = Actions::none();
        match self.life {
            Life::Fresh | Life::Open => {}
            Life::Detached | Life::Closed => return actions,
        }
        match self.state {
            State::Idle | State::Listen | State::SidrReqSent | State::SidrReqRcvd => {
                self.close(&mut actions);
            }
            State::ReqSent | State::MraReqRcvd => {
                // The peer finds the connection by this GUID: it has not told its own number.
                let guid = self.local_ca_guid.to_be_bytes();
                let payload = Payload::new(Outgoing::Rej, &guid, &[]).unwrap_or(Payload::EMPTY);
                self.send_rej(Reason::TIMEOUT, payload, &mut actions);
                self.close(&mut actions);
            }
            State::ReqRcvd => {
                match cause {
                    DestroyCause::User => self.send_plain_rej(&mut actions),
                    DestroyCause::NoMemory => {}
                }
                self.close(&mut actions);
            }
            State::MraReqSent | State::RepRcvd | State::MraRepSent => {
                self.send_plain_rej(&mut actions);
                self.close(&mut actions);
            }
            State::RepSent | State::MraRepRcvd => {
                self.send_plain_rej(&mut actions);
                self.detach(now, &mut actions);
            }
            State::Established => match self.qp_type {
                // The target of XRC is shared, and outlives its connection.
                QpType::XrcTgt => self.close(&mut actions),
                QpType::Rc | QpType::Uc | QpType::XrcIni => {
                    self.payload.clear();
                    actions.push(Action::Send(Outgoing::Dreq));
                    self.detach(now, &mut actions);
                }
            },
            State::DreqSent => self.detach(now, &mut actions),
            State::DreqRcvd => {
                self.payload.clear();
                actions.push(Action::Send(Outgoing::Drep));
                self.detach(now, &mut actions);
            }
            State::Timewait => self.life = Life::Detached,
        }
        actions
    }

    fn send_plain_rej(&mut self, actions: &mut Actions) {
        self.send_rej(Reason::CONSUMER_DEFINED, Payload::EMPTY, actions);
    }

    fn close(&mut self, actions: &mut Actions) {
        self.enter_idle(actions);
        self.release(actions);
    }

    fn detach(&mut self, now: Instant, actions: &mut Actions) {
        self.enter_timewait(now, actions);
        self.life = Life::Detached;
    }
}
