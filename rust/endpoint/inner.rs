// SPDX-License-Identifier: GPL-2.0

//! The state of an endpoint that its lock protects.

use super::{
    addresses::{AddrResolution, Addresses},
    exchange::Exchange,
    group::Group,
    path_resolution::PathResolution,
    qp_info::QpInfo,
    Attachment, Consumer, Listening,
};
use crate::{
    device::port::Port,
    globals::Globals,
    ib::{device::NodeType, gid::GidAttr, interface::Interface},
    kext::use_count::OwnedUse,
    table::{neighbours::Watching, round_trips::InFlight, timers::Timer},
};
use cmproto::{
    cm::{self, Limits, Tunable, Tuning},
    cma::State,
    ipoib,
    time::TimeCode,
};
use kernel::{prelude::*, rbtree::RBTree, sync::Arc};

/// Options that a consumer may set before it connects or listens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    /// Type of service of the path; `None` for the port's default.
    pub(crate) tos: Option<u8>,
    /// Set if others may bind the same address (`RDMA_OPTION_ID_REUSEADDR`).
    pub(crate) reuseaddr: bool,
    /// Set if a wildcard address covers its own address family only; `None` for the default.
    pub(crate) afonly: Option<bool>,
    /// Local ack timeout of the QP, a 5-bit IBTA time code; `None` for the one that follows from
    /// the path.
    pub(crate) ack_timeout: Option<u8>,
    /// Minimum RNR NAK timer of the QP, a 5-bit code; `None` for the default.
    pub(crate) min_rnr_timer: Option<u8>,
    /// The only node type of devices that the endpoint may be attached to, or takes requests from;
    /// `None` for any.
    pub(crate) node_type: Option<NodeType>,
}

/// The state of an endpoint that its lock protects.
///
/// # Invariants
///
/// - `exchange` is not [`Exchange::None`] only while `device` is `Some`.
/// - A dead endpoint (see [`Inner::is_dead`]) has no consumer, no device, no port and no
///   connection; or it is about to be taken down, by the removal of its device, or by its consumer
///   if `device_use` is `Some`.
pub(crate) struct Inner {
    /// The state, which [`Endpoint::step`](super::Endpoint::step) changes.
    pub(super) state: State,
    pub(crate) consumer: Option<Arc<dyn Consumer>>,
    /// The values that belong to the addresses, and the claim to the port.
    pub(crate) addr: Addresses,
    pub(crate) options: Options,
    pub(crate) listening: Option<Listening>,
    pub(crate) device: Option<Attachment>,
    /// Keeps the device in use, if the consumer is a part of the kernel, which uses the device
    /// until it destroys the endpoint.
    pub(crate) device_use: Option<OwnedUse>,
    /// Set if the address of the peer is known. ib_core does not see the difference.
    pub(super) has_dst: bool,
    /// The result of address resolution.
    pub(crate) resolution: AddrResolution,
    /// The interface that the endpoint sends from, once it is known.
    pub(crate) interface: Option<Interface>,
    /// The entry by which the endpoint is told that its peer's link-layer address has changed.
    pub(crate) watching: Option<Watching<Arc<Globals>>>,
    /// The path to the peer.
    pub(crate) route: PathResolution,
    pub(crate) exchange: Exchange,
    /// The right to arm the endpoint's timer.
    pub(crate) timer: Timer,
    /// The request that waits for its answer, as it is counted. While there is one, the timer is
    /// armed, so that an endpoint with one is not dropped.
    pub(crate) in_flight: Option<InFlight>,
    /// The tunables that the consumer has set. The tunables of a listener also apply to its
    /// requests.
    pub(crate) tuning: Tuning,
    /// The consumer's queue pair.
    pub(crate) qp: QpInfo,
    /// Set if the consumer's queue pair has a shared receive queue.
    pub(crate) srq: bool,
    /// The memberships in multicast groups, by the numbers that the consumer gave them.
    pub(crate) groups: RBTree<u64, Group>,
}

impl Inner {
    /// Initializes the state of a new endpoint, in place.
    pub(crate) fn new() -> impl Init<Self> {
        init!(Inner {
            state: State::Idle,
            consumer: None,
            addr: Addresses::UNKNOWN,
            options: Options::default(),
            listening: None,
            device: None,
            device_use: None,
            has_dst: false,
            resolution: AddrResolution::NONE,
            interface: None,
            watching: None,
            route: PathResolution::NONE,
            exchange: Exchange::None,
            timer: Timer::new(),
            in_flight: None,
            tuning: Tuning::NONE,
            qp: QpInfo::new(),
            srq: false,
            groups: RBTree::new(),
        })
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Returns the state as the InfiniBand CM defines it.
    pub(crate) fn cm_state(&self) -> cm::State {
        // A listener may still have the exchange that it had before, which is over.
        if self.state == State::Listen {
            return cm::State::Listen;
        }
        match &self.exchange {
            Exchange::Connection(conn) => conn.machine.state(),
            Exchange::Sidr(sidr) => sidr.machine.state(),
            Exchange::None | Exchange::Iwarp(_) => cm::State::Idle,
        }
    }

    /// Returns whether the endpoint was destroyed or its device was removed.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.is_dead()
    }

    /// Returns whether the peer is at the device that the endpoint is attached to.
    pub(crate) fn is_peer_at_own_device(&self) -> bool {
        // If the peer is known by its LID, its GID is in the path.
        let peer = self.exchange.peer().and_then(|peer| match peer.gid() {
            Some(gid) => Some(*gid),
            None => self.route.path.as_ref().map(|path| path.dgid),
        });
        peer.zip(self.device.as_ref()).is_some_and(|(peer, at)| {
            // The GID of the attachment counts, too: it may have been removed from the device's
            // table already.
            let own = at.gid.as_ref().map(GidAttr::gid);
            own == Some(peer) || at.device.has_gid(&peer)
        })
    }

    /// Returns whether the iWARP CM makes the connections of the endpoint.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.device.as_ref().is_some_and(Attachment::is_iwarp)
    }

    /// Returns whether the endpoint is attached to a RoCE port.
    pub(crate) fn is_roce(&self) -> bool {
        self.device.as_ref().is_some_and(Attachment::is_roce)
    }

    /// Returns whether the endpoint is attached to a port with an InfiniBand link.
    pub(crate) fn is_ib(&self) -> bool {
        self.device.as_ref().is_some_and(Attachment::is_ib)
    }

    /// Returns the addresses of the link that the address resolution has found, if it is one of IP
    /// over InfiniBand.
    pub(crate) fn ipoib(&self) -> Option<&ipoib::Link> {
        self.resolution.dev_addr.as_ref()?.ipoib()
    }

    /// Returns the port that the endpoint is attached to.
    pub(crate) fn cm_port(&self) -> Option<&Port> {
        Some(&**self.device.as_ref()?.port()?)
    }

    /// Returns the value of a tunable, which is the port's if the consumer has not set it.
    pub(crate) fn tuned(&self, tunable: Tunable) -> u32 {
        self.tuned_at(tunable, self.cm_port())
    }

    /// Returns the value of a tunable for an endpoint at `port`.
    pub(crate) fn tuned_at(&self, tunable: Tunable, port: Option<&Port>) -> u32 {
        self.tuning
            .own(tunable)
            .unwrap_or_else(|| port.map_or(tunable.default_value(), |port| port.tuned(tunable)))
    }

    /// Returns the limits of a connection from `port`.
    pub(crate) fn limits_at(&self, port: Option<&Port>) -> Limits {
        Limits::tuned(|tunable| self.tuned_at(tunable, port))
    }

    /// Returns the limits of a connection from the endpoint's port.
    pub(crate) fn limits(&self) -> Limits {
        self.limits_at(self.cm_port())
    }

    /// Returns the time code of the response timeout of a peer.
    pub(crate) fn response_timeout(&self) -> TimeCode {
        TimeCode::new(self.tuned_code(Tunable::ResponseTimeout))
    }

    /// Returns the maximum number of retries of a request.
    pub(crate) fn max_retries(&self) -> u8 {
        self.tuned_code(Tunable::MaxRetries)
    }

    fn tuned_code(&self, tunable: Tunable) -> u8 {
        u8::try_from(self.tuned(tunable)).unwrap_or(u8::MAX)
    }

    /// Returns the values of all tunables for an endpoint at `port`.
    pub(crate) fn tuning_at(&self, port: Option<&Port>) -> Tuning {
        match port {
            Some(port) => self.tuning.over(&port.tuning()),
            None => self.tuning,
        }
    }

    /// Returns the type of service that the consumer has set; 0 if none.
    pub(crate) fn tos(&self) -> u8 {
        self.options.tos.unwrap_or(0)
    }
}
