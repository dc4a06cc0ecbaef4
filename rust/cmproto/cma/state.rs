// SPDX-License-Identifier: GPL-2.0

//! The states of an endpoint, and the transitions between them.

use crate::{errno::Errno, numbered::numbered};

numbered! {
    /// A state of an endpoint. The numbers are those of the kernel's `enum rdma_cm_state`, which
    /// netlink reports to user space.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum State {
        /// The endpoint is new.
        Idle = 0 => "IDLE",
        /// The peer's address is being resolved.
        AddrQuery = 1 => "ADDR_QUERY",
        /// The peer's address is known.
        AddrResolved = 2 => "ADDR_RESOLVED",
        /// The route to the peer is being resolved.
        RouteQuery = 3 => "ROUTE_QUERY",
        /// The route to the peer is known.
        RouteResolved = 4 => "ROUTE_RESOLVED",
        /// The endpoint connects, is connected, or has failed to connect: it cannot connect again.
        Connect = 5 => "CONNECT",
        /// The endpoint is disconnected.
        Disconnect = 6 => "DISCONNECT",
        /// The endpoint has a local address.
        AddrBound = 7 => "ADDR_BOUND",
        /// The endpoint listens for requests.
        Listen = 8 => "LISTEN",
        /// The device was removed.
        DeviceRemoval = 9 => "DEVICE_REMOVAL",
        /// The endpoint is being destroyed.
        Destroying = 10 => "DESTROYING",
        /// A service is being resolved.
        AddrinfoQuery = 11 => "ADDRINFO_QUERY",
        /// A service is known.
        AddrinfoResolved = 12 => "ADDRINFO_RESOLVED",
    }
    /// Returns the kernel's name of the state, for traces.
    fn name -> &'static str
}

numbered! {
    /// A trigger of a state transition.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Trigger {
        /// The user binds a local address, possibly as a part of resolving or listening.
        Bind,
        /// The user resolves the peer's address.
        ResolveAddr,
        /// The peer's address is known.
        AddrResolved,
        /// The peer's address could not be found.
        AddrFailed,
        /// The user resolves a service.
        ResolveService,
        /// The service is known.
        ServiceResolved,
        /// The service could not be found.
        ServiceFailed,
        /// The user resolves the route, by asking the subnet administrator.
        ResolveRoute,
        /// The route is known.
        RouteResolved,
        /// The route could not be found.
        RouteFailed,
        /// The user resolves the route where nobody has to be asked, which is known at once.
        ComputeRoute,
        /// The user sets the route.
        SetPath,
        /// The user connects.
        Connect,
        /// Connecting failed before anything was sent.
        ConnectFailed,
        /// A request has arrived, for which this endpoint is made.
        Request,
        /// The user listens.
        Listen,
        /// Listening has failed.
        ListenFailed,
        /// A consumer of the InfiniBand CM sends a REQ or SIDR_REQ, possibly after one that has
        /// ended.
        SendReq,
        /// A consumer of the InfiniBand CM listens on a service id.
        Serve,
        /// Listening on a service id has failed.
        ServeFailed,
        /// Either end has disconnected.
        Disconnected,
        /// The device is being removed.
        RemoveDevice,
        /// The endpoint is being destroyed.
        Destroy,
    }
}

impl State {
    /// Returns the state to which `trigger` leads, or `None` if `trigger` is not allowed in this
    /// state. In the latter case a verb fails with `EINVAL`, and a result is dropped.
    #[inline]
    pub const fn next(self, trigger: Trigger) -> Option<Self> {
        match (trigger, self) {
            (Trigger::Bind, Self::Idle)
            | (Trigger::AddrFailed, Self::AddrQuery)
            | (Trigger::ServiceFailed, Self::AddrinfoQuery)
            | (Trigger::ListenFailed, Self::Listen) => Some(Self::AddrBound),
            (Trigger::ResolveAddr, Self::AddrBound) => Some(Self::AddrQuery),
            (Trigger::AddrResolved, Self::AddrQuery) | (Trigger::RouteFailed, Self::RouteQuery) => {
                Some(Self::AddrResolved)
            }
            (Trigger::ResolveService, Self::AddrBound) => Some(Self::AddrinfoQuery),
            (Trigger::ServiceResolved, Self::AddrinfoQuery) => Some(Self::AddrinfoResolved),
            (Trigger::ResolveRoute, Self::AddrResolved | Self::AddrinfoResolved) => {
                Some(Self::RouteQuery)
            }
            (Trigger::RouteResolved, Self::RouteQuery)
            | (Trigger::ComputeRoute, Self::AddrResolved | Self::AddrinfoResolved)
            | (Trigger::SetPath, Self::AddrResolved)
            | (Trigger::ConnectFailed, Self::Connect) => Some(Self::RouteResolved),
            (Trigger::Connect, Self::RouteResolved)
            | (Trigger::Request, Self::Idle)
            | (Trigger::SendReq, Self::Idle | Self::Connect) => Some(Self::Connect),
            (Trigger::Listen, Self::AddrBound) | (Trigger::Serve, Self::Idle | Self::Connect) => {
                Some(Self::Listen)
            }
            (Trigger::ServeFailed, Self::Listen) => Some(Self::Idle),
            (Trigger::Disconnected, Self::Connect) => Some(Self::Disconnect),
            (Trigger::RemoveDevice, Self::DeviceRemoval | Self::Destroying) => None,
            (Trigger::RemoveDevice, _) => Some(Self::DeviceRemoval),
            (Trigger::Destroy, Self::Destroying) => None,
            (Trigger::Destroy, _) => Some(Self::Destroying),
            _ => None,
        }
    }

    /// Returns whether the endpoint is dead: nothing but its destruction can happen to it.
    pub const fn is_dead(self) -> bool {
        matches!(self, Self::DeviceRemoval | Self::Destroying)
    }

    /// Returns the error of a verb that is not allowed in this state, on the way to a connection.
    ///
    /// If the device was removed, that is not the consumer's fault, and the error says so: a
    /// consumer that tries again by itself takes `EINVAL` for a fault.
    pub const fn refusal(self) -> Errno {
        match self {
            Self::DeviceRemoval => Errno::ECONNABORTED,
            _ => Errno::EINVAL,
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cma_state)
)]
mod tests {
    use super::*;

    /// The transitions: from, trigger, to. No other pair of state and trigger has one.
    const TABLE: &[(State, Trigger, State)] = &[
        (State::Idle, Trigger::Bind, State::AddrBound),
        (State::Idle, Trigger::Request, State::Connect),
        (State::AddrBound, Trigger::ResolveAddr, State::AddrQuery),
        (
            State::AddrBound,
            Trigger::ResolveService,
            State::AddrinfoQuery,
        ),
        (State::AddrBound, Trigger::Listen, State::Listen),
        (State::AddrQuery, Trigger::AddrResolved, State::AddrResolved),
        (State::AddrQuery, Trigger::AddrFailed, State::AddrBound),
        (
            State::AddrinfoQuery,
            Trigger::ServiceResolved,
            State::AddrinfoResolved,
        ),
        (
            State::AddrinfoQuery,
            Trigger::ServiceFailed,
            State::AddrBound,
        ),
        (
            State::AddrResolved,
            Trigger::ResolveRoute,
            State::RouteQuery,
        ),
        (
            State::AddrResolved,
            Trigger::ComputeRoute,
            State::RouteResolved,
        ),
        (
            State::AddrinfoResolved,
            Trigger::ComputeRoute,
            State::RouteResolved,
        ),
        (State::AddrResolved, Trigger::SetPath, State::RouteResolved),
        (
            State::AddrinfoResolved,
            Trigger::ResolveRoute,
            State::RouteQuery,
        ),
        (
            State::RouteQuery,
            Trigger::RouteResolved,
            State::RouteResolved,
        ),
        (State::RouteQuery, Trigger::RouteFailed, State::AddrResolved),
        (State::RouteResolved, Trigger::Connect, State::Connect),
        (State::Connect, Trigger::ConnectFailed, State::RouteResolved),
        (State::Connect, Trigger::Disconnected, State::Disconnect),
        (State::Listen, Trigger::ListenFailed, State::AddrBound),
        (State::Idle, Trigger::SendReq, State::Connect),
        (State::Connect, Trigger::SendReq, State::Connect),
        (State::Idle, Trigger::Serve, State::Listen),
        (State::Connect, Trigger::Serve, State::Listen),
        (State::Listen, Trigger::ServeFailed, State::Idle),
    ];

    #[test]
    fn a_device_that_has_gone_is_no_fault() {
        for state in State::ALL {
            let is_gone = state == State::DeviceRemoval;
            let expected = if is_gone {
                Errno::ECONNABORTED
            } else {
                Errno::EINVAL
            };
            assert_eq!((state, state.refusal()), (state, expected));
        }
    }

    #[test]
    fn every_state_and_trigger() {
        for (number, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
            for trigger in Trigger::ALL {
                let expected = match trigger {
                    Trigger::RemoveDevice => (!state.is_dead()).then_some(State::DeviceRemoval),
                    Trigger::Destroy => (state != State::Destroying).then_some(State::Destroying),
                    _ => TABLE
                        .iter()
                        .find(|row| row.0 == state && row.1 == trigger)
                        .map(|row| row.2),
                };
                let next = state.next(trigger);
                assert_eq!((state, trigger, next), (state, trigger, expected));
            }
        }
        for row in TABLE {
            assert_eq!(
                TABLE
                    .iter()
                    .filter(|r| r.0 == row.0 && r.1 == row.1)
                    .count(),
                1
            );
        }
    }

    #[test]
    #[cfg(test)]
    #[ignore = "prints the table for documentation"]
    fn print_states() {
        for trigger in Trigger::ALL {
            for state in State::ALL {
                if let Some(next) = state.next(trigger) {
                    println!("    {trigger:?} | {} | {}", state.name(), next.name());
                }
            }
        }
    }

    #[test]
    fn names_are_distinct() {
        for (i, state) in State::ALL.iter().enumerate() {
            assert!(State::ALL[..i]
                .iter()
                .all(|other| other.name() != state.name()));
        }
    }

    #[test]
    fn only_destruction_is_left_to_the_dead() {
        for state in State::ALL.into_iter().filter(|state| state.is_dead()) {
            for trigger in Trigger::ALL {
                assert!(state
                    .next(trigger)
                    .is_none_or(|next| next == State::Destroying));
            }
        }
    }
}
