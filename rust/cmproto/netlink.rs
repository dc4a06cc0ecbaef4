// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `rdma-cm`: its numbers, and who may see what.
//!
//! `Documentation/netlink/specs/rdma-cm.yaml` describes the messages.

use crate::{cm::Tunable, numbered::numbered};

/// The name of the family.
pub const FAMILY: &core::ffi::CStr = c"rdma-cm";

/// The version of the family.
pub const VERSION: u32 = 1;

/// The name of the multicast group of events.
pub const EVENTS: &core::ffi::CStr = c"events";

numbered! {
    /// A command, and the kind of the messages that answer it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Command {
        /// The ports, and their tunables.
        PortGet = 1 => "port-get",
        /// Sets tunables of a port.
        PortSet = 2 => "port-set",
        /// The counters of the ports.
        CounterGet = 3 => "counter-get",
        /// The users, what they have and what they may have.
        UserGet = 4 => "user-get",
        /// The listeners.
        ListenerGet = 5 => "listener-get",
        /// The connections, and the attempts at one.
        ConnectionGet = 6 => "connection-get",
        /// The peers of connections.
        PeerGet = 7 => "peer-get",
        /// A request was refused.
        RefusedNtf = 8 => "refused-ntf",
        /// A peer has not answered.
        GaveUpNtf = 9 => "gave-up-ntf",
        /// A user has reached a limit.
        LimitNtf = 10 => "limit-ntf",
        /// A device was removed.
        DeviceGoneNtf = 11 => "device-gone-ntf",
        /// There were too many events.
        LostNtf = 12 => "lost-ntf",
        /// The latencies of the phases of connections, by port.
        LatencyGet = 13 => "latency-get",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

numbered! {
    /// An attribute of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u16)]
    pub enum Attr {
        /// Index of a device.
        DevIndex = 1 => "dev-index",
        /// Name of a device.
        DevName = 2 => "dev-name",
        /// Number of a port of a device.
        Port = 3 => "port",
        /// Protocol of a port.
        Protocol = 4 => "protocol",
        /// [`Tunable::ResponseTimeout`].
        ResponseTimeout = 5 => "response-timeout",
        /// [`Tunable::MaxRetries`].
        MaxRetries = 6 => "max-retries",
        /// [`Tunable::Deadline`].
        Deadline = 7 => "deadline-ms",
        /// [`Tunable::Timewait`].
        Timewait = 8 => "timewait",
        /// [`Tunable::EarlyRetry`].
        EarlyRetry = 9 => "early-retry-ms",
        /// [`Tunable::Parking`].
        Parking = 10 => "backlog-parking",
        /// A [`CounterKind`].
        CounterKind = 11 => "counter-kind",
        /// A counter, which has [`CounterAttr`]s.
        Counter = 12 => "counter",
        /// A user.
        Uid = 13 => "uid",
        /// A resource of a user, which has [`ResourceAttr`]s.
        Resource = 14 => "resource",
        /// Number of an identifier in the netlink family of ib_core.
        Number = 15 => "cm-idn",
        /// Process that owns an identifier.
        Pid = 16 => "pid",
        /// Part of the kernel that owns an identifier.
        Owner = 17 => "owner",
        /// Port space.
        PortSpace = 18 => "port-space",
        /// Type of the queue pair.
        QpType = 19 => "qp-type",
        /// Number of the queue pair.
        QpNumber = 20 => "qp-num",
        /// A [state](crate::cma::State) of an endpoint.
        State = 21 => "state",
        /// A [state](crate::cm::State) of a connection.
        CmState = 22 => "cm-state",
        /// Source address.
        Src = 23 => "src",
        /// Destination address.
        Dst = 24 => "dst",
        /// Time since the identifier was made.
        Age = 25 => "age-ms",
        /// Number of messages of the connection that were sent again.
        Retries = 26 => "retries",
        /// Mean of the peer's answer times.
        RoundTrip = 27 => "rtt-us",
        /// Mean deviation of the peer's answer times.
        RoundTripVar = 28 => "rtt-var-us",
        /// Service id.
        ServiceId = 29 => "service-id",
        /// Number of requests that may wait to be read.
        Backlog = 30 => "backlog",
        /// Number of requests that wait to be read.
        Unread = 31 => "unread",
        /// Number of requests that wait beside a full backlog.
        Parked = 32 => "parked",
        /// Number of requests for which there was no room.
        Refused = 33 => "refused",
        /// GID of a peer.
        Gid = 34 => "gid",
        /// Number of connections.
        Connections = 35 => "connections",
        /// Number of requests that wait for an answer.
        Unanswered = 36 => "unanswered",
        /// Time since the last message of a peer.
        Silent = 37 => "silent-ms",
        /// When a request to the peer would be sent early.
        EarlyRetryAfter = 38 => "early-retry-us",
        /// A [`Refusal`](crate::event::Refusal).
        Refusal = 39 => "refusal",
        /// Number of the reason of a refusal.
        Reason = 40 => "reason",
        /// Text of the reason of a refusal.
        ReasonName = 41 => "reason-name",
        /// A [`Phase`](crate::event::Phase) of a connection.
        Phase = 42 => "phase",
        /// Number of events that were lost.
        Lost = 43 => "lost",
        /// The [bits](Tunable::bit) of the tunables that an identifier sets itself.
        SetOnId = 44 => "set-on-id",
        /// [`Tunable::DeadLink`].
        DeadLink = 45 => "dead-link-ms",
        /// [`Tunable::ReusePort`].
        ReusePort = 46 => "reuseport",
        /// [`Tunable::Keepalive`].
        Keepalive = 47 => "keepalive-s",
        /// Sum of the latencies of a phase.
        LatencySum = 48 => "latency-sum-us",
        /// A bucket of the latencies of a phase, which has [`BucketAttr`]s.
        LatencyBucket = 49 => "latency-bucket",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

impl Attr {
    /// Returns the attribute of a tunable, which has the name of the tunable, too.
    pub const fn of(tunable: Tunable) -> Self {
        match tunable {
            Tunable::ResponseTimeout => Self::ResponseTimeout,
            Tunable::MaxRetries => Self::MaxRetries,
            Tunable::Deadline => Self::Deadline,
            Tunable::Timewait => Self::Timewait,
            Tunable::EarlyRetry => Self::EarlyRetry,
            Tunable::Parking => Self::Parking,
            Tunable::ReusePort => Self::ReusePort,
            Tunable::DeadLink => Self::DeadLink,
            Tunable::Keepalive => Self::Keepalive,
        }
    }
}

numbered! {
    /// An attribute of a counter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u16)]
    pub enum CounterAttr {
        /// Number of what is counted: of a message, or of a reason.
        Code = 1 => "code",
        /// Name of what is counted.
        Name = 2 => "name",
        /// Value of the counter.
        Value = 3 => "value",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

numbered! {
    /// An attribute of a resource.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u16)]
    pub enum ResourceAttr {
        /// Name of the resource.
        Name = 1 => "name",
        /// Number that the user has.
        Used = 2 => "used",
        /// Number that the user may have.
        Limit = 3 => "limit",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

numbered! {
    /// An attribute of a bucket of latencies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u16)]
    pub enum BucketAttr {
        /// Longest latency in the bucket. The last bucket has none.
        UpTo = 1 => "up-to-us",
        /// Number of latencies in the bucket.
        Count = 2 => "count",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

numbered! {
    /// A kind of counters of a port.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum CounterKind {
        /// Messages sent, including repetitions.
        TxMsgs = 0 => "tx-msgs",
        /// Messages sent again because they were not answered.
        TxRetries = 1 => "tx-retries",
        /// Messages received.
        RxMsgs = 2 => "rx-msgs",
        /// Duplicates among the messages received.
        RxDuplicates = 3 => "rx-duplicates",
        /// Messages received and dropped, by [reason](crate::dropped::Dropped).
        RxDrops = 4 => "rx-drops",
        /// REJs sent, by [reason](crate::reject::Reason).
        TxRejects = 5 => "tx-rejects",
        /// REJs received, by [reason](crate::reject::Reason).
        RxRejects = 6 => "rx-rejects",
        /// Messages among those sent again that were sent early.
        TxEarlyRetries = 7 => "tx-early-retries",
        /// Requests that were sent early and then answered, without a sign that this was needless.
        EarlyRetriesAnswered = 8 => "early-retries-answered",
    }
    /// Returns the name in the specification.
    fn name -> &'static str
}

/// One who asks: a user with a socket in a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// The user, in the initial user namespace.
    pub user: u32,
    /// Set if the user administers the network namespace (`CAP_NET_ADMIN`).
    pub is_admin: bool,
    /// Set if the user administers the host: the same in the initial user namespace.
    pub is_host_admin: bool,
}

impl Viewer {
    /// Returns whether the viewer sees an object in its network namespace that `owner` pays for, or
    /// that belongs to the kernel if there is no owner.
    pub fn sees(&self, owner: Option<u32>) -> bool {
        self.is_admin || owner == Some(self.user)
    }

    /// Returns whether the viewer sees what the user `owner` has in all network namespaces.
    /// `is_mapped` is set if the user has a number in the viewer's user namespace.
    ///
    /// The administrator of a container sees the users of the container, and those around it only
    /// if it administers the host.
    pub fn sees_account(&self, owner: u32, is_mapped: bool) -> bool {
        self.is_host_admin || owner == self.user || (self.is_admin && is_mapped)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_netlink))]
mod tests {
    use super::*;

    const fn viewer(user: u32, is_admin: bool, is_host_admin: bool) -> Viewer {
        Viewer {
            user,
            is_admin,
            is_host_admin,
        }
    }

    const USER: Viewer = viewer(1000, false, false);
    const ADMIN: Viewer = viewer(100_000, true, false);
    const HOST_ADMIN: Viewer = viewer(0, true, true);

    #[test]
    fn a_user_sees_its_own() {
        assert!(USER.sees(Some(1000)));
        for other in [None, Some(0), Some(1001), Some(u32::MAX)] {
            assert!(!USER.sees(other));
        }
        // The account of another user is hidden even if the other is in the same container.
        for is_mapped in [false, true] {
            assert!(USER.sees_account(1000, is_mapped));
            assert!(!USER.sees_account(0, is_mapped) && !USER.sees_account(1001, is_mapped));
        }
    }

    #[test]
    fn an_administrator_sees_all_in_its_namespace() {
        for owner in [None, Some(0), Some(1000), Some(u32::MAX)] {
            assert!(ADMIN.sees(owner) && HOST_ADMIN.sees(owner));
        }
    }

    #[test]
    fn accounts_are_those_of_the_host() {
        assert!(ADMIN.sees_account(100_000, true) && ADMIN.sees_account(100_999, true));
        assert!(!ADMIN.sees_account(0, false) && !ADMIN.sees_account(1000, false));
        for is_mapped in [false, true] {
            assert!(HOST_ADMIN.sees_account(1000, is_mapped));
        }
    }
}

#[cfg(test)]
mod specification {
    use super::*;
    use crate::event::{Phase, Refusal};

    /// Returns the names in the section of the specification that begins with the line `heading`.
    fn names(heading: &str) -> Vec<&'static str> {
        let spec = include_str!("../../Documentation/netlink/specs/rdma-cm.yaml");
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut lines = spec.lines().skip_while(|line| *line != heading);
        let depth = indent(lines.next().expect(heading));
        let names = lines
            .take_while(|line| line.is_empty() || indent(line) >= depth)
            .filter(|line| indent(line) > depth)
            .filter_map(|line| line.trim_start().strip_prefix("name: "));
        names.collect()
    }

    #[test]
    fn numbers_are_those_of_the_specification() {
        // The numbers of attributes and commands start with 1, and have no gaps.
        macro_rules! check {
            ($ty:ident, $heading:literal, $first:literal) => {
                assert_eq!(names($heading), $ty::ALL.map($ty::name));
                for (number, value) in $ty::ALL.into_iter().enumerate() {
                    assert_eq!(value as usize, number + $first);
                }
            };
        }
        check!(Attr, "    name: rdma-cm", 1);
        check!(CounterAttr, "    name: counter-attrs", 1);
        check!(ResourceAttr, "    name: resource-attrs", 1);
        check!(BucketAttr, "    name: bucket-attrs", 1);
        check!(CounterKind, "    name: counter-kind", 0);
        check!(Refusal, "    name: refusal", 0);
        assert_eq!(
            names("    name: tunable"),
            Tunable::ALL.map(|tunable| Attr::of(tunable).name())
        );
        check!(Phase, "    name: phase", 0);
        assert_eq!(
            names("mcast-groups:"),
            [EVENTS.to_str().expect("a name of ASCII")]
        );
        check!(Command, "  list:", 1);
    }
}
