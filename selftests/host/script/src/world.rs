// SPDX-License-Identifier: GPL-2.0

//! The world that a script acts on: the system under test, its user interface, its network and its
//! clock.

use crate::wire::Mad;
use cmproto::cm::Tuning;
use std::{fmt, net::IpAddr};

/// Microseconds.
pub type Micros = u64;

/// A sender or receiver on the wire, apart from the system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The peer of the connections.
    Peer,
    /// A third host.
    Stranger,
}

/// The implementation that is tested, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// The Rust protocol crate on the host.
    Host,
    /// The Rust module in a guest.
    Rust,
    /// The kernel's C modules in a guest.
    C,
}

/// Addresses and names that are a scenario's own, so that scenarios do not meet.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The system under test.
    pub local: IpAddr,
    /// The peer.
    pub peer: IpAddr,
    /// The third host.
    pub stranger: IpAddr,
    /// Node GUID of the peer's channel adapter.
    pub guid: u64,
    /// First of eight port numbers.
    pub port: u16,
}

/// A port space, which says what kind of service it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Reliable connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// An endpoint of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub usize);

/// The parameters that a user gives for its side of a connection, or gets for the other side.
#[derive(Clone, Debug, Default)]
pub struct ConnParam {
    pub qpn: u32,
    pub responder: u8,
    pub initiator: u8,
    pub flow: u8,
    pub retry: u8,
    pub rnr: u8,
    pub srq: u8,
    pub vendor: u32,
    pub attr_mod: u32,
    pub private: Vec<u8>,
}

/// A service, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub space: Space,
    pub address: IpAddr,
    pub port: u16,
}

/// Attributes of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpAttr {
    pub mask: u32,
    pub dest_qpn: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub mtu: u8,
    pub max_rd: u8,
    pub max_dest_rd: u8,
    pub timeout: u8,
    pub retry: u8,
    pub rnr: u8,
    pub access: u32,
    pub alt_timeout: u8,
}

/// The result of a call of the user, or its errno.
pub type Called<T = ()> = Result<T, i32>;

/// An event that the user reads.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: Micros,
    /// The endpoint of the event; the listener's for a connection request.
    pub endpoint: Endpoint,
    /// The new endpoint of a connection request.
    pub child: Option<Endpoint>,
    /// `enum rdma_cm_event_type`.
    pub kind: u32,
    pub status: i32,
    pub param: ConnParam,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = usize::try_from(self.kind).unwrap_or(usize::MAX);
        let name = EVENTS.get(kind).unwrap_or(&"unknown");
        write!(f, "event {name} status {}", self.status)
    }
}

/// A message on the wire, sent by the system under test.
#[derive(Clone)]
pub struct Sent {
    pub at: Micros,
    pub to: Who,
    pub mad: Mad,
}

/// An event or a message that can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    pub wire: bool,
    pub events: bool,
}

/// Something that happened.
pub enum Input {
    Mad(Box<Sent>),
    Event(Box<Event>),
}

/// The calls of the user.
pub trait User {
    /// Binds and listens; gives an endpoint.
    fn listen(&mut self, service: Service, backlog: u32, afonly: bool) -> Called<Endpoint>;
    /// Resolves address and route, and connects; gives an endpoint.
    fn connect(&mut self, service: Service, param: &ConnParam) -> Called<Endpoint>;
    /// Answers a request.
    fn accept(&mut self, endpoint: Endpoint, param: &ConnParam) -> Called;
    /// Answers a response.
    fn establish(&mut self, endpoint: Endpoint) -> Called;
    /// Refuses either.
    fn reject(&mut self, endpoint: Endpoint, reason: u8, private: &[u8]) -> Called;
    /// Disconnects, or confirms that.
    fn disconnect(&mut self, endpoint: Endpoint) -> Called;
    /// Data has arrived on the queue pair.
    fn notify(&mut self, endpoint: Endpoint) -> Called;
    /// Asks the peer to use an alternate path to another LID of it.
    fn load(&mut self, endpoint: Endpoint, dlid: u16) -> Called;
    /// Asks for the attributes of the queue pair.
    fn qp_attr(&mut self, endpoint: Endpoint, state: u32) -> Called<QpAttr>;
    /// Destroys an endpoint.
    fn destroy(&mut self, endpoint: Endpoint) -> Called;
    /// Closes everything.
    fn close(&mut self) -> Called;
}

/// The world that a script acts on.
pub trait World: User {
    /// Returns the implementation under test.
    fn under(&self) -> Under;
    /// The names of this scenario.
    fn names(&self) -> Names;
    /// The time.
    fn now(&self) -> Micros;
    /// Returns the time after which an event or a message is late, if the script names none.
    fn retry_timeout(&self) -> Micros;
    /// Returns the error of the clock.
    fn slack(&self) -> Micros;
    /// Sends the bytes to the system under test.
    fn send(&mut self, from: Who, bytes: &[u8]) -> Result<(), String>;
    /// Tunes the CM, where it can be tuned, for all calls to come.
    fn tune(&mut self, tuning: &Tuning);
    /// Makes the links those of InfiniBand; queue pairs may have no alternate path there.
    fn use_infiniband(&mut self, can_migrate: bool);
    /// The next thing that happens before `until`; time goes on meanwhile, to `until` at most.
    fn next(&mut self, watch: Watch, until: Micros) -> Option<Input>;
}

/// The names of `enum rdma_cm_event_type`, by number.
pub const EVENTS: [&str; 20] = [
    "ADDR_RESOLVED",
    "ADDR_ERROR",
    "ROUTE_RESOLVED",
    "ROUTE_ERROR",
    "CONNECT_REQUEST",
    "CONNECT_RESPONSE",
    "CONNECT_ERROR",
    "UNREACHABLE",
    "REJECTED",
    "ESTABLISHED",
    "DISCONNECTED",
    "DEVICE_REMOVAL",
    "MULTICAST_JOIN",
    "MULTICAST_ERROR",
    "ADDR_CHANGE",
    "TIMEWAIT_EXIT",
    "ADDRINFO_RESOLVED",
    "ADDRINFO_ERROR",
    "USER",
    "INTERNAL",
];
