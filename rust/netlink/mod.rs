// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `rdma-cm`: what the module does, and its tunables.
//!
//! A dump takes one object after the other out of its table, without a lock while it writes a
//! message, and knows the place of the next one. So an object that is there for as long as the dump
//! takes is in the dump, whatever comes and goes meanwhile.
//! [`cmproto::netlink`] has the numbers, and decides who may see what.

mod connection;
mod identifier;
mod listener;
mod peer;
mod port;
mod user;

use self::peer::Peers;
use crate::{
    globals::Globals,
    kext::{
        error::ToKernel,
        net::Net,
        netlink::{self, Answer, Operation, Request},
    },
    table::listener_key,
};
use cmproto::{
    errno::Errno,
    netlink::{Attr, Command, Viewer, EVENTS, FAMILY, VERSION},
};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};

/// The registration of the family.
pub(crate) type Registration = netlink::Registration<Family>;

/// The family `rdma-cm`.
pub(crate) struct Family(pub(crate) Arc<Globals>);

/// A dump: who asks, and what comes next.
pub(crate) struct Dump {
    viewer: Viewer,
    net: ARef<Net>,
    next: Next,
}

/// The next object of a dump.
enum Next {
    Port(port::Place),
    Counters(port::Place, usize),
    Latencies(port::Place, usize),
    User(user::Place),
    Listener(listener_key::Place),
    Connection(connection::Place),
    Peers(Peers),
}

impl netlink::Family for Family {
    const NAME: &'static CStr = FAMILY;
    const VERSION: u32 = VERSION;
    const GROUP: &'static CStr = EVENTS;
    const OPERATIONS: &'static [Operation] = &[
        Operation::Dump(Command::PortGet as u8),
        Operation::Act(Command::PortSet as u8),
        Operation::Dump(Command::CounterGet as u8),
        Operation::Dump(Command::UserGet as u8),
        Operation::Dump(Command::ListenerGet as u8),
        Operation::Dump(Command::ConnectionGet as u8),
        Operation::Dump(Command::PeerGet as u8),
        Operation::Dump(Command::LatencyGet as u8),
    ];
    const NUMBERS: &'static [u16] = &[
        Attr::DevIndex as u16,
        Attr::Port as u16,
        Attr::ResponseTimeout as u16,
        Attr::MaxRetries as u16,
        Attr::Deadline as u16,
        Attr::Timewait as u16,
        Attr::EarlyRetry as u16,
        Attr::Parking as u16,
        Attr::ReusePort as u16,
        Attr::DeadLink as u16,
        Attr::Keepalive as u16,
    ];
    type Dump = Dump;

    fn start(&self, request: &Request<'_>) -> Result<Dump> {
        let mut commands = Command::ALL.into_iter();
        let command = commands.find(|command| *command as u8 == request.command());
        let viewer = Viewer {
            user: request.user(),
            is_admin: request.is_from_admin(),
            is_host_admin: request.is_from_host_admin(),
        };
        let net: ARef<Net> = request.net().into();
        let next = match command.ok_or(Errno::EOPNOTSUPP.to_kernel())? {
            Command::PortGet => Next::Port(port::Place::FIRST),
            Command::CounterGet => Next::Counters(port::Place::FIRST, 0),
            Command::LatencyGet => Next::Latencies(port::Place::FIRST, 0),
            Command::UserGet => Next::User(user::Place::FIRST),
            Command::ListenerGet => Next::Listener(listener_key::Place::FIRST),
            Command::ConnectionGet => Next::Connection(connection::Place::FIRST),
            Command::PeerGet => Next::Peers(Peers::new(&self.0, &viewer, &net)?),
            Command::PortSet
            | Command::RefusedNtf
            | Command::GaveUpNtf
            | Command::LimitNtf
            | Command::DeviceGoneNtf
            | Command::LostNtf => return Err(Errno::EOPNOTSUPP.to_kernel()),
        };
        Ok(Dump { viewer, net, next })
    }

    fn dump(&self, dump: &mut Dump, out: &mut Answer<'_>) -> Result {
        let Dump { viewer, net, next } = dump;
        match next {
            Next::Port(place) => port::ports(&self.0, net, place, out),
            Next::Counters(place, kind) => port::counters(&self.0, net, place, kind, out),
            Next::Latencies(place, phase) => port::latencies(&self.0, net, place, phase, out),
            Next::User(place) => user::users(&self.0, viewer, place, out),
            Next::Listener(place) => listener::listeners(&self.0, viewer, net, place, out),
            Next::Connection(place) => connection::connections(&self.0, viewer, net, place, out),
            Next::Peers(peers) => peers.dump(&self.0, out),
        }
    }

    fn act(&self, request: &Request<'_>) -> Result {
        port::set(&self.0, request)
    }
}
