// SPDX-License-Identifier: GPL-2.0

//! Destruction of a connection whose user goes away.

use super::{
    action::{Action, Actions, Outgoing},
    connection::{Connection, Lifecycle},
    retransmit_buffer::RetransmitMemory,
    state::State,
};
use crate::{payload::Payload, qp::QpType, reject::Reason, time::Instant};

/// The cause of a destruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestroyCause {
    /// The user has closed or refused the connection, or has died.
    User,
    /// The request could not be presented to the user, or gives way to another one. It is dropped
    /// without an answer, so that a retry of the peer may succeed.
    NoMemory,
    /// The number of the queue pair is that of another's queue pair by now. The peer is told that
    /// the connection is stale, and so gives the number up without its user.
    Superseded,
}

impl<B: RetransmitMemory> Connection<B> {
    /// Ends the connection without its user, who is told nothing from now on.
    ///
    /// The peer gets one last message, which is not sent again. A connection that may have been
    /// established is in time wait before [`Action::Release`], and any other is released at once.
    /// No answer of the peer is waited for. A second call does nothing.
    pub fn destroy(&mut self, cause: DestroyCause, now: Instant) -> Actions {
        let mut actions = Actions::none();
        match self.lifecycle {
            Lifecycle::Fresh | Lifecycle::Open | Lifecycle::Told => {}
            Lifecycle::Detached | Lifecycle::Closed => return actions,
        }
        match self.state {
            State::Idle | State::Listen | State::SidrReqSent | State::SidrReqRcvd => {
                self.close(&mut actions);
            }
            State::ReqSent | State::MraReqRcvd => {
                // The peer's communication id is not known yet: the peer finds the connection by
                // this GUID and the own communication id.
                let guid = self.local_ca_guid.to_be_bytes();
                if let Some(buffer) = &mut self.buffer {
                    buffer.payload =
                        Payload::new(Outgoing::Rej, &guid, &[]).unwrap_or(Payload::EMPTY);
                }
                self.send_rej(Reason::TIMEOUT, &mut actions);
                self.close(&mut actions);
            }
            // The consumer has not seen a parked request that gives way to another one.
            State::ReqRcvd | State::MraReqSent => {
                match cause {
                    DestroyCause::User | DestroyCause::Superseded => {
                        self.send_plain_rej(&mut actions);
                    }
                    DestroyCause::NoMemory => {}
                }
                self.close(&mut actions);
            }
            State::RepRcvd | State::MraRepSent => {
                self.send_plain_rej(&mut actions);
                self.close(&mut actions);
            }
            State::RepSent | State::MraRepRcvd => {
                self.send_plain_rej(&mut actions);
                self.detach(now, &mut actions);
            }
            State::Established => match self.qp_type {
                // An XRC target queue pair is shared, and outlives its connection.
                QpType::XRC_TGT => self.close(&mut actions),
                _ if cause == DestroyCause::Superseded => self.end_stale(now, &mut actions),
                _ => {
                    self.buffer = None;
                    actions.push(Action::Send(Outgoing::Dreq));
                    self.detach(now, &mut actions);
                }
            },
            State::DreqSent if cause == DestroyCause::Superseded => {
                self.end_stale(now, &mut actions);
            }
            State::DreqSent => self.detach(now, &mut actions),
            State::DreqRcvd => {
                self.buffer = None;
                actions.push(Action::Send(Outgoing::Drep));
                self.detach(now, &mut actions);
            }
            State::Timewait => self.lifecycle = Lifecycle::Detached,
        }
        actions
    }

    fn end_stale(&mut self, now: Instant, actions: &mut Actions) {
        self.buffer = None;
        self.send_rej(Reason::STALE_CONN, actions);
        self.detach(now, actions);
    }

    fn send_plain_rej(&mut self, actions: &mut Actions) {
        self.buffer = None;
        self.send_rej(Reason::CONSUMER_DEFINED, actions);
    }

    fn close(&mut self, actions: &mut Actions) {
        self.enter_idle(actions);
        self.release(actions);
    }

    fn detach(&mut self, now: Instant, actions: &mut Actions) {
        self.enter_timewait(now, actions);
        self.lifecycle = Lifecycle::Detached;
    }
}
