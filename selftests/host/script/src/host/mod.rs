// SPDX-License-Identifier: GPL-2.0

//! The protocol crate as a world: a node with a virtual clock.
//!
//! `cmproto::node` decides about a message, and [`cmnode`] carries it out. Parts that need a kernel
//! (routes, devices, memory) are reduced to those that the scripts can observe.

mod call;
mod seen;
mod surroundings;

use self::surroundings::Surroundings;
use crate::{
    wire,
    world::{Input, Micros, Names, Under, Watch, Who, World},
};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::Tuning,
    origin::Origin,
    time::Instant,
    wire::MAD_LEN,
};
use std::net::IpAddr;

/// Node GUID of the system under test.
const GUID: u64 = 0x0200_00ff_fe00_0001;

/// A node of the protocol crate.
pub struct Node(cmnode::Node<Surroundings>);

fn sock(address: IpAddr, port: u16) -> SockAddr {
    match address {
        IpAddr::V4(v4) => SockAddr::v4(v4.octets(), port),
        IpAddr::V6(v6) => SockAddr::v6(v6.octets(), port),
    }
}

/// Returns the address that the messages of a host come from.
fn origin(address: IpAddr) -> Origin {
    Origin::of_gid(Gid(wire::gid(address)))
}

/// Names for a scenario, which is alone with its node.
pub fn names(is_ipv6: bool) -> Names {
    let address = |v4: [u8; 4], last: u16| match is_ipv6 {
        true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]),
        false => IpAddr::from(v4),
    };
    Names {
        local: address([10, 0, 0, 1], 1),
        peer: address([10, 0, 0, 9], 9),
        stranger: address([10, 0, 0, 10], 10),
        guid: 0x0200_00ff_fe00_0009,
        port: 7000,
    }
}

impl Node {
    /// A node with no endpoints.
    pub fn new(names: Names) -> Self {
        let gid = Gid(wire::gid(names.local));
        let key = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
        let mut node = cmnode::Node::new(Surroundings::new(names), gid, GUID, key, 0);
        node.now = Instant::from_micros(1_000_000);
        Self(node)
    }

    /// Lets the first timer go off that is due before `until`.
    fn tick(&mut self, until: Instant) -> bool {
        let node = &mut self.0;
        let timers = node.endpoints.iter();
        let first = timers
            .filter_map(|(ep, endpoint)| Some((endpoint.machine.deadline()?, *ep)))
            .min();
        let Some((deadline, ep)) = first.filter(|(deadline, _)| *deadline <= until) else {
            return false;
        };
        node.now = node.now.max(deadline);
        node.timeout(ep);
        true
    }
}

impl World for Node {
    fn under(&self) -> Under {
        Under::Host
    }

    fn names(&self) -> Names {
        self.0.env.names
    }

    fn now(&self) -> Micros {
        self.0.now.as_micros()
    }

    fn retry_timeout(&self) -> Micros {
        0
    }

    fn slack(&self) -> Micros {
        0
    }

    fn send(&mut self, from: Who, bytes: &[u8]) -> Result<(), String> {
        // The MAD layer hands out nothing that is not whole.
        if let Ok(bytes) = <&[u8; MAD_LEN]>::try_from(bytes) {
            let names = self.names();
            let from = origin(match from {
                Who::Peer => names.peer,
                Who::Stranger => names.stranger,
            });
            self.note(from, bytes);
            self.0.receive(from, bytes);
        }
        Ok(())
    }

    fn tune(&mut self, tuning: &Tuning) {
        self.0.tuning = *tuning;
    }

    fn use_infiniband(&mut self, can_migrate: bool) {
        self.0.is_ib = true;
        self.0.can_migrate = can_migrate;
    }

    fn next(&mut self, watch: Watch, until: Micros) -> Option<Input> {
        loop {
            if watch.wire {
                if let Some(sent) = self.0.env.wire.pop_front() {
                    return Some(Input::Mad(Box::new(sent)));
                }
            }
            if watch.events {
                if let Some(event) = self.read() {
                    return Some(Input::Event(Box::new(event)));
                }
            }
            let until = Instant::from_micros(until);
            if !self.tick(until) {
                self.0.now = self.0.now.max(until);
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::Kind;
    use cmproto::wire::Attribute;

    #[test]
    fn attributes_are_those_of_the_table() {
        for (kind, _, id, _) in Kind::ALL {
            assert_eq!(
                Attribute::try_from(id).map(Attribute::id),
                Ok(id),
                "{kind:?}"
            );
        }
    }
}
