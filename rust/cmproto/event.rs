// SPDX-License-Identifier: GPL-2.0

//! The events that administrators are told of by netlink, and what they say.

use crate::{
    addr::SockAddr,
    cm,
    dropped::Dropped,
    errno::Errno,
    iwarp,
    netlink::{Attr, Command},
    node::{Answer, Response},
    numbered::numbered,
    reject::Reason,
    sidr,
    ucma::account::Resource,
    ucma_abi::CmEvent,
    wire::Attribute,
};
use core::ffi::CStr;

numbered! {
    /// The way in which a request was refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum Refusal {
        /// This end has sent a refusal.
        Sent = 0 => "sent",
        /// The peer has sent a refusal.
        Received = 1 => "received",
        /// This end has dropped the request.
        Dropped = 2 => "dropped",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

numbered! {
    /// A phase of a connection that takes time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum Phase {
        /// The resolution of the peer's address.
        Address = 0 => "address",
        /// The resolution of the route.
        Route = 1 => "route",
        /// From the REQ to its answer.
        Req = 2 => "req",
        /// From the REQ of a peer to the answer of the user.
        Accept = 3 => "accept",
        /// From the REP to the RTU.
        Rep = 4 => "rep",
        /// From the DREQ to the DREP.
        Dreq = 5 => "dreq",
        /// From the SIDR_REQ to its answer.
        SidrReq = 6 => "sidr-req",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

impl Phase {
    /// Returns the phase that begins with a message and ends with its answer.
    pub const fn of(request: Attribute) -> Option<Self> {
        match request {
            Attribute::Req => Some(Self::Req),
            Attribute::Rep => Some(Self::Rep),
            Attribute::Dreq => Some(Self::Dreq),
            Attribute::SidrReq => Some(Self::SidrReq),
            _ => None,
        }
    }
}

/// A failure of an attempt at a connection, or of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request was refused, for the reason with this number and text.
    Refused {
        /// The way in which it was refused.
        how: Refusal,
        /// The phase of the request, [`Req`](Phase::Req) or [`SidrReq`](Phase::SidrReq).
        phase: Phase,
        /// The reason of the REJ, the status of the SIDR_REP, or the number of the
        /// [drop](Dropped). Over iWARP there is none.
        code: Option<u16>,
        /// The text of the reason.
        reason: &'static CStr,
    },
    /// The peer has not answered.
    GaveUp {
        /// The phase.
        phase: Phase,
        /// The number of messages that were sent again, if that is counted.
        retries: Option<u8>,
    },
}

impl Failure {
    /// Returns the failure of a request that is rejected by this end.
    pub const fn rejected(reason: Reason) -> Self {
        Self::refused(Refusal::Sent, reason)
    }

    const fn refused(how: Refusal, reason: Reason) -> Self {
        Self::Refused {
            how,
            phase: Phase::Req,
            code: Some(reason.0),
            reason: reason.message(),
        }
    }

    /// Returns the failure of a request of this phase that was dropped.
    pub const fn dropped(phase: Phase, why: Dropped) -> Self {
        Self::Refused {
            how: Refusal::Dropped,
            phase,
            code: Some(why as u16),
            reason: why.name(),
        }
    }

    /// Returns the failure of a SIDR_REQ that was answered with a status other than success.
    pub const fn sidr_refused(how: Refusal, status: sidr::Status) -> Self {
        Self::Refused {
            how,
            phase: Phase::SidrReq,
            code: Some(status.0 as u16),
            reason: status.message(),
        }
    }

    /// Returns the failure of which an event of a resolution tells, if it does.
    pub fn of_sidr(event: sidr::Event) -> Option<Self> {
        match event {
            sidr::Event::RepReceived { status } if status.is_success() => None,
            sidr::Event::RepReceived { status } => {
                Some(Self::sidr_refused(Refusal::Received, status))
            }
            sidr::Event::ReqError => Some(Self::GaveUp {
                phase: Phase::SidrReq,
                retries: None,
            }),
        }
    }

    /// Returns the failure of a request over iWARP, where a refusal has a text and no number.
    pub const fn iwarp_refused(how: Refusal, reason: &'static CStr) -> Self {
        Self::Refused {
            how,
            phase: Phase::Req,
            code: None,
            reason,
        }
    }

    /// Returns the failure of which the status of a connection over iWARP tells, 0 or a negative
    /// errno, if the peer is the cause.
    pub fn of_iwarp(status: i32) -> Option<Self> {
        let is = |errno: Errno| status == errno.code().wrapping_neg();
        match iwarp::failure(status) {
            CmEvent::Rejected => {
                let reason = if is(Errno::ECONNREFUSED) {
                    c"connection refused"
                } else {
                    c"connection reset"
                };
                Some(Self::iwarp_refused(Refusal::Received, reason))
            }
            event if event == CmEvent::Unreachable || is(Errno::EHOSTUNREACH) => {
                Some(Self::GaveUp {
                    phase: Phase::Req,
                    retries: None,
                })
            }
            _ => None,
        }
    }

    /// Returns the failure of a query that has ended with a status other than 0, if it was not
    /// answered. `event` is what the user is told.
    pub const fn of_query(event: CmEvent, status: i32) -> Option<Self> {
        const TIMED_OUT: i32 = Errno::ETIMEDOUT.code();
        const UNREACHABLE: i32 = Errno::EHOSTUNREACH.code();
        let phase = match event {
            CmEvent::AddrError => Phase::Address,
            CmEvent::RouteError => Phase::Route,
            _ => return None,
        };
        match status.saturating_abs() {
            TIMED_OUT | UNREACHABLE => Some(Self::GaveUp {
                phase,
                retries: None,
            }),
            _ => None,
        }
    }

    /// Returns the failure of a request of this phase that a node responds to without an endpoint,
    /// if it is one.
    pub const fn of_response(phase: Phase, response: &Response) -> Option<Self> {
        match response {
            Response::Drop(why) => Some(Self::dropped(phase, *why)),
            Response::Answer(Answer::Rej { reason, .. }) => Some(Self::rejected(*reason)),
            Response::Answer(Answer::SidrRep { status, .. }) => {
                Some(Self::sidr_refused(Refusal::Sent, *status))
            }
            Response::Answer(Answer::Drep { .. }) => None,
        }
    }

    /// Returns the failure of which an event of a connection tells, if it does. Messages of the
    /// connection were sent again as often as `retries` says.
    pub const fn of(event: cm::Event, retries: u8) -> Option<Self> {
        let phase = match event {
            cm::Event::RejReceived { reason } => {
                return Some(Self::refused(Refusal::Received, reason));
            }
            cm::Event::ReqError => Phase::Req,
            cm::Event::RepError => Phase::Rep,
            cm::Event::DreqError => Phase::Dreq,
            _ => return None,
        };
        Some(Self::GaveUp {
            phase,
            retries: Some(retries),
        })
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An attempt at a connection, or its end, has failed.
    Failed {
        /// The failure.
        failure: Failure,
        /// The address of this end, as far as it is known.
        src: SockAddr,
        /// The address of the peer, as far as it is known.
        dst: SockAddr,
        /// The service id, or 0.
        service_id: u64,
    },
    /// A user has as much of a resource as it may have, and has asked for more.
    Limit {
        /// The user, if it has a number for those who are told.
        user: Option<u32>,
        /// The resource.
        resource: Resource,
        /// The number that a user may have.
        limit: u32,
    },
    /// A device was removed.
    DeviceGone {
        /// The number of connections that have ended with it.
        connections: u32,
    },
    /// Events were lost, as there were too many.
    Lost {
        /// The number of events.
        events: u64,
    },
}

/// The value of an attribute of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of 4 bytes.
    U32(u32),
    /// A number of 4 or 8 bytes.
    Uint(u64),
    /// A text.
    Text(&'static CStr),
    /// An address.
    Address(SockAddr),
    /// A resource, and its limit.
    Resource(Resource, u32),
}

impl Event {
    /// Returns the kind of the message about the event.
    pub const fn command(&self) -> Command {
        match self {
            Self::Failed { failure, .. } => match failure {
                Failure::Refused { .. } => Command::RefusedNtf,
                Failure::GaveUp { .. } => Command::GaveUpNtf,
            },
            Self::Limit { .. } => Command::LimitNtf,
            Self::DeviceGone { .. } => Command::DeviceGoneNtf,
            Self::Lost { .. } => Command::LostNtf,
        }
    }

    /// Calls `put` for each attribute of the event, but for those of the port, until it fails.
    pub fn visit<E>(&self, mut put: impl FnMut(Attr, Value) -> Result<(), E>) -> Result<(), E> {
        match *self {
            Self::Failed {
                failure,
                src,
                dst,
                service_id,
            } => {
                match failure {
                    Failure::Refused {
                        how,
                        phase,
                        code,
                        reason,
                    } => {
                        put(Attr::Refusal, Value::U32(how as u32))?;
                        put(Attr::Phase, Value::U32(phase as u32))?;
                        if let Some(code) = code {
                            put(Attr::Reason, Value::U32(code.into()))?;
                        }
                        put(Attr::ReasonName, Value::Text(reason))?;
                    }
                    Failure::GaveUp { phase, retries } => {
                        put(Attr::Phase, Value::U32(phase as u32))?;
                        if let Some(retries) = retries {
                            put(Attr::Retries, Value::U32(retries.into()))?;
                        }
                    }
                }
                for (attr, addr) in [(Attr::Src, src), (Attr::Dst, dst)] {
                    if !addr.is_unspec() {
                        put(attr, Value::Address(addr))?;
                    }
                }
                match service_id {
                    0 => Ok(()),
                    id => put(Attr::ServiceId, Value::Uint(id)),
                }
            }
            Self::Limit {
                user,
                resource,
                limit,
            } => {
                if let Some(user) = user {
                    put(Attr::Uid, Value::U32(user))?;
                }
                put(Attr::Resource, Value::Resource(resource, limit))
            }
            Self::DeviceGone { connections } => put(Attr::Connections, Value::U32(connections)),
            Self::Lost { events } => put(Attr::Lost, Value::Uint(events)),
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_event))]
mod tests {
    use super::*;
    use crate::wire::RejMessage;

    #[test]
    fn failures_of_a_connection() {
        let reason = Reason::INVALID_SERVICE_ID;
        let gave_up = |phase| {
            Some(Failure::GaveUp {
                phase,
                retries: Some(3),
            })
        };
        let refused = Failure::Refused {
            how: Refusal::Received,
            phase: Phase::Req,
            code: Some(8),
            reason: c"invalid service ID",
        };
        for (event, want) in [
            (cm::Event::RejReceived { reason }, Some(refused)),
            (cm::Event::ReqError, gave_up(Phase::Req)),
            (cm::Event::RepError, gave_up(Phase::Rep)),
            (cm::Event::DreqError, gave_up(Phase::Dreq)),
            (cm::Event::RepReceived, None),
            (cm::Event::TimewaitExit, None),
            (cm::Event::DrepReceived, None),
        ] {
            assert_eq!(Failure::of(event, 3), want);
        }
    }

    #[test]
    fn queries_without_an_answer() {
        for (event, status, want) in [
            (CmEvent::AddrError, -110, Some(Phase::Address)),
            (CmEvent::AddrError, -113, Some(Phase::Address)),
            (CmEvent::AddrError, -12, None),
            (CmEvent::RouteError, -110, Some(Phase::Route)),
            (CmEvent::Unreachable, -110, None),
        ] {
            let want = want.map(|phase| Failure::GaveUp {
                phase,
                retries: None,
            });
            assert_eq!(Failure::of_query(event, status), want);
        }
    }

    #[test]
    fn responses_without_a_connection() {
        let answer = |answer| Failure::of_response(Phase::Req, &Response::Answer(answer));
        let rej = Answer::Rej {
            refused: RejMessage::Req,
            local_comm_id: 0,
            remote_comm_id: 5,
            reason: Reason::STALE_CONN,
            gid: None,
        };
        let drep = Answer::Drep {
            local_comm_id: 4,
            remote_comm_id: 5,
        };
        assert_eq!(answer(rej), Some(Failure::rejected(Reason::STALE_CONN)));
        assert_eq!(answer(drep), None);
        for phase in [Phase::Req, Phase::SidrReq] {
            let dropped = Failure::of_response(phase, &Response::Drop(Dropped::Overload));
            assert_eq!(dropped, Some(Failure::dropped(phase, Dropped::Overload)));
        }
        let status = sidr::Status::UNSUPPORTED;
        let rep = Answer::SidrRep {
            request_id: 1,
            service_id: 2,
            status,
        };
        assert_eq!(
            answer(rep),
            Some(Failure::sidr_refused(Refusal::Sent, status))
        );
    }

    #[test]
    fn failures_of_a_resolution() {
        let of = |status| Failure::of_sidr(sidr::Event::RepReceived { status });
        assert_eq!(of(sidr::Status::SUCCESS), None);
        assert_eq!(
            of(sidr::Status::REJECT),
            Some(Failure::Refused {
                how: Refusal::Received,
                phase: Phase::SidrReq,
                code: Some(2),
                reason: c"rejected",
            })
        );
        assert_eq!(
            Failure::of_sidr(sidr::Event::ReqError),
            Some(Failure::GaveUp {
                phase: Phase::SidrReq,
                retries: None
            })
        );
    }

    #[test]
    fn failures_over_iwarp() {
        let refused = |reason| Some(Failure::iwarp_refused(Refusal::Received, reason));
        let gave_up = Some(Failure::GaveUp {
            phase: Phase::Req,
            retries: None,
        });
        for (status, want) in [
            (0, None),
            (-111, refused(c"connection refused")),
            (-104, refused(c"connection reset")),
            (-110, gave_up),
            (-113, gave_up),
            (-12, None),
        ] {
            assert_eq!((status, Failure::of_iwarp(status)), (status, want));
        }
    }

    /// Checks the kind and the attributes of an event.
    fn check(event: Event, command: Command, want: &[(Attr, Value)]) {
        let mut want = want.iter();
        assert_eq!(event.command(), command);
        let visited: Result<(), ()> = event.visit(|attr, value| {
            assert_eq!(Some(&(attr, value)), want.next());
            Ok(())
        });
        assert_eq!((visited, want.next()), (Ok(()), None));
        // An attribute for which there is no room ends it.
        assert_eq!(event.visit(|_, _| Err(7)), Err(7));
    }

    #[test]
    fn attributes() {
        let (src, dst) = (
            SockAddr::v4([10, 0, 0, 1], 7),
            SockAddr::v4([10, 0, 0, 2], 9),
        );
        let failed = |failure| Event::Failed {
            failure,
            src,
            dst,
            service_id: 0x106_0009,
        };
        let (from, to) = (
            (Attr::Src, Value::Address(src)),
            (Attr::Dst, Value::Address(dst)),
        );
        let service = (Attr::ServiceId, Value::Uint(0x106_0009));
        let refused = |how: u32, phase, code, text| {
            [
                (Attr::Refusal, Value::U32(how)),
                (Attr::Phase, Value::U32(phase)),
                (Attr::Reason, Value::U32(code)),
                (Attr::ReasonName, Value::Text(text)),
                from,
                to,
                service,
            ]
        };
        check(
            failed(Failure::rejected(Reason::CONSUMER_DEFINED)),
            Command::RefusedNtf,
            &refused(0, 2, 28, c"consumer defined"),
        );
        check(
            failed(Failure::dropped(Phase::SidrReq, Dropped::Overload)),
            Command::RefusedNtf,
            &refused(2, 6, 8, c"overload"),
        );
        // Over iWARP there is no number.
        let text = c"connection refused";
        check(
            failed(Failure::iwarp_refused(Refusal::Received, text)),
            Command::RefusedNtf,
            &[
                (Attr::Refusal, Value::U32(1)),
                (Attr::Phase, Value::U32(2)),
                (Attr::ReasonName, Value::Text(text)),
                from,
                to,
                service,
            ],
        );
        let gave_up = Failure::GaveUp {
            phase: Phase::Dreq,
            retries: Some(4),
        };
        let (phase, retries) = ((Attr::Phase, Value::U32(5)), (Attr::Retries, Value::U32(4)));
        check(
            failed(gave_up),
            Command::GaveUpNtf,
            &[phase, retries, from, to, service],
        );
        // Addresses that are not known are left out.
        let nowhere = Event::Failed {
            failure: gave_up,
            src: SockAddr::Unspec,
            dst: SockAddr::Unspec,
            service_id: 0,
        };
        check(nowhere, Command::GaveUpNtf, &[phase, retries]);
        let limit = |user| Event::Limit {
            user,
            resource: Resource::Ids,
            limit: 5,
        };
        let resource = (Attr::Resource, Value::Resource(Resource::Ids, 5));
        check(limit(None), Command::LimitNtf, &[resource]);
        check(
            limit(Some(1000)),
            Command::LimitNtf,
            &[(Attr::Uid, Value::U32(1000)), resource],
        );
        check(
            Event::DeviceGone { connections: 2 },
            Command::DeviceGoneNtf,
            &[(Attr::Connections, Value::U32(2))],
        );
        check(
            Event::Lost { events: 9 },
            Command::LostNtf,
            &[(Attr::Lost, Value::Uint(9))],
        );
    }
}
