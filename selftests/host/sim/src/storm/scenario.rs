// SPDX-License-Identifier: GPL-2.0

//! The connections of a storm, and the accidents of its nodes.

use std::fmt;

/// The connections of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Each node has a connection with each other one. All are held open, and then closed at once.
    Held,
    /// Each node connects to some others at a time, closes these connections, and connects to the
    /// next ones.
    Waves,
    /// All nodes connect to the first one.
    Server,
}

/// The accident of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No accident.
    Plain,
    /// The restart of a tenth of the nodes, when half of the connections are open.
    Restart,
    /// The death of a tenth of the nodes, which are dead from the start, or clients that die when
    /// they have sent their requests.
    Dead,
}

macro_rules! named {
    ($type:ident, $($name:ident = $text:literal),*) => {
        impl $type {
            /// All of them.
            pub const ALL: [Self; 3] = [$(Self::$name),*];

            /// Returns the one with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.to_string() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

named!(Scenario, Held = "held", Waves = "waves", Server = "server");
named!(
    Condition,
    Plain = "plain",
    Restart = "restart",
    Dead = "dead"
);

/// The plan of a storm: connections of each node, in waves.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub scenario: Scenario,
    /// Number of nodes, those that a server serves not counting it.
    pub nodes: u32,
    /// Number of waves of [`Scenario::Waves`].
    pub waves: u32,
    /// Connections that a node begins in a wave of [`Scenario::Waves`].
    pub wave: u32,
}

impl Plan {
    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.nodes + u32::from(self.scenario == Scenario::Server)
    }

    /// Returns the number of waves.
    pub fn waves(&self) -> u32 {
        match self.scenario {
            Scenario::Waves => self.waves,
            Scenario::Held | Scenario::Server => 1,
        }
    }

    /// Returns the nodes that `host` connects to in a wave.
    ///
    /// The nodes are on a circle, and each connects to the half of it that is before it, the next
    /// one first. So each pair has one connection, and all nodes have the same number.
    pub fn peers(&self, host: u32, wave: u32) -> Vec<u32> {
        let n = self.nodes;
        let half = |offset: u32| offset < n - offset || (offset == n - offset && host < offset);
        let at = |offset: u32| ((u64::from(host) + u64::from(offset)) % u64::from(n)) as u32;
        match self.scenario {
            Scenario::Server if host == 0 => Vec::new(),
            Scenario::Server => vec![0],
            Scenario::Held => (1..n).filter(|offset| half(*offset)).map(at).collect(),
            // When the circle is used up, it begins again.
            Scenario::Waves => (0..self.wave)
                .map(|i| at(1 + (wave * self.wave + i) % (n - 1)))
                .collect(),
        }
    }

    /// Returns the number of connections that are begun if there is no accident.
    pub fn connections(&self) -> u64 {
        let n = u64::from(self.nodes);
        match self.scenario {
            Scenario::Held => n * (n - 1) / 2,
            Scenario::Waves => n * u64::from(self.waves) * u64::from(self.wave),
            Scenario::Server => n,
        }
    }

    /// Returns whether `host` is of the tenth that an accident befalls. A server is not.
    pub fn is_victim(&self, host: u32) -> bool {
        host % 10 == 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(scenario: Scenario, nodes: u32) -> Plan {
        Plan {
            scenario,
            nodes,
            waves: 3,
            wave: 2,
        }
    }

    #[test]
    fn each_pair_is_connected_once() {
        for nodes in [2, 3, 10, 11] {
            let plan = plan(Scenario::Held, nodes);
            let pairs = (0..nodes).flat_map(|host| {
                let peers = plan.peers(host, 0);
                peers.into_iter().map(move |p| (host.min(p), host.max(p)))
            });
            let mut pairs: Vec<_> = pairs.collect();
            assert_eq!(pairs.len() as u64, plan.connections());
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len() as u64, plan.connections());
            assert!(pairs.iter().all(|(a, b)| a != b));
        }
    }

    #[test]
    fn a_wave_goes_to_the_next_ones_of_the_circle() {
        let waves = plan(Scenario::Waves, 4);
        let peers: Vec<_> = (0..3).map(|wave| waves.peers(3, wave)).collect();
        assert_eq!(peers, [[0, 1], [2, 0], [1, 2]]);
        assert_eq!(waves.connections(), 24);
    }

    #[test]
    fn a_server_is_connected_to_by_all() {
        let server = plan(Scenario::Server, 9);
        assert_eq!(server.hosts(), 10);
        assert_eq!(server.peers(0, 0), []);
        assert!((1..10).all(|host| server.peers(host, 0) == [0]));
    }
}
