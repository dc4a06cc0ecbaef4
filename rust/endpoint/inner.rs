// SPDX-License-Identifier: GPL-2.0

//! What the lock of an endpoint protects.

use super::Consumer;
use crate::{
    cm::{
        ids::CommId, parked::Parked, peers::Unanswered, questions::Question, remote::Tracked,
        timer::TimerSlot,
    },
    cma::{
        device::CmDevice,
        iwarp::Iwarp,
        listeners::Listening,
        multicast::Group,
        neighbours::{Interface, Watching},
        ports::PortClaim,
        service::Services,
    },
    ib::{addr::Query, ah::Ah, dev_addr::DevAddr, device::NodeType, gid::GidAttr, sa::SaQuery},
    kext::{gate::OwnedGuard, random},
};
use cmproto::{
    addr::SockAddr,
    cm::{self, Connection, Tuning},
    cma::{Qkey, State},
    origin::Origin,
    path::Path,
    sidr::Resolution,
    ucma::{path::PathRecord, query::Protocol},
};
use kernel::{prelude::*, rbtree::RBTree, sync::Arc};

/// What a consumer may set before it connects or listens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    /// Type of service of the path.
    pub(crate) tos: Option<u8>,
    /// Whether the address may be bound again.
    pub(crate) reuseaddr: bool,
    /// Whether a wildcard covers its own address family only; unset means the default.
    pub(crate) afonly: Option<bool>,
    /// Local ack timeout of the QP, an IBA time code.
    pub(crate) ack_timeout: Option<u8>,
    /// How long the QP makes a peer wait that it was not ready for, an RNR code.
    pub(crate) min_rnr_timer: Option<u8>,
    /// The only kind of device that the endpoint is attached to, or hears; unset if any.
    pub(crate) node_type: Option<NodeType>,
}

/// The place of an endpoint at a device.
pub(crate) struct Attachment {
    /// The device.
    pub(crate) device: Arc<CmDevice>,
    /// The port.
    pub(crate) port_num: u32,
    /// What the port speaks.
    pub(crate) protocol: Protocol,
    /// The GID that the endpoint speaks from; none after a loopback resolution on RoCE, which names
    /// a port but no address.
    pub(crate) gid: Option<GidAttr>,
}

/// A connection that exists, or that a REQ asks for.
pub(crate) struct Conn {
    /// The state machine of the IB CM.
    pub(crate) machine: Connection,
    /// The communication id.
    pub(crate) comm_id: CommId,
    /// The peer's names, while they are this connection's.
    pub(crate) tracked: Option<Tracked>,
    /// Whose messages are accepted.
    pub(crate) peer: Origin,
    /// How the peer is reached.
    pub(crate) ah: Option<Ah>,
    /// Index of the P_Key that the messages carry.
    pub(crate) pkey_index: u16,
    /// The LID that data go to, if not to that of the path.
    pub(crate) data_lid: u16,
    /// Counts while the request waits in addition to a full backlog.
    pub(crate) parked: Option<Parked>,
    /// The state before the transition that is under way, for tracepoints.
    pub(crate) before: cm::State,
}

/// A service id resolution that this end asks for or is asked for.
pub(crate) struct Sidr {
    /// The state machine of the IB CM.
    pub(crate) machine: Resolution,
    /// Asking side: the communication id, which is the number of the question.
    pub(crate) comm_id: Option<CommId>,
    /// Answering side: the question, until it is answered.
    pub(crate) question: Option<Question>,
    /// Whose answer is accepted, or who asks.
    pub(crate) peer: Origin,
    /// How the peer is reached.
    pub(crate) ah: Option<Ah>,
    /// Index of the P_Key that the messages carry.
    pub(crate) pkey_index: u16,
}

/// What the lock of an endpoint protects.
///
/// # Invariants
///
/// - Of `conn`, `sidr` and `iwarp` at most one is there, and only while `device` is.
/// - A dead endpoint (see [`Inner::is_dead`]) has no consumer, no device, no port and no connection,
///   or is about to be taken down by whoever removes its device, or by its consumer if `stay` is
///   there.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) consumer: Option<Arc<dyn Consumer>>,
    pub(crate) src: SockAddr,
    pub(crate) dst: SockAddr,
    /// Interface that a link-local or resolved address belongs to; 0 if any.
    pub(crate) bound_if: i32,
    pub(crate) options: Options,
    /// What `options.afonly` came to when the address was bound.
    pub(crate) afonly: bool,
    pub(crate) port: Option<PortClaim>,
    pub(crate) listening: Option<Listening>,
    pub(crate) device: Option<Attachment>,
    /// Keeps the device from being taken down, while the consumer is a part of the kernel that uses
    /// it until it destroys the endpoint.
    pub(crate) stay: Option<OwnedGuard>,
    /// The P_Key of the interface or the native address, where there is one; else 0.
    pub(crate) pkey: u16,
    /// What address resolution found out.
    pub(crate) link: Option<DevAddr>,
    /// The address query that is under way, or the last one.
    pub(crate) query: Option<Query>,
    /// What the subnet administrator is asked, as long as it is.
    pub(crate) asking: Option<KBox<SaQuery>>,
    /// The services that it has found.
    pub(crate) services: Option<Services>,
    pub(crate) path: Option<Path>,
    /// The record that the path was made of, if a user has set it or the subnet administrator has found
    /// it: some of it is but shown.
    pub(crate) given_path: Option<KBox<PathRecord>>,
    /// Where the endpoint speaks from, once it is known.
    pub(crate) interface: Option<Interface>,
    /// The entry by which it hears that its peer has moved.
    pub(crate) watching: Option<Watching>,
    /// Whether the consumer was told of that.
    pub(crate) has_peer_moved: bool,
    pub(crate) conn: Option<Conn>,
    pub(crate) sidr: Option<KBox<Sidr>>,
    pub(crate) iwarp: Option<Iwarp>,
    pub(crate) timer: TimerSlot,
    /// Counts while a request waits for its answer.
    pub(crate) unanswered: Option<Unanswered>,
    /// What the consumer has tuned; of a listener, it holds for the requests to it.
    pub(crate) tuning: Tuning,
    /// Packet sequence number that this end starts with; 24 bits.
    pub(crate) psn: u32,
    /// QP of this end, as the consumer named it; 24 bits.
    pub(crate) qp_num: u32,
    pub(crate) srq: bool,
    /// Q_Key of datagrams.
    pub(crate) qkey: Qkey,
    /// The multicast groups, by the number that their owner knows them by.
    pub(crate) groups: RBTree<u64, Group>,
}

impl Inner {
    /// Creates the inside of a new endpoint, in its place.
    pub(crate) fn new(timer: TimerSlot) -> impl Init<Self> {
        init!(Inner {
            state: State::Idle,
            consumer: None,
            src: SockAddr::Unspec,
            dst: SockAddr::Unspec,
            bound_if: 0,
            options: Options::default(),
            afonly: false,
            port: None,
            listening: None,
            device: None,
            stay: None,
            pkey: 0,
            link: None,
            query: None,
            asking: None,
            services: None,
            path: None,
            given_path: None,
            interface: None,
            watching: None,
            has_peer_moved: false,
            conn: None,
            sidr: None,
            iwarp: None,
            timer,
            unanswered: None,
            tuning: Tuning::NONE,
            psn: random::u32() & 0x00ff_ffff,
            qp_num: 0,
            srq: false,
            qkey: Qkey::unknown(),
            groups: RBTree::new(),
        })
    }

    /// Whether the endpoint was destroyed or lost its device.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.is_dead()
    }

    /// Whether the peer is at the device that the endpoint is attached to.
    pub(crate) fn is_peer_at_own_device(&self) -> bool {
        let (conn, sidr) = (self.conn.as_ref(), self.sidr.as_ref());
        let peer = conn.map(|conn| conn.peer).or(sidr.map(|sidr| sidr.peer));
        // Whose LID is known has its GID in the path.
        let peer = peer.and_then(|peer| match peer.gid() {
            Some(gid) => Some(*gid),
            None => self.path.as_ref().map(|path| path.dgid),
        });
        peer.zip(self.device.as_ref()).is_some_and(|(peer, at)| {
            // The own address may have been taken from the device's table already.
            let own = at.gid.as_ref().map(GidAttr::gid);
            own == Some(peer) || at.device.has_gid(&peer)
        })
    }

    /// The type of service that the consumer has set; 0 if none.
    pub(crate) fn tos(&self) -> u8 {
        self.options.tos.unwrap_or(0)
    }
}
