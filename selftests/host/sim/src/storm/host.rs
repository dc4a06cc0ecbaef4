// SPDX-License-Identifier: GPL-2.0

//! A host: a node, the queues of its one processor, and the application.

use std::collections::{BTreeSet, VecDeque};

use cmnode::{EpId, Listener, Node};
use cmproto::{
    addr::{Gid, SockAddr},
    cm::Tuning,
    origin::Origin,
    qp::QpType,
    service_id::{PortSpace, ServiceId},
    time::Instant,
    wire::MAD_LEN,
};

use super::{cost::Sizes, link::Link, policy::Policy, surroundings::Surroundings, Config};

/// The port that all applications listen on.
pub const PORT: u16 = 4791;

/// A message on its way.
#[derive(Debug)]
pub struct Packet {
    pub from: Origin,
    pub mad: Box<[u8; MAD_LEN]>,
}

/// Something that a processor has to do.
#[derive(Debug)]
pub enum Work {
    Message(Packet),
    Timer {
        ep: EpId,
        deadline: Instant,
    },
    /// The application connects to a host. It has asked for that at a time, in nanoseconds.
    Connect {
        to: u32,
        asked: Option<u64>,
    },
    /// The application reads the next request, and accepts it.
    Accept,
    /// The application confirms a reply.
    Establish(EpId),
    Disconnect(EpId),
    /// The application confirms that its peer has disconnected, and destroys the end.
    Confirm(EpId),
    Destroy(EpId),
}

/// The connections that the application of a host has begun.
#[derive(Debug, Default)]
pub struct App {
    pub wave: u32,
    /// Connections of the wave without an outcome.
    pub opening: u32,
    pub open: BTreeSet<EpId>,
    pub is_closing: bool,
    /// When all connections of all waves had their outcomes, in nanoseconds.
    pub done: Option<u64>,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    pub node: Node<Surroundings>,
    pub listener: EpId,
    pub link: Link,
    pub is_alive: bool,
    pub is_busy: bool,
    /// The receive queue of QP1.
    pub received: VecDeque<Packet>,
    /// Work items of the kernel.
    pub kernel: VecDeque<Work>,
    pub user: VecDeque<Work>,
    /// Requests that wait until fewer are outstanding.
    pub held: VecDeque<Work>,
    turn: u8,
    pub app: App,
    /// Connected ends, of both sides.
    pub open: u32,
    /// When the closed connections leave nothing behind any more, in nanoseconds.
    timewaits: VecDeque<u64>,
    /// The most memory that its connections have taken, in bytes.
    pub peak: u64,
    next_qpn: u32,
}

/// Returns the address of a host.
pub fn gid(host: u32) -> Gid {
    let [_, b, c, d] = (host + 1).to_be_bytes();
    Gid::from_v4([10, b, c, d])
}

/// Returns the socket address of a host.
pub fn addr(host: u32, port: u16) -> SockAddr {
    SockAddr::v4(gid(host).to_v4().unwrap_or_default(), port)
}

impl Host {
    /// Creates a host that starts for the `epoch`-th time.
    pub fn new(index: u32, epoch: u32, first_ep: EpId, tuning: &Tuning, config: &Config) -> Self {
        let guid = 0x0200_0000_0000_0000 | u64::from(index);
        let key = [config.seed, u64::from(index) << 32 | u64::from(epoch)];
        let env = Surroundings::new(tuning.early_retry(), key);
        let mut node = Node::new(env, gid(index), guid, key, first_ep);
        config.policy.tune(&mut node, tuning);
        let listener = node.listen(Listener {
            addr: addr(index, PORT),
            service_id: ServiceId::from_ip(PortSpace::Tcp, PORT).0,
            afonly: true,
            backlog: config.backlog,
            qp_type: QpType::ANY,
        });
        Self {
            node,
            listener,
            link: Link::default(),
            is_alive: true,
            is_busy: false,
            received: VecDeque::new(),
            kernel: VecDeque::new(),
            user: VecDeque::new(),
            held: VecDeque::new(),
            turn: 0,
            app: App::default(),
            open: 0,
            timewaits: VecDeque::new(),
            peak: 0,
            next_qpn: epoch << 20,
        }
    }

    /// Returns a number for a queue pair, which is not used again soon.
    pub fn take_qpn(&mut self) -> u32 {
        self.next_qpn = self.next_qpn.wrapping_add(1);
        16 + self.next_qpn % 0xff_0000
    }

    /// Takes the next work. The queues take turns, as the tasks of a processor do.
    pub fn next_work(&mut self) -> Option<(Work, bool)> {
        for _ in 0..3 {
            self.turn = (self.turn + 1) % 3;
            let work = match self.turn {
                0 => self.received.pop_front().map(|p| (Work::Message(p), true)),
                1 => self.kernel.pop_front().map(|work| (work, false)),
                _ => self.user.pop_front().map(|work| (work, false)),
            };
            if work.is_some() {
                return work;
            }
        }
        None
    }

    /// Notes that a connected end is gone.
    pub fn forget_open(&mut self, policy: Policy, now: u64) {
        self.open = self.open.saturating_sub(1);
        if policy.timewait() > 0 {
            self.timewaits.push_back(now + policy.timewait());
        }
    }

    /// Notes how much memory the connections take at `now`.
    pub fn weigh(&mut self, sizes: &Sizes, now: u64) {
        while self.timewaits.front().is_some_and(|until| *until <= now) {
            self.timewaits.pop_front();
        }
        let ends = self.node.endpoints.len() as u64;
        let open = u64::from(self.open).min(ends);
        let held = self.held.len() as u64;
        let bytes = open * sizes.open
            + (ends - open + held) * sizes.opening
            + self.timewaits.len() as u64 * sizes.timewait;
        self.peak = self.peak.max(bytes);
    }

    /// Returns the number of entries that are left in all tables.
    pub fn left(&self) -> u64 {
        let tables = &self.node.tables;
        let left = self.node.endpoints.len() + tables.comm_ids.len() + tables.remote_ids.len();
        left as u64
    }
}
