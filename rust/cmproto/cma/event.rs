// SPDX-License-Identifier: GPL-2.0

//! The events that a consumer is told when the communication manager has an event.

use super::state::{State, Trigger};
use crate::{cm, errno::Errno, sidr, ucma_abi::CmEvent};

/// An event for the consumer of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcall {
    /// The kind of event.
    pub event: CmEvent,
    /// 0, a negative errno, or a positive number: the reason of a REJ, or the status of a SIDR_REP.
    pub status: i32,
    /// The trigger of a state transition of the endpoint, if there is one.
    pub trigger: Option<Trigger>,
}

/// Returns the event for the consumer of an endpoint in `state` when the communication manager has
/// `event`, or `None` if the consumer is told nothing.
///
/// `queue_pair` is `None` if the consumer handles its queue pair itself. Otherwise it is, for
/// [`RepReceived`](cm::Event::RepReceived), the result of connecting the queue pair and sending the
/// RTU.
pub fn upcall(
    state: State,
    event: cm::Event,
    queue_pair: Option<Result<(), Errno>>,
) -> Option<Upcall> {
    let expected = match event {
        // Only a disconnect leads here: a connection that ends with a REJ keeps its state.
        cm::Event::TimewaitExit => State::Disconnect,
        _ => State::Connect,
    };
    if state != expected {
        return None;
    }
    let timed_out = status(Errno::ETIMEDOUT);
    let (event, status) = match event {
        cm::Event::ReqError | cm::Event::RepError => (CmEvent::Unreachable, timed_out),
        cm::Event::RepReceived => match queue_pair {
            None => (CmEvent::ConnectResponse, 0),
            Some(Ok(())) => (CmEvent::Established, 0),
            Some(Err(errno)) => (CmEvent::ConnectError, status(errno)),
        },
        cm::Event::RtuReceived | cm::Event::UserEstablished => (CmEvent::Established, 0),
        cm::Event::RejReceived { reason } => (CmEvent::Rejected, i32::from(reason.0)),
        cm::Event::DreqError => (CmEvent::Disconnected, timed_out),
        cm::Event::LinkDown => (CmEvent::Disconnected, status(Errno::ENETDOWN)),
        cm::Event::DreqReceived | cm::Event::DrepReceived => (CmEvent::Disconnected, 0),
        cm::Event::TimewaitExit => (CmEvent::TimewaitExit, 0),
        cm::Event::MraReceived | cm::Event::LapReceived => return None,
    };
    Some(Upcall {
        event,
        status,
        trigger: (event == CmEvent::Disconnected).then_some(Trigger::Disconnected),
    })
}

/// Returns the event for the consumer of an endpoint in `state` when a service ID resolution has
/// `event`, or `None` if the consumer is told nothing.
///
/// `qkey` is the result of checking the Q_Key of a successful answer with the endpoint's.
pub fn resolution_upcall(
    state: State,
    event: sidr::Event,
    qkey: Result<(), Errno>,
) -> Option<Upcall> {
    if state != State::Connect {
        return None;
    }
    let (event, status) = match event {
        sidr::Event::ReqError => (CmEvent::Unreachable, status(Errno::ETIMEDOUT)),
        sidr::Event::RepReceived { status: answer } if !answer.is_success() => {
            (CmEvent::Unreachable, i32::from(answer.0))
        }
        sidr::Event::RepReceived { .. } => match qkey {
            Ok(()) => (CmEvent::Established, 0),
            Err(errno) => (CmEvent::AddrError, status(errno)),
        },
    };
    Some(Upcall {
        event,
        status,
        trigger: None,
    })
}

/// Returns an error as the status of an event.
fn status(errno: Errno) -> i32 {
    errno.code().wrapping_neg()
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cma_event)
)]
mod tests {
    use super::*;
    use crate::reject::Reason;

    const EVENTS: [cm::Event; 13] = [
        cm::Event::RepReceived,
        cm::Event::RtuReceived,
        cm::Event::UserEstablished,
        cm::Event::RejReceived {
            reason: Reason::STALE_CONN,
        },
        cm::Event::ReqError,
        cm::Event::RepError,
        cm::Event::DreqReceived,
        cm::Event::DreqError,
        cm::Event::LinkDown,
        cm::Event::DrepReceived,
        cm::Event::TimewaitExit,
        cm::Event::MraReceived,
        cm::Event::LapReceived,
    ];

    #[test]
    fn every_event_while_connecting() {
        let expected = [
            Some((CmEvent::ConnectResponse, 0, State::Connect)),
            Some((CmEvent::Established, 0, State::Connect)),
            Some((CmEvent::Established, 0, State::Connect)),
            Some((CmEvent::Rejected, 10, State::Connect)),
            Some((CmEvent::Unreachable, -110, State::Connect)),
            Some((CmEvent::Unreachable, -110, State::Connect)),
            Some((CmEvent::Disconnected, 0, State::Disconnect)),
            Some((CmEvent::Disconnected, -110, State::Disconnect)),
            Some((CmEvent::Disconnected, -100, State::Disconnect)),
            Some((CmEvent::Disconnected, 0, State::Disconnect)),
            None,
            None,
            None,
        ];
        for (event, expected) in EVENTS.into_iter().zip(expected) {
            let upcall = upcall(State::Connect, event, None);
            let upcall = upcall.map(|u| {
                let next = u
                    .trigger
                    .map_or(Some(State::Connect), |t| State::Connect.next(t));
                (u.event, u.status, next.unwrap())
            });
            assert_eq!((event, upcall), (event, expected));
        }
    }

    #[test]
    fn only_timewait_exit_after_a_disconnect() {
        for event in EVENTS {
            let upcall = upcall(State::Disconnect, event, None);
            let expected = (event == cm::Event::TimewaitExit).then_some(Upcall {
                event: CmEvent::TimewaitExit,
                status: 0,
                trigger: None,
            });
            assert_eq!(upcall, expected);
        }
    }

    #[test]
    fn nothing_in_other_states() {
        for state in State::ALL {
            for event in EVENTS {
                let silent = !matches!(state, State::Connect | State::Disconnect);
                assert!(!silent || upcall(state, event, None).is_none());
            }
        }
    }

    #[test]
    fn every_outcome_of_a_resolution() {
        let success = sidr::Event::RepReceived {
            status: sidr::Status::SUCCESS,
        };
        let told = |state, event, qkey| {
            let upcall = resolution_upcall(state, event, qkey)?;
            assert_eq!(upcall.trigger, None);
            Some((upcall.event, upcall.status))
        };
        for state in State::ALL {
            for event in [success, sidr::Event::ReqError] {
                let is_told = told(state, event, Ok(())).is_some();
                assert_eq!((state, is_told), (state, state == State::Connect));
            }
        }
        let connect = |event, qkey| told(State::Connect, event, qkey).unwrap();
        assert_eq!(connect(success, Ok(())), (CmEvent::Established, 0));
        let bad_qkey = connect(success, Err(Errno::EINVAL));
        assert_eq!(bad_qkey, (CmEvent::AddrError, -22));
        for qkey in [Ok(()), Err(Errno::EINVAL)] {
            let unanswered = connect(sidr::Event::ReqError, qkey);
            assert_eq!(unanswered, (CmEvent::Unreachable, -110));
            for code in 1..=255 {
                let refused = sidr::Event::RepReceived {
                    status: sidr::Status(code),
                };
                let wanted = (CmEvent::Unreachable, i32::from(code));
                assert_eq!(connect(refused, qkey), wanted);
            }
        }
    }

    #[test]
    fn a_queue_pair_of_the_kernel() {
        let rep = |result| {
            let upcall = upcall(State::Connect, cm::Event::RepReceived, Some(result)).unwrap();
            (upcall.event, upcall.status, upcall.trigger)
        };
        assert_eq!(rep(Ok(())), (CmEvent::Established, 0, None));
        assert_eq!(rep(Err(Errno::ENOMEM)), (CmEvent::ConnectError, -12, None));
    }
}
