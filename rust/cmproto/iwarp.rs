// SPDX-License-Identifier: GPL-2.0

//! A connection over iWARP, whose messages the kernel's iWARP CM (iw_cm) exchanges (MPA, RFC 5044
//! and 6581).
//!
//! This module decides which verb of iw_cm is allowed in which phase, and what its events mean to
//! the user. iw_cm trusts its callers: if a request is answered twice, or a connection of the
//! active side is answered, it stops the kernel. So no such verb reaches it.
//!
//! The caller executes a verb without a lock, because it may wait for the network, and then reports
//! its outcome. Events come at any time, also before that.

use crate::{errno::Errno, ucma_abi::CmEvent};

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Active side: the peer was asked, and has not answered.
    Connecting,
    /// Active side: the peer has answered. The user is told when the peer, which is at this host,
    /// has finished its accept.
    Replied,
    /// Passive side: the request was not answered yet.
    Requested,
    /// Passive side: the accept verb is under way.
    Accepting,
    /// Passive side: the accept verb has succeeded, and there is no event yet that says the
    /// connection is established.
    Accepted,
    /// The connection is established.
    Established,
    /// The connection was closed or refused, or has failed.
    Over,
}

/// The numbers of RDMA reads that may be outstanding, as iw_cm reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depths {
    /// Inbound read depth, which the user sees as its initiator depth.
    pub ird: u8,
    /// Outbound read depth, which the user sees as its responder resources.
    pub ord: u8,
}

/// An event of iw_cm for a connection. Events that iw_cm handles itself are absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Active side: the peer has answered, or the attempt has failed.
    Reply {
        /// 0 or a negative errno.
        status: i32,
        /// The depths that were negotiated.
        depths: Depths,
    },
    /// Passive side: the connection is established, with these depths.
    Established(Depths),
    /// The connection has ended.
    Close,
}

/// The consequences of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The event to report to the user, if any.
    pub upcall: Option<Upcall>,
    /// Set if the user has asked for the end of the connection before it was established: the
    /// disconnect verb is to be called now.
    pub disconnect: bool,
}

/// An event for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcall {
    /// The kind of event.
    pub event: CmEvent,
    /// 0 or a negative errno.
    pub status: i32,
    /// The depths that were negotiated, if the event says that the connection is established.
    pub depths: Option<Depths>,
}

/// A connection over iWARP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    phase: Phase,
    /// Set if the connection is to be ended as soon as it is established.
    disconnect: bool,
    /// While accepting: the depths, if the connection was established meanwhile.
    established: Option<Depths>,
    /// While held: the peer's answer.
    reply: Option<Event>,
    /// While accepting or held: set if the connection was closed meanwhile.
    closed: bool,
}

impl Connection {
    const fn new(phase: Phase) -> Self {
        Connection {
            phase,
            disconnect: false,
            established: None,
            reply: None,
            closed: false,
        }
    }

    /// Creates a connection for which the connect verb is about to be called.
    pub const fn active() -> Self {
        Self::new(Phase::Connecting)
    }

    /// Creates a connection that a peer has requested.
    pub const fn passive() -> Self {
        Self::new(Phase::Requested)
    }

    /// Returns the phase.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns whether nothing but the end of the connection is left for iw_cm to do: the
    /// connection is established, or will never be.
    pub const fn is_attempt_over(&self) -> bool {
        matches!(self.phase, Phase::Established | Phase::Over)
    }

    /// Notes that the user accepts. On success the caller calls the accept verb, and then
    /// [`accepted`](Self::accepted).
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] unless the connection is a request that was not answered.
    pub fn accept(&mut self) -> Result<(), Errno> {
        self.answer(Phase::Accepting)
    }

    /// Notes that the user refuses. On success the caller calls the reject verb.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] unless the connection is a request that was not answered.
    pub fn reject(&mut self) -> Result<(), Errno> {
        self.answer(Phase::Over)
    }

    fn answer(&mut self, next: Phase) -> Result<(), Errno> {
        if self.phase != Phase::Requested {
            return Err(Errno::EINVAL);
        }
        self.phase = next;
        Ok(())
    }

    /// Notes whether the accept verb has succeeded. Returns the consequences of the events that
    /// happened meanwhile, in their order.
    pub fn accepted(&mut self, succeeded: bool) -> [Outcome; 2] {
        let mut outcomes = [Outcome::default(); 2];
        if self.phase != Phase::Accepting {
            return outcomes;
        }
        if !succeeded {
            self.phase = Phase::Over;
            return outcomes;
        }
        self.phase = Phase::Accepted;
        let [first, second] = &mut outcomes;
        if let Some(depths) = self.established.take() {
            *first = self.event(Event::Established(depths));
        }
        if self.closed {
            *second = self.event(Event::Close);
        }
        outcomes
    }

    /// Notes that the user disconnects. Returns whether the caller is to call the disconnect verb
    /// now. Otherwise there is nothing to end, or not yet.
    pub fn disconnect(&mut self) -> bool {
        match self.phase {
            Phase::Established => true,
            Phase::Connecting | Phase::Replied | Phase::Accepting | Phase::Accepted => {
                self.disconnect = true;
                false
            }
            Phase::Requested | Phase::Over => false,
        }
    }

    /// Holds the peer's answer back from the user until [`released`](Self::released) is called.
    /// Returns false if `reply` is not an answer that is awaited.
    pub fn hold(&mut self, reply: Event) -> bool {
        let is_awaited = self.phase == Phase::Connecting && matches!(reply, Event::Reply { .. });
        if is_awaited {
            self.phase = Phase::Replied;
            self.reply = Some(reply);
        }
        is_awaited
    }

    /// Releases the answer that was held back. Returns the consequences of the answer and of the
    /// events that happened meanwhile, in their order.
    pub fn released(&mut self) -> [Outcome; 2] {
        let mut outcomes = [Outcome::default(); 2];
        if let (Phase::Replied, Some(reply)) = (self.phase, self.reply.take()) {
            self.phase = Phase::Connecting;
            let [first, second] = &mut outcomes;
            *first = self.event(reply);
            if self.closed {
                *second = self.event(Event::Close);
            }
        }
        outcomes
    }

    /// Handles an event of iw_cm.
    pub fn event(&mut self, event: Event) -> Outcome {
        match (self.phase, event) {
            (Phase::Accepting, Event::Established(depths)) => {
                self.established = Some(depths);
                Outcome::default()
            }
            (Phase::Accepting | Phase::Replied, Event::Close) => {
                self.closed = true;
                Outcome::default()
            }
            (Phase::Connecting, Event::Reply { status: 0, depths })
            | (Phase::Accepted, Event::Established(depths)) => {
                self.phase = Phase::Established;
                let upcall = upcall(CmEvent::Established, 0, Some(depths));
                Outcome {
                    disconnect: self.disconnect,
                    ..upcall
                }
            }
            (Phase::Connecting, Event::Reply { status, .. }) => {
                self.phase = Phase::Over;
                upcall(failure(status), status, None)
            }
            (Phase::Accepted | Phase::Established, Event::Close) => {
                self.phase = Phase::Over;
                upcall(CmEvent::Disconnected, 0, None)
            }
            _ => Outcome::default(),
        }
    }
}

/// Returns the outcome of an event that is reported to the user.
const fn upcall(event: CmEvent, status: i32, depths: Option<Depths>) -> Outcome {
    Outcome {
        upcall: Some(Upcall {
            event,
            status,
            depths,
        }),
        disconnect: false,
    }
}

/// Returns the event for a connection that failed with `status`, a negative errno.
pub(crate) fn failure(status: i32) -> CmEvent {
    let is = |errno: Errno| status == errno.code().wrapping_neg();
    if is(Errno::ECONNRESET) || is(Errno::ECONNREFUSED) {
        CmEvent::Rejected
    } else if is(Errno::ETIMEDOUT) {
        CmEvent::Unreachable
    } else {
        CmEvent::ConnectError
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_iwarp))]
mod tests {
    use super::*;

    const DEPTHS: Depths = Depths { ird: 3, ord: 5 };

    const EVENTS: [Event; 4] = [
        reply(0),
        reply(-104),
        Event::Established(DEPTHS),
        Event::Close,
    ];

    const fn reply(status: i32) -> Event {
        Event::Reply {
            status,
            depths: DEPTHS,
        }
    }

    const NOTHING: Outcome = Outcome {
        upcall: None,
        disconnect: false,
    };

    const ESTABLISHED: Outcome = upcall(CmEvent::Established, 0, Some(DEPTHS));

    const DISCONNECTED: Outcome = upcall(CmEvent::Disconnected, 0, None);

    /// Returns a connection in each phase.
    fn phases() -> [Connection; 7] {
        let connecting = Connection::active();
        let mut held = connecting;
        assert!(held.hold(reply(0)));
        let requested = Connection::passive();
        let mut accepting = requested;
        assert_eq!(accepting.accept(), Ok(()));
        let mut accepted = accepting;
        assert_eq!(accepted.accepted(true), [NOTHING; 2]);
        let mut established = connecting;
        assert_eq!(established.event(reply(0)), ESTABLISHED);
        let mut over = requested;
        assert_eq!(over.reject(), Ok(()));
        let all = [
            connecting,
            held,
            requested,
            accepting,
            accepted,
            established,
            over,
        ];
        let expected = [
            Phase::Connecting,
            Phase::Replied,
            Phase::Requested,
            Phase::Accepting,
            Phase::Accepted,
            Phase::Established,
            Phase::Over,
        ];
        assert_eq!(all.map(|connection| connection.phase()), expected);
        all
    }

    #[test]
    fn an_answer_is_given_once_and_only_to_a_request() {
        for before in phases() {
            let expected = match before.phase() {
                Phase::Requested => Ok(()),
                _ => Err(Errno::EINVAL),
            };
            let (mut one, mut other) = (before, before);
            assert_eq!((before, one.accept()), (before, expected));
            assert_eq!((before, other.reject()), (before, expected));
            if expected.is_err() {
                assert_eq!((one, other), (before, before));
            }
        }
    }

    #[test]
    fn what_each_event_means_in_each_phase() {
        for before in phases() {
            for event in EVENTS {
                let mut connection = before;
                let outcome = connection.event(event);
                let (expected, next) = match (before.phase(), event) {
                    (Phase::Connecting, Event::Reply { status: 0, .. })
                    | (Phase::Accepted, Event::Established(_)) => (ESTABLISHED, Phase::Established),
                    (Phase::Connecting, Event::Reply { status, .. }) => {
                        (upcall(CmEvent::Rejected, status, None), Phase::Over)
                    }
                    (Phase::Accepted | Phase::Established, Event::Close) => {
                        (DISCONNECTED, Phase::Over)
                    }
                    (phase, _) => (NOTHING, phase),
                };
                assert_eq!((before, event, outcome), (before, event, expected));
                assert_eq!((before, event, connection.phase()), (before, event, next));
            }
        }
    }

    #[test]
    fn why_a_connection_could_not_be_made() {
        for status in -4095..0 {
            let event = match status {
                -104 | -111 => CmEvent::Rejected,
                -110 => CmEvent::Unreachable,
                _ => CmEvent::ConnectError,
            };
            let mut connection = Connection::active();
            assert_eq!(connection.event(reply(status)), upcall(event, status, None));
            assert_eq!(connection.phase(), Phase::Over);
        }
    }

    #[test]
    fn events_wait_until_the_accept_is_over() {
        let accepting = || {
            let mut connection = Connection::passive();
            assert_eq!(connection.accept(), Ok(()));
            connection
        };
        let mut connection = accepting();
        assert_eq!(connection.event(Event::Established(DEPTHS)), NOTHING);
        assert_eq!(connection.accepted(true), [ESTABLISHED, NOTHING]);
        assert_eq!(connection.phase(), Phase::Established);

        let mut connection = accepting();
        assert_eq!(connection.event(Event::Established(DEPTHS)), NOTHING);
        assert_eq!(connection.event(Event::Close), NOTHING);
        assert_eq!(connection.accepted(true), [ESTABLISHED, DISCONNECTED]);
        assert_eq!(connection.phase(), Phase::Over);

        let mut connection = accepting();
        assert_eq!(connection.accepted(false), [NOTHING; 2]);
        assert_eq!(connection.phase(), Phase::Over);
        // After the accept, its outcome has no effect.
        for mut other in phases() {
            if other.phase() != Phase::Accepting {
                let before = other;
                assert_eq!(other.accepted(true), [NOTHING; 2]);
                assert_eq!(other, before);
            }
        }
    }

    #[test]
    fn events_wait_until_the_answer_is_given() {
        let held = |reply| {
            let mut connection = Connection::active();
            assert!(connection.hold(reply));
            connection
        };
        let mut connection = held(reply(0));
        assert_eq!(connection.released(), [ESTABLISHED, NOTHING]);
        assert_eq!(connection.phase(), Phase::Established);

        let mut connection = held(reply(0));
        assert_eq!(connection.event(Event::Close), NOTHING);
        assert_eq!(connection.phase(), Phase::Replied);
        assert_eq!(connection.released(), [ESTABLISHED, DISCONNECTED]);
        assert_eq!(connection.phase(), Phase::Over);

        let mut connection = held(reply(-104));
        assert_eq!(connection.event(Event::Close), NOTHING);
        let rejected = upcall(CmEvent::Rejected, -104, None);
        assert_eq!(connection.released(), [rejected, NOTHING]);
        assert_eq!(connection.phase(), Phase::Over);

        // Only an awaited answer is held, and only a held answer is released.
        for before in phases() {
            let mut other = before;
            let is_awaited = before.phase() == Phase::Connecting;
            assert_eq!((before, other.hold(reply(0))), (before, is_awaited));
            assert_eq!((before, other == before), (before, !is_awaited));
            let mut other = before;
            assert!(!other.hold(Event::Close));
            assert_eq!(other, before);
            if before.phase() != Phase::Replied {
                assert_eq!((before, other.released()), (before, [NOTHING; 2]));
                assert_eq!(other, before);
            }
        }
    }

    #[test]
    fn a_disconnect_waits_for_the_connection() {
        for before in phases() {
            let mut connection = before;
            let is_now = connection.disconnect();
            assert_eq!(
                (before, is_now),
                (before, before.phase() == Phase::Established)
            );
            let wanted = Outcome {
                disconnect: true,
                ..ESTABLISHED
            };
            match before.phase() {
                Phase::Connecting => assert_eq!(connection.event(reply(0)), wanted),
                Phase::Replied => assert_eq!(connection.released(), [wanted, NOTHING]),
                Phase::Accepted => {
                    assert_eq!(connection.event(Event::Established(DEPTHS)), wanted);
                }
                Phase::Accepting => {
                    assert_eq!(connection.event(Event::Established(DEPTHS)), NOTHING);
                    assert_eq!(connection.accepted(true), [wanted, NOTHING]);
                }
                _ => assert_eq!(connection, before),
            }
        }
    }

    #[test]
    fn a_disconnect_of_what_fails_is_forgotten() {
        let mut connection = Connection::active();
        assert!(!connection.disconnect());
        let failed = upcall(CmEvent::Unreachable, -110, None);
        assert_eq!(connection.event(reply(-110)), failed);
        assert!(!connection.disconnect());
    }

    #[test]
    fn what_is_under_way_is_not_settled() {
        let over = phases().map(|connection| connection.is_attempt_over());
        assert_eq!(over, [false, false, false, false, false, true, true]);
    }
}
